//! The whole run.

use super::lab::Standing;
use super::progress::{Progress, ProgressEvent};
use super::remote::{DriverFiles, Hosts};
use super::stop::{self, Stop};
use super::trial::{self, TrialContext};
use super::{RunError, dry_run, fit, knobs, length};
use std::path::PathBuf;
use tailbound_host as host;
use tailbound_host::journal::Journal;
use tailbound_lab::LabSpec;
use tailbound_model::*;
use tailbound_record::*;

/// How to run a plan.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Directory of the record; must not exist.
    pub out: PathBuf,
    /// Command line, for the record.
    pub command: Vec<String>,
    /// Warnings known before the run, e.g. that a path had to be replaced.
    pub warnings: Vec<Warning>,
    /// The drivers that are files, for other hosts.
    pub driver_files: DriverFiles,
}

/// A run that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The record.
    pub dir: PathBuf,
    /// Valid or invalid; incomplete after Ctrl-C.
    pub status: Status,
}

/// Runs a plan that was checked by [`super::check_drivers`].
///
/// # Errors
/// The machine is not fit, the record cannot be made or written, a lab cannot be built. What was measured until then is in
/// the record, which stays marked incomplete.
pub fn run(plan: Plan, options: RunOptions, progress: &mut dyn Progress) -> Result<Finished, RunError> {
    if options.out.symlink_metadata().is_ok() {
        return Err(RecordError::Exists(options.out).into());
    }
    if let Some(error) = fit::not_fit(&plan, options.driver_files) {
        return Err(error);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| RunError::new(ExitCode::Unexpected, format!("cannot begin: {e}"), ""))?;
    runtime.block_on(run_all(plan, options, progress))
}

fn run_id() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // Eight hex digits: part of interface and topic names, unique among runs of one machine.
    format!("{:08x}", (now.as_nanos() as u64 ^ (u64::from(std::process::id()) << 20)) as u32)
}

async fn run_all(plan: Plan, options: RunOptions, progress: &mut dyn Progress) -> Result<Finished, RunError> {
    // Before anything is made: from here on a signal ends the run in order.
    let stop = stop::heard();
    let allowed = host::allowed_cpus();
    let housekeeping = fit::housekeeping(&plan, &allowed);
    // Failing this the controller shares the measured CPUs, but it sleeps while they measure.
    let _ = host::scheduling::set_affinity(0, &housekeeping);
    let journal_failed =
        |e: host::JournalError| RunError::new(ExitCode::RunFailed, e, "a run is not begun without its journal");
    let run_id = run_id();
    let journal = Journal::create(&run_id).map_err(journal_failed)?;
    let out = std::path::absolute(&options.out).unwrap_or(options.out);
    let partial = RecordWriter::partial_name(&out).to_string_lossy().into_owned();
    let partial = journal.before(Undo::RemovePartialRecord { path: partial }).map_err(journal_failed)?;
    let created = RecordWriter::create(&out, manifest(&plan, &run_id, options.command, &allowed));
    journal.done(partial).map_err(journal_failed)?;
    let mut record = match created {
        Ok(record) => record,
        Err(e) => {
            journal.finish().map_err(journal_failed)?;
            return Err(e.into());
        }
    };
    let facts = host::facts::collect();
    let doing =
        Doing { plan: &plan, run_id: &run_id, housekeeping: &housekeeping, journal: &journal, stop, here: &facts };
    let mut hosts = Hosts::new(options.driver_files, record.dir().join("logs"), &allowed, doing.stop.clone());
    let mut ended = run_trials(&doing, &mut hosts, &mut record, options.warnings, progress).await;
    for text in hosts.leave(&journal).await {
        let warned = record.warn(Warning::new("bundle_left", Severity::Warning, text, "remove it by hand"));
        // The journal comes first: it is finished whatever becomes of the record.
        ended = ended.and_then(|complete| Ok(warned.map(|()| complete)?));
    }
    if let Err(error) = &mut ended {
        knobs::undo_rest(&journal, error);
    }
    let tidy = journal.finish().map_err(journal_failed);
    let complete = ended?;
    tidy?;
    if complete {
        let invalid = record.manifest.trials.iter().any(|t| t.status != TrialStatus::Valid)
            || record.manifest.warnings.iter().any(|w| w.severity == Severity::Invalid);
        record.manifest.status = if invalid { Status::Invalid } else { Status::Valid };
    }
    let status = record.manifest.status;
    record.event(Event::RunEnded { status })?;
    record.save()?;
    Ok(Finished { dir: record.dir().to_owned(), status })
}

fn manifest(plan: &Plan, run_id: &str, command: Vec<String>, allowed: &[u32]) -> Manifest {
    let trial = |t: &Trial| TrialRecord {
        id: t.id,
        status: TrialStatus::Pending,
        source: Source::Samples,
        began_unix_ns: None,
        t0_ns: None,
        ends: Default::default(),
        path: None,
        proof: None,
        finding: None,
        summary: None,
        controller: None,
        nodes: Vec::new(),
        ports: Vec::new(),
        guests: Vec::new(),
    };
    Manifest {
        functional_only: fit::functional_only(plan, allowed),
        trials: plan.trials.iter().map(trial).collect(),
        ..Manifest::begun(plan.clone(), run_id, command)
    }
}

/// What every trial of a run needs.
struct Doing<'a> {
    plan: &'a Plan,
    run_id: &'a str,
    housekeeping: &'a CpuList,
    journal: &'a Journal,
    stop: Stop,
    /// This host.
    here: &'a HostFacts,
}

/// All trials; false when Ctrl-C came.
async fn run_trials(
    doing: &Doing<'_>,
    hosts: &mut Hosts,
    record: &mut RecordWriter,
    warnings: Vec<Warning>,
    progress: &mut dyn Progress,
) -> Result<bool, RunError> {
    let (plan, journal) = (doing.plan, doing.journal);
    record.host(doing.here)?;
    for warning in warnings {
        warn(record, progress, warning)?;
    }
    record.event(Event::RunBegan { trials: plan.trials.len() })?;
    record.save()?;
    let estimate = Nanos(plan.trials.iter().map(|t| length::takes(&plan.conditions[t.condition].spec).0).sum());
    progress.event(ProgressEvent::Began { trials: plan.trials.len(), estimate });
    let mut standing: Option<Standing> = None;
    for (number, trial) in plan.trials.iter().enumerate() {
        let condition = &plan.conditions[trial.condition];
        if standing.as_ref().is_some_and(|s| !s.suits(&condition.spec) || !hosts.answer())
            && let Some(old) = standing.take()
        {
            down(doing, old, record, trial.block, progress).await?;
        }
        let mut lab = match standing.take() {
            Some(lab) => lab,
            None => match up(doing, trial, hosts, record, progress).await {
                // Guests that boot are given up.
                Err(e) if doing.stop.came() => {
                    // What could not be put back, too, is told.
                    let told = Warning::new(
                        "interrupted",
                        Severity::Warning,
                        format!("when it was interrupted: {}", e.text),
                        "",
                    );
                    warn(record, progress, told)?;
                    interrupted(record, progress, "before", (number, plan.trials.len()))?;
                    return Ok(false);
                }
                made => made?,
            },
        };
        let warned = record.manifest.warnings.len();
        let result = one(doing, (trial, number), &mut lab, hosts, record, progress).await;
        for warning in &record.manifest.warnings[warned..] {
            progress.event(ProgressEvent::Warned(warning));
        }
        match result {
            Ok(Some(outcome)) => {
                let (answered, scheduled) = (outcome.answered, outcome.scheduled);
                progress.event(ProgressEvent::TrialDone { number, trial: trial.id, answered, scheduled });
                standing = Some(lab);
            }
            Err(error) => {
                let settings = lab.settings;
                let (back, _) = lab.abandon(journal).await;
                let left = knobs::record_put_back(record, settings, back).err();
                return Err(left.map_or(error.clone(), |left| RunError {
                    text: format!("{}; and {}", error.text, left.text),
                    ..error
                }));
            }
            Ok(None) => {
                let settings = lab.settings;
                let (back, down) = lab.abandon(journal).await;
                knobs::record_put_back(record, settings, back)?;
                down?;
                interrupted(record, progress, "in", (number, plan.trials.len()))?;
                return Ok(false);
            }
        }
    }
    if let Some(lab) = standing {
        let last = plan.trials.last().map_or(0, |t| t.block);
        down(doing, lab, record, last, progress).await?;
    }
    Ok(true)
}

/// One reason more, told once.
fn functional_only(manifest: &mut Manifest, why: &str) {
    match &mut manifest.functional_only {
        Some(told) if told.contains(why) => {}
        Some(told) => *told = format!("{told}; {why}"),
        none => *none = Some(why.to_owned()),
    }
}

fn interrupted(
    record: &mut RecordWriter,
    progress: &mut dyn Progress,
    when: &str,
    (number, of): (usize, usize),
) -> Result<(), RunError> {
    let text = format!("the run was interrupted {when} trial {} of {of}", number + 1);
    warn(record, progress, Warning::new("interrupted", Severity::Warning, text, ""))
}

/// Tells at once, and in the record.
fn warn(record: &mut RecordWriter, progress: &mut dyn Progress, warning: Warning) -> Result<(), RunError> {
    progress.event(ProgressEvent::Warned(&warning));
    Ok(record.warn(warning)?)
}

/// Makes the host and the lab what a trial asks for.
async fn up(
    doing: &Doing<'_>,
    trial: &Trial,
    hosts: &mut Hosts,
    record: &mut RecordWriter,
    progress: &mut dyn Progress,
) -> Result<Standing, RunError> {
    let spec = &doing.plan.conditions[trial.condition].spec;
    let vlan = spec.vlan.iter().map(|vlan| format!("VLAN {vlan}"));
    let what = [spec.path.to_string()].into_iter().chain(vlan).chain(spec.host.iter().map(ToString::to_string));
    let what = what.collect::<Vec<_>>().join(", ");
    progress.event(ProgressEvent::Lab { what: &what });
    for host in hosts.reach(&LabSpec::from(spec), (doing.run_id, doing.journal), &doing.here.host).await? {
        record.host(&host.facts)?;
        if let Some(why) = &host.functional_only {
            let concerned = fit::with_place(doing.plan, &host.place);
            functional_only(&mut record.manifest, &fit::of_conditions(doing.plan, why, &concerned));
        }
        for text in &host.remarks {
            warn(record, progress, Warning::new("host_remark", Severity::Warning, text, ""))?;
        }
    }
    hosts.serve(spec, (doing.run_id, doing.journal))?;
    let mut lab = Standing::up(spec, (doing.run_id, doing.journal), record.dir(), hosts).await?;
    // Before a driver starts: it would only say that it found nobody.
    let path = &lab.path;
    if path.max_datagram_ping_to_pong == 0 || path.max_datagram_pong_to_ping == 0 || !path.cut_off.is_empty() {
        for remark in &path.remarks {
            let text = format!("{}: {remark}", spec.path);
            warn(record, progress, Warning::new("path_cut", Severity::Warning, text, ""))?;
        }
    }
    lab.settings = knobs::record_set(record, trial.block, lab.in_force())?;
    record.event(Event::LabUp { block: trial.block, what })?;
    Ok(lab)
}

/// Takes a lab down and makes the host what it was before.
async fn down(
    doing: &Doing<'_>,
    lab: Standing,
    record: &mut RecordWriter,
    block: usize,
    progress: &mut dyn Progress,
) -> Result<(), RunError> {
    let (settings, warned) = (lab.settings, record.manifest.warnings.len());
    let (back, down) = lab.down(doing.journal).await;
    let back = knobs::record_put_back(record, settings, back);
    for warning in &record.manifest.warnings[warned..] {
        progress.event(ProgressEvent::Warned(warning));
    }
    back?;
    down?;
    Ok(record.event(Event::LabDown { block })?)
}

/// One trial in its lab; `None` when a signal came before or while it was measured.
async fn one(
    doing: &Doing<'_>,
    (trial, number): (&Trial, usize),
    lab: &mut Standing,
    hosts: &Hosts,
    record: &mut RecordWriter,
    progress: &mut dyn Progress,
) -> Result<Option<trial::Outcome>, RunError> {
    let condition = &doing.plan.conditions[trial.condition];
    let what = dry_run::levels(condition);
    progress.event(ProgressEvent::Trial { number, what: &what, estimate: length::takes(&condition.spec) });
    let dir = record.dir().to_owned();
    if let Some(error) = lab.lack_of_cpus(&condition.spec) {
        return Err(error);
    }
    lab.start_agents(doing.run_id, doing.journal, &dir).await?;
    if doing.stop.came() {
        return Ok(None);
    }
    let context = TrialContext {
        plan: doing.plan,
        trial,
        run_id: doing.run_id,
        housekeeping: doing.housekeeping,
        journal: doing.journal,
        stop: &doing.stop,
        under: hosts.under(),
        here: &doing.here.host,
    };
    trial::run(&context, lab, record).await
}
