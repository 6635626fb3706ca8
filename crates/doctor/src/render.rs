//! Formats findings as text for a terminal: bad settings first, then settings that could not be read, then good
//! settings.

use crate::{Finding, Verdict};
use std::fmt::Write;

/// Smallest width of the text for which the layout works, in columns.
const MIN_WIDTH: usize = 40;

/// Number of bad settings that are shown if not all findings are asked for.
const SHOWN: usize = 5;

/// Form of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Largest length of a line, in columns. A word that is longer than a line is not split.
    pub width: usize,
    /// True if the text may contain colours.
    pub colour: bool,
    /// True if all findings are shown, and not only the bad settings that matter most.
    pub verbose: bool,
}

/// Formats findings in the order in which they are given.
pub fn render(findings: &[Finding], shape: Shape) -> String {
    let width = shape.width.max(MIN_WIDTH);
    let with = |verdict| findings.iter().filter(move |f| f.verdict == verdict);
    let (bad, unknown, ok) = (with(Verdict::WillWidenTail), with(Verdict::Unknown), with(Verdict::Ok));
    let (n, n_ok, n_bad, n_unknown) =
        (findings.len(), ok.clone().count(), bad.clone().count(), unknown.clone().count());
    let mut out = String::new();
    let summary = format!("{n} checks: {n_ok} ok, {n_bad} will widen your tail, {n_unknown} could not be read");
    wrapped(&mut out, 0, 2, &summary, width);
    let shown = if shape.verbose { n_bad } else { SHOWN.min(n_bad) };
    let heading = if shown < n_bad { "Will widen your tail most" } else { "Will widen your tail" };
    section(&mut out, heading, bad.take(shown), shape, |out, f| {
        let begin = out.len();
        wrapped(out, 2, 4, &format!("{}: {}  [{}]", f.title, f.value, f.key), width);
        if shape.colour {
            paint(out, begin, "31");
        }
        if let Some(shown) = &f.evidence {
            wrapped(out, 4, 6, &format!("it matters here: {}", shown.words()), width);
        }
        wrapped(out, 4, 6, &format!("because {}", f.because), width);
        wrapped(out, 4, 6, &format!("do: {}", f.remedy), width);
        if !f.host.is_empty() {
            wrapped(out, 4, 6, &format!("or in a study: host: {{ {} }}", f.host), width);
        }
    });
    if !shape.verbose {
        rest(&mut out, n_bad - shown, n_unknown, width);
        return out;
    }
    section(&mut out, "Could not be read", unknown, shape, |out, f| {
        wrapped(out, 2, 4, &format!("{}: {}  [{}]", f.title, f.because, f.key), width);
    });
    section(&mut out, "Ok", ok, shape, |out, f| {
        wrapped(out, 2, 4, &format!("{}: {}  [{}]", f.title, f.value, f.key), width);
    });
    out
}

/// Says what is not shown.
fn rest(out: &mut String, bad: usize, unknown: usize, width: usize) {
    let more = match (bad, unknown) {
        (0, 0) => return,
        (0, n) => format!("{n} that could not be read"),
        (n, 0) => format!("{n} more that widen the tail"),
        (bad, unknown) => format!("{bad} more that widen the tail, and {unknown} that could not be read"),
    };
    out.push('\n');
    wrapped(out, 0, 2, &format!("{more}: with -v"), width);
}

/// Colours the lines of a text from a position on.
fn paint(out: &mut String, begin: usize, code: &str) {
    let lines: Vec<String> = out[begin..].lines().map(|line| format!("\x1b[{code}m{line}\x1b[0m\n")).collect();
    out.truncate(begin);
    out.push_str(&lines.concat());
}

fn section<'a>(
    out: &mut String,
    heading: &str,
    findings: impl Iterator<Item = &'a Finding>,
    shape: Shape,
    mut one: impl FnMut(&mut String, &Finding),
) {
    let mut findings = findings.peekable();
    if findings.peek().is_none() {
        return;
    }
    let rule = "-".repeat(heading.chars().count().min(shape.width.max(MIN_WIDTH)));
    let heading = if shape.colour { format!("\x1b[1m{heading}\x1b[0m") } else { heading.to_owned() };
    let _ = writeln!(out, "\n{heading}\n{rule}");
    findings.for_each(|finding| one(out, finding));
}

/// Writes a text in several lines: the first line is indented by `first` columns, the other lines by `rest` columns.
fn wrapped(out: &mut String, first: usize, rest: usize, text: &str, width: usize) {
    let mut line = " ".repeat(first);
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            out.push_str(&line);
            out.push('\n');
            line = " ".repeat(rest);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(&line);
    out.push('\n');
}
