//! The conformance suite: checks whether a driver follows the rules of the ABI.
//!
//! Input: a loaded driver. Output: one [`CheckResult`] for each conformance check when it ends, and the [`Report`].
//! Every check opens its own sessions, runs in its own thread and has a time limit. If a driver hangs, the check fails
//! and the suite ends. If a driver crashes, the process ends too, so a careful caller runs the suite in a child
//! process.
//!
//! A driver must not write to standard output or standard error: both outputs are redirected while a check runs, and
//! restored while `each` is called. Other threads of the process should not print during a check.

mod bench;
mod checks;
mod end;
mod silence;
mod time;

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::kv::Kv;
use crate::load::Driver;

use bench::Bench;
use silence::Silence;

/// Outcome of a conformance check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckOutcome {
    /// The conformance check passed: the driver follows the rule.
    Passed,
    /// The conformance check failed: the driver breaks the rule.
    Failed,
    /// The conformance check was not run or does not apply: the driver does not claim to support the checked feature,
    /// another conformance check on which this check depends did not pass, the suite ended before, or the output of the
    /// process could not be captured.
    NotApplicable,
}

/// One conformance check and its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckResult {
    /// Short name of the conformance check, which does not change between releases.
    pub name: &'static str,
    /// Sentence that is true for the driver if the conformance check passed.
    pub proves: &'static str,
    /// Outcome of the conformance check.
    pub outcome: CheckOutcome,
    /// Figures if the conformance check passed, otherwise the reason for the outcome.
    pub detail: String,
    /// Time that the conformance check took, in ms.
    pub took_ms: u64,
}

/// Results of all conformance checks of one driver.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Name of the driver that was checked.
    pub driver: String,
    /// Origin of the driver: the path of its file, or `linked`.
    pub source: String,
    /// Results of the conformance checks, in the order in which they ran.
    pub checks: Vec<CheckResult>,
}

impl Report {
    /// Whether the driver passed: no conformance check failed.
    pub fn passed(&self) -> bool {
        self.failed().next().is_none()
    }

    /// The conformance checks that failed.
    pub fn failed(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(|c| c.outcome == CheckOutcome::Failed)
    }
}

/// Result of a conformance check that did not fail: passed with its figures, or the reason why the check does not
/// apply.
pub(crate) enum Verdict {
    Pass(String),
    NotApplicable(String),
}

/// Description of what a driver did wrong in a conformance check.
#[derive(Debug)]
pub(crate) struct Wrong(pub String);

impl From<&str> for Wrong {
    fn from(text: &str) -> Wrong {
        Wrong(text.to_owned())
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Result of the function of a conformance check; the error describes what the driver did wrong.
pub(crate) type Checked = Result<Verdict, Wrong>;

pub(crate) fn pass(detail: impl Into<String>) -> Checked {
    Ok(Verdict::Pass(detail.into()))
}

pub(crate) struct Check {
    pub name: &'static str,
    pub proves: &'static str,
    /// Names of the conformance checks on which this check depends: if one of those checks did not pass, this check is
    /// not run.
    pub needs: &'static [&'static str],
    pub limit: Duration,
    pub run: fn(&Bench) -> Checked,
}

/// Name of the conformance check on which all checks that send samples depend.
pub(crate) const MATCH: &str = "match";
const SILENT: &str = "silent";
const SILENT_PROVES: &str = "nothing is printed to standard output or error";

/// Names of all conformance checks and the sentences that they prove, in order.
pub fn catalogue() -> impl Iterator<Item = (&'static str, &'static str)> {
    checks::ALL.iter().map(|c| (c.name, c.proves)).chain([(SILENT, SILENT_PROVES)])
}

/// Runs all conformance checks for `driver`; `each` is called with every result as soon as it is known.
pub fn run(driver: &Driver, each: &mut dyn FnMut(CheckResult)) -> Report {
    run_with(driver, &Kv::new(), each)
}

/// Runs all conformance checks like [`run`], with options for `open` that take precedence over the suite's options
/// (domain, interface, address, peers).
pub fn run_with(driver: &Driver, options: &Kv, each: &mut dyn FnMut(CheckResult)) -> Report {
    let source = driver.path().map_or_else(|| "linked".to_owned(), |p| p.display().to_string());
    let mut report = Report { driver: driver.name().to_owned(), source, checks: Vec::new() };
    let bench = Arc::new(Bench::new(driver.clone(), options.clone()));
    let mut silence = Silence::new();
    let mut ended_at: Option<&'static str> = None;
    for check in checks::ALL {
        let failed = |name: &&&str| report.checks.iter().any(|c| c.name == **name && c.outcome != CheckOutcome::Passed);
        let begin = Instant::now();
        let (outcome, detail) = match (ended_at, check.needs.iter().find(failed)) {
            (Some(at), _) => {
                (CheckOutcome::NotApplicable, format!("the check was not run, because the suite ended at {at}"))
            }
            (None, Some(need)) => {
                (CheckOutcome::NotApplicable, format!("the check was not run, because {need} did not pass"))
            }
            (None, None) => {
                let quiet = silence.as_mut().map(Silence::begin);
                let ended = run_one(check, &bench);
                drop(quiet);
                ended.unwrap_or_else(|| {
                    ended_at = Some(check.name);
                    (CheckOutcome::Failed, format!("the check did not end within {} s", check.limit.as_secs()))
                })
            }
        };
        let took_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let result = CheckResult { name: check.name, proves: check.proves, outcome, detail, took_ms };
        report.checks.push(result.clone());
        each(result);
    }
    let (outcome, detail) = match silence.map(|s| s.heard()) {
        None => {
            let why = "standard output and standard error could not be redirected";
            (CheckOutcome::NotApplicable, why.to_owned())
        }
        Some(text) if text.is_empty() => (CheckOutcome::Passed, "0 B printed".to_owned()),
        Some(text) => {
            let start: String = text.chars().take(200).collect();
            (CheckOutcome::Failed, format!("{} B printed, beginning with {start:?}", text.len()))
        }
    };
    let result = CheckResult { name: SILENT, proves: SILENT_PROVES, outcome, detail, took_ms: 0 };
    report.checks.push(result.clone());
    each(result);
    report
}

/// Runs one conformance check; `None` if the check hangs. The thread of such a check hangs too.
fn run_one(check: &'static Check, bench: &Arc<Bench>) -> Option<(CheckOutcome, String)> {
    let (tell, told) = channel();
    let (run, bench) = (check.run, bench.clone());
    let thread = std::thread::Builder::new().name("tb-check".to_owned()).spawn(move || {
        let _ = tell.send(run(&bench));
    });
    match told.recv_timeout(check.limit) {
        Ok(checked) => {
            let _ = thread.map(std::thread::JoinHandle::join);
            Some(match checked {
                Ok(Verdict::Pass(detail)) => (CheckOutcome::Passed, detail),
                Ok(Verdict::NotApplicable(why)) => (CheckOutcome::NotApplicable, why),
                Err(wrong) => (CheckOutcome::Failed, wrong.0),
            })
        }
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some((CheckOutcome::Failed, "the check itself panicked".to_owned())),
    }
}
