//! Formats the end of a short run for a terminal, in about 20 lines: the answer, one table, causes, and the next step. All other
//! tables are in [`render_terminal`](crate::render_terminal).

use crate::plain::plain;
use crate::tables::summary::summary;
use crate::tables::warnings::{grouped, warning_text};
use crate::tables::{causes, flow};
use crate::terminal::{Shown, flow_lines, table_lines};
use crate::text::{Paint, wrap};
use tailbound_document::{Finding, FindingLevel, Report};
use tailbound_model::Severity;

/// Name of the study of `tailbound ping`.
const PING: &str = "ping";
/// Number of lines that the text should not exceed. The table is never cut off.
const LENGTH: usize = 22;
/// Largest number of causes.
const CAUSES: usize = 3;
/// Largest number of lines of a cause.
const LINES_OF_CAUSE: usize = 2;
/// Largest number of lines of the next step: a change, and the figure before and after it.
const LINES_OF_NEXT: usize = 3;

/// How much is left out, so that the text is short enough: the first of these that is.
const LEFT_OUT: [LeftOut; 4] = [
    LeftOut { lines: 3, failed: 2, warnings: 2, has_next: true },
    LeftOut { lines: 2, failed: 2, warnings: 2, has_next: true },
    LeftOut { lines: 2, failed: 2, warnings: 1, has_next: false },
    LeftOut { lines: 2, failed: 1, warnings: 1, has_next: false },
];

/// Largest numbers of parts of a short text.
#[derive(Clone, Copy)]
struct LeftOut {
    /// Lines of a sentence of the answer.
    lines: usize,
    /// Findings that say that something failed or must not be trusted.
    failed: usize,
    /// Warnings. Every one of them is in the report.
    warnings: usize,
    /// Whether the next step is there.
    has_next: bool,
}

/// Formats the answer of a report as text for a terminal of `width` columns.
pub fn render_short(report: &Report, width: usize, colour: bool) -> String {
    let report = &plain(report);
    let paint = Paint::new(colour);
    let width = width.max(40);
    let texts = LEFT_OUT.iter().map(|left_out| lines(report, width, &paint, *left_out));
    let mut lines = Vec::new();
    for text in texts {
        lines = text;
        if lines.len() <= LENGTH {
            break;
        }
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn lines(report: &Report, width: usize, paint: &Paint, left_out: LeftOut) -> Vec<String> {
    let mut lines = answer(report, width, paint, left_out);
    lines.push(String::new());
    let table = summary(report);
    if !report.conditions.is_empty() {
        lines.extend(table_lines(report, &table, width, paint, Shown::Short));
    }
    if flow::is_all(report) {
        lines.extend(flow_lines(report, &table, width, paint));
    }
    let warnings = warning_lines(report, width, paint, left_out.warnings);
    let next = if left_out.has_next { next_steps(report) } else { Vec::new() };
    let mut next: Vec<String> =
        next.iter().flat_map(|text| cropped(&format!("Next: {text}"), width, LINES_OF_NEXT)).collect();
    if let Some(command) =
        crate::tables::next_steps::tune(crate::tables::next_steps::steps(report)).filter(|_| !next.is_empty())
    {
        next.extend(crate::tables::next_steps::command_lines(command, width));
    }
    // An empty line and a title before causes, and an empty line before each other part.
    let others = [&warnings, &next].into_iter().filter(|part| !part.is_empty()).map(|part| part.len() + 1);
    let room = LENGTH.saturating_sub(lines.len() + 2 + others.sum::<usize>()) / LINES_OF_CAUSE;
    let causes = cause_sentences(report).into_iter().take(room.clamp(1, CAUSES));
    let causes: Vec<String> = causes.flat_map(|text| cropped(&format!("- {text}"), width, LINES_OF_CAUSE)).collect();
    if !causes.is_empty() {
        lines.push(String::new());
        lines.push(paint.bold("Why messages were late"));
        lines.extend(causes);
    }
    for part in [warnings, next].into_iter().filter(|part| !part.is_empty()) {
        lines.push(String::new());
        lines.extend(part);
    }
    lines
}

/// What failed, or must not be trusted; then the most important result.
fn answer(report: &Report, width: usize, paint: &Paint, left_out: LeftOut) -> Vec<String> {
    let worse = |f: &&Finding| f.level < FindingLevel::Result;
    let worse = report.findings.iter().filter(worse).take(left_out.failed);
    let mut lines: Vec<String> = worse
        .flat_map(|f| first(wrap(&format!("! {}", f.text), width, 2), left_out.lines))
        .map(|l| paint.alarm(&l))
        .collect();
    if let Some(finding) = report.findings.iter().find(|f| f.level == FindingLevel::Result) {
        lines.extend(first(wrap(&finding.text, width, 0), left_out.lines).iter().map(|l| paint.bold(l)));
    }
    lines
}

/// The causes of late messages, the condition with the largest excess first.
fn cause_sentences(report: &Report) -> Vec<String> {
    let of_conditions = report.findings.iter().filter(|f| f.code == "causes").map(|f| f.text.clone());
    // Without causes of a condition, the worst incidents say what was seen.
    let all: Vec<String> = of_conditions.collect();
    if all.is_empty() { causes::sentences(report).map(str::to_owned).collect() } else { all }
}

fn warning_lines(report: &Report, width: usize, paint: &Paint, most: usize) -> Vec<String> {
    let all: Vec<_> = grouped(&report.warnings);
    let serious: Vec<_> = all.iter().filter(|group| group.warning.severity > Severity::Note).collect();
    let shown = serious.iter().take(most);
    let mut lines: Vec<String> =
        shown.flat_map(|w| first(wrap(&warning_text(w), width, 2), 2)).map(|l| paint.alarm(&l)).collect();
    match serious.len().saturating_sub(most) {
        0 => {}
        1 => lines.push("(1 more warning in the report)".to_owned()),
        more => lines.push(format!("({more} more warnings in the report)")),
    }
    lines
}

/// What to try next: a change that answers a cause; otherwise the setting that gives a quantile that needs more messages.
fn next_steps(report: &Report) -> Vec<String> {
    let steps = crate::tables::next_steps::steps(report);
    if let Some(step) = steps.first() {
        return vec![crate::tables::next_steps::sentences(step)];
    }
    let hints = report.findings.iter().filter(|f| f.level == FindingLevel::Hint);
    // A measurement without a study file has no slots that could be set.
    let of_ping = |text: &str| match text.split_once(" `--set measure.slots=") {
        Some((need, _)) if report.study == PING => format!("{need} A longer `--for` gives it."),
        _ => text.to_owned(),
    };
    hints.take(1).map(|f| of_ping(&f.text)).collect()
}

/// The first lines of a sentence of a list.
fn cropped(text: &str, width: usize, most: usize) -> Vec<String> {
    first(wrap(text, width, 2), most)
}

/// The first lines of a text; if lines are left out, `...` replaces the last word of the last line.
fn first(mut lines: Vec<String>, most: usize) -> Vec<String> {
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            let words = last.trim_end().rfind(' ').filter(|at| !last[..*at].trim().is_empty());
            last.truncate(words.unwrap_or(0));
            last.push_str(" ...");
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::first;

    #[test]
    fn a_long_text_is_cut_off_visibly() {
        let lines = || ["first line", "second line", "third"].map(str::to_owned).to_vec();
        assert_eq!(first(lines(), 3), lines());
        assert_eq!(first(lines(), 2), ["first line", "second ..."]);
        let figures = ["p99 would be about", "  446 us instead of 1.83 ms", "  without this cause."].map(str::to_owned);
        assert_eq!(first(figures.to_vec(), 2)[1], "  446 us instead of 1.83 ...");
        assert_eq!(first(vec!["word".into(), "next".into()], 1), [" ..."]);
    }
}
