//! Samples that were captured at two hosts, as a table and sentences.

use crate::tables::grid::Column;
use tailbound_document::number::{count, time};
use tailbound_document::{AlsoWriter, WatchedAlso, WatchedRange};

/// A figure that does not exist.
const NONE: &str = "-";

/// The least and the largest distribution of a time.
type Of = fn(&AlsoWriter) -> Option<(WatchedRange, WatchedRange)>;
type Figure = fn(&WatchedRange) -> i64;

/// The column of topics, and the columns of figures; `None` without a writer that both hosts saw.
pub(crate) fn columns(also: &WatchedAlso) -> Option<(Column, Vec<Column>)> {
    if also.writers.is_empty() {
        return None;
    }
    let column = |head: &str, right: bool, cell: &dyn Fn(&AlsoWriter) -> String| Column {
        head: head.to_owned(),
        cells: also.writers.iter().map(|writer| (cell(writer), String::new())).collect(),
        right,
    };
    let bounds = |head: &str, range: Of, of: Figure| {
        column(head, true, &|writer| match range(writer) {
            None => NONE.to_owned(),
            // A message takes no time below zero: the bounds of the clocks are wider than that.
            Some((least, most)) => {
                format!("{} to {}", time(of(&least).max(0) as f64), time(of(&most).max(0) as f64))
            }
        })
    };
    let (network, lateness): (Of, Of) = (|writer| writer.network, |writer| writer.lateness);
    let (p50, max): (Figure, Figure) = (|range| range.p50_ns, |range| range.max_ns);
    let others = vec![
        column("direction", false, &|writer| {
            if writer.from_here { format!("to {}", also.host) } else { format!("from {}", also.host) }
        }),
        column("sent", true, &|writer| count(writer.sent)),
        column("not arrived", true, &|writer| count(writer.not_arrived)),
        bounds("between hosts p50", network, p50),
        bounds("max", network, max),
        bounds("late there p50", lateness, p50),
        bounds("max", lateness, max),
    ];
    let topics =
        column("topic", false, &|writer| writer.topic.clone().unwrap_or_else(|| format!("unknown ({})", writer.guid)));
    Some((topics, others))
}

/// What the figures mean.
pub(crate) fn sentences(also: &WatchedAlso) -> Vec<String> {
    let mut sentences = Vec::new();
    match also.offset_ns {
        Some((low, high)) => sentences.push(format!(
            "The clock of {} is ahead of this one by {} to {}, by {} readings: times between both hosts are known within these bounds.",
            also.host,
            time(low as f64),
            time(high as f64),
            count(also.exchanges)
        )),
        None => sentences.push(format!("The clock of {} is not known: its readings contradict each other.", also.host)),
    }
    if also.writers.is_empty() {
        sentences.push(format!(
            "No sample was sent by one of both hosts and captured at both of them, here and at {}.",
            also.host
        ));
        return sentences;
    }
    sentences.push(
        "between hosts: from the capture where the sample was sent to the capture where it arrived. late there: from the time that the \
         writer gave the sample until it arrived."
            .to_owned(),
    );
    let lost: u64 = also.writers.iter().filter(|of| of.is_best_effort == Some(true)).map(|of| of.not_arrived).sum();
    if lost > 0 {
        sentences
            .push(format!("Lost between both hosts: {} of best-effort writers, which repeat nothing.", count(lost)));
    }
    if also.without_offset > 0 {
        sentences.push(format!(
            "Without a time between both hosts, because a clock was set meanwhile: {} samples.",
            count(also.without_offset)
        ));
    }
    if also.not_copied > 0 {
        sentences.push(format!(
            "{} did not capture {} packets: samples that did not arrive may have.",
            also.host,
            count(also.not_copied)
        ));
    }
    sentences.extend(also.warnings.iter().map(|warning| format!("{}: {warning}", also.host)));
    sentences
}
