//! The keys of a study.

use super::{
    AttributionChoice, CollectChoice, Cpus, DiscoveryChoice, DriverChoice, Frequency, HostKeys, LoadKeys,
    MeasureChoice, PathChoice, PlaceChoice, Qos, QuietText, ReportKeys, SchedulingKeys, Size, VlanChoice, Word,
};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A study: a question, what is measured, the factors varied, and how the report shows it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Tailbound study")]
pub(crate) struct StudyFile {
    /// Name of the study; the name of the file without its ending when absent.
    pub study: Option<At<String>>,
    /// The question that the study answers, one sentence.
    pub question: Option<String>,
    /// What is measured.
    pub measure: At<MeasureChoice>,
    /// Octets of payload in each message. Default: `64 B`.
    pub payload: Option<At<Size>>,
    /// How often a message is due, or `max`: of a ping-pong stop-and-wait (the next goes out when the answer is in), of
    /// throughput as fast as the driver lets it. Default: `1 kHz`, of throughput `max`.
    pub rate: Option<At<Frequency>>,
    /// The middleware of both ends. Required, here, as a factor, or for each end.
    pub driver: Option<At<DriverChoice>>,
    /// Quality of service, where the driver has it. What is absent is the driver's default for this measure.
    pub qos: Option<Qos>,
    /// Domain id, 0 to 232. Default: 77.
    #[schemars(range(max = 232))]
    pub domain: Option<At<u32>>,
    /// How the ends find each other, where their driver has a choice. Default: `auto`.
    pub discovery: Option<At<DiscoveryChoice>>,
    /// Where each end runs and how.
    pub ends: Option<Ends>,
    /// Where both ends run. Default: what the path needs, `netns` for `veth`.
    pub place: Option<At<PlaceChoice>>,
    /// How the ends are spread over processes, participants and executors. Default: a process and a participant for each
    /// end, or what `place` says.
    pub arrangement: Option<At<ArrangementKeys>>,
    /// How the processes of both ends are scheduled. Default: as started.
    pub scheduling: Option<At<SchedulingKeys>>,
    /// What joins the ends. Default: what the place needs, else `veth`.
    #[schemars(extend("default" = "veth"))]
    pub path: Option<At<PathChoice>>,
    /// A VLAN (IEEE 802.1Q) on top of a path that Tailbound makes: each end gets an interface of it, which has the end's
    /// address, and all messages go over it. Default: `off`.
    pub vlan: Option<At<VlanChoice>>,
    /// Work that runs beside the measurement, to see what it does to it.
    pub load: Option<Vec<At<LoadKeys>>>,
    /// Settings of the host, set for the trials and put back after them. Default: as found.
    pub host: Option<HostKeys>,
    /// When samples travel to the controller. Default: `after`.
    pub collect: Option<CollectChoice>,
    /// Whether context switches are watched, to tell why the worst messages were late. Default: `on`.
    pub attribution: Option<AttributionChoice>,
    /// How long the ends are silent once they have met, so that what is on the path without messages is known: `auto`, as
    /// long as the trial, at most 1 s (or 20 slots of a slow rate, up to 5 s); `same`, as long as the trial; `off`; or a
    /// time. Default: `auto`.
    pub quiet: Option<At<QuietText>>,
    /// What is varied: the path of a key in this file, such as `payload` or `ends.ping.cpus`, and its levels. Every
    /// combination is a condition; the first factor is the outermost. A name that is no path has named levels, each a map
    /// of several paths: `setting: { plain: { place: netns }, tuned: { place: netns, scheduling: ... } }`.
    #[allow(dead_code)] // taken out of the tree before it is read; declared for the schema
    pub factors: Option<Factors>,
    /// How often each condition is run. Default: 1.
    #[schemars(range(min = 1, max = 10_000))]
    pub repeat: Option<At<u32>>,
    /// Seed of the random order of trials. Default: 1.
    pub seed: Option<u64>,
    /// How the report shows the study.
    pub report: Option<ReportKeys>,
}

/// The path of a key in the study, and the levels that it takes.
#[derive(Debug, Deserialize)]
pub(crate) struct Factors(#[allow(dead_code)] BTreeMap<String, Vec<Word>>);

impl JsonSchema for Factors {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Factors".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "additionalProperties": { "oneOf": [
                { "type": "array", "minItems": 1 },
                { "type": "object", "minProperties": 1, "additionalProperties": { "type": "object", "minProperties": 1 } }
            ] },
            "examples": [{ "driver": ["udp", "cyclonedds"], "payload": ["64 B", "1 KiB"] }]
        })
    }
}

/// Processes, participants and executors of both ends together.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArrangementKeys {
    /// 1: both ends in one process, which has the CPUs and the scheduling of the ping end. 2: a process each.
    #[schemars(range(min = 1, max = 2))]
    pub processes: u32,
    /// DDS participants: as many as there are processes, or 2 in one process. Default: one for each process.
    #[schemars(range(min = 1, max = 2))]
    pub participants: Option<u32>,
    /// Threads of `receive: executor`: one for each process, or 2 in one process, one for each end. Default: one for each
    /// process.
    #[schemars(range(min = 1, max = 2))]
    pub executors: Option<u32>,
}

/// The two ends of a ping-pong.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ends {
    /// The end that sends first.
    pub ping: Option<EndKeys>,
    /// The end that answers.
    pub pong: Option<EndKeys>,
}

/// One end.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndKeys {
    /// Where it runs; `place` of the study when absent.
    pub place: Option<At<PlaceChoice>>,
    /// CPUs that it may use, as `taskset -c` writes them, or `any`. Default: ping on the first and pong on the second
    /// CPU that Tailbound may use.
    pub cpus: Option<At<Cpus>>,
    /// How its process is scheduled; `scheduling` of the study when absent.
    pub scheduling: Option<At<SchedulingKeys>>,
    /// Its middleware; `driver` of the study when absent. Two that differ must understand each other.
    pub driver: Option<At<DriverChoice>>,
}
