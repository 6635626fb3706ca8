//! Settings of the host: asked for by conditions, in force with a lab, told to the record.

use super::RunError;
use std::fmt::Write;
use tailbound_host::journal::{Journal, JournalError};
use tailbound_host::knob::{self, KnobError, Knobs, Place, PutBack};
use tailbound_lab::netns::{NetNs, path_of};
use tailbound_lab::{Lab, LabSpec};
use tailbound_model::*;
use tailbound_record::*;

pub(super) fn failed(e: KnobError) -> RunError {
    match e {
        KnobError::Journal(e) => RunError::new(ExitCode::RunFailed, e, ""),
        e => RunError::new(ExitCode::MachineNotFit, e, ""),
    }
}

fn place(end: usize, spec: &PlaceSpec, netns: &NetNs) -> Option<Place> {
    let path = match spec {
        PlaceSpec::ExistingNetns(name) => path_of(name).display().to_string(),
        _ => String::new(),
    };
    Place::of_end(["ping", "pong"][end], netns.descriptor()?, &path).ok()
}

/// The network namespaces of the ends, where they are not the caller's.
fn of_lab(spec: &LabSpec, lab: &Lab) -> Vec<Place> {
    [&spec.ping, &spec.pong].iter().enumerate().filter_map(|(i, end)| place(i, end, lab.netns(i)?)).collect()
}

/// Those of them that are there before the lab.
fn existing(spec: &TrialSpec) -> Vec<Place> {
    let ends = [&spec.ping.place, &spec.pong.place].into_iter().enumerate();
    let open = |(i, end): (usize, &PlaceSpec)| match end {
        PlaceSpec::ExistingNetns(name) => place(i, end, &NetNs::open(name).ok()?),
        _ => None,
    };
    ends.filter_map(open).collect()
}

/// What a trial asks of this host: all where an end is on it; what is of a hypervisor also where it runs guests.
pub(super) fn asked_here(spec: &TrialSpec) -> Vec<KnobSpec> {
    let places = [&spec.ping.place, &spec.pong.place];
    let any_here = !places.iter().all(|place| place.is_remote());
    let guests = places.iter().any(|place| is_guest_of_this_host(place));
    spec.host.iter().filter(|knob| any_here || (guests && knob.is_of_hypervisor())).cloned().collect()
}

/// What it asks of another host that an end is on.
pub(super) fn asked_there(place: &PlaceSpec, settings: &[KnobSpec]) -> Vec<KnobSpec> {
    let guest = is_guest_of_this_host(place);
    settings.iter().filter(|knob| !(guest && knob.is_of_hypervisor())).cloned().collect()
}

fn is_guest_of_this_host(place: &PlaceSpec) -> bool {
    matches!(place, PlaceSpec::Vm(_) | PlaceSpec::Domain(_))
}

/// What is set before the lab is built.
pub(super) fn set_host(knobs: &mut Knobs, specs: &[KnobSpec], journal: &Journal) -> Result<(), RunError> {
    specs.iter().filter(|s| !s.is_of_network()).try_for_each(|s| knobs.set(s, &[], journal)).map_err(failed)
}

/// What is set when the network namespaces of the ends are there; then all settings are read again.
pub(super) fn set_network(
    knobs: &mut Knobs,
    specs: &[KnobSpec],
    (spec, lab): (&LabSpec, &Lab),
    journal: &Journal,
) -> Result<(), RunError> {
    let ends = of_lab(spec, lab);
    specs.iter().filter(|s| s.is_of_network()).try_for_each(|s| knobs.set(s, &ends, journal)).map_err(failed)?;
    // All of them together: one may have changed another.
    let Some(text) = knobs.verify().into_iter().next() else { return Ok(()) };
    let mend = "look for a setting of the study that changes it again, or for somebody else who does";
    Err(RunError::new(ExitCode::MachineNotFit, text, mend))
}

/// Why a trial's settings cannot be made on this machine.
pub(super) fn lack(spec: &TrialSpec) -> Option<RunError> {
    let (ends, made) = (existing(spec), LabSpec::from(spec).makes_namespaces());
    asked_here(spec).iter().find_map(|s| knob::check(s, &ends, made).err()).map(failed)
}

/// What a run would set, one line each with the value that is there now.
pub(super) fn describe(plan: &Plan) -> String {
    let mut lines: Vec<String> = Vec::new();
    for spec in plan.conditions.iter().filter(|c| c.not_possible.is_none()).map(|c| &c.spec) {
        let ends = existing(spec);
        for knob in &spec.host {
            let now: Vec<String> =
                knob::now(knob, &ends).into_iter().map(|(what, v)| format!("{what} is `{v}`")).collect();
            let now = if now.is_empty() { "not here".to_owned() } else { now.join(", ") };
            let at = if knob.is_of_network() { ", where the ends are" } else { "" };
            let line = format!("  {knob}{at}; now {now}; put back afterwards  [{}]", knob.privilege());
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        if let Some(error) = lack(spec) {
            let line = format!("  LACKING: {}", error.text);
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

/// Writes into the record what is in force; the index of its entry, if there is any.
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

/// Writes into the record what became of the settings.
///
/// # Errors
/// Some could not be put back: nothing more is measured on a host that is not as it was found.
pub(super) fn record_put_back(record: &mut RecordWriter, entry: Option<usize>, back: PutBack) -> Result<(), RunError> {
    let PutBack { settings, left_alone, failed } = back;
    let Some(entry) = entry.and_then(|i| record.manifest.host_settings.get_mut(i)) else {
        return not_put_back(&failed).map_or(Ok(()), Err);
    };
    let what = settings.iter().map(|s| format!("{}: {}", s.what, s.put_back.as_deref().unwrap_or(""))).collect();
    entry.settings = settings;
    // First of all what is left to do: the record may be the very thing that fails.
    let error = not_put_back(&failed);
    for text in left_alone {
        record.warn(Warning::new("host_setting_left", Severity::Warning, text, "look who else sets it"))?;
    }
    if let Some(error) = error {
        record.warn(Warning::new("host_setting_not_put_back", Severity::Warning, &error.text, &error.mend))?;
        record.save()?;
        return Err(error);
    }
    record.event(Event::HostPutBack { what })?;
    Ok(record.save()?)
}

fn not_put_back(failed: &[JournalError]) -> Option<RunError> {
    let reasons: Vec<String> = failed.iter().flat_map(reasons).collect();
    (!reasons.is_empty()).then(|| {
        let text = format!("a setting of the host could NOT be put back: {}", reasons.join("; "));
        RunError::new(ExitCode::RunFailed, text, "`tailbound lab list` shows it, `tailbound lab cleanup` tries again")
    })
}

pub(crate) fn reasons(error: &JournalError) -> Vec<String> {
    match error {
        JournalError::NotUndone(reasons) => reasons.clone(),
        other => vec![other.to_string()],
    }
}

/// What is left in the journal of a run that broke off is taken back (a full disk may have kept it from that), and what
/// cannot be is told, once.
pub(super) fn undo_rest(journal: &Journal, error: &mut RunError) {
    let Err(left) = journal.undo_all(&mut |_| ()) else { return };
    for reason in reasons(&left).into_iter().filter(|reason| !error.text.contains(reason)).collect::<Vec<_>>() {
        let _ = write!(error.text, "; and {reason}: `tailbound lab cleanup` tries again");
    }
}

/// Settings that were made before `error` came are put back; what cannot be is told with it.
pub(super) fn give_up(knobs: Knobs, journal: &Journal, mut error: RunError) -> RunError {
    if let Some(left) = not_put_back(&knobs.put_back(journal).failed) {
        let _ = write!(error.text, "; and {}", left.text);
        error.mend = left.mend;
    }
    error
}
