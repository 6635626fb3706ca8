//! Words for the causes of delays, for what had a CPU, and for the kinds of evidence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Causes of a delay. The last six words say where the time passed, and not why, so that they never count as an
/// explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CauseWord {
    /// A thread was ready to run, and another thread had the CPU.
    WaitedForCpu,
    /// A thread was ready to run, and a thread of the kernel had the CPU; or a thread of the kernel that the message needed
    /// was ready to run, or waited for a lock of the kernel, and another thread had the CPU (`by.carrier`).
    KernelThread,
    /// An interrupt had the CPU.
    Irq,
    /// An interrupt had the CPU by which another CPU asks this CPU to choose a thread again, or to call a function.
    Ipi,
    /// A soft interrupt had the CPU.
    Softirq,
    /// A thread was in a page fault: a page of memory was not there, and the kernel made it or read it from a disk.
    PageFault,
    /// A thread needed memory, and the kernel freed some in this thread first, because the machine or a control group had
    /// none left.
    Reclaim,
    /// A thread slept in the kernel and no signal could wake it: it waited for a disk.
    BlockedIo,
    /// A thread slept in the kernel and no signal could wake it: it waited for neither a disk nor a page of memory, for
    /// example for a lock of the kernel.
    KernelLock,
    /// A thread slept inside a call of the driver until another thread of its process woke it, which held something
    /// that the call needs, for example a mutex.
    UserLock,
    /// A thread slept inside a call of the driver until a packet woke another thread of its process, which woke this
    /// thread: its reliable writer waited for an acknowledgement.
    WriterThrottled,
    /// The process of an end was stopped, e.g. by SIGSTOP or a debugger.
    Stopped,
    /// The freezer of a control group stopped the process of an end.
    Frozen,
    /// The CPU quota of a control group was used up, so that its threads could not run.
    CpuQuota,
    /// The run time of real-time threads was used up, so that a real-time thread could not run.
    RtThrottled,
    /// A thread with the policy deadline had used up its run time of a period, so that it could not run.
    DeadlineThrottled,
    /// A real-time thread was ready to run, and the fair server of the kernel had given its CPU to a time-sharing thread.
    FairServer,
    /// A thread was ready to run, and its CPU was idle: the CPU had to leave an idle state first, and in a virtual machine
    /// the hypervisor had to run it.
    IdleExit,
    /// The message was at the executor of its end, a single thread, which handled another message first.
    Executor,
    /// The sender slept although its message was due, because the interrupt of its timer came late.
    TimerLate,
    /// The hypervisor ran something else on a virtual CPU.
    Steal,
    /// A CPU had a lower frequency than at other times of the trial, so that work on it took longer.
    Frequency,
    /// The message waited in the queue discipline of a device, which held it back or had other packets before it.
    QueueDiscipline,
    /// The message waited until the gate of its traffic class was open for as long as its frame needs (IEEE 802.1Q), by the
    /// schedule that the kernel reported.
    Gate,
    /// The message waited in the queue of the ping until its launch time, less the time for which it is given to the device before.
    /// Every message waits so, and none is later because of it: only pictures of messages have this word.
    Launch,
    /// The message was at a device, between its driver and the device that received it.
    DeviceQueue,
    /// The message was in the receive buffer of a socket, while the thread that received it read other datagrams first.
    SocketQueue,
    /// A packet with the message did not arrive, and the message waited until it was sent again.
    Retransmission,
    /// A part of the message had arrived, and the kernel or the middleware waited for its rest, which was on its way
    /// through the kernel.
    Reassembly,
    /// A thread of an end ran.
    OwnWork,
    /// The message was not at any thread of an end: in the network, or in the kernel without a thread.
    Network,
    /// The message was not at any thread of an end, and was received together with later ones, although all were sent in their
    /// time: something held them on their way and released them together.
    HoldAndRelease,
    /// A thread of an end slept inside the driver's call to send.
    DriverCall,
    /// A CPU may have stood still, because a tick of its timer is missing or an interrupt took very long: a hypervisor or the
    /// firmware had the CPU, or code of the kernel ran with interrupts disabled.
    MachineGap,
    /// A process of Tailbound that does not measure had the CPU.
    Instrument,
}

impl CauseWord {
    /// True if the word says why the time passed, and not only where.
    pub fn explains(self) -> bool {
        !matches!(
            self,
            CauseWord::OwnWork
                | CauseWord::Network
                | CauseWord::HoldAndRelease
                | CauseWord::DriverCall
                | CauseWord::MachineGap
                | CauseWord::Instrument
        )
    }
}

/// The thread, interrupt or soft interrupt that had a CPU while the thread of an end did not run on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct CausedBy {
    /// Name of the thread or of the interrupt, e.g. `stress-ng` or `NET_RX`.
    pub name: String,
    /// Name of the thread's process, if it differs from the name of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// Thread id; absent for an interrupt, and if threads with several ids have this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<i32>,
    /// Scheduling policy of the thread, e.g. `fifo 90`; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Name of the kernel thread that waited for the CPU, and that the message needed: it received the packet of the message, or
    /// ran the timer of its sender. Absent if a thread of the end waited, and for other causes than `kernel_thread` and
    /// `instrument`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier: Option<String>,
}

impl CausedBy {
    /// A cause of which only the name is known.
    #[must_use]
    pub fn named(name: String) -> CausedBy {
        CausedBy { name, process: None, tid: None, policy: None, carrier: None }
    }
}

/// Kinds of evidence for an entry of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Kind of evidence: events of the kernel show the begin and the end.
    Seen,
    /// Kind of evidence: a counter of the kernel moved within the incident.
    Counted,
    /// Kind of evidence: a rule concludes it from other events; the documentation has the rule.
    Inferred,
    /// Kind of evidence: only an upper bound is known.
    AtMost,
}
