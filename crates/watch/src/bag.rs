//! Recordings of ROS 2 (rosbag2): what was recorded of each topic, as far as a study can repeat it.
//!
//! Times are those at which the recorder received the messages. What preceded this is not in a recording, so that there is no
//! lateness.

use crate::lateness::range;
use std::collections::BTreeMap;
use std::io::Read;
use tailbound_document::{WatchReport, WatchedProtocol, WatchedQos, WatchedTopic, WatchedWriter};
use tailbound_stats::Histogram;
use thiserror::Error;

/// The implementation that sent the messages of a recording is not known.
pub const VENDOR: &str = "recorded by rosbag2";

/// Messages within less than this part of a recording are a burst, and no stream.
const SHORTEST_PART: i64 = 10;
/// What is said of a recording whose end is not there.
const CUT: &str = "the recording ends within a message, or is damaged from there on: what follows was not read";

/// Why a recording cannot be used.
#[derive(Debug, Error)]
pub enum BagError {
    /// The file has another form, or is damaged.
    #[error("it is no recording that can be read: {0}")]
    NoBag(String),
    /// There are no messages.
    #[error("the recording has no messages")]
    Empty,
    /// All messages have the same time.
    #[error("the messages have no times, so that no rate is known")]
    NoTimes,
    /// This build reads no files of this form.
    #[error("this build reads no recordings in the form MCAP")]
    NoMcap,
}

/// What was recorded of one topic.
#[derive(Default)]
struct Recorded {
    type_name: String,
    qos: Option<WatchedQos>,
    messages: u64,
    span_ns: Option<(i64, i64)>,
    bytes: Option<(u32, u32)>,
    interval: Histogram,
}

/// A recording, message by message.
#[derive(Default)]
pub struct Bag {
    topics: BTreeMap<String, Recorded>,
    /// Whether a file ends within a message, or is damaged from there on.
    is_cut: bool,
}

impl Bag {
    /// An empty recording.
    pub fn new() -> Bag {
        Bag::default()
    }

    /// Number of topics.
    pub fn topics(&self) -> usize {
        self.topics.len()
    }

    /// A topic with its name in ROS 2, its type (`std_msgs/msg/String`), and the policies that its publishers offered, as rosbag2 writes
    /// them (YAML).
    pub fn topic(&mut self, name: &str, type_name: &str, offered: &str) {
        let topic = self.topics.entry(name.to_owned()).or_default();
        topic.type_name = type_name.replace(char::is_control, " ");
        topic.qos = topic.qos.take().or_else(|| qos(offered));
    }

    /// The next message of a topic: when it was recorded, ns since 1970, and its length in bytes, with the header of its encoding.
    pub fn message(&mut self, topic: &str, at_ns: i64, bytes: u32) {
        let Some(topic) = self.topics.get_mut(topic) else { return };
        topic.messages += 1;
        // Impossible times stay in a range whose differences are numbers.
        let at_ns = at_ns.clamp(0, i64::MAX / 2);
        if let Some((_, last_ns)) = topic.span_ns.filter(|(_, last_ns)| at_ns >= *last_ns) {
            topic.interval.record(at_ns - last_ns);
        }
        let (first_ns, last_ns) = topic.span_ns.unwrap_or((at_ns, at_ns));
        topic.span_ns = Some((first_ns.min(at_ns), last_ns.max(at_ns)));
        let data = bytes.saturating_sub(4);
        let (least, most) = topic.bytes.unwrap_or((data, data));
        topic.bytes = Some((least.min(data), most.max(data)));
    }

    /// The document of the recording. `place`: where it is, in words.
    ///
    /// # Errors
    /// There are no messages, or they have no times.
    pub fn report(&self, place: String) -> Result<WatchReport, BagError> {
        let spans = || self.topics.values().filter_map(|topic| topic.span_ns);
        let begin_ns = spans().map(|(first, _)| first).min().ok_or(BagError::Empty)?;
        let end_ns = spans().map(|(_, last)| last).max().ok_or(BagError::Empty)?;
        if begin_ns == end_ns && self.topics.values().any(|topic| topic.messages > 1) {
            return Err(BagError::NoTimes);
        }
        let whole_ns = end_ns - begin_ns;
        let mut topics: Vec<(u64, WatchedTopic)> =
            self.topics.iter().map(|(name, topic)| (topic.messages, watched(name, topic, whole_ns))).collect();
        topics.sort_by_key(|(messages, _)| std::cmp::Reverse(*messages));
        Ok(WatchReport {
            begin_ns,
            duration_ns: end_ns - begin_ns,
            place,
            packets: 0,
            copies: 0,
            not_copied: 0,
            left_within: None,
            from_file: true,
            is_partial: false,
            clock_step_ns: None,
            also: None,
            cost: None,
            cpu_ns: None,
            unread: Default::default(),
            zenoh_packets: 0,
            shared_memory: BTreeMap::new(),
            participants: 0,
            topics: topics.into_iter().map(|(_, topic)| topic).collect(),
            chain: None,
            incidents: Vec::new(),
            calls: None,
            warnings: if self.is_cut { vec![CUT.to_owned()] } else { Vec::new() },
        })
    }
}

/// `whole_ns`: length of the recording. The rate of a topic with messages in a small part of it, such as `/tf_static` at the begin, is the
/// one over the whole recording.
fn watched(name: &str, topic: &Recorded, whole_ns: i64) -> WatchedTopic {
    let span_ns = topic.span_ns.map_or(0, |(first, last)| last - first);
    let is_burst = span_ns < whole_ns / SHORTEST_PART;
    let rate_hz = match (topic.messages, is_burst) {
        (0 | 1, _) => None,
        (messages, true) => Some(messages as f64 * 1e9 / whole_ns as f64),
        (messages, false) => (span_ns > 0).then(|| (messages - 1) as f64 * 1e9 / span_ns as f64),
    };
    WatchedTopic {
        topic: Some(format!("rt{name}")),
        // A name of others must not change a terminal.
        ros_topic: Some(name.replace(char::is_control, " ")),
        type_name: Some(topic.type_name.clone()),
        readers_announced: 0,
        writers: vec![WatchedWriter {
            guid: String::new(),
            vendor: VENDOR.to_owned(),
            participant: None,
            node: None,
            address: None,
            is_here: false,
            qos: topic.qos.clone(),
            samples: topic.messages,
            rate_hz,
            interval: range(&topic.interval),
            bytes: topic.bytes,
            lateness: None,
            without_time: topic.messages,
            protocol: WatchedProtocol::default(),
        }],
    }
}

/// The policies of the first publisher in the YAML of rosbag2: words, or the numbers of rmw (1: reliable, transient-local).
fn qos(offered: &str) -> Option<WatchedQos> {
    let value = |key: &str| {
        let line = offered.lines().find_map(|line| line.trim_start_matches([' ', '-']).strip_prefix(key))?;
        Some(line.trim_start_matches(':').trim())
    };
    let reliability = match value("reliability")? {
        "1" | "reliable" => "reliable",
        "2" | "best_effort" => "best-effort",
        _ => return None,
    };
    let durability = match value("durability")? {
        "1" | "transient_local" => "transient-local",
        "2" | "volatile" => "volatile",
        _ => return None,
    };
    Some(WatchedQos { reliability: reliability.to_owned(), durability: durability.to_owned(), deadline_ns: None })
}

/// Largest record of a file in the form MCAP that is read, in bytes: a message, or a chunk of messages.
#[cfg(feature = "mcap")]
const LARGEST_RECORD: usize = 1 << 30;

/// Adds the messages of a file in the form MCAP.
///
/// # Errors
/// The file has another form, or is damaged from its begin on, or this build reads no such files.
#[cfg(feature = "mcap")]
pub fn read_mcap(mut file: impl Read, bag: &mut Bag) -> Result<(), BagError> {
    use mcap::records::{Record, op};
    use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};
    // A recorder that was killed has written no end.
    let options = LinearReaderOptions::default().with_skip_end_magic(true).with_record_length_limit(LARGEST_RECORD);
    let mut reader = LinearReader::new_with_options(options);
    let mut schemas: BTreeMap<u16, String> = BTreeMap::new();
    let mut channels: BTreeMap<u16, String> = BTreeMap::new();
    loop {
        let record = match reader.next_event() {
            None => return Ok(()),
            Some(Ok(LinearReadEvent::ReadRequest(bytes))) => {
                let read = file.read(reader.insert(bytes)).map_err(|e| BagError::NoBag(e.to_string()))?;
                reader.notify_read(read);
                continue;
            }
            Some(Ok(LinearReadEvent::Record { data, opcode: opcode @ (op::SCHEMA | op::CHANNEL | op::MESSAGE) })) => {
                mcap::parse_record(opcode, data)
            }
            Some(Ok(LinearReadEvent::Record { .. })) => continue,
            Some(Err(error)) => Err(error),
        };
        match record {
            Ok(Record::Schema { header, .. }) => drop(schemas.insert(header.id, header.name)),
            Ok(Record::Channel(channel)) => {
                let kind = schemas.get(&channel.schema_id).map_or("", String::as_str);
                let offered = channel.metadata.get("offered_qos_profiles").map_or("", String::as_str);
                bag.topic(&channel.topic, kind, offered);
                channels.insert(channel.id, channel.topic);
            }
            Ok(Record::Message { header, data }) => {
                let at_ns = i64::try_from(header.log_time).unwrap_or(0);
                if let Some(topic) = channels.get(&header.channel_id) {
                    bag.message(topic, at_ns, u32::try_from(data.len()).unwrap_or(u32::MAX));
                }
            }
            Ok(_) => {}
            Err(error) if bag.topics.is_empty() => return Err(BagError::NoBag(error.to_string())),
            Err(_) => {
                bag.is_cut = true;
                return Ok(());
            }
        }
    }
}

/// This build reads no files in the form MCAP.
///
/// # Errors
/// Always.
#[cfg(not(feature = "mcap"))]
pub fn read_mcap(_: impl Read, _: &mut Bag) -> Result<(), BagError> {
    Err(BagError::NoMcap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_words_or_numbers() {
        let numbers = "- history: 3\n  depth: 0\n  reliability: 1\n  durability: 2\n  deadline:\n    sec: 9\n";
        let words = "- history: keep_last\n  depth: 5\n  reliability: best_effort\n  durability: transient_local\n";
        let of = |text: &str| qos(text).map(|qos| (qos.reliability, qos.durability));
        assert_eq!(of(numbers), Some(("reliable".into(), "volatile".into())));
        assert_eq!(of(words), Some(("best-effort".into(), "transient-local".into())));
        assert_eq!((of(""), of("reliability: 0\ndurability: 0")), (None, None));
    }

    #[test]
    fn rates_and_sizes_are_those_of_the_messages() {
        let mut bag = Bag::new();
        bag.topic("/scan", "sensor_msgs/msg/LaserScan", "");
        assert!(matches!(bag.report("b".into()), Err(BagError::Empty)));
        (0..101).for_each(|n| bag.message("/scan", 1_000_000_000 + n * 25_000_000, 104 + (n % 2) as u32));
        let report = bag.report("b".into()).unwrap();
        let writer = &report.topics[0].writers[0];
        assert_eq!((writer.samples, writer.bytes, writer.rate_hz), (101, Some((100, 101)), Some(40.0)));
        assert_eq!(report.duration_ns, 2_500_000_000);
        // Latched messages at the begin are no stream of 2,000 Hz.
        bag.topic("/tf_static", "tf2_msgs/msg/TFMessage", "");
        (0..3).for_each(|n| bag.message("/tf_static", 1_000_000_000 + n * 500_000, 100));
        // Times that are impossible are no reason to count with them.
        bag.topic("/odd", "", "");
        [i64::MIN, 5].into_iter().for_each(|at_ns| bag.message("/odd", at_ns, 10));
        let latched = bag.report("b".into()).unwrap();
        let of = |name: &str| latched.topics.iter().find(|topic| topic.ros_topic.as_deref() == Some(name)).unwrap();
        assert!(of("/tf_static").writers[0].rate_hz.unwrap() < 2.0);
        let mut timeless = Bag::new();
        timeless.topic("/scan", "", "");
        (0..5).for_each(|_| timeless.message("/scan", 0, 10));
        assert!(matches!(timeless.report("b".into()), Err(BagError::NoTimes)));
    }
}
