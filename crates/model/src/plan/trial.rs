//! The plan: the conditions and trials that follow from a study.

use crate::{
    Arrangement, Attribution, ByteSize, ClockSpec, CpuList, Discovery, FLOW_TIMEOUT, Flow, KnobSpec, LoadSpec,
    MiddlewareSettings, Nanos, PathSpec, PlaceSpec, Problem, Quiet, Rate, ReceiveMode, ReportSpec, Scheduling,
    SecuritySpec, VlanSpec,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All trials of a study, in order. The plan is written into the record before anything is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the study from which the plan was made.
    pub study: String,
    /// The question that the study answers, in words.
    pub question: String,
    /// Seed of the random order in which the trials run.
    pub seed: u64,
    /// Names of the factors in the order of the study, the factor that varies most slowly first.
    pub factors: Vec<String>,
    /// All conditions, that is, all combinations of levels of the factors.
    pub conditions: Vec<Condition>,
    /// Trials of the plan, in the order in which they run.
    pub trials: Vec<Trial>,
    /// How the report shows the result of the study.
    pub report: ReportSpec,
    /// What the clocks of the hosts must keep; `None` = no clock is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockSpec>,
    /// Text of the study file as it was read; `--set` arguments are in `settings`.
    pub source: String,
    /// `--set` arguments of the command line, as the user gave them.
    pub settings: Vec<String>,
}

impl Plan {
    /// What the trial with this id measures; `None` = the plan has no such trial.
    pub fn spec_of(&self, trial: usize) -> Option<&TrialSpec> {
        let trial = self.trials.iter().find(|one| one.id == trial)?;
        self.conditions.get(trial.condition).map(|condition| &condition.spec)
    }
}

/// Whether two texts name the same level of a factor: spaces between a number and its unit are optional, as in `64B` and `64 B`.
pub fn is_same_level(a: &str, b: &str) -> bool {
    a.chars().filter(|c| *c != ' ').eq(b.chars().filter(|c| *c != ' '))
}

/// A condition: one combination of levels of the factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// Index of the condition within the plan.
    pub id: usize,
    /// Level of each factor as text, by the factor's path, e.g. `payload` -> `64 B`; factors with one level are
    /// included.
    pub levels: BTreeMap<String, String>,
    /// Everything that is needed to run one trial of this condition.
    pub spec: TrialSpec,
    /// Reason why this combination cannot be run; such a condition has no trials.
    pub not_possible: Option<String>,
}

/// A trial: one run of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Index of the trial within the plan, and name of the directory with the trial's samples.
    pub id: usize,
    /// Index, in the plan, of the condition that the trial runs.
    pub condition: usize,
    /// Number of the repetition of the condition, from 0.
    pub repeat: usize,
    /// Number of the lab block: consecutive trials with the same number share their lab and the host settings.
    pub block: usize,
}

/// Everything that is needed to run one trial of a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialSpec {
    /// The kind of measurement of the trial, e.g. ping-pong.
    pub measure: Measure,
    /// Size of the member `payload` of each message (type `Sample`).
    pub payload: ByteSize,
    /// Rate at which slots (scheduled messages) are due.
    pub rate: Rate,
    /// Times of CLOCK_TAI at which the messages of the ping are due; `None` = the first one is due when the trial begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<crate::StreamSpec>,
    /// The driver of both ends; if `pong_driver` is given, the driver of the ping end only.
    pub driver: DriverSpec,
    /// The driver of the pong end, if it differs from the ping end's driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pong_driver: Option<DriverSpec>,
    /// QoS policies, in the terms of the driver; if empty, the driver's defaults for this kind of measurement apply.
    pub qos: BTreeMap<String, String>,
    /// Number of the DDS domain that the participants join.
    pub domain: u32,
    /// Discovery method: how the ends find each other.
    #[serde(default, skip_serializing_if = "Discovery::is_auto")]
    pub discovery: Discovery,
    /// Place and scheduling of the ping end's process.
    pub ping: EndSpec,
    /// Place and scheduling of the pong end's process.
    pub pong: EndSpec,
    /// The path between the places of the ends.
    pub path: PathSpec,
    /// The VLAN on top of the path, if the study asks for a VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanSpec>,
    /// How the ends are spread over processes and participants; if absent, each end has its own participant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrangement: Option<Arrangement>,
    /// Settings that the threads of the middleware inherit from the measuring process.
    #[serde(default, skip_serializing_if = "MiddlewareSettings::is_default")]
    pub middleware: MiddlewareSettings,
    /// DDS Security of the participants; absent = the drivers load no security plug-ins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<SecuritySpec>,
    /// When samples are sent from the agents to the controller.
    pub collect: Collect,
    /// Which events of the kernel are recorded, to find the causes of late messages.
    #[serde(default)]
    pub attribution: Attribution,
    /// Length of the quiet interval, in which the ends send nothing before the first message.
    #[serde(default, skip_serializing_if = "Quiet::is_auto")]
    pub quiet: Quiet,
    /// Loads that run while the ends measure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadSpec>,
    /// Host settings that are in force during the trial, in the order in which they are set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<KnobSpec>,
}

impl TrialSpec {
    /// All drivers of the trial; the driver of the ping end is first.
    pub fn drivers(&self) -> impl Iterator<Item = &DriverSpec> {
        std::iter::once(&self.driver).chain(&self.pong_driver)
    }

    /// Returns a copy of the trial in which [`driver`](TrialSpec::driver) is the driver of the pong end.
    pub fn of_pong(&self) -> TrialSpec {
        TrialSpec { driver: self.pong_driver.clone().unwrap_or_else(|| self.driver.clone()), ..self.clone() }
    }

    /// True if another benchmark program runs in place of a driver, so Tailbound itself measures nothing.
    pub fn has_tool(&self) -> bool {
        self.drivers().any(|d| d.tool.is_some())
    }

    /// True if network cards are to stamp messages: option `timestamps: hardware` of the driver.
    pub fn wants_card_stamps(&self) -> bool {
        self.driver.options.get("timestamps").is_some_and(|stamps| stamps == "hardware")
    }

    /// True if both ends are in one process and share one session of the driver.
    pub fn is_one_session(&self) -> bool {
        self.arrangement.is_some_and(|a| a.processes == 1)
    }

    /// Number of DDS participants in one session of the driver; more than one only if both ends share the session.
    pub fn participants_of_session(&self) -> u32 {
        self.arrangement.filter(|a| a.processes == 1).map_or(1, |a| a.participants)
    }

    /// A problem for the user if a message of the trial is longer than `limit_bytes`, the longest message that the
    /// driver can send; otherwise `None`.
    pub fn payload_problem(&self, driver: &str, limit_bytes: u64) -> Option<Problem> {
        payload_problem(
            self.payload,
            ByteSize(self.message_bytes()),
            &format!("driver {driver}"),
            ByteSize(limit_bytes),
        )
    }

    /// Number of payload bytes in one message of the trial.
    pub fn message_bytes(&self) -> u64 {
        self.payload.0 * self.measure.flow().map_or(1, |f| u64::from(f.pack))
    }

    /// Name of the driver of the trial, or names of both drivers, e.g. `cyclonedds to fastdds`.
    pub fn driver_names(&self) -> String {
        self.drivers().map(|d| d.name.as_str()).collect::<Vec<_>>().join(" to ")
    }
}

/// A problem for the user if a message, which contains one or more payloads, is longer than `limit`; otherwise `None`.
/// The text names `whose` as the owner of the limit, e.g. `driver udp`.
pub fn payload_problem(payload: ByteSize, message: ByteSize, whose: &str, limit: ByteSize) -> Option<Problem> {
    if message <= limit {
        return None;
    }
    let what = match message == payload {
        true => format!("payload {payload} is beyond the limit of {whose}, {} B", limit.0),
        false => format!("a message of {message} is beyond the limit of {whose}, {} B", limit.0),
    };
    let remedy = format!("send messages of at most {} B", limit.0);
    Some(Problem::new("payload_too_long", what, remedy).at("payload"))
}

/// A kind of measurement, such as ping-pong or a flow, with its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Ping-pong: a message goes out and its answer comes back.
    PingPong(PingPong),
    /// A flow: publishers of one topic send, and their subscribers count the messages that arrive.
    Flow(Flow),
}

impl Measure {
    /// Number of sent messages that ends the trial, if the study counts messages in place of slots.
    pub fn loops(&self) -> Option<u64> {
        match self {
            Measure::PingPong(p) => p.length.loops(),
            Measure::Flow(_) => None,
        }
    }

    /// Receive mode: how the ends of the measurement receive messages.
    pub fn receive(&self) -> ReceiveMode {
        match self {
            Measure::PingPong(p) => p.receive,
            Measure::Flow(f) => f.receive,
        }
    }

    /// The hand-off from the receiving thread to a second thread.
    pub fn hand_off(&self) -> &HandOff {
        match self {
            Measure::PingPong(p) => &p.hand_off,
            Measure::Flow(_) => &HandOff::None,
        }
    }

    /// Timeout of an answer: an answer that takes longer counts as `after_timeout`.
    pub fn timeout(&self) -> Nanos {
        match self {
            Measure::PingPong(p) => p.timeout,
            Measure::Flow(_) => FLOW_TIMEOUT,
        }
    }

    /// Parameters of the flow, if the measurement is a flow.
    pub fn flow(&self) -> Option<&Flow> {
        match self {
            Measure::PingPong(_) => None,
            Measure::Flow(f) => Some(f),
        }
    }

    /// Number of ends that publish messages.
    pub fn publishers(&self) -> u32 {
        self.flow().map_or(1, |f| f.publishers)
    }

    /// Number of ends that receive the published messages.
    pub fn subscribers(&self) -> u32 {
        self.flow().map_or(1, |f| f.subscribers)
    }

    /// Number of places: one for all publishers and one for all subscribers, or one for each end.
    pub fn places(&self) -> usize {
        match self.flow() {
            Some(flow) if flow.apart => (flow.publishers + flow.subscribers) as usize,
            _ => 2,
        }
    }
}

/// Parameters of the measure ping-pong (messages and their answers).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingPong {
    /// When the trial ends: after a number of slots, or after a time.
    pub length: Length,
    /// Number of warm-up slots. Warm-up slots are recorded and marked, but statistics leave them out.
    pub warm_up_slots: u64,
    /// Timeout: an answer that arrives later than this after the begin of the send call is `after_timeout`. With
    /// stop-and-wait, the sender waits no longer than this for an answer.
    pub timeout: Nanos,
    /// What happens to slots that were missed because the sender was delayed.
    pub on_overrun: OnOverrun,
    /// Receive mode: how the ping end receives the answers.
    pub receive: ReceiveMode,
    /// Whether the receiving thread passes messages to a second thread, and the CPUs of that thread.
    pub hand_off: HandOff,
}

/// When a trial ends: after a number of slots, or after a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// The trial ends after this number of measured slots (scheduled messages).
    Slots(u64),
    /// The trial ends after this time, not counting the warm-up.
    Duration(Nanos),
    /// The trial ends when this number of messages was sent after the warm-up. Slots that the sender missed are not among them, so
    /// that a trial has more slots the longer its sender was held up.
    Loops(u64),
}

impl Length {
    /// A trial that counts loops ends after this many times the number of its loops, in slots, even if the sender missed most of
    /// them.
    pub const MOST_SLOTS_PER_LOOP: u64 = 4;

    /// Number of measured slots for which the sender must have a schedule and memory at this period, ns.
    pub fn most_slots(self, period_ns: i64) -> u64 {
        match self {
            Length::Slots(slots) => slots,
            Length::Duration(time) => (time.0 / period_ns.max(1)).max(1) as u64,
            Length::Loops(loops) => loops.saturating_mul(Length::MOST_SLOTS_PER_LOOP),
        }
    }

    /// Number of measured slots if the sender misses none.
    pub fn planned_slots(self, period_ns: i64) -> u64 {
        match self {
            Length::Loops(loops) => loops,
            other => other.most_slots(period_ns),
        }
    }

    /// Number of messages after which the trial ends; `None` if it ends after a number of slots or after a time.
    pub fn loops(self) -> Option<u64> {
        match self {
            Length::Loops(loops) => Some(loops),
            Length::Slots(_) | Length::Duration(_) => None,
        }
    }
}

/// What a sender with a schedule (an open loop) does with slots that it missed because it was delayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnOverrun {
    /// Each missed slot is sent immediately, with its own intended time.
    #[default]
    CatchUp,
    /// Missed slots are not sent; the outcome in their rows of samples is `not_sent`.
    Skip,
}

/// Whether the thread that receives a message also processes the message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandOff {
    /// The thread that receives a message also processes the message.
    #[default]
    None,
    /// The receiving thread wakes a second thread, which processes the messages.
    Thread {
        /// CPUs of the second thread; `None` means the CPUs of the end.
        cpus: Option<CpuList>,
    },
}

/// When samples are sent from the agent to the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collect {
    /// The samples of a trial are sent to the controller after the trial.
    #[default]
    After,
    /// Samples are sent to the controller during the trial, by a thread on a CPU that is not measured.
    Live,
}

/// The driver of an end, and its options.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DriverSpec {
    /// Name of the driver of an end, e.g. `cyclonedds`.
    pub name: String,
    /// Name of the driver in the study, if `name` is its build with DDS Security instead; absent = `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// Options that are passed to the driver's function `open`, in the terms of the driver.
    pub options: BTreeMap<String, String>,
    /// The user's own configuration file for the vendor's middleware, which Tailbound passes to the middleware
    /// unchanged.
    pub config: Option<ConfigFile>,
    /// Tool file of another benchmark program that runs in place of a driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ConfigFile>,
}

impl DriverSpec {
    /// Name of the driver without the suffix of the build with DDS Security: both builds of a driver have the same
    /// options, threads and limits.
    pub fn family(&self) -> &str {
        self.name.strip_suffix(SECURED).unwrap_or(&self.name)
    }

    /// Name of the driver in the study.
    pub fn written(&self) -> &str {
        self.written.as_ref().unwrap_or(&self.name)
    }
}

/// What the name of a driver ends with if the driver is a build with DDS Security of another driver.
pub const SECURED: &str = "-security";

/// A file that the study names: a vendor configuration of the user, or a tool file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigFile {
    /// Path of the configuration file or tool file, as written in the study.
    pub path: String,
    /// SHA-256 hash of the text of the file, in hexadecimal digits.
    pub sha256: String,
    /// Text of the configuration file or tool file.
    pub text: String,
}

/// One end of a trial: where it runs, and how it is scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSpec {
    /// Place where the end's measuring process runs.
    pub place: PlaceSpec,
    /// Scheduling of the threads of the end's measuring process.
    pub scheduling: Scheduling,
    /// Gates of the interface by which the end sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<crate::GatesSpec>,
    /// Traffic classes of the interface by which the end sends, and their credits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaping: Option<crate::ShapingSpec>,
    /// Gate for the packets that the interface of the end receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub police: Option<crate::PoliceSpec>,
}
