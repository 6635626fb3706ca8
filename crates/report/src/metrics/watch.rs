//! Metrics of what was seen on the wire.

use super::{Metric, Point};
use tailbound_document::{WatchReport, WatchedTopic, WatchedWriter};

const NS_PER_S: f64 = 1e9;

/// A figure of a writer: its name, its description, its unit, whether it only grows, and its value; `None` = not known.
type OfWriter = (&'static str, &'static str, &'static str, bool, fn(&WatchedWriter) -> Option<f64>);

const OF_WRITERS: [OfWriter; 10] = [
    ("tailbound_watch_samples_total", "Samples whose first transmission was seen.", "1", true, |w| {
        Some(w.samples as f64)
    }),
    (
        "tailbound_watch_sent_again_total",
        "Samples, or fragments of samples, that were sent again to a reader.",
        "1",
        true,
        |w| Some(w.protocol.again as f64),
    ),
    (
        "tailbound_watch_first_not_seen_total",
        "Samples that were sent again, and whose first transmission was not seen.",
        "1",
        true,
        |w| Some(w.protocol.first_not_seen as f64),
    ),
    ("tailbound_watch_replayed_total", "Old samples that were sent to a reader that joined later.", "1", true, |w| {
        Some(w.protocol.replayed as f64)
    }),
    (
        "tailbound_watch_numbers_not_seen",
        "Numbers between the first and the last sample that were not seen; not all of them are lost.",
        "1",
        false,
        |w| Some(w.protocol.numbers_not_seen as f64),
    ),
    (
        "tailbound_watch_lost",
        "Samples that were asked for, and not acknowledged within a second, for all readers.",
        "1",
        false,
        |w| Some(w.protocol.lost as f64),
    ),
    ("tailbound_watch_rate_hertz", "Samples per second between the first and the last one.", "Hz", false, |w| {
        w.rate_hz
    }),
    ("tailbound_watch_sample_bytes", "Length of the largest sample.", "By", false, |w| {
        w.bytes.map(|(_, most)| f64::from(most))
    }),
    ("tailbound_watch_longest_pause_seconds", "Longest time between two samples.", "s", false, |w| {
        w.interval.map(|interval| interval.max_ns as f64 / NS_PER_S)
    }),
    (
        "tailbound_watch_deadline_seconds",
        "Longest permitted time between two samples, as the writer announced it.",
        "s",
        false,
        |w| w.qos.as_ref().and_then(|qos| qos.deadline_ns).map(|ns| ns as f64 / NS_PER_S),
    ),
];

/// Figures of the capture, and of each writer whose samples were seen.
pub(super) fn metrics(report: &WatchReport) -> Vec<Metric> {
    let whole = |name, help, unit, is_total, value| Metric {
        name,
        help,
        unit,
        is_total,
        points: vec![Point { labels: vec![("place", report.place.clone())], value }],
    };
    let mut all = vec![
        whole(
            "tailbound_watch_duration_seconds",
            "Length of the capture.",
            "s",
            false,
            report.duration_ns as f64 / NS_PER_S,
        ),
        whole("tailbound_watch_packets_total", "Packets that were read, each once.", "1", true, report.packets as f64),
        whole(
            "tailbound_watch_packets_missed_total",
            "Packets that the kernel did not copy: with any, the figures of the protocol may be wrong.",
            "1",
            true,
            report.not_copied as f64,
        ),
        whole(
            "tailbound_watch_participants",
            "Participants of DDS whose messages were seen.",
            "1",
            false,
            report.participants as f64,
        ),
    ];
    if report.from_file {
        all.retain(|metric| metric.name != "tailbound_watch_packets_missed_total");
    }
    let writers: Vec<(&WatchedTopic, &WatchedWriter)> = report
        .topics
        .iter()
        .flat_map(|topic| topic.writers.iter().map(move |writer| (topic, writer)))
        .filter(|(_, writer)| writer.samples > 0)
        .collect();
    for (name, help, unit, is_total, value) in OF_WRITERS {
        let point = |(topic, writer): &(&WatchedTopic, &WatchedWriter)| {
            Some(Point { labels: labels(report, topic, writer), value: value(writer)? })
        };
        all.push(Metric { name, help, unit, is_total, points: writers.iter().filter_map(point).collect() });
    }
    all.push(Metric {
        name: "tailbound_watch_lateness_seconds",
        help: "Time from the source timestamp of a sample until its first transmission was captured; with above_fastest=true, \
               above the fastest sample seen.",
        unit: "s",
        is_total: false,
        points: writers.iter().flat_map(|(topic, writer)| lateness(labels(report, topic, writer), writer)).collect(),
    });
    all
}

fn labels(report: &WatchReport, topic: &WatchedTopic, writer: &WatchedWriter) -> Vec<(&'static str, String)> {
    vec![
        ("place", report.place.clone()),
        ("topic", topic.shown().unwrap_or_default().to_owned()),
        ("writer", writer.guid.clone()),
        ("address", writer.address.clone().unwrap_or_default()),
    ]
}

/// Quantiles of the lateness of a writer: median, 99 %, and the largest as quantile 1.
fn lateness(labels: Vec<(&'static str, String)>, writer: &WatchedWriter) -> impl Iterator<Item = Point> {
    let late = writer.lateness.as_ref();
    let range = late.map(|late| late.range);
    let above = late.is_some_and(|late| late.is_above_fastest);
    let quantiles = [
        ("0.5", range.map(|range| range.p50_ns)),
        ("0.99", range.and_then(|range| range.p99_ns)),
        ("1", range.map(|range| range.max_ns)),
    ];
    quantiles.into_iter().filter_map(move |(quantile, ns)| {
        let own = [("above_fastest", above.to_string()), ("quantile", quantile.to_owned())];
        Some(Point { labels: labels.iter().cloned().chain(own).collect(), value: ns? as f64 / NS_PER_S })
    })
}
