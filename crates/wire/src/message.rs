//! The messages.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::*;

/// Lowest protocol version that this release speaks.
pub const PROTOCOL_MIN: u32 = 1;
/// Highest protocol version that this release speaks.
pub const PROTOCOL_MAX: u32 = 1;

/// A message in either direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// First word of both sides.
    Hello(Hello),
    /// Controller: get ready for a trial.
    Prepare(Box<Order>),
    /// Agent: the ends are open, matched, verified.
    Prepared(Box<Prepared>),
    /// Controller: begin. Silence follows.
    Go,
    /// Controller: begin at this time of the agent's monotonic clock, ns: several that send begin together.
    GoAt(i64),
    /// Agent: an end is through.
    Done(Box<Done>),
    /// Controller: the others are through; ends that only answer stop.
    Stop,
    /// Controller: all publishers are through, and so many messages went out; subscribers wait for those on their way.
    Sent(u64),
    /// Controller: send the sample memory.
    Collect,
    /// Agent: what each of its ends counted of a flow, before the sample memory.
    Counted(Vec<FlowCounts>),
    /// Agent: all of the memory has been sent.
    Collected,
    /// Agent: rows of an end follow while it measures (`collect: live`).
    Draining(Draining),
    /// Controller: rows are on disk, the agent need not keep them any more.
    Stored(Stored),
    /// Controller: tell what happened to threads within these times, monotonic ns, rising and apart.
    Switches(Vec<(i64, i64)>),
    /// Agent: that.
    Switched(Box<Switches>),
    /// Controller: the trial is stored; drop the memory and the measuring process.
    Finish,
    /// Agent: ready for the next order.
    Finished,
    /// Controller: answer for your host.
    Ask(Ask),
    /// Agent: that.
    Told(Told),
    /// Both: still there.
    Heartbeat(Heartbeat),
    /// Agent: what was asked cannot be done.
    Failed(Failed),
    /// Controller: end yourself.
    Bye,
}

/// Who speaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Lowest version spoken.
    pub protocol_min: u32,
    /// Highest version spoken.
    pub protocol_max: u32,
    /// Release.
    pub tailbound: String,
    /// Identity of the session: a new stream that names it resumes at an octet offset.
    pub session: String,
    /// Words for abilities beyond the version.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Controller: an agent that has heard nothing for this long ends itself, ns; 0 = it ends with its stream only.
    #[serde(default)]
    pub lease_ns: i64,
    /// Agent: its host's boot id.
    #[serde(default)]
    pub boot_id: String,
    /// Agent: the clock of its stamps; equal words mean one clock.
    #[serde(default)]
    pub clock: String,
    /// Agent: its process id.
    #[serde(default)]
    pub pid: i32,
}

/// Still there. At most 100 octets on the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Counts up.
    pub n: u64,
    /// Octets received so far.
    pub received: u64,
}

/// One trial, for one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Run id; part of topic names.
    pub run_id: String,
    /// Trial.
    pub trial: usize,
    /// What is run.
    pub spec: TrialSpec,
    /// The ends that this agent hosts, in order.
    pub ends: Vec<EndOrder>,
    /// Slots, warm-up included; for a duration at stop-and-wait the most that memory is kept for.
    pub slots: u64,
    /// Slots of the warm-up among them.
    pub warm_up: u64,
    /// Stop-and-wait by duration: end after this long, ns.
    pub duration_ns: Option<i64>,
    /// `collect: live`: cells of each end's ring. Without it the sample memory holds the whole trial.
    #[serde(default)]
    pub ring: Option<u64>,
    /// How long matching may take, ns.
    pub match_timeout_ns: i64,
    /// The longest that the trial may take from go on, ns: real-time ends are ended then.
    pub limit_ns: i64,
    /// Driver libraries to look in before the usual places.
    #[serde(default)]
    pub driver_path: Option<String>,
    /// Where samples are saved if the controller disappears; only where the record is reachable.
    #[serde(default)]
    pub rescue: Option<String>,
    /// CPUs for everything that is not measured.
    pub housekeeping: CpuList,
    /// The end is another program.
    #[serde(default)]
    pub tool: Option<ToolOrder>,
    /// Addresses of the loads `udp-stream`.
    #[serde(default)]
    pub streams: Vec<StreamPath>,
}

/// Another program in the place of an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOrder {
    /// Program and arguments; empty = this end has none.
    pub command: Vec<String>,
    /// Variables of its environment.
    pub environment: BTreeMap<String, String>,
    /// A regular expression of the line that it prints once the other end may begin; `None` = after a while.
    pub ready: Option<String>,
    /// It measures: it is started by `go`, and the trial is over when it has ended. The other answers, from the beginning.
    pub measures: bool,
    /// The signal that ends the one that answers; 0 = it ends by itself.
    pub stop_signal: i32,
    /// How long the one that measures was told to run, ns; 0 = it was not told.
    pub told_ns: i64,
    /// It is killed so long after its start, ns.
    pub longest_ns: i64,
}

/// What became of a program in the place of an end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolDone {
    /// What it was and how it ran.
    pub process: ToolProcess,
    /// What it wrote.
    pub output: String,
    /// Why its output does not count.
    pub failed: Option<String>,
}

/// From where to where a load `udp-stream` sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamPath {
    /// Index of the load within those of the trial.
    pub load: usize,
    /// Address that its flows send from.
    pub from: std::net::IpAddr,
    /// Where its sink listens.
    pub to: std::net::SocketAddr,
}

impl Order {
    /// Some thread is to run with a real-time policy.
    pub fn is_real_time(&self) -> bool {
        let inside = self.spec.loads.iter().filter(|l| l.run.is_inside()).filter_map(|l| l.scheduling.policy);
        self.ends.iter().flat_map(|e| e.scheduling.policies()).chain(inside).any(|p| p.is_real_time())
    }
}

/// One end of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOrder {
    /// Role.
    pub role: Role,
    /// Options for the driver's `open`, path options first.
    pub options: Vec<(String, String)>,
    /// Scheduling.
    pub scheduling: Scheduling,
}

/// The part of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Sends on schedule, takes answers.
    Ping,
    /// Answers.
    Pong,
    /// Subscriber 2 to 64 of a flow.
    Further(u8),
    /// Publisher 2 to 64 of a flow.
    Publisher(u8),
}

impl Role {
    /// The word in file names.
    pub fn word(self) -> &'static str {
        match self {
            Role::Ping => "ping",
            Role::Pong => "pong",
            Role::Further(n) => subscriber_end(n),
            Role::Publisher(n) => publisher_end(n),
        }
    }

    /// The ends that send after the first one, in order.
    pub fn further_publishers(publishers: u32) -> impl Iterator<Item = Role> {
        (2..=publishers.min(MOST_PUBLISHERS) as u8).map(Role::Publisher)
    }

    /// The publisher's number, from 0.
    pub fn publisher(self) -> Option<u8> {
        match self {
            Role::Ping => Some(0),
            Role::Publisher(n) => Some(n - 1),
            Role::Pong | Role::Further(_) => None,
        }
    }

    /// The ends that receive what is sent, in order.
    pub fn receiving(subscribers: u32) -> impl Iterator<Item = Role> {
        (1..=subscribers.clamp(1, MOST_SUBSCRIBERS) as u8).map(|n| if n == 1 { Role::Pong } else { Role::Further(n) })
    }

    /// It only receives, or answers.
    pub fn receives(self) -> bool {
        self.publisher().is_none()
    }
}

/// The ends are open.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Prepared {
    /// One per end of the order.
    pub ends: Vec<EndReady>,
    /// Threads before the first slot.
    pub threads: ThreadTable,
    /// Warnings raised so far.
    pub warnings: Vec<Warning>,
    /// The driver's description.
    pub driver: Option<serde_json::Value>,
    /// Descriptor numbers of the sample memory in the agent's process, one per end, for a controller on the same host.
    pub memory_fds: Vec<i32>,
    /// The sample memory keeps a scripted clock's time, not the machine's.
    #[serde(default)]
    pub scripted_clock: bool,
}

/// What is known of an open end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EndReady {
    /// Ping or pong.
    pub name: String,
    /// QoS read back.
    pub qos: BTreeMap<String, String>,
    /// Transport as the driver tells it.
    pub transport: Option<serde_json::Value>,
    /// Peers as the driver tells them.
    pub peers: Option<serde_json::Value>,
    /// Open to matched, ns.
    pub matched_after_ns: Option<i64>,
    /// Monotonic time of its opening, ns.
    #[serde(default)]
    pub opened_ns: i64,
    /// Why it is not matched, as far as the driver can tell. The trial is then a finding: nothing will be sent.
    pub unmatched: Option<String>,
    /// Pages are locked.
    pub memory_locked: bool,
    /// Timer slack read back.
    pub timer_slack_ns: Option<u64>,
    /// The clock of its stamps, where it is not that of the host: a calibration has one of its own.
    #[serde(default)]
    pub clock: String,
}

/// An end is through.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Done {
    /// One per end of the agent.
    pub ends: Vec<EndDone>,
    /// Threads after the last slot.
    pub threads: ThreadTable,
    /// Warnings.
    pub warnings: Vec<Warning>,
    /// What the loads of this agent's place did.
    #[serde(default)]
    pub loads: Vec<LoadDone>,
    /// The measuring process as the kernel has it.
    #[serde(default)]
    pub process: ProcessSeen,
    /// What the program did that ran in the place of the end.
    #[serde(default)]
    pub tool: Option<ToolDone>,
    /// What the middleware and the process wrote.
    pub log: String,
}

/// The result of one end, apart from its samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EndDone {
    /// Ping or pong.
    pub name: String,
    /// Monotonic time of slot 0.
    pub t0_ns: i64,
    /// Slots that were scheduled, warm-up included.
    pub scheduled: u64,
    /// Rows used of the sample memory.
    pub rows: u64,
    /// Rows that did not fit.
    pub dropped: u64,
    /// Messages of a flow that went out.
    #[serde(default)]
    pub sent: u64,
    /// What the driver tells of its flow: batching, limits, retransmissions.
    #[serde(default)]
    pub told: Option<serde_json::Value>,
    /// Middleware statistics.
    pub stats: Option<serde_json::Value>,
    /// REALTIME - MONOTONIC over the trial.
    pub clock: Vec<ClockOffset>,
}

/// What the rows that follow need to be understood.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Draining {
    /// Index of the end within the agent's order.
    pub end: u8,
    /// Monotonic time of slot 0.
    pub t0_ns: i64,
    /// REALTIME - MONOTONIC, read since the last such message.
    pub clock: Vec<ClockOffset>,
}

/// Rows that are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Index of the end within the agent's order.
    pub end: u8,
    /// All rows below this one.
    pub rows: u64,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Stable word, e.g. `scheduling`, `driver_open`, `payload`, `measuring_process`.
    pub code: String,
    /// What and where.
    pub text: String,
    /// What to do.
    pub mend: String,
    /// Exit code that fits: 2 bad input, 3 machine not fit, 4 failed.
    pub exit: u8,
}
