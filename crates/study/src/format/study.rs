//! The keys of a study file.

use super::{
    AttributionKey, ClockKeys, CollectChoice, Cpus, DiscoveryChoice, DriverChoice, Frequency, GatesKeys, HostKeys,
    LoadKeys, MeasureChoice, MiddlewareKeys, PathChoice, PlaceChoice, PoliceKeys, Qos, QuietText, ReportKeys,
    SchedulingKeys, SecurityChoice, ShapingKeys, Size, StreamKeys, VlanChoice, Word,
};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A study: a question, what is measured, the factors that vary, and how the report shows the result.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Tailbound study")]
pub(crate) struct StudyFile {
    /// Name of the study. Default: the name of the file without its extension.
    pub study: Option<At<String>>,
    /// The question that the study answers, one sentence.
    pub question: Option<String>,
    /// Kind of measurement: `ping-pong`, `throughput` or `fan-out`.
    pub measure: At<MeasureChoice>,
    /// Size of the payload of each message. Default: `64 B`.
    pub payload: Option<At<Size>>,
    /// Rate of messages, or `max`. For ping-pong, `max` is stop-and-wait: the next message is sent when the answer has
    /// arrived. For throughput, `max` means as fast as the driver accepts messages. Default: `1 kHz`; for throughput,
    /// `max`.
    pub rate: Option<At<Frequency>>,
    /// Times of the clock of the gates (CLOCK_TAI) at which the messages of the ping are due, and launch times. Default: the
    /// first message is due when the trial begins.
    pub stream: Option<At<StreamKeys>>,
    /// Driver of both ends. The driver must be given here, as a factor, or for each end.
    pub driver: Option<At<DriverChoice>>,
    /// QoS policies, if the driver supports them. An absent policy has the driver's default for this measurement.
    pub qos: Option<Qos>,
    /// Number of the DDS domain, 0 to 232. Default: 77.
    #[schemars(range(max = 232))]
    pub domain: Option<At<u32>>,
    /// Discovery method: how the ends find each other, if the driver supports a choice. Default: `auto`.
    pub discovery: Option<At<DiscoveryChoice>>,
    /// Place and other settings of each end of a trial.
    pub ends: Option<Ends>,
    /// Place of both ends. Default: the place that the path needs, `netns` for `veth`.
    pub place: Option<At<PlaceChoice>>,
    /// How the ends are spread over processes, DDS participants and executors. Default: a process and a participant for
    /// each end, or as `place` requires.
    pub arrangement: Option<At<ArrangementKeys>>,
    /// Scheduling of the processes of both ends. Default: unchanged.
    pub scheduling: Option<At<SchedulingKeys>>,
    /// Path (network) that joins the ends. Default: the path that the place needs, otherwise `veth`.
    #[schemars(extend("default" = "veth"))]
    pub path: Option<At<PathChoice>>,
    /// A VLAN (IEEE 802.1Q) on top of a path that Tailbound creates: each end gets a VLAN interface with the end's
    /// address, and all messages use this interface. Default: `off`.
    pub vlan: Option<At<VlanChoice>>,
    /// Loads: work that runs during the measurement, to show the effect of the work on messages.
    pub load: Option<Vec<At<LoadKeys>>>,
    /// Host settings, which are set for the trials and restored after the trials. Default: unchanged.
    pub host: Option<HostKeys>,
    /// Settings that the threads of the middleware inherit from the measuring process. Default: as for Tailbound's own
    /// threads.
    pub middleware: Option<MiddlewareKeys>,
    /// DDS Security of the participants, or `off`: then the drivers load no security plug-ins. Default: `off`.
    pub security: Option<At<SecurityChoice>>,
    /// When the ends send the samples to the controller. Default: `after`.
    pub collect: Option<CollectChoice>,
    /// Which events of the kernel are recorded, to find out why messages were late. Default: `auto`; `off` for
    /// `throughput` and `fan-out`. With `{ level: machine, check: on }`, each condition is also run without the recording.
    pub attribution: Option<AttributionKey>,
    /// Length of the quiet interval: after the ends have found each other, they send nothing for some time, to measure
    /// the traffic of other programs on the path. `auto`: as long as the trial, but at most 1 s (if the rate is low, 20
    /// slots, but at most 5 s); `same`: as long as the trial; `off`: no quiet interval; or a time. Default: `auto`.
    pub quiet: Option<At<QuietText>>,
    /// Factors: each factor is the path of a key in this file, such as `payload` or `ends.ping.cpus`, with its levels.
    /// Every combination of levels is a condition; the first factor varies most slowly. A factor whose name is not a
    /// path has named levels, and each level is a map of several paths: `setting: { plain: { place: netns }, tuned: {
    /// place: netns, scheduling: ... } }`.
    #[allow(dead_code)] // taken out of the tree before it is read; declared for the schema
    pub factors: Option<Factors>,
    /// What the clocks of the hosts must keep before the first trial begins; their offsets are then recorded. Default: no clock is
    /// asked for.
    pub clock: Option<At<ClockKeys>>,
    /// Number of times that each condition is run. Default: 1.
    #[schemars(range(min = 1, max = 10_000))]
    pub repeat: Option<At<u32>>,
    /// Seed for the random order of the trials in the plan. Default: 1.
    pub seed: Option<u64>,
    /// How the report shows the result of the study.
    pub report: Option<ReportKeys>,
}

/// The path of a key in the study, and the levels of that key.
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

/// Numbers of processes, DDS participants and executors of both ends together.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArrangementKeys {
    /// Number of processes. 1: both ends are in one process, with the CPUs and the scheduling of the ping end. 2: each
    /// end has one process.
    #[schemars(range(min = 1, max = 2))]
    pub processes: u32,
    /// Number of DDS participants: equal to `processes`, or 2 in one process. Default: one participant for each
    /// process.
    #[schemars(range(min = 1, max = 2))]
    pub participants: Option<u32>,
    /// Number of executor threads for `receive: executor`: one thread for each process, or 2 threads in one process,
    /// one for each end. Default: one thread for each process.
    #[schemars(range(min = 1, max = 2))]
    pub executors: Option<u32>,
}

/// Settings of the two ends of a trial.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ends {
    /// The ping end, which sends messages.
    pub ping: Option<EndKeys>,
    /// The pong end, which receives messages and answers them.
    pub pong: Option<EndKeys>,
}

/// Settings of one end of a trial.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndKeys {
    /// Place where the end runs. Default: `place` of the study.
    pub place: Option<At<PlaceChoice>>,
    /// CPUs that the end may use, as for `taskset -c`, e.g. `"0-1,3"`, or `any`. Default: ping on the first and pong on
    /// the second CPU that Tailbound may use.
    pub cpus: Option<At<Cpus>>,
    /// Scheduling of the end's process. Default: `scheduling` of the study.
    pub scheduling: Option<At<SchedulingKeys>>,
    /// Driver of the end. Default: `driver` of the study. If the drivers of both ends differ, they must be able to
    /// communicate.
    pub driver: Option<At<DriverChoice>>,
    /// Gates of the interface by which the end sends (IEEE 802.1Q, time-aware shaping). Default: none.
    pub gates: Option<At<GatesKeys>>,
    /// Traffic classes of the interface by which the end sends, and their credits (IEEE 802.1Qav). Default: none.
    pub shaping: Option<At<ShapingKeys>>,
    /// Gate for the IPv4 packets that the interface of the end receives while messages are measured (IEEE 802.1Qci, policing).
    /// Default: none.
    pub police: Option<At<PoliceKeys>>,
}
