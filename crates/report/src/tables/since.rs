//! What changed since the last run of the study: rows and sentences for the page and for Markdown. All figures come from a
//! comparison.

use crate::compared::{shown, verdict};
use tailbound_document::number::{count, three_digits};
use tailbound_document::{Change, Compared, Comparison, OneSide, Pair, Report, SinceReport};

/// Largest number of conditions in the table, the ones with the largest difference.
const PAIRS: usize = 6;
/// Largest number of changed circumstances in the list.
const CHANGES: usize = 12;
/// Largest number of characters of a value in the list.
const VALUE: usize = 60;

pub(crate) const TITLE: &str = "Since the last run";

pub(crate) const HEADS: [&str; 7] = ["condition", "figure", "then", "now", "ratio", "95 %", "verdict"];

/// The comparison, if the report has one.
pub(crate) fn of(report: &Report) -> Option<&SinceReport> {
    report.since.as_ref()
}

/// Which record the report is compared with, and what the figures are.
pub(crate) fn lead(since: &SinceReport) -> String {
    let when = crate::date::utc(since.comparison.a.began_unix_ns);
    let only = match cells(&since.comparison).any(|(_, compared)| compared.within_runs) {
        true => {
            " Intervals with a star describe only these two runs, because one trial does not show how trials differ."
        }
        false => "",
    };
    let all = &since.comparison.pairs;
    let more = match all.len().saturating_sub(PAIRS) {
        0 => String::new(),
        _ => format!(" The table has the {PAIRS} of {} conditions with the largest difference.", all.len()),
    };
    format!(
        "Compared with the record `{}` of the same study, {when}. A ratio is the figure now divided by the figure then; the 95 % intervals \
         are simultaneous.{only}{more}",
        since.record
    )
}

/// The conditions of the table with their compared figures. The mean is only in the comparison.
fn cells(comparison: &Comparison) -> impl Iterator<Item = (&Pair, &Compared)> {
    let of_pairs = comparison.pairs.iter().take(PAIRS).flat_map(|pair| pair.statistics.iter().map(move |c| (pair, c)));
    of_pairs.filter(|(_, c)| c.statistic != "mean" && (c.a.is_some() || c.b.is_some()))
}

/// The rows of the table, with a cell for each of [`HEADS`].
pub(crate) fn rows(since: &SinceReport) -> Vec<[String; 7]> {
    let row = |(pair, c): (&Pair, &Compared)| {
        let figure = match c.metric.as_str() {
            "round_trip" => c.statistic.clone(),
            metric => format!("{} {}", metric.replace('_', " "), c.statistic),
        };
        let star = if c.within_runs { "*" } else { "" };
        let interval = c.interval.map(|[low, high]| format!("{} to {}{star}", three_digits(low), three_digits(high)));
        [
            pair.name.clone(),
            figure,
            shown(c.a, &c.unit),
            shown(c.b, &c.unit),
            c.ratio.map_or(String::new(), three_digits),
            interval.unwrap_or_default(),
            verdict(c, since.comparison.margin),
        ]
    };
    let figures = cells(&since.comparison).map(row);
    figures.chain(since.comparison.pairs.iter().take(PAIRS).filter_map(lost)).collect()
}

/// The row with the numbers of messages without an answer; `None` if every message of both runs was answered.
fn lost(pair: &Pair) -> Option<[String; 7]> {
    let of = |side: &OneSide| format!("{} of {}", count(side.lost + side.not_sent), count(side.scheduled));
    let is_any = [&pair.a, &pair.b].into_iter().any(|side| side.lost + side.not_sent > 0);
    let empty = String::new;
    is_any.then(|| [pair.name.clone(), "lost".into(), of(&pair.a), of(&pair.b), empty(), empty(), empty()])
}

/// The changed facts of the host and settings, one sentence each; one sentence if nothing has changed.
pub(crate) fn changes(since: &SinceReport) -> Vec<String> {
    let changed = &since.comparison.changed;
    let cut = |text: &str| match text.char_indices().nth(VALUE) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    };
    let line = |change: &Change| format!("{}: {} \u{2192} {}", change.what, cut(&change.a), cut(&change.b));
    let mut lines: Vec<String> = changed.iter().take(CHANGES).map(line).collect();
    match changed.len().saturating_sub(CHANGES) {
        _ if changed.is_empty() => lines.push("no recorded fact of the host and no setting".to_owned()),
        0 => {}
        n => lines.push(format!("{n} more, which the comparison lists")),
    }
    lines
}

/// The command that shows the whole comparison, in the folder of both records.
pub(crate) fn command(since: &SinceReport) -> String {
    let word = tailbound_analysis::shell_word;
    format!("tailbound compare {} {}", word(&since.record), word(&since.comparison.b.name))
}
