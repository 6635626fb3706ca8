//! Settings that one end passes to its driver: options, QoS, receive mode, topics and message size, computed once from
//! the controller's order.

use crate::security_files::SecurityFiles;
use crate::vendor_threads;
use std::collections::BTreeMap;
use tailbound_driver::{Description, Driver, Kv, LoadError};
use tailbound_model::*;
use tailbound_wire::{EndOrder, Order, Role};

/// Function that finds a driver by its name, first among the drivers that are linked in, then among files.
pub type DriverSource = fn(&str) -> Result<Driver, LoadError>;

/// Makes the [`Problem`] for a driver that cannot be used. The remedy names the command that lists the usable drivers.
pub(crate) fn with_driver_list(error: &LoadError) -> Problem {
    const LIST: &str = "`tailbound driver list` shows the drivers that can be used";
    let problem = error.problem();
    let remedy = match problem.remedy.as_str() {
        "" => LIST.to_owned(),
        remedy => format!("{remedy}; {LIST}"),
    };
    problem.with_remedy(remedy)
}

/// QoS policies that apply only to writers (OMG DDS 1.4, table of QoS policies), and batching.
const WRITERS_POLICIES: [&str; 3] = ["lifespan", "transport_priority", "batch"];

/// Settings that one end passes to its driver in a trial.
pub(crate) struct EndPlan {
    pub role: Role,
    /// Driver options with which the end opens its session.
    pub options: Kv,
    /// QoS settings of the end's writers.
    pub writer_qos: Kv,
    /// QoS settings of the end's readers.
    pub reader_qos: Kv,
    /// Receive mode of the end's reader.
    pub receive: tailbound_driver::ReceiveMode,
    /// Number of payload bytes in one message.
    pub message_bytes: u64,
    /// Name of the topic on which the end sends.
    pub send_topic: String,
    /// Name of the topic on which the end receives.
    pub receive_topic: String,
    /// Keeps the files of DDS Security open, whose addresses are in the options.
    security: SecurityFiles,
}

impl EndPlan {
    /// Computes the driver settings of one end in the controller's order.
    ///
    /// # Errors
    /// The files of DDS Security cannot be opened in memory.
    pub fn new(order: &Order, end: &EndOrder, driver: &Description) -> Result<EndPlan, Problem> {
        let failed = |e| Problem::new("security", format!("the files of DDS Security cannot be opened: {e}"), "");
        let security =
            end.security.as_deref().map(SecurityFiles::open).transpose().map_err(failed)?.unwrap_or_default();
        let mut options = options(order, end, driver);
        for (option, address) in &security.options {
            options.set(*option, address.as_str());
        }
        let topic = |name: &str| format!("tailbound_{name}_{}_{}", order.run_id, order.trial);
        let (send, receive) = if end.role.receives() { ("pong", "ping") } else { ("ping", "pong") };
        Ok(EndPlan {
            role: end.role,
            options,
            writer_qos: qos(order, end.role, true),
            reader_qos: qos(order, end.role, false),
            receive: driver_mode(order.spec.measure.receive()),
            message_bytes: order.spec.message_bytes(),
            send_topic: topic(send),
            receive_topic: topic(receive),
            security,
        })
    }

    /// QoS settings of the writer or the reader of a load: those of the load, or else those of the measured topic.
    pub fn load_qos(&self, load: &TopicLoad, writer: bool) -> Kv {
        let measured = if writer { &self.writer_qos } else { &self.reader_qos };
        let Some(own) = &load.qos else { return measured.clone() };
        let mut kv = of_side(own, writer);
        if let Some(participant) = measured.get(PARTICIPANT) {
            kv.set(PARTICIPANT, participant.to_owned());
        }
        kv
    }

    /// Whether the driver has files of DDS Security.
    pub fn is_secured(&self) -> bool {
        !self.security.options.is_empty()
    }

    /// Payload of the end's messages: the bytes 0, 1, 2 and so on, modulo 256.
    pub fn payload(&self) -> Box<[u8]> {
        (0..self.message_bytes).map(|i| i as u8).collect()
    }
}

/// The driver's receive mode for a receive mode of the study.
pub(crate) fn driver_mode(mode: ReceiveMode) -> tailbound_driver::ReceiveMode {
    match mode {
        ReceiveMode::Listener => tailbound_driver::ReceiveMode::Listener,
        // The executor is a thread that waits, like a thread in mode `block`.
        ReceiveMode::Block | ReceiveMode::Executor => tailbound_driver::ReceiveMode::Block,
        ReceiveMode::Spin => tailbound_driver::ReceiveMode::Spin,
    }
}

/// Driver options of the session: first the options of the path, then the options of the study, then the driver's
/// configuration file.
///
/// The lab offers interface, address, peers and multicast for every driver. A driver gets only those options of the lab
/// that the driver has.
fn options(order: &Order, end: &EndOrder, driver: &Description) -> Kv {
    let spec = &order.spec;
    let has = |key: &str| driver.option(key).is_some();
    let takes = |(key, value): &&(String, String)| {
        driver.option(key).is_some_and(|o| o.values.is_empty() || o.values.contains(value))
    };
    let mut kv: Kv = end.options.iter().filter(takes).cloned().collect();
    for (key, value) in &spec.driver.options {
        kv.set(key.as_str(), value.as_str());
    }
    if has("domain") {
        kv.set("domain", spec.domain.to_string());
    }
    if spec.participants_of_session() > 1 {
        kv.set("participants", spec.participants_of_session().to_string());
    }
    // The limit applies to the publisher. If both ends share a session, the limit is set for the session.
    let publishes = !end.role.receives() || spec.is_one_session();
    if let Some(limit) = spec.measure.flow().and_then(|f| f.unacked_limit).filter(|_| publishes) {
        kv.set("unacked_limit", limit.to_string());
    }
    // Some middleware counts bytes where the study counts messages, so it needs the size of a message.
    if has("payload") && kv.get("unacked_limit").is_some() && kv.get("payload").is_none() {
        kv.set("payload", spec.message_bytes().to_string());
    }
    // Without multicast, a middleware looks for participants at the ports of this number of indices, and each end is a
    // participant.
    let ends = spec.measure.subscribers() + spec.measure.publishers();
    if ends > 2 && has("max_participant_index") && !spec.driver.options.contains_key("max_participant_index") {
        kv.set("max_participant_index", (ends + 8).to_string());
    }
    // Shared memory is reserved for each reader that a topic may have.
    if has("max_peers") && !spec.driver.options.contains_key("max_peers") {
        kv.set("max_peers", spec.measure.subscribers().max(spec.measure.publishers()).to_string());
    }
    if let Some(launch) = spec.stream.and_then(|stream| stream.launch).filter(|_| end.role == Role::Ping) {
        kv.set("launch", launch.mode.word());
    }
    if let Some(config) = &spec.driver.config {
        kv.set("config", config.text.as_str());
    }
    if let Some((key, value)) = vendor_threads::option(order.scheduling(), driver) {
        kv.set(key, value);
    }
    kv
}

/// Index of the participant of a session to which an end point belongs.
const PARTICIPANT: &str = "participant";

/// The policies of a study that a writer or a reader has.
fn of_side(qos: &BTreeMap<String, String>, writer: bool) -> Kv {
    let fits = |k: &str| writer || !WRITERS_POLICIES.contains(&k);
    qos.iter().filter(|(k, _)| fits(k)).map(|(k, v)| (k.as_str(), v.as_str())).collect()
}

/// QoS of the study for a writer or a reader, and the index of the participant to which the writer or reader belongs.
fn qos(order: &Order, role: Role, writer: bool) -> Kv {
    let mut kv = of_side(&order.spec.qos, writer);
    if writer && !role.receives() && order.spec.measure.flow().is_some_and(|f| f.batching) {
        kv.set("batch", "on");
    }
    if order.spec.participants_of_session() > 1 {
        kv.set(PARTICIPANT, if role == Role::Ping { "0" } else { "1" });
    }
    kv
}
