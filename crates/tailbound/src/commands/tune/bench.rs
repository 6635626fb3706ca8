//! Measures the pairs of `tune` with trials of this machine.

use super::candidates;
use super::state::State;
use crate::failure::Failure;
use crate::output::errln;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tailbound_analysis::{NoFigure, TrialFigures, figures_of_trial};
use tailbound_document::Report;
use tailbound_model::{ExitCode, Measure, Metric, Plan, Severity};
use tailbound_record::{Record, TrialStatus};
use tailbound_tune::{Arms, Bench, Candidate, CauseLine, Figures, Pair, PairError, Stage, Tried};

/// Measures pairs with child processes; each call writes one record.
pub struct Measured<'a> {
    state: &'a State,
    directory: PathBuf,
    metric: Metric,
    began: Instant,
    /// Stage of the previous pairs, so that each stage is announced once.
    last: Option<Stage>,
    /// Receives Ctrl-C, so that the trials end in order and the message says how to go on.
    interrupt: SignalFd,
}

impl<'a> Measured<'a> {
    /// Measures the study of `state` in the directory of its run. From here on, Ctrl-C ends the run after its trials have ended.
    pub fn new(state: &'a State, directory: &Path, metric: Metric) -> Result<Measured<'a>, Failure> {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGINT);
        mask.thread_block().map_err(Failure::unexpected)?;
        let interrupt = SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC);
        let interrupt = interrupt.map_err(Failure::unexpected)?;
        let (directory, began) = (directory.to_owned(), Instant::now());
        Ok(Measured { state, directory, metric, began, last: None, interrupt })
    }

    /// The plan of pairs, or the reason why the settings cannot be used.
    fn plan(&self, arms: &Arms, with_first: &[bool]) -> Result<Plan, String> {
        let side = |settings: &[String]| self.state.plan(settings).map_err(|e| e.what().to_owned());
        let (without, with) = (side(&arms.without)?, side(&arms.with)?);
        tailbound_study::pairs(&without, &with, with_first).map_err(|number| match number {
            0 => {
                let reasons = [&without, &with].into_iter().flat_map(|p| &p.conditions);
                reasons
                    .filter_map(|c| c.not_possible.clone())
                    .next()
                    .unwrap_or_else(|| "no condition is possible".into())
            }
            more => format!("the study has {more} conditions"),
        })
    }

    /// Name of the record of a stage that begins with this pair.
    fn record(&self, stage: &Stage, first: usize) -> PathBuf {
        self.directory.join(format!("{}-{}", stage.name(), first + 1))
    }

    /// Runs the trials of a plan in a child process.
    fn run(&self, plan: &Plan, out: &Path) -> Result<(), PairError<Failure>> {
        let failed =
            |e: std::io::Error| PairError::Failed(Failure::unexpected(format!("the trials cannot be started: {e}")));
        // An interrupted attempt may have left a part of the record.
        let _ = std::fs::remove_dir_all(out);
        let file = out.with_extension("plan.json");
        let text = serde_json::to_string(plan).map_err(|e| PairError::Failed(Failure::unexpected(e)))?;
        super::state::write(&file, &text).map_err(PairError::Failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(["tune", "trials"]).arg(&file).arg(out).stdin(Stdio::null());
        let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().map_err(failed)?;
        let _ = std::fs::remove_file(&file);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(code) if code == ExitCode::Done as i32 => Ok(()),
            // Which trial is invalid, and why, is in the record.
            Some(code) if code == ExitCode::RecordInvalid as i32 && Record::open(out).is_ok() => Ok(()),
            // A refusal because of another run says nothing about the settings, and only the settings of a candidate may be given up.
            Some(code) if code == ExitCode::MachineNotFit as i32 && !said.contains("--allow-concurrent") => {
                Err(PairError::NotPossible(last_error(&said)))
            }
            Some(code) => Err(PairError::Failed(Failure::new(exit_code(code), last_error(&said)))),
            None => Err(PairError::Failed(Failure::run_failed("the process of the trials was killed"))),
        }
    }

    /// Figures of the pairs of a record.
    fn read(&self, plan: &Plan, out: &Path, with_first: &[bool]) -> Result<Vec<Pair>, PairError<Failure>> {
        let record = Record::open(out).map_err(|e| PairError::Failed(Failure::of(ExitCode::RunFailed, e)))?;
        refuse_invalid(&record)?;
        let mut trials = plan.trials.iter().map(|trial| self.figures(&record, plan, trial.id, trial.condition));
        let mut next = || trials.next().unwrap_or_else(|| Err(interrupted()));
        with_first
            .iter()
            .map(|with_first| {
                let (first, second) = (next()?, next()?);
                let (with, without) = if *with_first { (first, second) } else { (second, first) };
                Ok(Pair { without, with })
            })
            .collect()
    }

    fn figures(
        &self,
        record: &Record,
        plan: &Plan,
        trial: usize,
        condition: usize,
    ) -> Result<Figures, PairError<Failure>> {
        let condition = &plan.conditions[condition];
        let of = figures_of_trial(record, condition, trial, self.metric, &self.state.figure);
        let TrialFigures { figure_ns, median_ns, slots, missed, cpu_ns } =
            of.map_err(|e| no_figure(e, &self.state.figure))?;
        let timeout_ns = match &condition.spec.measure {
            Measure::PingPong(of) => of.timeout.0 as f64,
            Measure::Flow(_) => 1e9,
        };
        let or_timeout = |ns: Option<f64>| ns.unwrap_or(timeout_ns);
        let (figure_ns, median_ns) = (or_timeout(figure_ns), or_timeout(median_ns));
        Ok(Figures { figure_ns, median_ns, slots, missed, cpu_ns })
    }

    fn report(&self, stage: &Stage) -> Result<(Record, Report), Failure> {
        let failed = |e| Failure::of(ExitCode::RunFailed, e);
        let record = Record::open(&self.record(stage, 0)).map_err(failed)?;
        let report = tailbound_report::analyse(&record).map_err(failed)?;
        Ok((record, report))
    }
}

impl Bench for Measured<'_> {
    type Error = Failure;

    fn pairs(
        &mut self,
        stage: &Stage,
        first: usize,
        arms: &Arms,
        with_first: &[bool],
    ) -> Result<Vec<Pair>, PairError<Failure>> {
        if matches!(self.interrupt.read_signal(), Ok(Some(_))) {
            return Err(interrupted());
        }
        if self.last.as_ref() != Some(stage) {
            errln!("{}", announcement(stage, &self.state.figure));
            self.last = Some(stage.clone());
        }
        let plan = self.plan(arms, with_first).map_err(PairError::NotPossible)?;
        let out = self.record(stage, first);
        self.run(&plan, &out)?;
        match self.read(&plan, &out, with_first) {
            // Something else may have made a trial invalid: the pairs are measured once more.
            Err(PairError::NotPossible(_)) => {
                self.run(&plan, &out)?;
                self.read(&plan, &out, with_first)
            }
            read => read,
        }
    }

    fn candidates(&mut self) -> Result<Vec<Candidate>, Failure> {
        let (record, report) = self.report(&Stage::Baseline)?;
        let all = candidates::of(&record, &report, self.state);
        let asked = all.iter().filter(|candidate| candidate.rule == candidates::ASKED).count();
        let number = all.len() - asked;
        let besides = if asked == 0 { String::new() } else { format!("; {asked} more from --try") };
        errln!(
            "{number} {} a cause that was seen or counted{besides}",
            if number == 1 { "change answers" } else { "changes answer" }
        );
        Ok(all)
    }

    fn causes(&mut self, stage: &Stage) -> Result<Vec<CauseLine>, Failure> {
        let (_, report) = self.report(stage)?;
        // The trials with the change are the last condition.
        Ok(report.conditions.last().map(candidates::causes).unwrap_or_default())
    }

    fn tried(&mut self, tried: &Tried) {
        errln!("  {}", tailbound_tune::result_line(tried));
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

fn announcement(stage: &Stage, figure: &str) -> String {
    match stage {
        Stage::Baseline => format!("measuring the study as it is, to see how much {figure} varies"),
        Stage::Screen(key) => format!("trying {key}"),
        Stage::Drop(key) => format!("measuring without {key}, to see whether it is needed beside the others"),
        Stage::Confirm => "measuring all kept changes against the original, on fresh trials".to_owned(),
    }
}

/// Refuses a record with a trial that must not be trusted or did not end.
fn refuse_invalid(record: &Record) -> Result<(), PairError<Failure>> {
    if record.manifest.trials.iter().any(|t| matches!(t.status, TrialStatus::Pending | TrialStatus::Running)) {
        return Err(interrupted());
    }
    if record.manifest.trials.iter().all(|t| t.status == TrialStatus::Valid) {
        return Ok(());
    }
    let invalidates = record.manifest.warnings.iter().find(|w| w.severity == Severity::Invalid);
    let reason = invalidates.map_or("the record does not name the reason".to_owned(), |w| w.problem.what.clone());
    Err(PairError::NotPossible(format!("a trial is invalid: {reason}")))
}

fn interrupted() -> PairError<Failure> {
    PairError::Failed(Failure::new(ExitCode::RecordInvalid, "the run was interrupted"))
}

fn no_figure(e: NoFigure, figure: &str) -> PairError<Failure> {
    PairError::Failed(match e {
        NoFigure::TooFew(needs, has) => {
            let what = format!("{figure} needs at least {needs} messages in each trial, and a trial has {has}");
            Failure::bad_input(what).help("make the trials longer, e.g. --set measure.duration=5s, or use --for p99")
        }
        NoFigure::NoValues => Failure::run_failed("a trial has no answered message, so that it has no figure"),
        NoFigure::UnknownStatistic => Failure::unexpected(format!("no statistic is called {figure}")),
        NoFigure::Record(e) => Failure::of(ExitCode::RunFailed, e),
    })
}

/// The error in the output of a child process.
fn last_error(said: &str) -> String {
    let from = said.rfind("error: ").map_or(said, |at| &said[at + "error: ".len()..]);
    let text = from.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { "the trials ended without a message".to_owned() } else { text }
}

fn exit_code(code: i32) -> ExitCode {
    match code {
        3 => ExitCode::MachineNotFit,
        2 => ExitCode::BadInput,
        6 => ExitCode::RecordInvalid,
        1 => ExitCode::Unexpected,
        _ => ExitCode::RunFailed,
    }
}
