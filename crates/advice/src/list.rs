//! Writes the table of rules as text for a terminal, and as the page of the documentation.

use crate::rule::{Rule, Watch};
use crate::rules::RULES;
use std::fmt::Write;

/// Smallest width of the text for which the layout works, in columns.
const MIN_WIDTH: usize = 60;

/// Formats the table in lines of at most `width` columns: one line for each rule, and below it what is changed and how.
pub fn list(width: usize) -> String {
    let width = width.max(MIN_WIDTH);
    let key_width = RULES.iter().map(|rule| rule.key.len()).max().unwrap_or(0);
    let mut text = format!("{:key_width$}  {:7}  {:8}  answers\n", "rule", "scope", "gain");
    for rule in RULES {
        let head = format!("{:key_width$}  {:7}  {:>8}  ", rule.key, rule.scope.word(), gain(rule));
        let indent = head.len();
        // On a narrow terminal, the answers have a line of their own.
        match indent + 24 <= width {
            true => wrapped(&mut text, &head, indent, &answers(rule), width),
            false => {
                let _ = writeln!(text, "{}", head.trim_end());
                wrapped(&mut text, "    ", 4, &format!("answers {}", answers(rule)), width);
            }
        }
        if rule.can_be_tried() {
            wrapped(&mut text, "    ", 6, &format!("{}: {}", rule.knob, rule.value), width);
        }
        wrapped(&mut text, "    ", 6, &format!("by hand: {}", rule.remedy), width);
    }
    let tried = RULES.iter().filter(|rule| rule.can_be_tried()).count();
    let _ = writeln!(text, "\n{} rules, {tried} with a key of a study.", RULES.len());
    let _ = writeln!(text, "All members of a rule: --format json");
    text
}

/// Formats the table as Markdown: a table of all rules, and a list entry with the details of each rule.
pub fn markdown() -> String {
    let mut text = String::from("| rule | answers | change | gain | scope | watch |\n|---|---|---|---|---|---|\n");
    for rule in RULES {
        let change = match rule.can_be_tried() {
            true => format!("`{}`: {}", rule.knob, rule.value),
            false => "by hand".to_owned(),
        };
        let _ = writeln!(
            text,
            "| [`{}`](#{}) | {} | {} | {} | {} | {} |",
            rule.key,
            rule.key,
            in_code(&answers(rule)),
            change,
            gain(rule),
            rule.scope.word(),
            watch(rule)
        );
    }
    for rule in RULES {
        let condition = if rule.condition.is_empty() { "always" } else { rule.condition };
        let _ = write!(
            text,
            "\n### {}\n\n- By hand: {}.\n- If: {condition}.\n- Risk: {}.\n- Undone: {}.\n- Source: {}.\n",
            rule.key, rule.remedy, rule.risk, rule.undo, rule.source
        );
    }
    text
}

/// Words of a rule's causes and losses, e.g. `waited_for_cpu, lost: socket_buffer`.
fn answers(rule: &Rule) -> String {
    let word = |value: Result<serde_json::Value, serde_json::Error>| {
        value.ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let causes = rule.causes.iter().map(|cause| word(serde_json::to_value(cause)));
    let losses = rule.losses.iter().map(|loss| format!("lost:{}", word(serde_json::to_value(loss))));
    let all: Vec<String> = causes.chain(losses).collect();
    if all.is_empty() { "a fact of the host".to_owned() } else { all.join(", ") }
}

fn in_code(answers: &str) -> String {
    if answers.contains(' ') && !answers.contains(',') {
        return answers.to_owned();
    }
    answers.split(", ").map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Range of the share of the cause that a rule should remove, e.g. `50-100 %`.
fn gain(rule: &Rule) -> String {
    match (rule.expected.low_percent, rule.expected.high_percent) {
        (0, 0) => "-".to_owned(),
        (low, high) => format!("{low}-{high} %"),
    }
}

fn watch(rule: &Rule) -> String {
    rule.watch.iter().map(|figure| Watch::words(*figure)).collect::<Vec<_>>().join(", ")
}

/// Writes a text after `head`; further lines are indented by `indent` columns.
fn wrapped(out: &mut String, head: &str, indent: usize, text: &str, width: usize) {
    let mut line = head.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    let _ = writeln!(out, "{}", line.trim_end());
}
