//! The next steps of the condition with the largest excess: what to try, what it should gain, and the commands that try it.
//!
//! `tailbound-analysis` chooses the steps; this module only formats them.

use crate::tables::causes::worst_condition;
use tailbound_document::number::{label, time};
use tailbound_document::{ConditionReport, NextStep, Report};

/// The steps of the condition with the largest excess; otherwise of the first condition that has steps.
pub(crate) fn steps(report: &Report) -> &[NextStep] {
    let has_steps = |c: &&ConditionReport| !c.next_steps.is_empty();
    let worst = worst_condition(report).filter(has_steps);
    let condition = worst.or_else(|| report.conditions.iter().find(has_steps));
    condition.map_or(&[], |condition| &condition.next_steps)
}

/// What a step changes and what it should gain, as sentences.
pub(crate) fn sentences(step: &NextStep) -> String {
    let scope = match step.scope.as_str() {
        "reboot" => " The host has to be booted again.",
        _ => "",
    };
    format!("{}{}{scope}", step.text, gain(step).unwrap_or_default())
}

/// The estimate of a quantile without the cause that a step answers, as a sentence after a space.
fn gain(step: &NextStep) -> Option<String> {
    let name = step.q.map(|q| if q < 1.0 { label(q) } else { "The maximum".to_owned() })?;
    let metric = match step.metric.as_deref() {
        Some("from_intended") => " from due to answered",
        _ => " of the round trip",
    };
    let (now, then) = (time(step.now_ns? as f64), time(step.then_ns? as f64));
    Some(format!(" {name}{metric} would be about {then} instead of {now} without this cause (estimate)."))
}

/// The commands that try a step: the run with the change, and the command that tries several changes.
pub(crate) fn commands(step: &NextStep) -> impl Iterator<Item = &str> {
    step.command.iter().map(String::as_str)
}

/// The command that tries one change after the other, if a run can try a step.
pub(crate) fn tune(steps: &[NextStep]) -> Option<&str> {
    steps.iter().find_map(|step| step.tune.as_deref())
}

/// A command in lines of at most `width` columns: every line but the last ends with a backslash, so that the lines can be
/// copied to a shell. A word that is longer than a line is not split.
pub(crate) fn command_lines(command: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::from("  ");
    for word in words(command) {
        let is_first = line.trim().is_empty();
        if !is_first && line.chars().count() + 1 + word.chars().count() + 2 > width {
            lines.push(format!("{line} \\"));
            line = format!("    {word}");
        } else {
            line.push_str(if is_first { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.push(line);
    lines
}

/// The words of a command, each with its quotes. An option stays with its value.
fn words(command: &str) -> Vec<&str> {
    let (mut words, mut begin, mut is_quoted) = (Vec::new(), 0, false);
    for (at, letter) in command.char_indices() {
        match letter {
            '\'' if !command[..at].ends_with('\\') => is_quoted = !is_quoted,
            ' ' if !is_quoted && !command[begin..at].starts_with("--") => {
                words.push(&command[begin..at]);
                begin = at + 1;
            }
            // The space between an option and its value.
            ' ' if !is_quoted && command[begin..at].contains(' ') => {
                words.push(&command[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    words.push(&command[begin..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_between_options_only() {
        let command = "tailbound run my-study --set rate=2kHz --set 'ends.pong.scheduling={ policy: fifo }'";
        let lines = command_lines(command, 50);
        let expected =
            ["  tailbound run my-study --set rate=2kHz \\", "    --set 'ends.pong.scheduling={ policy: fifo }'"];
        assert_eq!(lines, expected);
        assert_eq!(command_lines(command, 200), [format!("  {command}")]);
    }

    #[test]
    fn a_step_says_what_it_should_gain() {
        let step = NextStep {
            rule: "cpus-of-end".into(),
            text: "Run the pong end on CPU 2.".into(),
            settings: vec!["ends.pong.cpus=2".into()],
            command: None,
            tune: None,
            metric: Some("from_intended".into()),
            q: Some(0.999),
            now_ns: Some(2_100_000),
            then_ns: Some(140_000),
            scope: "restart".into(),
        };
        let expected = "Run the pong end on CPU 2. p99.9 from due to answered would be about 140 us instead of 2.10 ms without \
                        this cause (estimate).";
        assert_eq!(sentences(&step).replace('\u{202f}', " "), expected);
        let unknown = NextStep { q: None, scope: "reboot".into(), ..step };
        assert_eq!(sentences(&unknown), "Run the pong end on CPU 2. The host has to be booted again.");
    }
}
