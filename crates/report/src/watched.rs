//! What watching found, as text for a terminal.

use crate::date::utc_ms;
use crate::json::schema_of;
use crate::tables::grid::{Column, Grid};
use crate::text::{Paint, wrap};
use crate::{watched_also, watched_calls};
use tailbound_document::number::{count, three_digits, time};
use tailbound_document::{
    HostDuring, LateTopic, WatchReport, WatchedCalls, WatchedChain, WatchedLateness, WatchedRange, WatchedTopic,
    WatchedWriter,
};

/// A figure that does not exist for a writer.
const NONE: &str = "-";
/// Number of incidents that are shown; JSON has all that are known.
const MOST_INCIDENTS: usize = 3;

/// Writes what watching found as lines of at most `width` characters.
pub fn render_watch(report: &WatchReport, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut lines = wrap(&first_line(report), width, 2);
    let rows = rows(report);
    if !rows.is_empty() {
        let (first, others) = columns(&rows);
        for grid in Grid::of_columns(&first, others, width) {
            lines.push(String::new());
            lines.extend(grid.lines(&paint, |_| String::new(), |_| Vec::new()));
        }
        lines.push(String::new());
    }
    for line in report.chain.iter().flat_map(chain) {
        lines.extend(wrap(&line, width, 2));
    }
    for line in incidents(report) {
        lines.extend(wrap(&line, width, 2));
    }
    if let Some(also) = &report.also {
        let table = watched_also::columns(also);
        lines.extend(table_lines(table, &watched_also::sentences(also), width, &paint));
    }
    lines.extend(report.calls.iter().flat_map(|calls| calls_lines(calls, width, &paint)));
    for note in notes(report, &rows) {
        lines.extend(wrap(&note, width, 2));
    }
    for warning in &report.warnings {
        lines.extend(wrap(&format!("warning: {warning}"), width, 2));
    }
    lines.join("\n") + "\n"
}

/// Writes the calls of programs of ROS 2 as lines of at most `width` characters.
pub fn render_watched_calls(calls: &WatchedCalls, width: usize, colour: bool) -> String {
    calls_lines(calls, width, &Paint::new(colour)).join("\n") + "\n"
}

fn calls_lines(calls: &WatchedCalls, width: usize, paint: &Paint) -> Vec<String> {
    let table = watched_calls::columns(calls);
    table_lines(table, &watched_calls::sentences(calls), width, paint)
}

/// A table, if there is one, and sentences below it.
fn table_lines(table: Option<(Column, Vec<Column>)>, sentences: &[String], width: usize, paint: &Paint) -> Vec<String> {
    let mut lines = Vec::new();
    for grid in table.iter().flat_map(|(first, others)| Grid::of_columns(first, others.clone(), width)) {
        lines.extend(grid.lines(paint, |_| String::new(), |_| Vec::new()));
        lines.push(String::new());
    }
    lines.extend(sentences.iter().flat_map(|sentence| wrap(sentence, width, 2)));
    lines.push(String::new());
    lines
}

/// Each writer with its topic.
pub(crate) fn rows(report: &WatchReport) -> Vec<(&WatchedTopic, &WatchedWriter)> {
    report.topics.iter().flat_map(|topic| topic.writers.iter().map(move |writer| (topic, writer))).collect()
}

/// The JSON Schema of the document of what was seen, as text.
pub fn watch_schema() -> String {
    schema_of::<WatchReport>("watch")
}

/// How many topics were on the wire, and what was not.
pub(crate) fn first_line(report: &WatchReport) -> String {
    let (seen, mut silent): (Vec<_>, Vec<_>) =
        report.topics.iter().partition(|topic| topic.writers.iter().any(|writer| writer.samples > 0));
    // Of a writer that is known only because a reader answers it, nothing was announced.
    silent.retain(|topic| topic.topic.is_some());
    let known = seen.iter().filter(|topic| topic.topic.is_some()).count();
    let unknown = seen.len() - known;
    let mut parts = vec![format!("{} on the wire", plural(known, "topic"))];
    if unknown > 0 {
        parts.push(format!("{} of unknown topics on the wire", plural(unknown, "writer")));
    }
    if !silent.is_empty() {
        parts.push(format!(
            "{} announced without a sample on the wire (in shared memory, inside a process, or silent)",
            plural(silent.len(), "topic")
        ));
    }
    for (middleware, files) in &report.shared_memory {
        parts.push(format!("{} of {middleware} in shared memory", plural(*files as usize, "file")));
    }
    if report.zenoh_packets > 0 {
        parts.push(format!("{} of zenoh (not read)", plural(report.zenoh_packets as usize, "packet")));
    }
    format!(
        "{} in {} at {}: {}; {} of DDS, {}.",
        plural(report.packets as usize, "packet"),
        time(report.duration_ns as f64),
        report.place,
        parts.join("; "),
        plural(report.participants as usize, "participant"),
        match report.not_copied {
            _ if report.from_file => "those that the program which captured them missed are not known".to_owned(),
            0 => "no packet missed".to_owned(),
            missed => format!("{} missed", plural(missed as usize, "packet")),
        }
    ) + &of_capture(report)
}

/// What the capture itself took.
fn of_capture(report: &WatchReport) -> String {
    let Some(cpu_ns) = report.cpu_ns.filter(|_| report.duration_ns > 0) else { return String::new() };
    let percent = |share: f64| format!("{} %", three_digits(share * 100.0));
    let own = percent(cpu_ns as f64 / report.duration_ns as f64);
    let others = match &report.cost {
        None => {
            "what the kernel did for it while programs sent and received is not in it (--cost measures it)".to_owned()
        }
        Some(cost) => {
            let (low, high) = cost.within;
            let is_above_noise = if low > 0.0 || high < 0.0 { "" } else { ", no difference above the noise" };
            format!(
                "the programs here took {} without a capture, and {} more with one ({} to {}, 98 % interval of {} pairs{is_above_noise})",
                percent(cost.without),
                percent(cost.added),
                percent(low),
                percent(high),
                cost.pairs
            )
        }
    };
    format!(" The capture took {own} of a CPU; {others}.")
}

fn plural(number: usize, word: &str) -> String {
    format!("{} {word}{}", count(number as u64), if number == 1 { "" } else { "s" })
}

/// The name of a topic, as ROS 2 has it if it is one of ROS 2.
fn name(topic: &WatchedTopic, writer: &WatchedWriter) -> String {
    topic.shown().map_or_else(|| format!("unknown ({})", writer.guid), str::to_owned)
}

/// The column of names, and the columns of figures.
pub(crate) fn columns(rows: &[(&WatchedTopic, &WatchedWriter)]) -> (Column, Vec<Column>) {
    let column = |head: &str, right: bool, cell: &dyn Fn(&WatchedWriter) -> String| Column {
        head: head.to_owned(),
        cells: rows.iter().map(|(_, writer)| (cell(writer), String::new())).collect(),
        right,
    };
    let mut names = column("topic", false, &|_| String::new());
    for (cell, (topic, writer)) in names.cells.iter_mut().zip(rows) {
        cell.0 = name(topic, writer);
    }
    let late = |writer: &WatchedWriter, of: fn(&WatchedLateness) -> Option<i64>| {
        let mark = if writer.lateness.as_ref().is_some_and(|late| late.is_above_fastest) { "+" } else { "" };
        let value = writer.lateness.as_ref().and_then(of).map(|ns| format!("{mark}{}", time(ns as f64)));
        value.unwrap_or_else(|| NONE.to_owned())
    };
    let number = |value: u64| if value == 0 { NONE.to_owned() } else { count(value) };
    let all = vec![
        column("samples", true, &|writer| count(writer.samples)),
        column("per second", true, &|writer| writer.rate_hz.map_or(NONE.to_owned(), three_digits)),
        column("bytes", true, &|writer| match writer.bytes {
            None => NONE.to_owned(),
            Some((least, most)) if least == most => count(u64::from(least)),
            Some((least, most)) => format!("{} to {}", count(u64::from(least)), count(u64::from(most))),
        }),
        column("late p50", true, &|writer| late(writer, |late| Some(late.range.p50_ns))),
        column("late p99", true, &|writer| late(writer, |late| late.range.p99_ns)),
        column("late max", true, &|writer| late(writer, |late| Some(late.range.max_ns))),
        column("longest pause", true, &|writer| {
            writer.interval.map_or(NONE.to_owned(), |interval| time(interval.max_ns as f64))
        }),
        column("again", true, &|writer| number(writer.protocol.again)),
        column("not seen", true, &|writer| number(writer.protocol.numbers_not_seen)),
        column("lost", true, &|writer| number(writer.protocol.lost)),
        column("policies", false, &|writer| {
            writer.qos.as_ref().map_or("unknown".to_owned(), |qos| format!("{}, {}", qos.reliability, qos.durability))
        }),
        column("from", false, &|writer| {
            let address = writer.address.as_deref().unwrap_or(NONE);
            match &writer.node {
                Some(node) => format!("{node} at {address} ({})", writer.vendor),
                None => format!("{address} ({})", writer.vendor),
            }
        }),
    ];
    (names, all)
}

/// The worst times at which samples were late, in words.
pub(crate) fn incidents(report: &WatchReport) -> Vec<String> {
    let topic = |topic: &LateTopic| {
        format!(
            "{} ({}, latest {}, median {})",
            topic.topic,
            plural(topic.late as usize, "sample"),
            time(topic.worst_ns as f64),
            time(topic.median_ns as f64)
        )
    };
    let host = |host: &HostDuring| {
        let stolen = match host.stolen_ns {
            0 => String::new(),
            ns => format!(", and a hypervisor took {} from them", time(ns as f64)),
        };
        let span = time(host.read_ns as f64);
        format!("; in the {span} around it, the CPUs here were {} % busy{stolen}", three_digits(host.busy * 100.0))
    };
    let mut lines: Vec<String> = report
        .incidents
        .iter()
        .take(MOST_INCIDENTS)
        .map(|incident| {
            format!(
                "late at {}, for {}: {}{}",
                utc_ms(incident.begin_ns),
                time((incident.end_ns - incident.begin_ns) as f64),
                incident.topics.iter().map(topic).collect::<Vec<_>>().join(", "),
                incident.host.as_ref().map(host).unwrap_or_default()
            )
        })
        .collect();
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// A chain of topics in words.
pub(crate) fn chain(chain: &WatchedChain) -> Vec<String> {
    let figures = |range: &WatchedRange| {
        let p99 = range.p99_ns.map(|ns| format!(", p99 {}", time(ns as f64))).unwrap_or_default();
        format!("p50 {}{p99}, max {}", time(range.p50_ns as f64), time(range.max_ns as f64))
    };
    let mut lines = vec![format!("chain {}:", chain.topics.join(" -> "))];
    match (&chain.age, &chain.reaction) {
        (Some(age), Some(reaction)) => lines.push(format!(
            "  age of the data of {}: {}; reaction to a message of {}: {} ({} without an effect so far)",
            chain.topics.last().map(String::as_str).unwrap_or_default(),
            figures(age),
            chain.topics.first().map(String::as_str).unwrap_or_default(),
            figures(reaction),
            plural(chain.without_effect as usize, "message"),
        )),
        _ => lines
            .push("  no message of the last topic follows from one of the first topic, as far as was seen".to_owned()),
    }
    for hop in &chain.hops {
        let way =
            hop.from.as_ref().map_or_else(|| format!("written to {}", hop.to), |from| format!("{from} to {}", hop.to));
        let took = hop.time.as_ref().map_or_else(|| "not seen".to_owned(), figures);
        let links = match &hop.from {
            None => String::new(),
            Some(_) => format!(
                "; of {}, {} by header, {} by time ({} ambiguous), {} without a cause",
                plural(hop.samples as usize, "sample"),
                count(hop.by_header),
                count(hop.by_time),
                count(hop.ambiguous),
                count(hop.without_cause)
            ),
        };
        lines.push(format!("  {way}: {took}{links}"));
    }
    if let Some(late) = &chain.late_hop {
        let way = late
            .from
            .as_ref()
            .map_or_else(|| format!("written to {}", late.to), |from| format!("{from} to {}", late.to));
        lines.push(format!(
            "  the oldest {} became late at the hop {way}: {} of {} beyond the usual",
            plural(late.messages as usize, "message"),
            time(late.beyond_ns as f64),
            time(late.of_all_ns as f64)
        ));
    }
    lines.push(String::new());
    lines
}

/// What the figures mean.
pub(crate) fn notes(report: &WatchReport, rows: &[(&WatchedTopic, &WatchedWriter)]) -> Vec<String> {
    let mut notes = Vec::new();
    let late: Vec<&WatchedLateness> = rows.iter().filter_map(|(_, writer)| writer.lateness.as_ref()).collect();
    if !late.is_empty() {
        notes.push(
            "late: from the time that the writer gave the sample until the end of its first transmission was captured. This is no \
             end-to-end latency: what the receiver does is not in it."
                .to_owned(),
        );
    }
    if !late.is_empty() {
        notes.push(match &report.left_within {
            None => "A packet is stamped before its interface has it. How long before is not known here: no packet was captured again on \
                     this host after it left."
                .to_owned(),
            Some(within) => format!(
                "A packet is stamped before its interface has it: of {} that were captured again at their next place on this host, each left \
                 within {} of its stamp, half of them within {}.",
                plural(within.count as usize, "packet"),
                time(within.max_ns as f64),
                time(within.p50_ns as f64)
            ),
        });
    }
    if late.iter().any(|late| late.is_above_fastest) {
        notes.push(
            "+: above the fastest sample seen, because the sample was not sent here, and its writer may have another clock. The \
             drift of the two clocks is in it."
                .to_owned(),
        );
    }
    let mut begins: Vec<&str> = late.iter().map(|late| late.begins.as_str()).collect();
    begins.sort_unstable();
    begins.dedup();
    notes.extend(begins.iter().map(|begins| format!("{begins}.")));
    let sum = |of: fn(&WatchedWriter) -> u64| rows.iter().map(|(_, writer)| of(writer)).sum::<u64>();
    let (replayed, without) = (sum(|writer| writer.protocol.replayed), sum(|writer| writer.without_time));
    if replayed > 0 {
        notes.push(format!(
            "Not in these figures: {} that a reader got when it joined, or that were written before the capture began.",
            plural(replayed as usize, "old sample")
        ));
    }
    if without > 0 {
        notes.push(format!(
            "Without a time of the writer, and so without a lateness: {}.",
            plural(without as usize, "sample")
        ));
    }
    if sum(|writer| writer.protocol.numbers_not_seen) > 0 {
        notes.push(
            "not seen: numbers of samples between the first and the last one. They need not be lost: a writer may number samples \
             that it never sends here."
                .to_owned(),
        );
    }
    if report.unread.malformed > 0 {
        notes.push(format!("Malformed, and not read: {}.", plural(report.unread.malformed as usize, "submessage")));
    }
    if report.unread.behind_copied > 0 {
        notes.push(format!(
            "Of {}, the end was not copied, and what it says is not in these figures: samples in it are \"not seen\", and what a \
             reader acknowledges in it counts as lost.",
            plural(report.unread.behind_copied as usize, "message")
        ));
    }
    notes
}
