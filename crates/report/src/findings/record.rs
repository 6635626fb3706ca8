//! Findings about the state of the record: functional only, invalid or incomplete.

use crate::findings::finding::{finding, trimmed};
use tailbound_analysis::TRIALS_MISSING;
use tailbound_document::{ConditionStatus, Finding, FindingLevel, Report, ReportStatus};
use tailbound_model::{Severity, Warning};

pub(crate) fn untrusted(report: &Report) -> Vec<Finding> {
    let level = FindingLevel::Untrusted;
    let mut all = Vec::new();
    if let Some(why) = &report.functional_only {
        let text =
            format!("Functional only: {}. The figures show that the messages arrive, not how fast.", trimmed(why));
        all.push(Finding { evidence: "warnings".into(), ..finding(level, "functional_only", text, &[]) });
    }
    // One sentence per reason, however many trials share it.
    let mut reasons: Vec<(&str, &str, Vec<usize>)> = Vec::new();
    for id in report.invalid_trials() {
        let of = |trial: Option<usize>| {
            let invalid = report.warnings.iter().filter(|w| w.severity == Severity::Invalid);
            let mut others = invalid.filter(|w| w.problem.code != TRIALS_MISSING && !is_of_removed(report, w));
            others.find(move |w| w.trial == trial)
        };
        let warning = of(Some(id)).or_else(|| of(None));
        let (reason, remedy) =
            warning.map_or(("the record does not contain the reason", ""), |w| (&w.problem.what, &w.problem.remedy));
        match reasons.iter_mut().find(|(r, ..)| *r == reason) {
            Some((.., trials)) => trials.push(id),
            None => reasons.push((reason, remedy, vec![id])),
        }
    }
    for (reason, remedy, trials) in reasons {
        let mut conditions: Vec<usize> = trials.iter().filter_map(|t| Some(report.trial(*t)?.condition)).collect();
        conditions.sort_unstable();
        conditions.dedup();
        let kept = |c: &&usize| report.conditions[**c].status != ConditionStatus::Invalid;
        let rest = if conditions.iter().all(|c| kept(&c)) { " The figures do not include this trial." } else { "" };
        let rest = if trials.len() > 1 { rest.replace("this trial", "these trials") } else { rest.to_owned() };
        let remedy = if remedy.is_empty() { String::new() } else { format!(" {remedy}") };
        let text = format!("Not to be trusted: {}: {}.{rest}{remedy}", trials_named(report, &trials), trimmed(reason));
        all.push(Finding { evidence: "warnings".into(), ..finding(level, "trial_invalid", text, &conditions) });
    }
    for warning in report.warnings.iter().filter(|w| is_of_removed(report, w)) {
        let text = format!("Not to be trusted: {}.", trimmed(&warning.problem.what));
        all.push(Finding { evidence: "warnings".into(), ..finding(level, "removed_trial_invalid", text, &[]) });
    }
    if let Some(lacking) = report.warnings.iter().find(|w| w.problem.code == TRIALS_MISSING) {
        let text = format!("Not to be trusted: {}. {}", trimmed(&lacking.problem.what), lacking.problem.remedy);
        all.push(Finding { evidence: "warnings".into(), ..finding(level, TRIALS_MISSING, text, &[]) });
    }
    if report.status == ReportStatus::Incomplete {
        let ended = report.trials.iter().filter(|t| ended(t.status)).count();
        let text = format!(
            "Incomplete: the run did not end by itself; {ended} of {} trials ended. The figures cover \
             only the recorded messages.",
            report.trials.len()
        );
        all.push(Finding { evidence: "conditions".into(), ..finding(level, "incomplete", text, &[]) });
    }
    all
}

/// True for a warning that made a trial invalid which was removed afterwards.
fn is_of_removed(report: &Report, warning: &Warning) -> bool {
    let removed = report.run.repeated.as_ref().and_then(|repeated| repeated.removed.as_ref());
    warning.severity == Severity::Invalid
        && warning.trial.is_none()
        && warning.problem.code != TRIALS_MISSING
        && removed.is_some_and(|removed| removed.iter().any(|condition| condition.not_valid > 0))
}

fn ended(state: tailbound_model::TrialStatus) -> bool {
    use tailbound_model::TrialStatus::*;
    matches!(state, Valid | Invalid)
}

fn trials_named(report: &Report, trials: &[usize]) -> String {
    let named = |id: &usize| {
        let condition = report.trial(*id).map_or("", |t| &report.conditions[t.condition].name);
        format!("trial {id} ({condition})")
    };
    match trials {
        [one] => named(one),
        [first, rest @ ..] => format!("{} and {} more", named(first), rest.len()),
        [] => String::new(),
    }
}
