//! Context switches around the worst messages of a trial: which threads had the CPUs, which threads waited, and which
//! thread woke which other thread.

use crate::{Packets, Policy};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Context switches of threads that one agent recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Switches {
    /// Names of the ends that the recording agent started.
    pub ends: Vec<String>,
    /// Threads and CPUs whose context switches could be recorded.
    pub scope: SwitchScope,
    /// True if wake-ups were recorded too: of the measured threads, and of all threads that last ran on a CPU in `scope`.
    #[serde(default)]
    pub wakes: bool,
    /// Begin and end of each time span whose events were requested, monotonic ns, in rising order and without overlap.
    pub windows: Vec<(i64, i64)>,
    /// Begin and end of each time span in which the kernel dropped records, monotonic ns.
    #[serde(default)]
    pub gaps: Vec<(i64, i64)>,
    /// Context switches and wake-ups within the requested time spans, in the order of time.
    pub events: Vec<SwitchEvent>,
    /// Threads that had no CPU when a requested time span began, in the order of the time spans: those that were ready to
    /// run, stopped or frozen, or that slept in the kernel so that no signal could wake them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub away: Vec<Away>,
    /// Recorded threads that do not belong to the agent's ends, by thread id, as far as their names are known.
    #[serde(default)]
    pub tasks: BTreeMap<i32, Task>,
    /// Begin and end of each time span in which the measuring process was stopped (SIGSTOP, a debugger), monotonic ns,
    /// as noticed by its supervisor.
    #[serde(default)]
    pub stops: Vec<(i64, i64)>,
    /// True if interrupts and soft interrupts of the CPUs in `scope` were recorded too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupts: bool,
    /// How the events were recorded; absent if no events were recorded, and in records of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorder: Option<Recorder>,
    /// How many records the agent read and how many the kernel dropped in the whole trial; absent if no events were recorded, and in
    /// records of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<RecordCounts>,
    /// Changes of kernel counters during the trial, for each counter in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterSeries>,
    /// Ways of the messages that the ends sent, if they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<Packets>,
    /// The host of the guests in which the ends run, if the controller recorded these events there; absent if the agent of an
    /// end recorded them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostOfGuests>,
}

/// Records of events and of packets in a whole trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordCounts {
    /// Number of records that were read from the ring buffers of the kernel. The begin and the end of an interrupt are one record.
    pub read: u64,
    /// Number of records that the kernel dropped, because a ring buffer was full. Perf events count the begin and the end of an
    /// interrupt as two.
    pub dropped: u64,
}

/// The host of the guests in which the ends run, on which the controller recorded events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostOfGuests {
    /// Name of the host.
    pub name: String,
    /// Readings of the clock of the ping end, between readings of the clock of the host. They are wider by the largest distance
    /// of the host's clock from an even rate during the trial.
    pub ping_clock: Vec<ClockReading>,
}

/// A reading of the clock of another machine, between two readings of the own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// Monotonic time of the own clock before the other clock was read, ns.
    pub before_ns: i64,
    /// Monotonic time of the other clock, ns.
    pub other_ns: i64,
    /// Monotonic time of the own clock after the other clock was read, ns.
    pub after_ns: i64,
}

impl Switches {
    /// Converts all times to another clock. Durations keep their length, and a stop whose begin is not known keeps the
    /// begin 0. `to` must not change the order of times.
    pub fn convert_times(&mut self, to: impl Fn(i64) -> i64) {
        let both = |span: &mut (i64, i64)| *span = (to(span.0), to(span.1));
        self.windows.iter_mut().chain(&mut self.gaps).for_each(both);
        self.events.iter_mut().for_each(|event| event.at_ns = to(event.at_ns));
        for away in &mut self.away {
            (away.until_ns, away.event.at_ns) = (to(away.until_ns), to(away.event.at_ns));
        }
        for (from, until) in &mut self.stops {
            (*from, *until) = (if *from == 0 { 0 } else { to(*from) }, to(*until));
        }
        for series in &mut self.counters {
            series.moves.iter_mut().for_each(|m| (m.from_ns, m.to_ns) = (to(m.from_ns), to(m.to_ns)));
            series.complete_from_ns = series.complete_from_ns.map(&to);
        }
        if let Some(packets) = &mut self.packets {
            packets.windows.iter_mut().chain(&mut packets.gaps).for_each(both);
            packets.hops.iter_mut().chain(&mut packets.drops).for_each(|hop| hop.at_ns = to(hop.at_ns));
            packets.reads.iter_mut().for_each(|read| read.at_ns = to(read.at_ns));
        }
        for reading in self.host.iter_mut().flat_map(|host| &mut host.ping_clock) {
            (reading.before_ns, reading.after_ns) = (to(reading.before_ns), to(reading.after_ns));
        }
    }

    /// Replaces all thread ids by `thread`, and all CPU numbers by `cpu`.
    pub fn convert_ids(&mut self, thread: impl Fn(i32) -> i32, cpu: impl Fn(u32) -> u32) {
        if let SwitchScope::Cpus(cpus) = &mut self.scope {
            cpus.0 = cpus.0.iter().copied().map(&cpu).collect();
        }
        let away = self.away.iter_mut().map(|away| &mut away.event);
        self.events.iter_mut().chain(away).for_each(|event| event.convert_ids(&thread, &cpu));
        self.tasks = std::mem::take(&mut self.tasks).into_iter().map(|(id, task)| (thread(id), task)).collect();
        for series in &mut self.counters {
            if let Some(id) = series.of.strip_prefix("thread ").and_then(|id| id.parse().ok()) {
                series.of = format!("thread {}", thread(id));
            } else if let Some(number) = series.of.strip_prefix("cpu ").and_then(|number| number.parse().ok()) {
                series.of = CounterSeries::of_cpu(cpu(number));
            }
        }
        if let Some(packets) = &mut self.packets {
            for hop in packets.hops.iter_mut().chain(&mut packets.drops) {
                (hop.cpu, hop.thread) = (cpu(hop.cpu), thread(hop.thread));
            }
            packets.reads.iter_mut().for_each(|read| read.thread = thread(read.thread));
        }
    }
}

/// A thread that had no CPU when a time span began whose events were requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Away {
    /// Begin of the time span, monotonic ns.
    pub until_ns: i64,
    /// The event before the time span with which the thread left its CPU or became ready to run. Since then the thread had
    /// no CPU.
    pub event: SwitchEvent,
}

/// Which events of the kernel are recorded, to find out why messages were late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attribution {
    /// No events of the kernel are recorded during the trial.
    Off,
    /// Context switches and wake-ups are recorded: of all threads on the CPUs of the ends if that is permitted,
    /// otherwise context switches of the ends' threads alone.
    Threads,
    /// Interrupts and soft interrupts are recorded too.
    Machine,
    /// The ways of the messages through the kernel are recorded too.
    Packets,
    /// The level `Packets` if it costs at most a fifth of a message, else the level `Machine` if it costs at most a tenth,
    /// otherwise the level `Threads`. Earlier releases knew only `on` and `off`.
    #[default]
    #[serde(alias = "on")]
    Auto,
}

/// How the events of a trial were recorded, and what the recording cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorder {
    /// Level of the recording: `threads`, `machine` or `packets`.
    pub level: Attribution,
    /// Facility of the kernel that recorded the events.
    pub by: RecordedBy,
    /// Reason why BPF or a higher level was not used, in one sentence without a full stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// Cost of the recording, as the agent measured it before the trial; absent if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<RecordingCost>,
    /// Costs of other levels that the agent measured before the trial too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<RecordingCost>,
}

/// Facilities of the kernel that record events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedBy {
    /// Programs in the kernel (BPF), which write only what is needed.
    Bpf,
    /// Perf events.
    Perf,
}

/// Cost of the recording of events for one message, measured with datagrams that two threads exchange on the watched CPUs:
/// over local sockets, or for the level `packets` by UDP over the loopback interface of a network namespace of their own. The
/// CPUs do not idle meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingCost {
    /// Level of the recording whose cost was measured: `threads`, `machine` or `packets`.
    pub level: Attribution,
    /// Round trip with the recording minus round trip without it, both at the quantile 0.1, which other programs disturb
    /// less than the median; the median of nine such differences, ns.
    pub per_message_ns: i64,
    /// Median round trip without the recording, ns.
    pub unwatched_ns: i64,
}

/// Changes of one kernel counter during a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterSeries {
    /// Kind of the kernel counter.
    pub counter: Counter,
    /// What the counter belongs to: path of a control group, name of an interface, `cpu 1`, or `thread 1234`; empty for
    /// counters of a whole network namespace or host.
    pub of: String,
    /// Increases of the counter between two readings; readings between which it stayed the same are left out.
    pub moves: Vec<CounterMove>,
    /// Longest time between two readings of the counter, ns.
    pub longest_step_ns: i64,
    /// Monotonic time from which on no increase is missing, ns; absent if none is missing in the whole trial. Earlier
    /// increases of long trials are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_from_ns: Option<i64>,
}

impl CounterSeries {
    /// What the counter of a CPU belongs to (`of`).
    pub fn of_cpu(cpu: u32) -> String {
        format!("cpu {cpu}")
    }
}

/// Increase of a kernel counter between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterMove {
    /// Time of the reading before the increase of the counter, monotonic ns.
    pub from_ns: i64,
    /// Time of the reading that showed the increase of the counter, monotonic ns.
    pub to_ns: i64,
    /// Increase of the counter, in its unit.
    pub by: u64,
}

/// Kinds of kernel counters that are read during a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// Time for which the CPU quota of a control group stopped its threads, ns (`cpu.stat`).
    QuotaThrottledNs,
    /// Time for which the freezer had stopped a control group, ns, as seen by the readings.
    FrozenNs,
    /// Time that the hypervisor took from a CPU, ns (`/proc/stat`, field steal; the kernel counts in ticks of 10 ms).
    StealNs,
    /// Time for which a thread of an end was ready and waited for a CPU, ns (`/proc/<pid>/task/<tid>/schedstat`).
    RunDelayNs,
    /// Page faults of an end's process that needed no disk.
    MinorFaults,
    /// Page faults of an end's process that waited for a disk.
    MajorFaults,
    /// Datagrams that were dropped because the receive buffer of their socket was full (`/proc/net/snmp`).
    SocketBufferDrops,
    /// Datagrams whose fragments could not be put together (`/proc/net/snmp`, ReasmFails).
    ReassemblyFailures,
    /// Packets that an interface dropped when it received them.
    InterfaceReceiveDrops,
    /// Packets that an interface or its queue discipline dropped when it sent them.
    InterfaceSendDrops,
    /// Packets that a CPU dropped because its backlog was full (`/proc/net/softnet_stat`).
    BacklogDrops,
}

/// A set of kinds of kernel counters: bit n stands for the n-th kind of [`Counter`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CounterSet(u16);

impl CounterSet {
    /// Adds a kind of kernel counter to the set.
    pub fn add(&mut self, counter: Counter) {
        self.0 |= 1 << counter as u16;
    }

    /// Whether the set contains this kind of kernel counter.
    pub fn has(self, counter: Counter) -> bool {
        self.0 & 1 << counter as u16 != 0
    }
}

/// Threads and CPUs whose context switches an agent could record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchScope {
    /// Context switches of all threads on the CPUs of the ends could be recorded.
    Cpus(crate::CpuList),
    /// Only context switches of the ends' threads could be recorded; the threads that ran instead of them are not
    /// known.
    OwnThreads,
    /// No context switches could be recorded; the text is the reason.
    Nothing(String),
    /// The study did not ask for recording of context switches.
    #[default]
    Off,
}

/// A recorded event: a context switch, a wake-up of a thread, an interrupt, or a page fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchEvent {
    /// Monotonic time of the context switch or wake-up, or of the begin of what has a duration, ns.
    pub at_ns: i64,
    /// CPU of the event; for a wake-up, the CPU on which the waking code ran.
    pub cpu: u32,
    /// Kind of the recorded event, with the threads involved.
    #[serde(flatten)]
    pub what: SwitchKind,
}

impl SwitchEvent {
    fn convert_ids(&mut self, thread: &impl Fn(i32) -> i32, cpu: &impl Fn(u32) -> u32) {
        self.cpu = cpu(self.cpu);
        match &mut self.what {
            SwitchKind::Switch { out: one, into: two, .. } | SwitchKind::Wake { thread: one, by: two, .. } => {
                (*one, *two) = (thread(*one), thread(*two));
            }
            SwitchKind::In(id)
            | SwitchKind::Out { thread: id, .. }
            | SwitchKind::PageFault { thread: id, .. }
            | SwitchKind::Reclaim { thread: id, .. }
            | SwitchKind::FairServer { thread: id }
            | SwitchKind::Limited { thread: id, .. } => *id = thread(*id),
            SwitchKind::Moved { thread: id, to } => (*id, *to) = (thread(*id), cpu(*to)),
            SwitchKind::Interrupted { .. } | SwitchKind::NoTick { .. } | SwitchKind::Frequency { .. } => {}
        }
    }

    /// End of what has a duration, monotonic ns; for other events, their time.
    #[must_use]
    pub fn end_ns(&self) -> i64 {
        match self.what {
            SwitchKind::Interrupted { ns, .. }
            | SwitchKind::PageFault { ns, .. }
            | SwitchKind::Reclaim { ns, .. }
            | SwitchKind::NoTick { ns } => self.at_ns + i64::from(ns),
            _ => self.at_ns,
        }
    }
}

/// Kinds of context switches, wake-ups, interrupts and page faults. Threads are given by thread id: 0 is the idle thread; -1
/// is a thread that has ended, or that is in a PID namespace that cannot be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchKind {
    /// One thread left the CPU and another thread got it.
    Switch {
        /// Id of the thread that left the CPU.
        out: i32,
        /// Id of the thread that got the CPU.
        into: i32,
        /// True if the thread that left the CPU was still runnable.
        preempted: bool,
        /// State of the thread that left the CPU, if it was not runnable and the state was recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<SleepState>,
        /// Limit that keeps the thread that left the CPU from running although it is ready, if there is one and the
        /// recording shows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<CpuLimit>,
    },
    /// A measured thread got the CPU; the thread that left is not recorded.
    In(i32),
    /// A measured thread left the CPU; the thread that got the CPU is not recorded.
    Out {
        /// Id of the thread that left the CPU.
        thread: i32,
        /// True if the thread that left the CPU was still runnable.
        preempted: bool,
    },
    /// Kind of event: a measured thread, or a thread of a watched CPU, became ready to run (wake-up).
    Wake {
        /// Id of the thread that became ready to run.
        thread: i32,
        /// Id of the thread that ran on the CPU where the wake-up happened. If an interrupt caused the wake-up, this
        /// thread may have nothing to do with the wake-up.
        by: i32,
        /// True if an interrupt or a soft interrupt caused the wake-up, and not the thread `by`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupt: bool,
        /// True if the soft interrupt that receives packets caused the wake-up; recordings by perf events never say so.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        packet: bool,
        /// Limit that keeps the woken thread from running, if there is one and the recording shows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<CpuLimit>,
    },
    /// A measured thread that did not run was moved to another CPU; recordings by perf events do not have this event.
    Moved {
        /// Id of the thread that was moved.
        thread: i32,
        /// Number of the CPU for which the thread waits from then on.
        to: u32,
    },
    /// The fair server of the kernel (Linux 6.12) chose the thread that got the CPU at this time, although a real-time
    /// thread may have been ready to run; only recordings by BPF have this event.
    FairServer {
        /// Id of the thread that got the CPU.
        thread: i32,
    },
    /// Kind of event: at this time, a limit of CPU time still kept a measured thread from the CPU, for which it was ready;
    /// only recordings by BPF have this event.
    Limited {
        /// Id of the thread that was ready.
        thread: i32,
        /// Limit that kept the thread from the CPU.
        limit: CpuLimit,
    },
    /// An interrupt or a soft interrupt took the CPU; the time of the event is its begin. Interrupts of less than 2 us
    /// are left out. A soft interrupt in which a thread was preempted (PREEMPT_RT) is one event for each time that the
    /// thread had the CPU.
    Interrupted {
        /// Kind and number of the interrupt.
        by: Interruption,
        /// Duration of the interrupt, with all interrupts inside it, ns.
        ns: u32,
    },
    /// A measured thread was in a page fault. The event has the time at which the fault began, and the CPU on which it ended.
    PageFault {
        /// Id of the thread that was in the page fault.
        thread: i32,
        /// Duration of the page fault, with everything that happened inside it, ns; what is longer than two seconds can be
        /// cut off.
        ns: u32,
        /// True if the page came from a disk (major page fault).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        disk: bool,
    },
    /// A measured thread needed memory and freed some first, because the machine or a control group of the thread had none left
    /// (direct reclaim). The event has the time at which this began, and the CPU on which it ended; only recordings by BPF
    /// have this event.
    Reclaim {
        /// Id of the thread that freed memory.
        thread: i32,
        /// Time until the thread had freed enough memory, ns; what is longer than two seconds can be cut off.
        ns: u32,
    },
    /// A CPU that ran threads had no interrupt of its timer for longer than two ticks of the scheduler. The event is the last part of this time: from the last context switch, if there was one, to the next one or to the
    /// interrupt. Only recordings by BPF have this event.
    NoTick {
        /// Duration of the part, ns. What is longer than two seconds is several events, up to eight seconds.
        ns: u32,
    },
    /// The kernel set the frequency of a CPU; only recordings by BPF have this event.
    Frequency {
        /// New frequency of the CPU, kHz.
        khz: u32,
    },
}

/// State of a thread that left its CPU and was not runnable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SleepState {
    /// The thread waits and can be woken by a signal.
    Interruptible,
    /// The thread waits in the kernel, and no signal wakes it (state `D`); for what it waits was not recorded.
    Uninterruptible,
    /// The thread waits for a disk, and no signal wakes it.
    Io,
    /// The thread waits for a page of memory in a page fault, and no signal wakes it.
    PageFault,
    /// The thread waits while it frees memory (direct reclaim); concluded from another event.
    Reclaim,
    /// The thread waits in the kernel for neither a disk nor a page, for example for a lock, and no signal wakes it.
    KernelLock,
    /// The thread was stopped by a signal or a debugger.
    Stopped,
    /// The freezer of a control group stopped the thread.
    Frozen,
    /// The thread ended.
    Ended,
}

impl SleepState {
    /// Whether a thread that sleeps in this state waits for something other than a message, a signal or a time.
    #[must_use]
    pub fn is_held_up(self) -> bool {
        !matches!(self, SleepState::Interruptible | SleepState::Ended)
    }
}

/// Limits of CPU time that keep threads from running although they are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuLimit {
    /// The CPU quota of a control group was used up.
    Quota,
    /// The run time of real-time threads was used up, that of a control group or that of the CPU.
    RealTime,
    /// The thread had used up its own run time of a period (policy deadline).
    Deadline,
}

/// Kind and number of an interrupt or a soft interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interruption {
    /// An interrupt of a device, with its number in `/proc/interrupts`.
    Irq(u32),
    /// An interrupt of the CPU itself, for example of its timer, with its vector.
    Vector(u32),
    /// A soft interrupt, with its number in the order of `/proc/softirqs` (0 = HI, 1 = TIMER, 3 = NET_RX).
    Softirq(u32),
}

/// A thread that appears in context switches and does not belong to an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Name of the thread that appears in the recorded context switches.
    pub name: String,
    /// Scheduling policy of the thread; absent if the thread ended before the policy was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Name of the process to which the thread belongs, if it differs from the name of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// True if the thread belongs to the kernel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel: bool,
}
