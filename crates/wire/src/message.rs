//! The messages of the protocol between controller and agent.

use crate::{Absence, Causes, EndSecurity};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::*;

/// Lowest version of the protocol between controller and agent that this release supports.
pub const PROTOCOL_MIN: u32 = 1;
/// Highest version of the protocol between controller and agent that this release supports.
pub const PROTOCOL_MAX: u32 = 1;

/// A message between controller and agent, in either direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// From controller and agent: the first message of each to the other.
    Hello(Hello),
    /// From the controller: order to the agent to prepare a trial.
    Prepare(Box<Order>),
    /// From the agent: the ends are open, matched and verified.
    Prepared(Box<Prepared>),
    /// From the controller: order to start the trial. Controller and agent are silent from this message to `done`.
    Go,
    /// From the controller: order to start the trial at this time of the agent's monotonic clock, ns, so that several
    /// senders start together.
    GoAt(i64),
    /// From the agent: stages that the messages of an end passed, sent before `done`. Further such messages can follow.
    Stamped(Box<Stamped>),
    /// From the agent: the ends of the agent have finished the trial.
    Done(Box<Done>),
    /// From the controller: all senders are done, so that ends that only answer must stop.
    Stop,
    /// From the controller: the senders of the agent must end the trial early, because a message fulfilled the condition
    /// at which the run ends (`collect: live`).
    EndEarly,
    /// From the controller: all publishers are done and have sent this number of messages in total. Subscribers wait
    /// for the messages that have not arrived yet.
    Sent(u64),
    /// From the controller: order to the agent to send the sample memory of its ends.
    Collect,
    /// From the agent: flow counts of each end of the agent, sent before the sample memory.
    Counted(Vec<FlowCounts>),
    /// From the agent: the sample memory of all its ends has been sent.
    Collected,
    /// From the agent: rows of samples of an end follow, while the end still measures (`collect: live`).
    Draining(Draining),
    /// From the controller: rows of samples are on disk, and the agent may free its copies of these rows.
    Stored(Stored),
    /// From the controller: order to report the thread switches within these time windows (begin and end of each,
    /// monotonic ns), which are in order and without overlap.
    Switches(Vec<(i64, i64)>),
    /// From the agent: thread switches within the time windows that the controller asked for.
    Switched(Box<Switches>),
    /// From the controller: the trial is stored, and the agent must free the sample memory and end the measuring
    /// process.
    Finish,
    /// From the agent: the sample memory of the trial is freed, and the next order may follow.
    Finished,
    /// From the controller: a question about the host on which the agent runs.
    Ask(Ask),
    /// From the agent: the answer to a question about the agent's host.
    #[serde(rename = "told")]
    Answer(Answer),
    /// From the controller: the agent should keep the events of this time span. At most one such message per second is
    /// sent while the ends measure.
    Spare(Spare),
    /// From controller and agent: heartbeat, which shows that the sender of the message still runs.
    Heartbeat(Heartbeat),
    /// From the agent, in place of a heartbeat: late messages of the trial that runs. A trial of more than a minute has
    /// such a message every 30 s, if the controller has the capability [`SO_FAR`].
    SoFar(SoFar),
    /// From the agent, in place of a heartbeat: round trips of the trial that runs, if the order of the trial asks for them.
    Figures(Figures),
    /// From the agent, in place of a heartbeat, and from the controller to the other agents with the same clock: a time of a message
    /// of an incident, if both sides have the capability [`CAUSES`](crate::CAUSES).
    Absence(Absence),
    /// From the agent, in place of a heartbeat: causes of an incident of the trial that runs, if the controller has the capability
    /// [`CAUSES`](crate::CAUSES).
    #[serde(rename = "why")]
    Causes(Causes),
    /// From the agent: the agent cannot carry out the controller's order.
    Failed(Failed),
    /// From the controller: order to the agent to end.
    Bye,
}

/// Content of the first message of controller and agent to each other: versions, capabilities and identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Lowest protocol version that the sender of the message supports.
    pub protocol_min: u32,
    /// Highest protocol version that the sender of the message supports.
    pub protocol_max: u32,
    /// Tailbound release of the sender of the message.
    pub tailbound: String,
    /// Identifier of the agent's session; empty if the controller sends the message.
    pub session: String,
    /// Abilities of the sender of the message beyond its protocol version.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Lease, set by the controller, ns: if an agent receives nothing for this time, the agent ends itself. 0 = the
    /// agent ends only when its stream ends.
    #[serde(default)]
    pub lease_ns: i64,
    /// Boot id of the host on which the agent runs.
    #[serde(default)]
    pub boot_id: String,
    /// Identifier of the clock of the agent's timestamps. Agents with the same identifier share one clock.
    #[serde(default)]
    pub clock: String,
    /// Process id of the sender of the message.
    #[serde(default)]
    pub pid: i32,
}

/// Heartbeat: shows that the controller or the agent, whichever sends it, still runs. A heartbeat takes at most 100
/// bytes on the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Number of the heartbeat on its stream, from 1.
    pub n: u64,
    /// Number of bytes that the sender of the heartbeat has received so far; 0 from the controller.
    pub received: u64,
    /// From the agent of a sender: a time span whose events the other agents should keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare: Option<Spare>,
}

/// A time span around late or ordinary messages of a trial that still runs: begin in us of the monotonic clock of the agent
/// that sends or receives it, length in us, and importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spare(pub i64, pub u32, pub u8);

/// Capability in the hello of an agent that understands [`Message::Spare`].
pub const SPARES: &str = "spare";

impl Spare {
    /// The time span from `begin_ns` to `end_ns`, in whole us that contain it. Of `rank`, which is the larger the more
    /// important the time span is, only the order of magnitude is passed on.
    pub fn of((begin_ns, end_ns): (i64, i64), rank: i64) -> Spare {
        let begin_us = begin_ns.div_euclid(1_000);
        let length_us = end_ns.saturating_sub(begin_us * 1_000).max(0) as u64 / 1_000 + 1;
        let importance = i64::BITS - rank.max(0).leading_zeros();
        Spare(begin_us, u32::try_from(length_us).unwrap_or(u32::MAX), importance as u8)
    }

    /// Begin and end, ns.
    pub fn span(self) -> (i64, i64) {
        let begin_ns = self.0.saturating_mul(1_000);
        (begin_ns, begin_ns.saturating_add(i64::from(self.1) * 1_000))
    }

    /// The larger, the more important.
    pub fn rank(self) -> i64 {
        i64::from(self.2)
    }

    /// Whether this is the time span of an ordinary message, which has the highest rank of all.
    pub fn is_ordinary(self) -> bool {
        self.2 == Spare::of((0, 0), i64::MAX).2
    }
}

/// Capability in the hello of a controller that understands [`Message::SoFar`], and of an agent that sends it.
pub const SO_FAR: &str = "so-far";

/// Late and lost messages of a trial that still runs, as far as one agent knows them. On the stream, the fields are a list, so
/// that the message is no longer than a heartbeat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SoFarFields", into = "SoFarFields")]
pub struct SoFar {
    /// Number of incidents of the agent's senders that have ended.
    pub incidents: u64,
    /// Number of late messages in these incidents.
    pub late: u64,
    /// Number of messages without an answer in these incidents.
    pub lost: u64,
    /// Time from the first message to the begin of the worst incident, ms.
    pub worst_after_ms: i64,
    /// Time of the worst incident beyond the usual, us.
    pub worst_excess_us: i64,
    /// Kernel counters of the agent that moved around incidents, also incidents of other agents' senders.
    pub moved: CounterSet,
}

/// The fields of [`SoFar`] in their order.
type SoFarFields = (u64, u64, u64, i64, i64, CounterSet);

impl From<SoFarFields> for SoFar {
    fn from((incidents, late, lost, worst_after_ms, worst_excess_us, moved): SoFarFields) -> SoFar {
        SoFar { incidents, late, lost, worst_after_ms, worst_excess_us, moved }
    }
}

impl From<SoFar> for SoFarFields {
    fn from(of: SoFar) -> SoFarFields {
        (of.incidents, of.late, of.lost, of.worst_after_ms, of.worst_excess_us, of.moved)
    }
}

/// Round trips of the senders of an agent in a trial that still runs. On the stream, the fields are a list, so that the message
/// is no longer than a heartbeat. A time is 0 if it is not known, because too many messages have no answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "FigureFields", into = "FigureFields")]
pub struct Figures {
    /// Number of messages so far, without the warm-up.
    pub messages: u64,
    /// Number of these messages that were lost.
    pub lost: u64,
    /// Median round trip, ns.
    pub p50_ns: i64,
    /// 99th percentile of the round trips, ns.
    pub p99_ns: i64,
    /// Longest round trip, ns.
    pub max_ns: i64,
}

/// The fields of [`Figures`] in their order.
type FigureFields = (u64, u64, i64, i64, i64);

impl From<FigureFields> for Figures {
    fn from((messages, lost, p50_ns, p99_ns, max_ns): FigureFields) -> Figures {
        Figures { messages, lost, p50_ns, p99_ns, max_ns }
    }
}

impl From<Figures> for FigureFields {
    fn from(of: Figures) -> FigureFields {
        (of.messages, of.lost, of.p50_ns, of.p99_ns, of.max_ns)
    }
}

/// Order of the controller to one agent for one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Identifier of the run, which is part of topic names.
    pub run_id: String,
    /// Id of the trial that the agent prepares.
    pub trial: usize,
    /// Specification of the trial that the agent prepares.
    pub spec: TrialSpec,
    /// Ends of the trial that this agent runs.
    pub ends: Vec<EndOrder>,
    /// Number of slots, with the warm-up. For stop-and-wait with a duration, this is the number of slots for which
    /// memory is allocated.
    pub slots: u64,
    /// Number of warm-up slots among the slots of the trial.
    pub warm_up: u64,
    /// Duration of the trial for stop-and-wait with a duration, ns; `None` = the trial ends after its slots.
    pub duration_ns: Option<i64>,
    /// Number of cells of the ring of each end, with `collect: live`. `None` = the sample memory has room for the whole
    /// trial.
    #[serde(default)]
    pub ring: Option<u64>,
    /// Longest time until the driver has matched the ends, ns.
    pub match_timeout_ns: i64,
    /// Longest time of the trial from `go` on, ns. Real-time ends are killed after this time.
    pub limit_ns: i64,
    /// Directory that is searched for driver libraries before the usual directories.
    #[serde(default)]
    pub driver_path: Option<String>,
    /// Directory of the record in which the agent saves samples if the controller disappears. `None` = the agent has no
    /// access to the record.
    #[serde(default)]
    pub rescue: Option<String>,
    /// CPUs for everything at the agent's place that is not measured.
    pub housekeeping: CpuList,
    /// CPUs that ends may use for which the study names none; empty = those that the agent may use. An agent on the
    /// controller's host inherits its CPUs from the controller, which may have fewer.
    #[serde(default)]
    pub allowed: CpuList,
    /// CPUs of the agent's host on which the guests of other ends may run, whose events are recorded too.
    #[serde(default)]
    pub guest_cpus: CpuList,
    /// CPUs of the agent's host that no end of the trial can use. A controller of an earlier release names none.
    #[serde(default)]
    pub free: CpuList,
    /// The study's limit above which a message is late, ns; `None` = the limit follows from the latencies.
    #[serde(default)]
    pub late_above_ns: Option<i64>,
    /// Whether the agent reports round trips while the trial runs. Agents of an earlier release never do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub figures: bool,
    /// Order for the tool that runs in place of a driver; `None` = the trial has a driver.
    #[serde(default)]
    pub tool: Option<ToolOrder>,
    /// Network addresses of the loads of kind `udp-stream`.
    #[serde(default)]
    pub streams: Vec<StreamPath>,
    /// For an agent in a neighbour of a measured guest, at which no end runs: the end of the measured guest. The agent
    /// runs the loads of the neighbours from `go` to `stop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbour_of: Option<String>,
    /// Time from which the periods of the messages are counted, ns of the clock of the stream, if the trial has a stream.
    #[serde(default)]
    pub stream_base_ns: i64,
    /// Number of the hardware clock of the stream: N of /dev/ptpN; `None` = CLOCK_TAI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_card: Option<u32>,
}

/// Order for a program of a tool that runs in place of an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOrder {
    /// Program and arguments of the tool. Empty = the tool needs no program at this end.
    pub command: Vec<String>,
    /// Environment variables of the tool's program.
    pub environment: BTreeMap<String, String>,
    /// Regular expression of the line that the program prints when the other end may start. `None` = the other end
    /// starts after a fixed time.
    pub ready: Option<String>,
    /// TCP port at which the program listens when the other end may start; `None` = the program prints a line, or the other end starts
    /// after a fixed time.
    #[serde(default)]
    pub listens: Option<u16>,
    /// True if the program measures: it then starts with `go`, and the trial is over when the program ends. False if
    /// the program answers: it then runs from the beginning.
    pub measures: bool,
    /// Number of the signal with which the answering program is ended; 0 = the program ends by itself.
    pub stop_signal: i32,
    /// Time for which the program is asked to measure, ns; 0 = its command contains no time.
    pub told_ns: i64,
    /// Time from the start of the tool's program after which the program is killed, ns.
    pub longest_ns: i64,
}

/// Result of a tool's program at one end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolDone {
    /// Times, scheduling and exit status of the tool's program.
    pub process: ToolProcess,
    /// Text that the tool's program wrote to its output.
    pub output: String,
    /// Reason why the output of the program cannot be used; `None` = it can be used.
    pub failed: Option<String>,
}

/// Network addresses of one load of kind `udp-stream`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamPath {
    /// Index of the load among the loads of the trial.
    pub load: usize,
    /// Address from which the streams of the load are sent.
    pub from: std::net::IpAddr,
    /// Address and port of the sink: the process that receives the streams of the load.
    pub to: std::net::SocketAddr,
}

impl Order {
    /// Scheduling that the study asks for the process of the ends.
    pub fn scheduling(&self) -> &Scheduling {
        self.scheduling_of(self.ends.first().map_or(Role::Ping, |end| end.role))
    }

    /// Scheduling that the study asks for the threads of one end.
    pub fn scheduling_of(&self, role: Role) -> &Scheduling {
        if role.receives() { &self.spec.pong.scheduling } else { &self.spec.ping.scheduling }
    }

    /// True if the study asks for the same scheduling for all ends of the controller's order. The ends share one
    /// process, which can have only one scheduling.
    pub fn is_one_scheduling(&self) -> bool {
        self.ends.iter().all(|end| self.scheduling_of(end.role) == self.scheduling())
    }

    /// True if the study asks for a real-time policy for at least one thread of the measuring process.
    pub fn is_real_time(&self) -> bool {
        let inside = self.spec.loads.iter().filter(|l| l.run.is_inside()).filter_map(|l| l.scheduling.policy);
        self.ends.iter().flat_map(|e| self.scheduling_of(e.role).policies()).chain(inside).any(|p| p.is_real_time())
    }
}

/// One end of a trial in the controller's order to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOrder {
    /// Role of the end in the trial, for example ping or pong.
    pub role: Role,
    /// Driver options for the path, for example interface and address.
    pub options: Vec<(String, String)>,
    /// Files of DDS Security, which an agent of an earlier release ignores; `None` = the study asks for no security.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<Box<EndSecurity>>,
}

/// Role of an end in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The end that sends on schedule and receives answers; in a flow, the first publisher.
    Ping,
    /// The end that receives messages and answers them; in a flow, the first subscriber.
    Pong,
    /// Subscriber 2 to 64 of a flow.
    Further(u8),
    /// Publisher 2 to 64 of a flow.
    Publisher(u8),
}

impl Role {
    /// Name of the end in messages and file names.
    pub fn word(self) -> &'static str {
        match self {
            Role::Ping => "ping",
            Role::Pong => "pong",
            Role::Further(n) => subscriber_end(n),
            Role::Publisher(n) => publisher_end(n),
        }
    }

    /// Roles of all publishers of a flow except the first, in order.
    pub fn further_publishers(publishers: u32) -> impl Iterator<Item = Role> {
        (2..=publishers.min(MOST_PUBLISHERS) as u8).map(Role::Publisher)
    }

    /// Index of the publisher, from 0; `None` = the end does not send on schedule.
    pub fn publisher(self) -> Option<u8> {
        match self {
            Role::Ping => Some(0),
            Role::Publisher(n) => Some(n - 1),
            Role::Pong | Role::Further(_) => None,
        }
    }

    /// All ends that receive the messages of the publishers, in order.
    pub fn receiving(subscribers: u32) -> impl Iterator<Item = Role> {
        (1..=subscribers.clamp(1, MOST_SUBSCRIBERS) as u8).map(|n| if n == 1 { Role::Pong } else { Role::Further(n) })
    }

    /// True if the end receives messages of senders and may answer them, but does not send on schedule.
    pub fn receives(self) -> bool {
        self.publisher().is_none()
    }
}

/// Answer of the agent to `prepare`: state of the open ends.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Prepared {
    /// State of each end, in the sequence in which the controller's order names the ends.
    pub ends: Vec<EndReady>,
    /// Threads of the measuring process, as read before the first slot.
    pub threads: ThreadTable,
    /// Warnings that the agent raised while it prepared the trial.
    pub warnings: Vec<Warning>,
    /// The driver's description of itself, as JSON.
    pub driver: Option<serde_json::Value>,
    /// File descriptors of the agent's process: first the sample memory of each end, then the flow counts of each end
    /// of a flow. A controller on the same host maps the same memory through these descriptors.
    pub memory_fds: Vec<i32>,
    /// True if the times in the sample memory are times of a scripted clock.
    #[serde(default)]
    pub scripted_clock: bool,
}

/// State of an end that was opened for a trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EndReady {
    /// Name of the end.
    pub name: String,
    /// QoS settings of the end as the driver reports them.
    pub qos: BTreeMap<String, String>,
    /// Transport of the end as the driver reports it.
    pub transport: Option<serde_json::Value>,
    /// Peers of the end as the driver reports them.
    pub peers: Option<serde_json::Value>,
    /// Time from opening the end to matching it with its peers, ns; `None` = not matched.
    pub matched_after_ns: Option<i64>,
    /// Monotonic time at which the end was opened, ns.
    #[serde(default)]
    pub opened_ns: i64,
    /// Reason why the end is not matched, as the driver reports it; `None` = matched. If an end is not matched, nothing
    /// is sent, and the trial has a finding.
    pub unmatched: Option<String>,
    /// True if the memory of the measuring process is locked.
    pub memory_locked: bool,
    /// Timer slack of the measuring process as the kernel reports it, ns.
    pub timer_slack_ns: Option<u64>,
    /// Clock of the end's timestamps, if this is not the clock of the host: in a calibration, an end may have its own
    /// clock. Empty = the clock of the host.
    #[serde(default)]
    pub clock: String,
}

/// Result of a trial at all ends of an agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Done {
    /// Results of the ends of the agent, one for each end.
    pub ends: Vec<EndDone>,
    /// Threads of the measuring process, as read after the last slot.
    pub threads: ThreadTable,
    /// Warnings that the agent raised about the measurement.
    pub warnings: Vec<Warning>,
    /// Results of the loads that ran at the agent's place.
    #[serde(default)]
    pub loads: Vec<LoadDone>,
    /// Sockets and shared memory of the measuring process, as the kernel reports them.
    #[serde(default)]
    pub process: ProcessSeen,
    /// Result of the tool's program at this end; `None` = the trial has a driver.
    #[serde(default)]
    pub tool: Option<ToolDone>,
    /// Text that the middleware and the measuring process wrote to their output.
    pub log: String,
    /// Lines of the agent's diagnostics log.
    #[serde(default)]
    pub diagnostics: String,
}

/// Result of a trial at one end, apart from its samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EndDone {
    /// Name of the end with this result.
    pub name: String,
    /// Monotonic time at which slot 0 of the trial was due, ns.
    pub t0_ns: i64,
    /// Number of slots that were scheduled, including the warm-up.
    pub scheduled: u64,
    /// Number of rows of samples in the end's sample memory.
    pub rows: u64,
    /// Number of rows of samples that did not fit into the sample memory.
    pub dropped: u64,
    /// Number of received messages that were dropped because the queue to the second thread of `hand_off` was full.
    #[serde(default)]
    pub hand_off_dropped: u64,
    /// Number of answers that the driver refused to send.
    #[serde(default)]
    pub answers_refused: u64,
    /// Number of messages that a publisher of a flow sent.
    #[serde(default)]
    pub sent: u64,
    /// Settings and counters that the driver reports for a flow: batching, limits, retransmissions.
    #[serde(default)]
    pub told: Option<serde_json::Value>,
    /// Statistics of the middleware after the trial, as the driver reports them.
    pub stats: Option<serde_json::Value>,
    /// Readings of the difference CLOCK_REALTIME - CLOCK_MONOTONIC during the trial.
    pub clock: Vec<ClockOffset>,
    /// Readings of the difference between the hardware clock of the end's network card and CLOCK_MONOTONIC during the trial; empty if
    /// the card stamps no messages.
    #[serde(default)]
    pub card_clock: Vec<ClockOffset>,
    /// Base of the due times of the ping's messages, and refused launch times; `None` = the trial has no stream.
    #[serde(default)]
    pub stream: Option<StreamFact>,
}

/// Stages that messages of one end passed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stamped {
    /// Name of the end that sent the messages.
    pub end: String,
    /// Times of the messages: by the kernel in CLOCK_REALTIME, by the network card in its own clock.
    pub rows: Vec<StageRow>,
    /// Number of further stamps whose frame does not show the sequence number.
    pub unread: u64,
    /// Number of further stamps that were left out because there were too many.
    pub left_out: u64,
}

/// Announcement of the agent that rows of samples of one end follow, with the clock readings that these rows need.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Draining {
    /// Index of the end in the order that the controller sent to the agent.
    pub end: u8,
    /// Monotonic time at which slot 0 of the trial was due, ns.
    pub t0_ns: i64,
    /// Readings of the difference CLOCK_REALTIME - CLOCK_MONOTONIC since the last announcement of rows.
    pub clock: Vec<ClockOffset>,
}

/// Message in which the controller reports which rows of samples of one end are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Index of the end in the order that the controller sent to the agent.
    pub end: u8,
    /// Number of rows of samples that are on disk: all rows with a lower number are stored.
    pub rows: u64,
}

/// Failure because of which an agent cannot carry out the controller's order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Problem of the agent, with a code such as `scheduling`, `driver_open`, `payload` or `measuring_process`.
    #[serde(flatten)]
    pub problem: Problem,
    /// Exit code of the command: 2 bad input, 3 machine not fit, 4 failed.
    pub exit: u8,
}

impl Failed {
    /// Makes a failure with a code, an exit code, a text that says what is wrong, and a remedy.
    pub fn new(code: &str, exit: ExitCode, what: impl ToString, remedy: impl ToString) -> Failed {
        Failed::of(exit, Problem::new(code, what.to_string(), remedy.to_string()))
    }

    /// Makes a failure from a problem.
    pub fn of(exit: ExitCode, problem: impl Into<Problem>) -> Failed {
        Failed { problem: problem.into(), exit: exit as u8 }
    }
}
