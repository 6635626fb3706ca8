//! Host settings: changes the settings that a trial asks for, restores them, and writes both into the record.

use super::RunError;
use crate::host_problems::{changed_again, undo_failures};
use std::fmt::Write;
use tailbound_host::journal::{Journal, JournalError};
use tailbound_host::knob::{self, KnobError, Knobs, Place, Restored};
use tailbound_lab::netns::{NetNs, path_of};
use tailbound_lab::{Lab, LabSpec};
use tailbound_model::*;
use tailbound_record::*;

/// Makes the error for a host setting that cannot be changed.
fn failed(e: KnobError) -> RunError {
    let exit = if matches!(e, KnobError::Journal(_)) { ExitCode::RunFailed } else { ExitCode::MachineNotFit };
    RunError::of(exit, e)
}

fn place(end: usize, spec: &PlaceSpec, netns: &NetNs) -> Option<Place> {
    let path = match spec {
        PlaceSpec::ExistingNetns(name) => path_of(name).display().to_string(),
        _ => String::new(),
    };
    Place::of_end(["ping", "pong"][end], netns.descriptor()?, &path).ok()
}

/// Network namespaces of the ends of a lab, except the namespace of the caller.
fn of_lab(spec: &LabSpec, lab: &Lab) -> Vec<Place> {
    [&spec.ping, &spec.pong].iter().enumerate().filter_map(|(i, end)| place(i, end, lab.netns(i)?)).collect()
}

/// Network namespaces of the ends of a trial that exist before the lab is built.
fn existing(spec: &TrialSpec) -> Vec<Place> {
    let ends = [&spec.ping.place, &spec.pong.place].into_iter().enumerate();
    let open = |(i, end): (usize, &PlaceSpec)| match end {
        PlaceSpec::ExistingNetns(name) => place(i, end, &NetNs::open(name).ok()?),
        _ => None,
    };
    ends.filter_map(open).collect()
}

/// Settings that a trial asks for on this host. If an end is on this host, these are all settings; if this host only
/// runs guests, these are the settings of a hypervisor.
pub(super) fn asked_here(spec: &TrialSpec) -> Vec<KnobSpec> {
    let places = [&spec.ping.place, &spec.pong.place];
    let any_here = !places.iter().all(|place| place.is_remote());
    let guests = places.iter().any(|place| is_guest_of_this_host(place));
    spec.host.iter().filter(|knob| any_here || (guests && knob.is_of_hypervisor())).cloned().collect()
}

/// Settings that a trial asks for on another host that has an end.
pub(super) fn asked_there(place: &PlaceSpec, settings: &[KnobSpec]) -> Vec<KnobSpec> {
    let guest = is_guest_of_this_host(place);
    settings.iter().filter(|knob| !(guest && knob.is_of_hypervisor())).cloned().collect()
}

fn is_guest_of_this_host(place: &PlaceSpec) -> bool {
    matches!(place, PlaceSpec::Vm(_) | PlaceSpec::Domain(_))
}

/// Changes the settings that do not need the network namespaces of a lab.
pub(super) fn set_host(knobs: &mut Knobs, specs: &[KnobSpec], journal: &Journal) -> Result<(), RunError> {
    specs.iter().filter(|s| !s.is_of_network()).try_for_each(|s| knobs.set(s, &[], journal)).map_err(failed)
}

/// Changes the settings of the ends' network namespaces, then reads all settings again.
///
/// # Errors
/// A setting cannot be changed, or no longer has the value that was set.
pub(super) fn set_network(
    knobs: &mut Knobs,
    specs: &[KnobSpec],
    (spec, lab): (&LabSpec, &Lab),
    journal: &Journal,
) -> Result<(), RunError> {
    let ends = of_lab(spec, lab);
    specs.iter().filter(|s| s.is_of_network()).try_for_each(|s| knobs.set(s, &ends, journal)).map_err(failed)?;
    // All settings are compared at the end, because one setting may have changed another.
    let Some(text) = knobs.verify().into_iter().next() else { return Ok(()) };
    Err(RunError::of(ExitCode::MachineNotFit, changed_again(text)))
}

/// Makes the error for a host setting of a trial that cannot be changed on this machine; `None` = all settings can be
/// changed.
pub(super) fn lack(spec: &TrialSpec) -> Option<RunError> {
    let (ends, made) = (existing(spec), LabSpec::from(spec).makes_namespaces());
    let refused = |s: &KnobSpec| {
        let error = failed(knob::check(s, &ends, made).err()?);
        Some(match s {
            // The study has a key of its own for this kernel parameter.
            KnobSpec::Sysctl { name, .. } if name == "kernel.sched_rt_runtime_us" => {
                RunError { problem: error.problem.context("`host.real_time_throttling`"), ..error }
            }
            _ => error,
        })
    };
    asked_here(spec).iter().find_map(refused)
}

/// Lists the host settings that a run would change, with their present values, one setting in each line.
pub(super) fn describe(plan: &Plan) -> String {
    let mut lines: Vec<String> = Vec::new();
    for spec in plan.conditions.iter().filter(|c| c.not_possible.is_none()).map(|c| &c.spec) {
        let ends = existing(spec);
        for knob in &spec.host {
            let now: Vec<String> =
                knob::now(knob, &ends).into_iter().map(|(what, v)| format!("{what} is `{v}`")).collect();
            let now = if now.is_empty() { "not here".to_owned() } else { now.join(", ") };
            let at = if knob.is_of_network() { ", where the ends are" } else { "" };
            let line = format!("  {knob}{at}; now {now}; restored afterwards  [{}]", knob.privilege());
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        if let Some(error) = lack(spec) {
            let line = format!("  LACKING: {}", error.problem.what);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    if lines.is_empty() {
        return "  no host setting is changed\n".into();
    }
    lines.into_iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

/// Writes the host settings in force into the record. Returns the index of the new entry; `None` = there are no
/// settings.
pub(super) fn record_set(
    record: &mut RecordWriter,
    block: usize,
    settings: Vec<KnobDone>,
) -> Result<Option<usize>, RunError> {
    if settings.is_empty() {
        return Ok(None);
    }
    let what = settings.iter().map(|s| format!("{}: {} `{}`, was `{}`", s.key, s.what, s.found, s.before)).collect();
    record.event(Event::HostSet { block, what })?;
    record.manifest.host_settings.push(HostSettings { trials: Vec::new(), settings });
    record.save()?;
    Ok(Some(record.manifest.host_settings.len() - 1))
}

/// Writes into the record how the host settings were restored.
///
/// # Errors
/// A setting could not be restored. In this case the run ends, because the host is not in its original state.
pub(super) fn record_restored(record: &mut RecordWriter, entry: Option<usize>, back: Restored) -> Result<(), RunError> {
    let Restored { settings, left_alone, failed } = back;
    let Some(entry) = entry.and_then(|i| record.manifest.host_settings.get_mut(i)) else {
        return not_restored(&failed).map_or(Ok(()), Err);
    };
    let what = settings.iter().map(|s| format!("{}: {}", s.what, s.restored.as_deref().unwrap_or(""))).collect();
    entry.settings = settings;
    // The error is made first, because writing the record may fail.
    let error = not_restored(&failed);
    for text in left_alone {
        record.warn(Warning::new(
            "host_setting_left",
            Severity::Warning,
            text,
            "find out which other program changes this setting",
        ))?;
    }
    if let Some(error) = error {
        record.warn(Warning::new(
            "host_setting_not_put_back",
            Severity::Warning,
            &error.problem.what,
            &error.problem.remedy,
        ))?;
        record.save()?;
        return Err(error);
    }
    record.event(Event::HostPutBack { what })?;
    Ok(record.save()?)
}

fn not_restored(failed: &[JournalError]) -> Option<RunError> {
    let reasons: Vec<String> = failed.iter().flat_map(undo_failures).collect();
    (!reasons.is_empty()).then(|| {
        let text = format!("a setting of the host could NOT be restored: {}", reasons.join("; "));
        let remedy = "`tailbound lab list` shows the setting, `tailbound lab cleanup` tries again to restore it";
        RunError { not_undone: reasons.into(), ..RunError::new(ExitCode::RunFailed, text, remedy) }
    })
}

/// Undoes the changes that are left in the journal of a run that ended with an error (a full disk may have prevented
/// this before). If a change cannot be undone, the reason is added to the error, each reason once.
pub(super) fn undo_rest(journal: &Journal, error: &mut RunError) {
    let Err(left) = journal.undo_all(&mut |_| ()) else { return };
    for reason in undo_failures(&left).into_iter().filter(|reason| !error.not_undone.contains(reason)) {
        let _ = write!(error.problem.what, "; and {reason}: `tailbound lab cleanup` tries again to undo the change");
    }
}

/// Restores the host settings that were changed before an error. If a setting cannot be restored, the reason is added
/// to the error.
pub(super) fn give_up(knobs: Knobs, journal: &Journal, mut error: RunError) -> RunError {
    if let Some(left) = not_restored(&knobs.restore(journal).failed) {
        let _ = write!(error.problem.what, "; and {}", left.problem.what);
        error.problem.remedy = left.problem.remedy;
        error.not_undone = left.not_undone;
    }
    error
}
