//! The conformance suite: whether a driver keeps the rules of the ABI.
//!
//! In: a loaded driver. Out: one [`CheckResult`] per check as it ends, and the [`Report`]. Every check opens its own
//! sessions, runs in a thread of its own and has a time limit: a driver that hangs fails that check, and the suite ends
//! there. A driver that crashes takes the process along, so a careful caller runs the suite in a child process.
//!
//! Nothing may appear on standard output or error: both are redirected while a check runs, and open while `each` is
//! called. Other threads of the process should not print meanwhile.

mod bench;
mod checks;
mod end;
mod silence;

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::kv::Kv;
use crate::load::Driver;

use bench::Bench;
use silence::Silence;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The driver keeps the rule.
    Passed,
    /// It does not.
    Failed,
    /// The driver does not claim it, or what the check builds upon failed.
    NotApplicable,
}

/// One check and its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckResult {
    /// Short name, stable.
    pub name: &'static str,
    /// What a pass proves.
    pub proves: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// Figures of a pass, the reason of anything else.
    pub detail: String,
    /// How long it took.
    pub took_ms: u64,
}

/// All checks of one driver.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Name of the driver.
    pub driver: String,
    /// Where it came from: a path, or `linked`.
    pub source: String,
    /// Results in order.
    pub checks: Vec<CheckResult>,
}

impl Report {
    /// Whether no check failed.
    pub fn passed(&self) -> bool {
        self.failed().next().is_none()
    }

    /// The checks that failed.
    pub fn failed(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(|c| c.outcome == Outcome::Failed)
    }
}

/// A pass with its figures, or why the check says nothing.
pub(crate) enum Verdict {
    Pass(String),
    NotApplicable(String),
}

/// What a check returns; the error is what the driver did wrong.
pub(crate) type Checked = Result<Verdict, String>;

pub(crate) fn pass(detail: impl Into<String>) -> Checked {
    Ok(Verdict::Pass(detail.into()))
}

pub(crate) struct Check {
    pub name: &'static str,
    pub proves: &'static str,
    /// A failure of this one says nothing new about the present one.
    pub needs: &'static [&'static str],
    pub limit: Duration,
    pub run: fn(&Bench) -> Checked,
}

/// Name of the check that all samples depend on.
pub(crate) const MATCH: &str = "match";
const SILENT: &str = "silent";
const SILENT_PROVES: &str = "nothing is printed to standard output or error";

/// Names and meanings of all checks, in order.
pub fn catalogue() -> impl Iterator<Item = (&'static str, &'static str)> {
    checks::ALL.iter().map(|c| (c.name, c.proves)).chain([(SILENT, SILENT_PROVES)])
}

/// Runs all checks over `driver`; `each` sees every result as it comes.
pub fn run(driver: &Driver, each: &mut dyn FnMut(CheckResult)) -> Report {
    run_with(driver, &Kv::new(), each)
}

/// As [`run`], with options for `open` that go before those that the suite chooses (domain, interface, address, peers).
pub fn run_with(driver: &Driver, options: &Kv, each: &mut dyn FnMut(CheckResult)) -> Report {
    let source = driver.path().map_or_else(|| "linked".to_owned(), |p| p.display().to_string());
    let mut report = Report { driver: driver.name().to_owned(), source, checks: Vec::new() };
    let bench = Arc::new(Bench::new(driver.clone(), options.clone()));
    let mut silence = Silence::new();
    let mut ended_at: Option<&'static str> = None;
    for check in checks::ALL {
        let failed = |name: &&&str| report.checks.iter().any(|c| c.name == **name && c.outcome != Outcome::Passed);
        let begin = Instant::now();
        let (outcome, detail) = match (ended_at, check.needs.iter().find(failed)) {
            (Some(at), _) => (Outcome::NotApplicable, format!("not run: the suite ended at {at}")),
            (None, Some(need)) => (Outcome::NotApplicable, format!("not run: {need} did not pass")),
            (None, None) => {
                let quiet = silence.as_mut().map(Silence::begin);
                let ended = run_one(check, &bench);
                drop(quiet);
                ended.unwrap_or_else(|| {
                    ended_at = Some(check.name);
                    (Outcome::Failed, format!("it did not end within {} s", check.limit.as_secs()))
                })
            }
        };
        let took_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let result = CheckResult { name: check.name, proves: check.proves, outcome, detail, took_ms };
        report.checks.push(result.clone());
        each(result);
    }
    let (outcome, detail) = match silence.map(|s| s.heard()) {
        None => (Outcome::NotApplicable, "the outputs could not be redirected".to_owned()),
        Some(text) if text.is_empty() => (Outcome::Passed, "0 B printed".to_owned()),
        Some(text) => {
            let start: String = text.chars().take(200).collect();
            (Outcome::Failed, format!("{} B printed, beginning with {start:?}", text.len()))
        }
    };
    let result = CheckResult { name: SILENT, proves: SILENT_PROVES, outcome, detail, took_ms: 0 };
    report.checks.push(result.clone());
    each(result);
    report
}

/// `None`: the check hangs, and so does its thread.
fn run_one(check: &'static Check, bench: &Arc<Bench>) -> Option<(Outcome, String)> {
    let (tell, told) = channel();
    let (run, bench) = (check.run, bench.clone());
    let thread = std::thread::Builder::new().name("tb-check".to_owned()).spawn(move || {
        let _ = tell.send(run(&bench));
    });
    match told.recv_timeout(check.limit) {
        Ok(checked) => {
            let _ = thread.map(std::thread::JoinHandle::join);
            Some(match checked {
                Ok(Verdict::Pass(detail)) => (Outcome::Passed, detail),
                Ok(Verdict::NotApplicable(why)) => (Outcome::NotApplicable, why),
                Err(wrong) => (Outcome::Failed, wrong),
            })
        }
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some((Outcome::Failed, "the check itself panicked".to_owned())),
    }
}
