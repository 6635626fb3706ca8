//! The plan: what a study comes to, condition by condition and trial by trial.

use crate::{
    Arrangement, CpuList, Discovery, FLOW_TIMEOUT, Flow, KnobSpec, LoadSpec, Nanos, Octets, PathSpec, PlaceSpec, Quiet,
    Rate, ReportSpec, Scheduling, VlanSpec,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that will be done, in order. Written into the record before anything is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the study.
    pub study: String,
    /// Its question.
    pub question: String,
    /// Seed of the order of trials.
    pub seed: u64,
    /// Names of the factors in the order of the study, outermost first.
    pub factors: Vec<String>,
    /// All combinations of levels.
    pub conditions: Vec<Condition>,
    /// Trials in the order in which they run.
    pub trials: Vec<Trial>,
    /// How the report shows it.
    pub report: ReportSpec,
    /// The study file's text, as read (with `--set` noted in `settings`).
    pub source: String,
    /// `--set` arguments, as given.
    pub settings: Vec<String>,
}

/// One combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// Index within the plan.
    pub id: usize,
    /// Factor path -> level as text, e.g. `payload` -> `64 B`; also factors with one level.
    pub levels: BTreeMap<String, String>,
    /// What is run; `Err`-like text when the combination is impossible.
    pub spec: TrialSpec,
    /// Why this combination cannot be run; such a condition has no trials.
    pub not_possible: Option<String>,
}

/// One run of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Index within the plan, and the name of its sample directory.
    pub id: usize,
    /// Condition that is run.
    pub condition: usize,
    /// Which repetition of the condition, from 0.
    pub repeat: usize,
    /// Lab block: consecutive trials with the same number share their lab and the settings of the host.
    pub block: usize,
}

/// All that is needed to run one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialSpec {
    /// What is measured.
    pub measure: Measure,
    /// Octets of `Sample.payload`.
    pub payload: Octets,
    /// How often slots are due.
    pub rate: Rate,
    /// The middleware: that of the ping end, and of the pong end unless that has its own.
    pub driver: DriverSpec,
    /// The middleware of the pong end where it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pong_driver: Option<DriverSpec>,
    /// QoS policies as the driver spells them; empty = the driver's defaults for this measure.
    pub qos: BTreeMap<String, String>,
    /// Domain id.
    pub domain: u32,
    /// How the ends find each other.
    #[serde(default, skip_serializing_if = "Discovery::is_auto")]
    pub discovery: Discovery,
    /// Where the ping end runs and how.
    pub ping: EndSpec,
    /// Where the pong end runs and how.
    pub pong: EndSpec,
    /// What joins them.
    pub path: PathSpec,
    /// The VLAN on top of the path, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanSpec>,
    /// How the ends are spread, where the study says it; otherwise each end has a participant of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrangement: Option<Arrangement>,
    /// When samples travel to the controller.
    pub collect: Collect,
    /// Whether the causes of late messages are looked for.
    #[serde(default)]
    pub attribution: Attribution,
    /// How long the path is looked at without messages.
    #[serde(default, skip_serializing_if = "Quiet::is_auto")]
    pub quiet: Quiet,
    /// Work that runs beside the measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadSpec>,
    /// Settings of the host that are in force meanwhile, in the order in which they are set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<KnobSpec>,
}

impl TrialSpec {
    /// All drivers of the trial, that of the ping end first.
    pub fn drivers(&self) -> impl Iterator<Item = &DriverSpec> {
        std::iter::once(&self.driver).chain(&self.pong_driver)
    }

    /// The trial as the pong end sees it: with its driver.
    pub fn of_pong(&self) -> TrialSpec {
        TrialSpec { driver: self.pong_driver.clone().unwrap_or_else(|| self.driver.clone()), ..self.clone() }
    }

    /// Another benchmark program runs in place of a driver: Tailbound measures nothing itself.
    pub fn has_tool(&self) -> bool {
        self.drivers().any(|d| d.tool.is_some())
    }

    /// Both ends are in one process and share what the driver opens there.
    pub fn is_one_session(&self) -> bool {
        self.arrangement.is_some_and(|a| a.processes == 1)
    }

    /// How many participants a process's session has: more than one only where both ends share it.
    pub fn participants_of_session(&self) -> u32 {
        self.arrangement.filter(|a| a.processes == 1).map_or(1, |a| a.participants)
    }

    /// Octets of payload in one message.
    pub fn message_octets(&self) -> u64 {
        self.payload.0 * self.measure.flow().map_or(1, |f| u64::from(f.pack))
    }

    /// The driver's name, or both: `cyclonedds to fastdds`.
    pub fn driver_names(&self) -> String {
        self.drivers().map(|d| d.name.as_str()).collect::<Vec<_>>().join(" to ")
    }
}

/// A kind of measurement with its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// A message goes out and its answer comes back.
    PingPong(PingPong),
    /// Publishers of one topic, their subscribers, and what of it arrives.
    Flow(Flow),
}

impl Measure {
    /// How the ends receive.
    pub fn receive(&self) -> ReceiveMode {
        match self {
            Measure::PingPong(p) => p.receive,
            Measure::Flow(f) => f.receive,
        }
    }

    /// Whether a second thread takes over from the one that receives.
    pub fn hand_off(&self) -> &HandOff {
        match self {
            Measure::PingPong(p) => &p.hand_off,
            Measure::Flow(_) => &HandOff::None,
        }
    }

    /// An answer later than this is `after_timeout`.
    pub fn timeout(&self) -> Nanos {
        match self {
            Measure::PingPong(p) => p.timeout,
            Measure::Flow(_) => FLOW_TIMEOUT,
        }
    }

    /// The flow, where it is one.
    pub fn flow(&self) -> Option<&Flow> {
        match self {
            Measure::PingPong(_) => None,
            Measure::Flow(f) => Some(f),
        }
    }

    /// How many ends send.
    pub fn publishers(&self) -> u32 {
        self.flow().map_or(1, |f| f.publishers)
    }

    /// How many ends receive what is sent.
    pub fn subscribers(&self) -> u32 {
        self.flow().map_or(1, |f| f.subscribers)
    }

    /// How many places the ends have: one for those that send and one for those that receive, or one each.
    pub fn places(&self) -> usize {
        match self.flow() {
            Some(flow) if flow.apart => (flow.publishers + flow.subscribers) as usize,
            _ => 2,
        }
    }
}

/// Parameters of ping-pong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingPong {
    /// When the trial is over.
    pub length: Length,
    /// Slots before the measured ones; marked, kept, left out of statistics.
    pub warm_up_slots: u64,
    /// A pong later than this after send-begin is `after_timeout`; stop-and-wait gives up on it.
    pub timeout: Nanos,
    /// What happens to slots that were missed because the sender was late.
    pub on_overrun: OnOverrun,
    /// How the ping end receives.
    pub receive: ReceiveMode,
    /// Whether a second thread takes over after the receive thread, and on which CPUs.
    pub hand_off: HandOff,
}

/// When a trial is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// After this many measured slots.
    Slots(u64),
    /// After this time (warm-up not counted).
    Duration(Nanos),
}

/// Missed slots of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnOverrun {
    /// Each missed slot is sent at once, with its own intended time.
    #[default]
    CatchUp,
    /// Missed slots are not sent and become rows `not_sent`.
    Skip,
}

/// How samples reach the measuring code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveMode {
    /// In a callback on the middleware's thread.
    #[default]
    Listener,
    /// A thread of the end blocks until there is a sample.
    Block,
    /// A thread of the end asks without pause.
    Spin,
    /// One thread waits for the next slot and for messages together, and serves them one at a time.
    Executor,
}

/// Whether the thread that receives also processes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandOff {
    /// It does.
    #[default]
    None,
    /// It wakes a second thread.
    Thread {
        /// CPUs of the second thread; `None` = those of the end.
        cpus: Option<CpuList>,
    },
}

/// When samples travel from the agent to the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collect {
    /// After the trial.
    #[default]
    After,
    /// While it runs, from a CPU that is not measured.
    Live,
}

/// Whether context switches are watched, to tell why the worst messages were late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attribution {
    /// They are.
    #[default]
    On,
    /// They are not.
    Off,
}

/// A driver and its options.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DriverSpec {
    /// Name, e.g. `cyclonedds`.
    pub name: String,
    /// Options as the driver spells them, for `open`.
    pub options: BTreeMap<String, String>,
    /// The user's own vendor configuration, used as it is.
    pub config: Option<ConfigFile>,
    /// It is no driver but another benchmark program, which runs in the place of one: its tool file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ConfigFile>,
}

/// A file that the study names: a vendor configuration of the user, or a tool file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigFile {
    /// Path as written in the study.
    pub path: String,
    /// SHA-256 of the text, hex.
    pub sha256: String,
    /// The text.
    pub text: String,
}

/// One end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSpec {
    /// Where it runs.
    pub place: PlaceSpec,
    /// How its process is scheduled.
    pub scheduling: Scheduling,
}
