//! Warnings that differ in nothing but trial and end are told once.

use crate::document::ReportWarning;

/// A warning, with all that it is about.
pub(crate) struct Told<'a> {
    pub warning: &'a ReportWarning,
    trials: Vec<usize>,
    ends: Vec<&'a str>,
}

/// Each once, in the order in which they first came.
pub(crate) fn told(warnings: &[ReportWarning]) -> Vec<Told<'_>> {
    let mut all: Vec<Told<'_>> = Vec::new();
    for warning in warnings {
        let same = |t: &&mut Told<'_>| {
            let of = |w: &'_ ReportWarning| (w.severity, w.trial.is_some(), w.end.is_some());
            t.warning.text == warning.text && t.warning.mend == warning.mend && of(t.warning) == of(warning)
        };
        let told = match all.iter_mut().find(same) {
            Some(told) => told,
            None => {
                all.push(Told { warning, trials: Vec::new(), ends: Vec::new() });
                all.last_mut().expect("it was pushed")
            }
        };
        told.trials.extend(warning.trial.filter(|t| !told.trials.contains(t)));
        told.ends.extend(warning.end.as_deref().filter(|e| !told.ends.contains(e)));
    }
    all
}

impl Told<'_> {
    /// Whom it is about, in brackets with a blank before them; empty for the whole run.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::WarningSeverity;

    #[test]
    fn what_is_the_same_is_told_once() {
        let warning = |text: &str, trial: Option<usize>, end: Option<&str>| ReportWarning {
            code: "c".into(),
            severity: WarningSeverity::Warning,
            text: text.into(),
            mend: String::new(),
            trial,
            end: end.map(str::to_owned),
        };
        let mut all = Vec::new();
        for trial in 0..3 {
            all.extend(["pong", "ping"].map(|end| warning("not locked", Some(trial), Some(end))));
        }
        all.extend([warning("late", Some(1), None), warning("late", Some(4), None), warning("odd", None, None)]);
        let lines: Vec<String> = told(&all).iter().map(|t| format!("{}{}", t.warning.text, t.whom())).collect();
        assert_eq!(lines, ["not locked (3 trials, ping and pong)", "late (trials 1 and 4)", "odd"]);
    }
}
