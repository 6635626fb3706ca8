//! Follows the threads that carried a message back in time, from the end of a leg to its begin.

use crate::why::timeline::{Left, Timeline};
use crate::why::wake::Wake;
use tailbound_document::Evidence;
use tailbound_model::{CpuLimit, SleepState};

/// A time span in which one thread carried a message, or waited or slept before it carried the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub begin_ns: i64,
    pub end_ns: i64,
    pub thread: i32,
    pub what: What,
}

/// What a thread did in one time span of the delay of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// The thread was ready to run and waited for the CPU `cpu`, on which it ran afterwards. If the begin of the wait is
    /// only bounded, the evidence is [`Evidence::AtMost`].
    Waited { cpu: u32, evidence: Evidence, limited: Option<Limited> },
    /// The thread slept inside its send call until the thread `by` of its process woke it, which had not waited for a
    /// message itself: `by` held something that the call needs.
    Locked { by: i32 },
    /// The thread slept inside its send call until a packet woke the thread `by` of its process, which had slept when this
    /// thread fell asleep, and which woke this thread afterwards: the writer waited for an acknowledgement.
    Throttled { by: i32 },
    /// The thread ran on the CPU `cpu` in the whole time span.
    Ran { cpu: u32 },
    /// The thread slept in the whole time span, in this state of the kernel, if the state was recorded; in a page fault
    /// whatever the state was.
    Slept(Option<SleepState>),
}

/// A limit of CPU time that kept a thread from its CPU, at least until the time `until_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limited {
    pub limit: CpuLimit,
    pub until_ns: i64,
}

/// A send call: its begin and end, and the thread that makes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub begun_ns: i64,
    pub ended_ns: i64,
    pub thread: i32,
}

/// What is known about threads beside their events.
pub(crate) struct Known<'a> {
    /// Whether this thread belongs to an end.
    pub is_of_an_end: &'a dyn Fn(i32) -> bool,
    /// Whether both threads belong to the same end.
    pub same_end: &'a dyn Fn(i32, i32) -> bool,
    /// Whether the scheduler prefers the first thread to the second one.
    pub outranks: &'a dyn Fn(i32, i32) -> bool,
    /// Whether the writers in the process of this thread wait for acknowledgements.
    pub awaits_acks: &'a dyn Fn(i32) -> bool,
}

/// Largest number of runs of threads that are followed back from the end of a leg. Page faults or locks can interrupt a thread
/// thousands of times while it has one message.
const MOST_RUNS: usize = 100_000;

/// Follows `thread`, which runs at the time `end`, back to the time `begin`. If a thread of an end woke `thread`, that
/// thread is followed back from the time of the wake-up. The latest time span comes first in the result.
pub(crate) fn back(
    timeline: &Timeline,
    thread: i32,
    (begin, end): (i64, i64),
    call: Option<Call>,
    known: &Known,
) -> Vec<Stretch> {
    let mut walk = Walk { timeline, begin, thread, throttle: None, way: Vec::new() };
    let mut at = end;
    for _ in 0..MOST_RUNS {
        let Some((came, cpu)) = timeline.running(walk.thread, at) else { break };
        walk.push(came, at, What::Ran { cpu });
        if came <= begin {
            break;
        }
        let (left, why) = timeline.left(walk.thread, came);
        at = match why {
            Left::Ready(limit) => {
                walk.push_wait((left, came), cpu, Evidence::Seen, (limit, known));
                left
            }
            Left::Asleep(state) => {
                // A thread that waits for memory does not wait for a message, and who wakes it did not send one.
                let memory = timeline.memory.why(walk.thread, left);
                let state = memory.or(state);
                let wake = timeline.woken(walk.thread, left, came);
                let (ready, evidence) = match wake {
                    Some(wake) => (wake.at_ns, Evidence::Seen),
                    None => walk.ready(left, came, cpu, known),
                };
                walk.push_wait((ready, came), cpu, evidence, (wake.and_then(|w| w.limit), known));
                match walk.before((left, ready), state, wake.filter(|_| memory.is_none()), call, known) {
                    Some(at) => at,
                    None => {
                        walk.push(left, ready, What::Slept(state));
                        if !state.is_some_and(SleepState::is_held_up) {
                            break;
                        }
                        left
                    }
                }
            }
        };
        if at <= begin {
            break;
        }
    }
    walk.way
}

/// The way of a message so far, followed back in time.
struct Walk<'a> {
    timeline: &'a Timeline,
    begin: i64,
    /// The thread that is followed now.
    thread: i32,
    /// A sender that waited for an acknowledgement, while the thread that woke it is followed.
    throttle: Option<Throttle>,
    way: Vec<Stretch>,
}

/// A wait of a writer for an acknowledgement.
#[derive(Debug, Clone, Copy)]
struct Throttle {
    sender: i32,
    /// Time at which the sender fell asleep, ns.
    from_ns: i64,
    /// The thread of the sender's process that woke the sender.
    waker: i32,
    /// Time at which a packet woke the waker, ns.
    packet_ns: i64,
}

impl Walk<'_> {
    fn push(&mut self, from: i64, to: i64, what: What) {
        let (begin_ns, end_ns) = (from.max(self.begin), to);
        if begin_ns < end_ns {
            self.way.push(Stretch { begin_ns, end_ns, thread: self.thread, what });
        }
    }

    /// Adds a wait for a CPU, or for several CPUs if the thread was moved meanwhile.
    fn push_wait(
        &mut self,
        (from, to): (i64, i64),
        cpu: u32,
        evidence: Evidence,
        (limit, known): (Option<CpuLimit>, &Known),
    ) {
        for (from, to, cpu) in self.timeline.waited_for(self.thread, from, to, cpu) {
            let until_ns = |limit| match limit {
                // A real-time thread takes the CPU from such a thread at once, as soon as the limit permits it.
                CpuLimit::RealTime | CpuLimit::Deadline if self.replaces_a_lower_one(cpu, to, known) => to,
                // This limit is the thread's own one: on an idle CPU, the thread runs as soon as the limit permits it.
                CpuLimit::Deadline if self.timeline.replaced(cpu, to).is_some_and(|(who, _)| who == 0) => to,
                CpuLimit::Deadline => self.timeline.freed(cpu, from, to),
                _ => {
                    // The threads of a process are in one control group, as a rule.
                    let same = |who| who == self.thread || (known.same_end)(who, self.thread);
                    let held = self.timeline.held(cpu, (from, to), same);
                    held.unwrap_or(from).max(self.timeline.freed(cpu, from, to))
                }
            };
            let limited = limit.map(|limit| Limited { limit, until_ns: until_ns(limit) });
            self.push(from, to, What::Waited { cpu, evidence, limited });
        }
    }

    /// Whether the thread got `cpu`, at the time `came`, from a thread to which the scheduler prefers it.
    fn replaces_a_lower_one(&self, cpu: u32, came: i64, known: &Known) -> bool {
        self.timeline.replaced(cpu, came).is_some_and(|(who, _)| who != 0 && (known.outranks)(self.thread, who))
    }

    /// The time at which a thread became ready whose wake-up was not recorded: an idle CPU caused it, or wake-ups are not
    /// recorded at all. If the thread preempted a thread that does not outrank it, it did not wait; if the CPU became
    /// free by itself, the thread had waited for at most as long as the CPU was busy.
    fn ready(&self, left: i64, came: i64, cpu: u32, known: &Known) -> (i64, Evidence) {
        let sees_wakes = self.timeline.sees_wakes();
        match self.timeline.replaced(cpu, came) {
            Some((who, true)) if sees_wakes && !(known.outranks)(who, self.thread) => (came, Evidence::Inferred),
            _ => {
                let evidence = if sees_wakes { Evidence::Inferred } else { Evidence::AtMost };
                (self.timeline.busy_since(self.thread, cpu, came, left), evidence)
            }
        }
    }

    /// The time from which the way goes on before a sleep from `left` to `ready`; `None` if it ends with this sleep.
    fn before(
        &mut self,
        (left, ready): (i64, i64),
        state: Option<SleepState>,
        wake: Option<Wake>,
        call: Option<Call>,
        known: &Known,
    ) -> Option<i64> {
        let wake = wake?;
        let throttle = self.throttle.take();
        if let Some(throttle) = throttle.filter(|t| t.waker == self.thread && t.packet_ns == wake.at_ns) {
            self.thread = throttle.sender;
            self.push(throttle.from_ns, ready, What::Throttled { by: throttle.waker });
            return Some(throttle.from_ns);
        }
        let by = wake.by.filter(|by| *by != self.thread && (known.is_of_an_end)(*by))?;
        let in_call = call.is_some_and(|c| c.thread == self.thread && c.begun_ns < ready && ready <= c.ended_ns);
        if in_call && (known.same_end)(by, self.thread) && held(self.timeline, by, wake.at_ns, known) {
            self.push(left, ready, What::Locked { by });
            return Some(left);
        }
        self.timeline.running(by, wake.at_ns)?;
        // What kept the waker from its CPU comes first: the sender is followed from the time of the packet on.
        if in_call && state == Some(SleepState::Interruptible) && (known.awaits_acks)(self.thread) {
            let same = (known.same_end)(by, self.thread);
            let packet_ns = woken_by_packet(self.timeline, by, wake.at_ns, left).filter(|_| same);
            let throttle = |packet_ns| Throttle { sender: self.thread, from_ns: left, waker: by, packet_ns };
            self.throttle = packet_ns.map(throttle);
        }
        self.thread = by;
        Some(wake.at_ns)
    }
}

/// Whether `holder`, which runs at the time `at`, got its CPU for another reason than a message: a packet or a thread of
/// another process did not wake it before.
fn held(timeline: &Timeline, holder: i32, mut at: i64, known: &Known) -> bool {
    for _ in 0..MOST_RUNS {
        let Some((came, _)) = timeline.running(holder, at) else { return false };
        match timeline.left(holder, came) {
            (left, Left::Ready(_)) => at = left,
            (left, Left::Asleep(_)) => {
                let wake = timeline.woken(holder, left, came).filter(|_| timeline.sees_packets());
                return wake.is_some_and(|w| !w.packet && w.by.is_none_or(|by| (known.same_end)(by, holder)));
            }
        }
    }
    false
}

/// The time at which a packet woke `waker`, which runs at the time `woke_ns`, if it had slept since a time before `since`, was
/// woken after `since`, has read a datagram, and has not slept again: it waited for the packet and held nothing at the time
/// `since`. A thread that had waited for room in the buffer of its socket could hold something.
fn woken_by_packet(timeline: &Timeline, waker: i32, woke_ns: i64, since: i64) -> Option<i64> {
    let mut at = woke_ns;
    for _ in 0..MOST_RUNS {
        let (came, _) = timeline.running(waker, at)?;
        match timeline.left(waker, came) {
            (left, Left::Ready(_)) => at = left,
            (left, Left::Asleep(None | Some(SleepState::Interruptible))) => {
                let slept = left < since && timeline.memory.why(waker, left).is_none();
                let wake = timeline.woken(waker, left, came).filter(|_| slept && timeline.sees_packets())?;
                let has_read = timeline.hops.has_read(waker, (wake.at_ns, woke_ns));
                return (wake.packet && since < wake.at_ns && has_read).then_some(wake.at_ns);
            }
            (_, Left::Asleep(_)) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests;
