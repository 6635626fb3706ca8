//! A whole run: checks the machine, creates the record, builds labs and runs the trials in order.

use super::active_lab::ActiveLab;
use super::clocks::Clocks;
use super::context::RunContext;
use super::other_runs::OtherRuns;
use super::places::{DriverFiles, Hosts};
use super::progress::{Progress, ProgressEvent};
use super::repeat::{Limits, RepeatOptions, fills_a_time, leave_out_rest};
use super::security::Security;
use super::trial_state::{TrialContext, TrialResult};
use super::until::{self, UntilOptions};
use super::{RunError, conditions, cpu_plan, driver_trial, knobs, machine_fit, stop_signal, tool, trial_length};
use std::path::PathBuf;
use tailbound_host as host;
use tailbound_host::journal::Journal;
use tailbound_lab::LabSpec;
use tailbound_model::*;
use tailbound_record::*;

/// Parameters of a run that are not part of its plan.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Directory of the record. The directory must not exist yet.
    pub out: PathBuf,
    /// Command line of the user, which is written into the record.
    pub command: Vec<String>,
    /// Warnings from before the run, for example that a path had to be replaced.
    pub warnings: Vec<Warning>,
    /// Function that lists the drivers that are shared objects in files. Other hosts need these files too.
    pub driver_files: DriverFiles,
    /// Request to end the run at a message; `None` = the run ends after its trials. [`super::repeat_until`] has checked
    /// the plan against the request.
    pub until: Option<UntilOptions>,
    /// Request to repeat the trials for a time; `None` = no repetition. [`super::repeat`] has repeated the trials of the
    /// plan.
    pub repeated: Option<RepeatOptions>,
    /// Whether agents report round trips while a trial runs ([`ProgressEvent::Figures`]).
    pub figures: bool,
    /// Whether the run may begin while another run of this user is active on this host. The record then has a warning.
    pub allow_concurrent: bool,
}

/// Result of a run that has ended normally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Path of the directory of the run's record.
    pub dir: PathBuf,
    /// Status of the record: valid or invalid, or incomplete after a signal such as Ctrl-C.
    pub status: Status,
}

/// Runs a plan that [`super::check_drivers`] has checked.
///
/// # Errors
/// The machine is not fit, the record cannot be written, or a lab cannot be built. The record then contains the samples
/// from before the error, and stays marked as incomplete.
pub fn run(plan: Plan, options: RunOptions, progress: &mut dyn Progress) -> Result<Finished, RunError> {
    if options.out.symlink_metadata().is_ok() {
        return Err(RecordError::Exists(options.out).into());
    }
    if let Some(error) = machine_fit::not_fit(&plan, options.driver_files) {
        return Err(error);
    }
    let security = Security::make(&plan)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| RunError::new(ExitCode::Unexpected, format!("cannot start: {e}"), ""))?;
    runtime.block_on(run_all(plan, options, security, progress))
}

fn run_id() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // Eight hex digits, unique among the runs of one machine: part of interface names and topic names.
    format!("{:08x}", (now.as_nanos() as u64 ^ (u64::from(std::process::id()) << 20)) as u32)
}

async fn run_all(
    plan: Plan,
    options: RunOptions,
    security: Security,
    progress: &mut dyn Progress,
) -> Result<Finished, RunError> {
    // This comes before any change to a host: from here on, a signal ends the run in order.
    let stop = stop_signal::listen();
    let allowed = host::allowed_cpus();
    let housekeeping = cpu_plan::housekeeping(&plan, &allowed);
    // If this fails, the controller shares the measured CPUs, but it sleeps while the ends measure.
    let _ = host::scheduling::set_affinity(0, &housekeeping);
    let journal_failed = |e: host::JournalError| {
        RunError::of(ExitCode::RunFailed, e.problem().context("a run does not start without its journal"))
    };
    let run_id = run_id();
    let journal = Journal::create(&run_id).map_err(journal_failed)?;
    let others = OtherRuns::new(&run_id);
    if let Some(refused) = others.refusal().filter(|_| !options.allow_concurrent) {
        journal.finish().map_err(journal_failed)?;
        return Err(refused);
    }
    let out = std::path::absolute(&options.out).unwrap_or(options.out);
    let partial = RecordWriter::partial_name(&out).to_string_lossy().into_owned();
    let partial = journal.before(Undo::RemovePartialRecord { path: partial }).map_err(journal_failed)?;
    let condition = options.until.as_ref().map(|until| until.condition.clone());
    let request =
        |UntilOptions { condition, at_most }| Until { condition, at_most, found: None, ended_early: [].into() };
    let until = options.until.map(request);
    let repeated = options.repeated.map(|RepeatOptions { time, disk, rolling }| {
        let rolling = rolling.then(Rolling::default);
        Repeated { time, disk, disk_reached: false, rolling }
    });
    let manifest = Manifest { until, repeated, ..manifest(&plan, &run_id, options.command, &allowed) };
    let created = RecordWriter::create(&out, manifest);
    journal.done(partial).map_err(journal_failed)?;
    let mut record = match created {
        Ok(record) => record,
        Err(e) => {
            journal.finish().map_err(journal_failed)?;
            return Err(e.into());
        }
    };
    let facts = host::facts::collect();
    let logs = record.dir().join("logs");
    let context = RunContext { run_id, journal, stop, logs, figures: options.figures, security };
    let until = condition.as_ref();
    let may_use = CpuList(allowed.iter().copied().collect());
    let doing = Doing {
        context: &context,
        plan: &plan,
        housekeeping: &housekeeping,
        allowed: &may_use,
        here: &facts,
        until,
        clocks: None,
    };
    let mut hosts = Hosts::new(options.driver_files, &allowed);
    let _log = crate::log::controller(&context.logs);
    tracing::info!(run = context.run_id, trials = plan.trials.len(), "run begins");
    let mut ended = run_trials(&doing, &mut hosts, &mut record, options.warnings, progress).await;
    for text in hosts.leave(&context).await {
        let warned = record.warn(Warning::new("bundle_left", Severity::Warning, text, "remove it by hand"));
        // The journal is finished even if the record cannot be written.
        ended = ended.and_then(|complete| Ok(warned.map(|()| complete)?));
    }
    if let Err(error) = &mut ended {
        tracing::error!(what = error.problem.what, "the run ends with an error");
        knobs::undo_rest(&context.journal, error);
    }
    let tidy = context.journal.finish().map_err(journal_failed);
    let complete = ended?;
    tidy?;
    if !complete && fills_a_time(&record.manifest) {
        // The trials that would have filled the rest of the time are not missing.
        leave_out_rest(&mut record);
    }
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
        neighbour_loads: Vec::new(),
        stream: None,
    };
    Manifest {
        functional_only: cpu_plan::functional_only(plan, allowed),
        trials: plan.trials.iter().map(trial).collect(),
        ..Manifest::begun(plan.clone(), run_id, command)
    }
}

/// Data that the controller needs for every trial of a run.
struct Doing<'a> {
    context: &'a RunContext,
    plan: &'a Plan,
    /// CPUs of this host on which everything runs that is not measured.
    housekeeping: &'a CpuList,
    allowed: &'a CpuList,
    /// Facts about the host on which the controller runs.
    here: &'a HostFacts,
    /// The condition of the message at which the run ends.
    until: Option<&'a UntilCondition>,
    /// The clocks that have to be in step, if the study asks for it.
    clocks: Option<&'a Clocks>,
}

/// Runs all trials of the plan after the clock of this host is in step, if the study asks for this. Returns false if a signal has ended the run before its last trial.
async fn run_trials(
    doing: &Doing<'_>,
    hosts: &mut Hosts,
    record: &mut RecordWriter,
    warnings: Vec<Warning>,
    progress: &mut dyn Progress,
) -> Result<bool, RunError> {
    let plan = doing.plan;
    record.host(doing.here)?;
    if doing.here.get("machine.emulated") == Some(&FactValue::Flag(true)) {
        let why = format!("the CPUs of {}, on which the run was started, are emulated", doing.here.host);
        add_functional_only(&mut record.manifest, &why);
    }
    for warning in warnings {
        warn(record, progress, warning)?;
    }
    record.event(Event::RunBegan { trials: plan.trials.len() })?;
    record.save()?;
    let estimate =
        Nanos(plan.trials.iter().map(|t| trial_length::expected(&plan.conditions[t.condition].spec).0).sum());
    progress.event(ProgressEvent::Began { trials: plan.trials.len(), estimate });
    let Some(spec) = &plan.clock else { return run_in_order(doing, hosts, record, progress).await };
    let clocks = Clocks::begin(spec, doing.context)?;
    progress.event(ProgressEvent::Waiting { what: &clocks.what() });
    let in_step = tokio::select! {
        in_step = clocks.in_step() => Some(in_step),
        () = doing.context.stop.wait() => None,
    };
    let mut ended = match in_step {
        Some(Ok(())) => run_in_order(&Doing { clocks: Some(&clocks), ..*doing }, hosts, record, progress).await,
        Some(Err(error)) => Err(error),
        None => interrupted(record, progress, "before", (0, plan.trials.len())).map(|()| false),
    };
    if let (Some(left), Err(error)) = (clocks.end(doing.context), &mut ended) {
        error.problem.what.push_str(&format!("; and {left}"));
    }
    ended
}

/// Runs all trials of the plan in their order. Returns false if a signal has ended the run before its last trial.
async fn run_in_order(
    doing: &Doing<'_>,
    hosts: &mut Hosts,
    record: &mut RecordWriter,
    progress: &mut dyn Progress,
) -> Result<bool, RunError> {
    let (plan, context) = (doing.plan, doing.context);
    let mut active: Option<ActiveLab> = None;
    let mut others = OtherRuns::new(&context.run_id);
    let mut limits = Limits::begin(&record.manifest);
    let mut last_block = 0;
    for (number, trial) in plan.trials.iter().enumerate() {
        if limits.is_too_late(number, &plan.conditions[trial.condition].spec) || limits.is_too_large(number, record)? {
            break;
        }
        last_block = trial.block;
        for warning in others.look(&format!("when trial {} of {} began", number + 1, plan.trials.len())) {
            warn(record, progress, warning)?;
        }
        let Some(mut lab) = lab_of_trial(doing, (trial, number), active.take(), hosts, record, progress).await? else {
            return Ok(false);
        };
        let warned = record.manifest.warnings.len();
        let result = run_trial(doing, (trial, number), &mut lab, hosts, record, progress).await;
        for warning in &record.manifest.warnings[warned..] {
            progress.event(ProgressEvent::Warned(warning));
        }
        match result {
            Ok(Some(result)) => {
                let (answered, scheduled) = (result.answered, result.scheduled);
                progress.event(ProgressEvent::TrialDone { number, trial: trial.id, answered, scheduled });
                active = Some(lab);
                limits.ended(record, trial.id);
                if result.matched.is_some_and(|message| until::ends_run(record, message)) {
                    break;
                }
            }
            Err(mut error) => {
                let settings = lab.settings;
                let (back, _) = lab.abandon(context).await;
                if let Err(left) = knobs::record_restored(record, settings, back) {
                    error.problem.what.push_str(&format!("; and {}", left.problem.what));
                }
                return Err(error);
            }
            Ok(None) => {
                let settings = lab.settings;
                let (back, down) = lab.abandon(context).await;
                knobs::record_restored(record, settings, back)?;
                down?;
                interrupted(record, progress, "in", (number, plan.trials.len()))?;
                return Ok(false);
            }
        }
    }
    for warning in others.look("when the last trial had ended") {
        warn(record, progress, warning)?;
    }
    if let Some(lab) = active {
        down(doing, lab, record, last_block, progress).await?;
    }
    if record.manifest.until.is_some() || record.manifest.repeated.is_some() {
        leave_out_rest(record);
    }
    Ok(true)
}

/// The lab of a trial: the lab of the trial before, if it suits and its hosts answer, otherwise a new one. Returns
/// `None` if the run was interrupted while the lab was built.
async fn lab_of_trial(
    doing: &Doing<'_>,
    (trial, number): (&Trial, usize),
    active: Option<ActiveLab>,
    hosts: &mut Hosts,
    record: &mut RecordWriter,
    progress: &mut dyn Progress,
) -> Result<Option<ActiveLab>, RunError> {
    let spec = &doing.plan.conditions[trial.condition].spec;
    match active {
        Some(lab) if lab.suits(spec) && hosts.answer() => return Ok(Some(lab)),
        Some(old) => down(doing, old, record, trial.block, progress).await?,
        None => {}
    }
    match up(doing, trial, hosts, record, progress).await {
        // After a signal, the run does not wait for guests that boot.
        Err(e) if doing.context.stop.came() => {
            // The error also says what could not be undone.
            let text = format!("an error occurred while the run was interrupted: {}", e.problem.what);
            warn(record, progress, Warning::new("interrupted", Severity::Warning, text, ""))?;
            interrupted(record, progress, "before", (number, doing.plan.trials.len()))?;
            Ok(None)
        }
        made => made.map(Some),
    }
}

/// Adds to the record a reason why figures say nothing about speed, unless the record already has this reason.
fn add_functional_only(manifest: &mut Manifest, why: &str) {
    match &mut manifest.functional_only {
        Some(reasons) if reasons.contains(why) => {}
        Some(reasons) => *reasons = format!("{reasons}; {why}"),
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

/// Reports a warning to the user at once, and writes it into the record.
fn warn(record: &mut RecordWriter, progress: &mut dyn Progress, warning: Warning) -> Result<(), RunError> {
    progress.event(ProgressEvent::Warned(&warning));
    Ok(record.warn(warning)?)
}

/// Connects to the hosts of a trial and builds the lab of the trial.
async fn up(
    doing: &Doing<'_>,
    trial: &Trial,
    hosts: &mut Hosts,
    record: &mut RecordWriter,
    progress: &mut dyn Progress,
) -> Result<ActiveLab, RunError> {
    let spec = &doing.plan.conditions[trial.condition].spec;
    let vlan = spec.vlan.iter().map(|vlan| format!("VLAN {vlan}"));
    let what = [spec.path.to_string()].into_iter().chain(vlan).chain(spec.host.iter().map(ToString::to_string));
    let what = what.collect::<Vec<_>>().join(", ");
    progress.event(ProgressEvent::Lab { what: &what });
    for host in hosts.reach(&LabSpec::from(spec), doing.context, &doing.here.host).await? {
        record.host(&host.facts)?;
        if let Some(why) = &host.functional_only {
            let concerned = conditions::with_place(doing.plan, &host.place);
            add_functional_only(&mut record.manifest, &conditions::with_conditions(doing.plan, why, &concerned));
        }
        if let Some(clocks) = doing.clocks {
            let begin = |what: &str| progress.event(ProgressEvent::Waiting { what });
            clocks.host_in_step(&host, doing.context, begin).await?;
            if let Some(text) = clocks.remark(&host) {
                warn(record, progress, Warning::new("clock_not_watched", Severity::Warning, text, ""))?;
            }
        }
        for text in &host.remarks {
            warn(record, progress, Warning::new("host_remark", Severity::Warning, text, ""))?;
        }
    }
    hosts.make_discovery(spec, doing.context)?;
    let mut lab = ActiveLab::up(spec, doing.context, hosts).await?;
    // A driver would only report that it found no peer.
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

/// Removes a lab and restores the settings of its hosts.
async fn down(
    doing: &Doing<'_>,
    lab: ActiveLab,
    record: &mut RecordWriter,
    block: usize,
    progress: &mut dyn Progress,
) -> Result<(), RunError> {
    let (settings, warned) = (lab.settings, record.manifest.warnings.len());
    let (back, down) = lab.down(doing.context).await;
    let back = knobs::record_restored(record, settings, back);
    for warning in &record.manifest.warnings[warned..] {
        progress.event(ProgressEvent::Warned(warning));
    }
    back?;
    down?;
    Ok(record.event(Event::LabDown { block })?)
}

/// Runs one trial in its lab. Returns `None` if a signal arrived before or during the measurement.
async fn run_trial(
    doing: &Doing<'_>,
    (trial, number): (&Trial, usize),
    lab: &mut ActiveLab,
    hosts: &Hosts,
    record: &mut RecordWriter,
    progress: &mut dyn Progress,
) -> Result<Option<TrialResult>, RunError> {
    let condition = &doing.plan.conditions[trial.condition];
    let what = conditions::levels(condition);
    progress.event(ProgressEvent::Trial { number, what: &what, estimate: trial_length::expected(&condition.spec) });
    if let Some(error) = lab.lack_of_cpus(&condition.spec) {
        return Err(error);
    }
    lab.start_agents(doing.context).await?;
    if doing.context.stop.came() {
        return Ok(None);
    }
    let context = TrialContext {
        run: doing.context,
        plan: doing.plan,
        trial,
        housekeeping: doing.housekeeping,
        allowed: doing.allowed,
        wiring: hosts.wiring(),
        here: &doing.here.host,
        until: doing.until,
    };
    tracing::info!(trial = trial.id, condition = trial.condition, levels = what, "trial begins");
    let began_ns = host::monotonic_ns();
    let begun = doing.clocks.map(|clocks| (clocks, clocks.begin_trial(hosts)));
    let result = match condition.spec.has_tool() {
        true => tool::run(&context, lab, record).await,
        false => driver_trial::run(&context, lab, record, progress).await,
    };
    if let Some((clocks, begun)) = begun {
        let (histories, missing) = clocks.histories(began_ns, &begun, doing.here);
        histories.iter().try_for_each(|history| record.clocks(trial.id, history))?;
        missing.into_iter().try_for_each(|warning| record.warn(warning.at_trial(trial.id)))?;
    }
    match &result {
        Ok(Some(r)) => tracing::info!(trial = trial.id, r.scheduled, r.sent, r.answered, "trial has ended"),
        Ok(None) => tracing::info!(trial = trial.id, "trial was interrupted"),
        Err(e) => tracing::error!(trial = trial.id, what = e.problem.what, "trial has failed"),
    }
    result
}
