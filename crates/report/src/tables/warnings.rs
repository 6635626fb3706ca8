//! Joins warnings that differ only in trial and end into one line.

use tailbound_model::{Severity, Warning};

/// A warning, with all trials and ends for which the run raised the warning.
pub(crate) struct WarningGroup<'a> {
    pub warning: &'a Warning,
    trials: Vec<usize>,
    ends: Vec<&'a str>,
}

/// Groups of equal warnings, in the order of the first warning of each group.
pub(crate) fn grouped(warnings: &[Warning]) -> Vec<WarningGroup<'_>> {
    let mut all: Vec<WarningGroup<'_>> = Vec::new();
    for warning in warnings {
        let same = |t: &&mut WarningGroup<'_>| {
            let of = |w: &'_ Warning| (w.severity, w.trial.is_some(), w.end.is_some());
            t.warning.problem.what == warning.problem.what
                && t.warning.problem.remedy == warning.problem.remedy
                && of(t.warning) == of(warning)
        };
        let group = match all.iter_mut().find(same) {
            Some(group) => group,
            None => {
                all.push(WarningGroup { warning, trials: Vec::new(), ends: Vec::new() });
                all.last_mut().expect("it was pushed")
            }
        };
        group.trials.extend(warning.trial.filter(|t| !group.trials.contains(t)));
        group.ends.extend(warning.end.as_deref().filter(|e| !group.ends.contains(e)));
    }
    all
}

impl WarningGroup<'_> {
    /// The trials and ends of the warning, in brackets after a space; empty if the warning is about the whole run.
    pub fn whom(&self) -> String {
        let mut ends = self.ends.clone();
        ends.sort_unstable();
        let trials = match self.trials.as_slice() {
            [] => None,
            [one] => Some(format!("trial {one}")),
            [first, second] => Some(format!("trials {first} and {second}")),
            many => Some(format!("{} trials", many.len())),
        };
        let ends = (!ends.is_empty()).then(|| ends.join(" and "));
        let whom: Vec<String> = trials.into_iter().chain(ends).collect();
        if whom.is_empty() { String::new() } else { format!(" ({})", whom.join(", ")) }
    }
}

/// The warning as a line: `warning (trial 3, ping): text. Remedy.`
pub(crate) fn warning_text(group: &WarningGroup<'_>) -> String {
    let warning = group.warning;
    let word = match warning.severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Invalid => "invalid",
    };
    let whom = group.whom();
    let text = warning.problem.what.trim_end_matches('.');
    let remedy = if warning.problem.remedy.is_empty() { String::new() } else { format!(" {}", warning.problem.remedy) };
    format!("{word}{whom}: {text}.{remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_warnings_are_one_line() {
        let warning = |text: &str, trial: Option<usize>, end: Option<&str>| Warning {
            trial,
            end: end.map(str::to_owned),
            ..Warning::new("c", Severity::Warning, text, "")
        };
        let mut all = Vec::new();
        for trial in 0..3 {
            all.extend(["pong", "ping"].map(|end| warning("not locked", Some(trial), Some(end))));
        }
        all.extend([warning("late", Some(1), None), warning("late", Some(4), None), warning("odd", None, None)]);
        let lines: Vec<String> =
            grouped(&all).iter().map(|t| format!("{}{}", t.warning.problem.what, t.whom())).collect();
        assert_eq!(lines, ["not locked (3 trials, ping and pong)", "late (trials 1 and 4)", "odd"]);
    }
}
