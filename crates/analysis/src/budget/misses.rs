//! Checks limits for runs of late and lost messages. They are counted anew from the samples, because a budget chooses its
//! own windows and its own limit for late messages.
//!
//! A longest run, a number of windows and a longest recovery are maxima and counts of the messages of a record. They
//! have no interval: a larger value than the limit breaks it, and a smaller one is about these messages only.

use crate::budget::judged::Judged;
use crate::compare::CompareError;
use tailbound_document::number::{count, time};
use tailbound_document::{BudgetOutcome, ConditionReport};
use tailbound_model::{MissWindow, MissesLimit, MissesLimits};
use tailbound_record::Record;
use tailbound_stats::Misses;

/// Runs of late and lost messages of one trial.
pub(crate) struct OfTrial {
    trial: usize,
    misses: Misses,
}

/// Counts the late and lost messages of all trials of a condition from which its figures are computed.
pub(crate) fn read(
    record: &Record,
    condition: &ConditionReport,
    limits: &MissesLimits,
) -> Result<Vec<OfTrial>, CompareError> {
    let of = |trial: &usize| {
        let ruled = condition.late_limits.iter().find(|rule| rule.trial == *trial).map(|rule| rule.limit_ns);
        // A trial without any answer has no rule, and all of its messages are lost or not sent.
        let limit_ns = limits.late_above.map(|limit| limit.0).or(ruled).unwrap_or(i64::MAX);
        Ok(OfTrial { trial: *trial, misses: record.misses(*trial, limit_ns, limits.window)? })
    };
    condition.used_trial_ids.iter().map(of).collect()
}

/// Name of the limited statistic in words, with the limit above which a message is late.
pub(crate) fn what(limits: &MissesLimits, limit: MissesLimit) -> String {
    let late = limits.late_above.map(|limit| format!(" (late above {})", time(limit.0 as f64)));
    format!("{} {}{}", tailbound_model::MISSES, limit.key(), late.unwrap_or_default())
}

/// The limit in words.
pub(crate) fn limit(limits: &MissesLimits, limit: MissesLimit) -> String {
    let MissWindow { m, k } = limits.window;
    match limit {
        MissesLimit::LongestRun(most) => format!("at most {} in a row", count(most)),
        MissesLimit::ViolatedWindows(0) => format!("no window of {k} messages with more than {m} late or lost"),
        MissesLimit::ViolatedWindows(most) => {
            format!("at most {} windows of {k} messages with more than {m} late or lost", count(most))
        }
        MissesLimit::Recovery(most) => {
            format!("at most {} until the first of {k} consecutive messages on time", time(most.0 as f64))
        }
    }
}

/// Checks one limit against the messages of all trials.
pub(crate) fn judged(found: &[OfTrial], window: MissWindow, limit: MissesLimit) -> Judged {
    match limit {
        MissesLimit::LongestRun(most) => longest_run(found, most),
        MissesLimit::ViolatedWindows(most) => violated_windows(found, window, most),
        MissesLimit::Recovery(most) => recovery(found, window, most.0),
    }
}

fn longest_run(found: &[OfTrial], most: u64) -> Judged {
    let Some(longest) = found.iter().max_by_key(|t| t.misses.longest_run) else { return nothing() };
    let run = longest.misses.longest_run;
    let words = match run {
        0 => "no message was late or lost".into(),
        run => format!("{} in a row in trial {}", count(run), longest.trial),
    };
    if run > most {
        return (BudgetOutcome::Broken, words, String::new());
    }
    match found.iter().all(|t| t.misses.messages <= most) {
        true => (BudgetOutcome::Undecided, words, format!("no trial has more than {} messages", count(most))),
        false => (BudgetOutcome::Holds, words, for_these(found)),
    }
}

fn violated_windows(found: &[OfTrial], window: MissWindow, most: u64) -> Judged {
    let windows: u64 = found.iter().map(|t| t.misses.windows()).sum();
    let violated: u64 = found.iter().map(|t| t.misses.violated_windows).sum();
    let words = format!("{} of {} windows", count(violated), count(windows));
    match () {
        () if violated > most => (BudgetOutcome::Broken, words, String::new()),
        () if windows == 0 => {
            (BudgetOutcome::Undecided, String::new(), format!("no trial has a window of {} messages", window.k))
        }
        () if windows <= most => {
            (BudgetOutcome::Undecided, words, format!("there are only {} windows", count(windows)))
        }
        () => (BudgetOutcome::Holds, words, for_these(found)),
    }
}

fn recovery(found: &[OfTrial], window: MissWindow, most_ns: i64) -> Judged {
    if found.is_empty() {
        return nothing();
    }
    let longest = found.iter().filter_map(|t| Some((t.misses.longest_recovery_ns?, t.trial))).max();
    // A recovery that did not end takes at least until the last message that the trial had.
    let open = found.iter().filter_map(|t| Some((t.misses.unrecovered_ns()?, t.trial))).max();
    if let Some((ns, trial)) = longest.filter(|(ns, _)| *ns > most_ns && open.is_none_or(|(least, _)| least <= *ns)) {
        return (BudgetOutcome::Broken, format!("{} in trial {trial}", time(ns as f64)), String::new());
    }
    if let Some((least_ns, trial)) = open {
        let ended = format!("trial {trial} ended before {} consecutive messages were on time", window.k);
        return match least_ns > most_ns {
            true => (BudgetOutcome::Broken, format!("more than {}", time(most_ns as f64)), ended),
            false => (BudgetOutcome::Undecided, format!("at least {}", time(least_ns as f64)), ended),
        };
    }
    let words = match longest {
        Some((ns, trial)) => format!("{} in trial {trial}", time(ns as f64)),
        None => "no message was late or lost".into(),
    };
    (BudgetOutcome::Holds, words, for_these(found))
}

fn nothing() -> Judged {
    (BudgetOutcome::Undecided, String::new(), "no message was measured".into())
}

/// Words for what a kept limit is about.
fn for_these(found: &[OfTrial]) -> String {
    let messages: u64 = found.iter().map(|t| t.misses.messages).sum();
    format!(
        "for these {} messages; no confidence interval exists, so that other messages may exceed the limit",
        count(messages)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::Nanos;

    const MS: i64 = 1_000_000;

    fn trial(trial: usize, slots: i64, missed: &[i64]) -> OfTrial {
        let mut misses = Misses::new(1, 4);
        (0..slots).for_each(|slot| misses.offer(slot * MS, missed.contains(&slot)));
        OfTrial { trial, misses }
    }

    fn outcome(found: &[OfTrial], limit: MissesLimit) -> BudgetOutcome {
        judged(found, MissWindow { m: 1, k: 4 }, limit).0
    }

    #[test]
    fn a_maximum_above_the_limit_breaks_it_and_others_hold_for_these_messages() {
        use BudgetOutcome::*;
        let found = [trial(0, 20, &[]), trial(1, 20, &[3, 4, 6])];
        assert_eq!(outcome(&found, MissesLimit::LongestRun(1)), Broken);
        assert_eq!(outcome(&found, MissesLimit::LongestRun(2)), Holds);
        assert_eq!(outcome(&found, MissesLimit::ViolatedWindows(3)), Broken);
        assert_eq!(outcome(&found, MissesLimit::ViolatedWindows(4)), Holds);
        assert_eq!(outcome(&found, MissesLimit::Recovery(Nanos(4 * MS - 1))), Broken);
        assert_eq!(outcome(&found, MissesLimit::Recovery(Nanos(4 * MS))), Holds);
    }

    #[test]
    fn too_few_messages_decide_nothing() {
        use BudgetOutcome::*;
        assert_eq!(outcome(&[], MissesLimit::LongestRun(0)), Undecided);
        assert_eq!(outcome(&[trial(0, 3, &[])], MissesLimit::LongestRun(3)), Undecided);
        assert_eq!(outcome(&[trial(0, 3, &[])], MissesLimit::ViolatedWindows(0)), Undecided);
        assert_eq!(outcome(&[trial(0, 5, &[])], MissesLimit::ViolatedWindows(2)), Undecided);
        assert_eq!(outcome(&[], MissesLimit::Recovery(Nanos(MS))), Undecided);
    }

    #[test]
    fn a_trial_that_did_not_recover_breaks_the_limit_once_it_lasted_longer() {
        use BudgetOutcome::*;
        let found = [trial(0, 20, &[3]), trial(1, 20, &[15, 18])];
        let judged = |ns| judged(&found, MissWindow { m: 1, k: 4 }, MissesLimit::Recovery(Nanos(ns)));
        let ended = "trial 1 ended before 4 consecutive messages were on time".to_owned();
        // Slot 19 is on time: if the next three messages are, too, the recovery took 4 ms.
        let found = judged(4 * MS - 1);
        assert_eq!((found.0, found.2), (Broken, ended.clone()));
        let found = judged(4 * MS);
        assert_eq!((found.0, found.2), (Undecided, ended));
    }
}
