//! Calls of programs of ROS 2, as a table and sentences.

use crate::tables::grid::Column;
use tailbound_document::number::{count, time};
use tailbound_document::{CalledMessage, CalledPart, CalledTaker, CalledTopic, WatchedCalls, WatchedRange};

/// A figure that does not exist.
const NONE: &str = "-";

/// A part of messages in traces, which have the begin of callbacks.
const TAKE_TO_CALLBACK: &str = "take to callback";

/// Each topic with the processes that take its messages; `None` = nobody took any here.
fn rows(calls: &WatchedCalls) -> Vec<(&CalledTopic, Option<&CalledTaker>)> {
    let of_topic = |topic: &'_ CalledTopic| -> Vec<Option<usize>> {
        if topic.takers.is_empty() { vec![None] } else { (0..topic.takers.len()).map(Some).collect() }
    };
    let with =
        |topic| of_topic(topic).into_iter().map(move |at: Option<usize>| (topic, at.map(|at| &topic.takers[at])));
    calls.topics.iter().flat_map(with).collect()
}

/// The column of topics, and the columns of figures; `None` without a call.
pub(crate) fn columns(calls: &WatchedCalls) -> Option<(Column, Vec<Column>)> {
    let rows = rows(calls);
    if rows.is_empty() {
        return None;
    }
    let column = |head: &str, right: bool, cell: &dyn Fn(&CalledTopic, Option<&CalledTaker>) -> String| Column {
        head: head.to_owned(),
        cells: rows.iter().map(|(topic, taker)| (cell(topic, *taker), String::new())).collect(),
        right,
    };
    type Of = fn(&CalledTaker) -> Option<WatchedRange>;
    type Figure = fn(&WatchedRange) -> Option<i64>;
    let figure = |range: Option<WatchedRange>, of: Figure| {
        range.as_ref().and_then(of).map_or(NONE.to_owned(), |ns| time(ns as f64))
    };
    let (p50, max): (Figure, Figure) = (|range| Some(range.p50_ns), |range| Some(range.max_ns));
    let of_taker =
        |head: &str, range: Of, of: Figure| column(head, true, &|_, taker| figure(taker.and_then(range), of));
    let (whole, wire): (Of, Of) = (|taker| taker.publish_to_take, |taker| taker.wire_to_take);
    let callback: Of = |taker| taker.callback;
    let others = vec![
        column("published here", true, &|topic, _| count(topic.published)),
        column("publish max", true, &|topic, _| figure(topic.publish, max)),
        column("taken", true, &|_, taker| taker.map_or(NONE.to_owned(), |taker| count(taker.taken))),
        of_taker("publish to take p50", whole, p50),
        of_taker("p99", whole, |range| range.p99_ns),
        of_taker("max", whole, max),
        of_taker("wire to take p50", wire, p50),
        of_taker("max", wire, max),
        of_taker("callback p50", callback, p50),
        of_taker("max", callback, max),
        column("by", false, &|_, taker| taker.map_or("nobody here".to_owned(), |taker| taker.process.clone())),
    ];
    Some((column("topic", false, &|topic, _| topic.topic.clone()), others))
}

/// What the figures mean, and which part made the latest messages late.
pub(crate) fn sentences(calls: &WatchedCalls) -> Vec<String> {
    let rows = rows(calls);
    if rows.is_empty() {
        return vec![
            "No call of ROS 2 was recorded: no program here published or took a message meanwhile.".to_owned(),
        ];
    }
    let mut sentences: Vec<String> = rows
        .iter()
        .filter_map(|(topic, taker)| {
            let taker = (*taker)?;
            Some(latest(&topic.topic, &taker.process, taker.latest.first()?, calls.has_waits))
        })
        .collect();
    let sum = |of: fn(&CalledTaker) -> u64| rows.iter().filter_map(|(_, taker)| *taker).map(of).sum::<u64>();
    let unmatched = sum(|taker| taker.taken - taker.matched - taker.ambiguous);
    if unmatched > 0 {
        sentences.push(format!(
            "Taken without a call here that published the message (it was published on another host, before the calls were recorded, or \
             without a source timestamp): {}.",
            count(unmatched)
        ));
    }
    if sum(|taker| taker.ambiguous) > 0 {
        sentences.push(format!(
            "Taken messages to which several calls at the same time belong, which are not in the figures: {}.",
            count(sum(|taker| taker.ambiguous))
        ));
    }
    let is_between = |message: &CalledMessage| message.parts.iter().any(|part| part.name == TAKE_TO_CALLBACK);
    let of_traces = rows.iter().filter_map(|(_, taker)| *taker).flat_map(|taker| &taker.latest).any(is_between);
    sentences.push(format!(
        "publish to take: from the begin of the call that publishes until the message was taken{}",
        match of_traces {
            true => ". callback: from its begin to its end.",
            false =>
                ", both between rcl and the middleware (rmw). callback: from there until rclcpp had executed the subscription, with what it \
                 does before and after the callback.",
        }
    ));
    sentences
}

/// The message with the longest time, by its parts.
fn latest(topic: &str, process: &str, message: &CalledMessage, has_waits: bool) -> String {
    let whole_ns: i64 = message.parts.iter().map(|part| part.time_ns).sum();
    let parts: Vec<String> = message
        .parts
        .iter()
        .map(|part| {
            let usually = part.median_ns.map_or(String::new(), |ns| format!(" (median {})", time(ns as f64)));
            format!("{} {}{usually}", part.name, time(part.time_ns as f64))
        })
        .collect();
    let beyond = |part: &&CalledPart| part.median_ns.map_or(0, |ns| part.time_ns - ns);
    let late = message.parts.iter().max_by_key(beyond).filter(|part| beyond(part) * 2 > whole_ns);
    let late = late.map_or(String::new(), |part| format!("; {} made it late{}", part.name, waited(part, has_waits)));
    format!("latest message of {topic} in {process}: {} = {}{late}", time(whole_ns as f64), parts.join(" + "))
}

/// How long threads waited for a CPU in a part.
fn waited(part: &CalledPart, has_waits: bool) -> String {
    match &part.wait {
        // At least half of it.
        Some(wait) if wait.time_ns * 2 >= part.time_ns => format!(
            ": its thread {} was ready and waited {} for a CPU{}",
            wait.thread,
            time(wait.time_ns as f64),
            wait.by.as_ref().map_or(String::new(), |by| format!(", which {by} had for {}", time(wait.by_ns as f64)))
        ),
        Some(wait) => {
            format!(", not for want of a CPU: no thread waited longer than {} for one", time(wait.time_ns as f64))
        }
        None if has_waits => ", not for want of a CPU: no thread waited 100 us for one".to_owned(),
        None => String::new(),
    }
}
