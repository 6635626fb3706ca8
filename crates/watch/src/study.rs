//! From what was seen to a study that can be repeated: one topic is measured, and the others become loads of its size and rate.

use tailbound_document::number::count;
use tailbound_document::{WatchReport, WatchedTopic, WatchedWriter};

/// What a sample of Tailbound has in addition to its payload on the wire: a number of 8 bytes, and the length of the payload.
const BESIDE_PAYLOAD_BYTES: u32 = 12;
/// Most loads of a study that is made: each is a process at each end. The writers with most bytes per second come first.
const MOST_LOADS: usize = 16;
/// Smallest and largest jitter of a load, as a share of its period: intervals are the upper ends of buckets, and a load sends each message
/// before the next one is due.
const LEAST_JITTER: f64 = 0.02;
const MOST_JITTER: f64 = 0.95;
/// Most subscribers of a study.
const MOST_SUBSCRIBERS: u64 = 64;
/// Longest deadline of a study: 30 days.
const LONGEST_DEADLINE_NS: i64 = 30 * 24 * 3600 * 1_000_000_000;
/// Length of the lines of comments, in characters.
const COMMENT_WIDTH: usize = 110;

/// A study that was made from a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedStudy {
    /// Content of the study file.
    pub text: String,
    /// Name of the topic that the study measures.
    pub topic: String,
    /// Number of loads.
    pub loads: usize,
}

/// Why no study could be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoStudy {
    /// No sample of a topic with a known name was seen twice, so that no rate is known.
    NothingSeen,
    /// No sample of this topic was seen twice. The names of the topics that can be measured.
    NoSuchTopic(Vec<String>),
}

/// A writer that can become a measurement or a load: its rate and size are known.
struct Flow<'a> {
    topic: &'a WatchedTopic,
    writer: &'a WatchedWriter,
    rate_hz: f64,
    payload_bytes: u32,
}

/// Makes a study of `report`. It measures the topic of this name, or, without a name, the topic with the latest message; if a topic
/// has several writers, the one with most samples is measured, and the others are loads.
///
/// # Errors
/// Nothing is known of the topic that a study could repeat.
pub fn study(report: &WatchReport, topic: Option<&str>) -> Result<SavedStudy, NoStudy> {
    let mut flows: Vec<Flow<'_>> = report.topics.iter().flat_map(flows_of).collect();
    let known = report.topics.iter().filter(|topic| flows_of(topic).next().is_some());
    let names: Vec<(String, &str)> =
        known.filter_map(|topic| Some((topic.shown()?.to_owned(), topic.topic.as_deref()?))).collect();
    let is_wanted = |(name, on_wire): &&(String, &str)| topic.is_none_or(|topic| name == topic || *on_wire == topic);
    let Some((measured_name, _)) = names.iter().find(is_wanted) else {
        let names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
        return Err(if names.is_empty() { NoStudy::NothingSeen } else { NoStudy::NoSuchTopic(names) });
    };
    let of_topic = flows.iter().enumerate().filter(|(_, flow)| flow.topic.shown() == Some(measured_name.as_str()));
    let Some((at, _)) = of_topic.max_by_key(|(_, flow)| flow.writer.samples) else { return Err(NoStudy::NothingSeen) };
    let measured = flows.swap_remove(at);
    flows.sort_by(|a, b| bytes_per_s(b).total_cmp(&bytes_per_s(a)));
    let left_out = flows.split_off(flows.len().min(MOST_LOADS));
    let text = text(report, measured_name, &measured, &flows, &left_out);
    Ok(SavedStudy { text, topic: measured_name.clone(), loads: flows.len() })
}

fn flows_of(topic: &WatchedTopic) -> impl Iterator<Item = Flow<'_>> {
    topic.writers.iter().filter_map(move |writer| {
        let (rate_hz, (_, most)) = (writer.rate_hz?, writer.bytes?);
        Some(Flow { topic, writer, rate_hz, payload_bytes: most.saturating_sub(BESIDE_PAYLOAD_BYTES) })
    })
}

/// Whether the messages are those of a recording, and not of a capture.
fn is_recorded(flow: &Flow<'_>) -> bool {
    flow.writer.vendor == crate::bag::VENDOR
}

fn bytes_per_s(flow: &Flow<'_>) -> f64 {
    flow.rate_hz * f64::from(flow.payload_bytes)
}

fn text(report: &WatchReport, name: &str, measured: &Flow<'_>, loads: &[Flow<'_>], left_out: &[Flow<'_>]) -> String {
    let (seconds, place) = (report.duration_ns as f64 / 1e9, &report.place);
    let mut lines = comment(&match is_recorded(measured) {
        true => format!(
            "Made by `tailbound import --bag` from {seconds:.1} s of {place}. Measured: the topic {name}, as its messages were recorded. The \
             other topics are loads."
        ),
        false => format!(
            "Made by `tailbound watch --save-study` from a capture of {seconds:.1} s at {place}. Measured: the topic {name}, as its samples \
             were seen. The other topics that were on the wire are loads."
        ),
    });
    for note in notes(measured, loads, left_out) {
        lines.extend(comment(&note));
    }
    let subscribers = measured.topic.readers_announced.clamp(1, MOST_SUBSCRIBERS);
    lines.push(format!("study: watched-{}", file_words(name)));
    lines.push(format!("question: {}", quoted(&format!("How late is {name} beside the other topics of this system?"))));
    lines.push(format!("measure: {{ fan-out: {{ duration: 10 s, subscribers: {subscribers}, spread: processes }} }}"));
    lines.push(format!("driver: {}", driver(&measured.writer.vendor).unwrap_or("cyclonedds")));
    lines.push(format!("payload: {} B", measured.payload_bytes));
    lines.push(format!("rate: {}", hertz(measured.rate_hz)));
    lines.extend(qos(measured.writer));
    lines.push("place: process".to_owned());
    lines.push("path: loopback".to_owned());
    // More ends and loads than CPUs: no end has one for itself.
    lines.push("ends: { ping: { cpus: any }, pong: { cpus: any } }".to_owned());
    if !loads.is_empty() {
        lines.push("load:".to_owned());
    }
    for load in loads {
        let of = load
            .topic
            .shown()
            .map_or_else(|| format!("a topic that is not known, {}", load.writer.guid), str::to_owned);
        lines.push(format!("  # {}", of.replace(char::is_control, " ")));
        let mut keys = vec![format!("payload: {} B", load.payload_bytes), format!("rate: {}", hertz(load.rate_hz))];
        keys.extend(jitter(load).map(|us| format!("jitter: {us} us")));
        keys.extend(qos(load.writer));
        lines.push(format!("  - {{ run: {{ topic: {{ {} }} }} }}", keys.join(", ")));
    }
    lines.join("\n") + "\n"
}

/// What the study does not have of what was seen, or what was not seen.
fn notes(measured: &Flow<'_>, loads: &[Flow<'_>], left_out: &[Flow<'_>]) -> Vec<String> {
    let mut notes = vec![
        "Not known, and yours to set: CPUs and scheduling of the programs (ends.ping.cpus, ends.ping.scheduling, ...), what \
         they do beside sending, and the history of the writers (qos.history). Loads whose policies were not announced have those of the measured topic."
            .to_owned(),
    ];
    if let Some(interval) = measured.writer.interval {
        notes.push(format!(
            "The interval between two samples was {} to {} us. The study sends at even intervals.",
            count((interval.min_ns / 1000).max(0).unsigned_abs()),
            count((interval.max_ns / 1000).max(0).unsigned_abs()),
        ));
    }
    if let Some((least, most)) = measured.writer.bytes.filter(|(least, most)| least < most) {
        notes.push(format!(
            "The samples had {} to {} bytes; the study sends the largest.",
            count(u64::from(least)),
            count(u64::from(most))
        ));
    }
    if is_recorded(measured) {
        notes.push(
            "A recording does not say which middleware sent the messages, and how many readers they had: driver and number of subscribers \
             are guesses. Its times are those at which the recorder received the messages."
                .to_owned(),
        );
    } else if measured.topic.readers_announced == 0 {
        notes.push("No reader was announced during the capture: the number of subscribers is a guess.".to_owned());
    }
    if std::iter::once(measured).chain(loads).any(|flow| keeps_in_service(flow.writer)) {
        notes.push(
            "Writers whose samples a service keeps (durability transient, persistent) are transient-local here."
                .to_owned(),
        );
    }
    if !measured.writer.is_here && !is_recorded(measured) {
        notes.push(format!(
            "The samples came from another host ({}): for the same way, set place and path (docs: Two hosts, Containers, Pods).",
            measured.writer.address.as_deref().unwrap_or("its address is not known")
        ));
    }
    if driver(&measured.writer.vendor).is_none() && !is_recorded(measured) {
        notes.push(format!("There is no driver for {}: the study uses another one.", measured.writer.vendor));
    }
    if !left_out.is_empty() {
        let bytes: f64 = left_out.iter().map(bytes_per_s).sum();
        let writers = count(left_out.len() as u64);
        notes.push(format!(
            "Left out, because each load needs a process at each end: writers of least traffic ({writers}, {bytes:.0} bytes/s together)."
        ));
    }
    notes
}

/// The driver that sends with the implementation of a vendor.
fn driver(vendor: &str) -> Option<&'static str> {
    match vendor {
        "Cyclone DDS" => Some("cyclonedds"),
        "Fast DDS" => Some("fastdds"),
        _ => None,
    }
}

/// Whether a service keeps the samples of the writer, which no driver has.
fn keeps_in_service(writer: &WatchedWriter) -> bool {
    writer.qos.as_ref().is_some_and(|qos| matches!(qos.durability.as_str(), "transient" | "persistent"))
}

/// The policies that were announced; none if they are not known.
fn qos(writer: &WatchedWriter) -> Option<String> {
    let qos = writer.qos.as_ref()?;
    let durability = if keeps_in_service(writer) { "transient-local" } else { &qos.durability };
    let mut keys = vec![format!("reliability: {}", qos.reliability), format!("durability: {durability}")];
    // A study has no longer times.
    let deadline_ns = qos.deadline_ns.filter(|ns| (1..=LONGEST_DEADLINE_NS).contains(ns));
    keys.extend(deadline_ns.map(|ns| match ns % 1_000_000 {
        0 => format!("deadline: {} ms", ns / 1_000_000),
        _ => format!("deadline: {ns} ns"),
    }));
    Some(format!("qos: {{ {} }}", keys.join(", ")))
}

/// A rate with as many digits as a study keeps: its period in ns.
fn hertz(rate: f64) -> String {
    let text = format!("{rate:.6}");
    format!("{} Hz", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The jitter, us, that gives a load the p99 of the intervals that were seen: if each message is sent by a time between 0 and the jitter j
/// after it is due, evenly distributed, the difference of two such times exceeds x with the probability (1 - x / j)^2 / 2, which is 1 % for
/// x = 0.859 j. `None` if the intervals are even, or too few.
fn jitter(flow: &Flow<'_>) -> Option<i64> {
    let (period_ns, interval) = (1e9 / flow.rate_hz, flow.writer.interval?);
    let beyond_ns = interval.p99_ns? as f64 - period_ns;
    let jitter_ns = (beyond_ns / (1.0 - 0.02_f64.sqrt())).min(period_ns * MOST_JITTER);
    (jitter_ns >= period_ns * LEAST_JITTER).then(|| (jitter_ns / 1000.0).floor() as i64).filter(|us| *us > 0)
}

/// The letters and digits of a name, for the name of a study.
fn file_words(name: &str) -> String {
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let words = parts.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    if words.is_empty() { "topic".to_owned() } else { words }
}

/// A text in quotes of YAML. The name of a topic is a text of others.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace(char::is_control, " ").replace('\\', "\\\\").replace('"', "\\\""))
}

/// Lines of a comment.
fn comment(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + word.chars().count() < COMMENT_WIDTH) {
            Some(line) => line.extend([" ", word]),
            None => lines.push(format!("# {word}")),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_keep_their_digits() {
        assert_eq!([40.0, 9.98, 20_000.125, 0.2].map(hertz), ["40 Hz", "9.98 Hz", "20000.125 Hz", "0.2 Hz"]);
    }

    #[test]
    fn names_of_others_stay_in_their_quotes() {
        assert_eq!(quoted("a\"b\\c\nd"), "\"a\\\"b\\\\c d\"");
        assert_eq!(
            (file_words("/camera/image_raw").as_str(), file_words("\n'").as_str()),
            ("camera-image-raw", "topic")
        );
        assert!(comment(&"word ".repeat(60)).iter().all(|line| line.starts_with("# word") && line.len() <= 110));
    }
}
