//! Formats findings as text for a terminal: bad settings first, then settings that could not be read, then good
//! settings.

use crate::{Finding, Verdict};
use std::fmt::Write;

/// Smallest width of the text for which the layout works, in columns.
const MIN_WIDTH: usize = 40;

/// Formats findings in lines of at most `width` columns. A word that is longer than a line is not split.
pub fn render(findings: &[Finding], width: usize) -> String {
    let width = width.max(MIN_WIDTH);
    let with = |verdict| findings.iter().filter(move |f| f.verdict == verdict);
    let (bad, unknown, ok) = (with(Verdict::WillWidenTail), with(Verdict::Unknown), with(Verdict::Ok));
    let (n, n_ok, n_bad, n_unknown) =
        (findings.len(), ok.clone().count(), bad.clone().count(), unknown.clone().count());
    let mut out = String::new();
    let summary = format!("{n} checks: {n_ok} ok, {n_bad} will widen your tail, {n_unknown} could not be read");
    wrapped(&mut out, 0, 2, &summary, width);
    section(&mut out, "Will widen your tail", bad, width, |out, f| {
        wrapped(out, 2, 4, &format!("{}: {}  [{}]", f.title, f.value, f.key), width);
        wrapped(out, 4, 6, &format!("because {}", f.because), width);
        wrapped(out, 4, 6, &format!("do: {}", f.remedy), width);
        if !f.host.is_empty() {
            wrapped(out, 4, 6, &format!("or in a study: host: {{ {} }}", f.host), width);
        }
    });
    section(&mut out, "Could not be read", unknown, width, |out, f| {
        wrapped(out, 2, 4, &format!("{}: {}  [{}]", f.title, f.because, f.key), width);
    });
    section(&mut out, "Ok", ok, width, |out, f| {
        wrapped(out, 2, 4, &format!("{}: {}  [{}]", f.title, f.value, f.key), width);
    });
    out
}

fn section<'a>(
    out: &mut String,
    heading: &str,
    findings: impl Iterator<Item = &'a Finding>,
    width: usize,
    mut one: impl FnMut(&mut String, &Finding),
) {
    let mut findings = findings.peekable();
    if findings.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "\n{heading}\n{}", "-".repeat(heading.chars().count().min(width)));
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
