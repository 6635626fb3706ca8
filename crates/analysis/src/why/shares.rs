//! Causes of the time spans of a message: who had the CPU, who stopped the thread, or where the message was.

use crate::why::course::{Doing, Piece};
use crate::why::threads::Threads;
use crate::why::timeline::{InterruptSpan, Timeline};
use tailbound_document::{CauseWord, CausedBy, Evidence};
use tailbound_model::{Interruption, Metric, SleepState, Switches};

/// What one part of a delay is ascribed to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub cause: CauseWord,
    pub leg: Metric,
    pub end: &'static str,
    pub cpu: Option<u32>,
    pub thread: Option<i32>,
    pub by: Option<CausedBy>,
}

/// A part of a delay with its cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Share {
    pub key: Key,
    pub low_ns: i64,
    pub high_ns: i64,
    pub evidence: Evidence,
}

/// Everything that is known about one trial, from which the causes of time spans follow.
pub(crate) struct Circumstances<'a> {
    pub threads: &'a Threads<'a>,
    pub seen: &'a [Switches],
}

/// The causes of one time span. A part of the span without any cause has no share.
pub(crate) fn shares(piece: &Piece, timeline: &Timeline, known: &Circumstances) -> Vec<Share> {
    let mut shares = Vec::new();
    let hidden = piece.is_hidden(timeline);
    for (from_ns, to_ns, stopped) in split_by_stops(piece, timeline, known) {
        let part = Piece { from_ns, to_ns, ..*piece };
        match stopped {
            Some(evidence) => shares.push(whole(&part, CauseWord::Stopped, None, None, evidence)),
            None if hidden => {}
            None => of_part(&part, timeline, known, &mut shares),
        }
    }
    shares
}

fn of_part(part: &Piece, timeline: &Timeline, known: &Circumstances, shares: &mut Vec<Share>) {
    match part.what {
        Doing::Ran { cpu } => {
            let mut own = 0;
            for (from, to, by) in divide(part.from_ns, part.to_ns, &timeline.interrupts(cpu, part.from_ns, part.to_ns))
            {
                match by {
                    Some(by) => shares.push(interrupted(&Piece { from_ns: from, to_ns: to, ..*part }, cpu, by)),
                    None => own += to - from,
                }
            }
            let share = whole(part, CauseWord::OwnWork, Some(cpu), None, Evidence::Seen);
            shares.push(Share { low_ns: own, high_ns: own, ..share });
        }
        Doing::Waited { cpu, evidence } => waited(part, (cpu, evidence), timeline, known, shares),
        Doing::SleptInCall(state) => {
            let cause = asleep(state).unwrap_or(CauseWord::DriverCall);
            shares.push(whole(part, cause, None, None, Evidence::Seen));
        }
        Doing::SleptForMessage(state) => {
            let cause = asleep(state).unwrap_or(CauseWord::Network);
            // That no thread had the message is concluded from the absence of events.
            let evidence = if cause == CauseWord::Network { Evidence::Inferred } else { Evidence::Seen };
            shares.push(Share {
                key: Key { thread: None, ..key(part, cause, None, None) },
                ..whole(part, cause, None, None, evidence)
            });
        }
        Doing::Slept(state) => {
            let cause = asleep(state);
            shares.extend(cause.map(|cause| whole(part, cause, None, None, Evidence::Seen)));
        }
        Doing::Unknown => {}
    }
}

/// The cause that the kernel's state of a sleeping thread shows by itself.
fn asleep(state: Option<SleepState>) -> Option<CauseWord> {
    match state? {
        SleepState::Uninterruptible => Some(CauseWord::BlockedIo),
        SleepState::Frozen => Some(CauseWord::Frozen),
        SleepState::Stopped => Some(CauseWord::Stopped),
        SleepState::Interruptible | SleepState::Ended => None,
    }
}

/// The causes of a wait for a CPU: the threads and interrupts that had the CPU in this time.
fn waited(
    part: &Piece,
    (cpu, evidence): (u32, Evidence),
    timeline: &Timeline,
    known: &Circumstances,
    shares: &mut Vec<Share>,
) {
    if !timeline.sees_cpu(cpu) {
        return shares.push(whole(part, CauseWord::WaitedForCpu, Some(cpu), None, evidence));
    }
    for (from, to, tid) in timeline.occupants(cpu, part.from_ns, part.to_ns) {
        for (from_ns, to_ns, by) in divide(from, to, &timeline.interrupts(cpu, from, to)) {
            let span = Piece { from_ns, to_ns, ..*part };
            let share = match by {
                Some(by) => interrupted(&span, cpu, by),
                // No thread had the CPU, so that something kept the thread from it that no event shows.
                None if tid == 0 => continue,
                None => {
                    let (cause, by) = known.threads.had_the_cpu(tid);
                    whole(&span, cause, Some(cpu), Some(by), evidence)
                }
            };
            shares.push(if evidence == Evidence::AtMost { Share { low_ns: 0, evidence, ..share } } else { share });
        }
    }
}

fn interrupted(part: &Piece, cpu: u32, by: Interruption) -> Share {
    let (cause, name) = match by {
        Interruption::Irq(number) => (CauseWord::Irq, format!("irq {number}")),
        Interruption::Vector(number) => (CauseWord::Irq, format!("vector {number}")),
        Interruption::Softirq(number) => (CauseWord::Softirq, softirq(number)),
    };
    whole(part, cause, Some(cpu), Some(CausedBy { name, process: None, tid: None, policy: None }), Evidence::Seen)
}

/// Name of a soft interrupt, in the order of `/proc/softirqs`.
fn softirq(number: u32) -> String {
    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    NAMES.get(number as usize).map_or_else(|| format!("soft interrupt {number}"), |name| (*name).to_owned())
}

fn key(part: &Piece, cause: CauseWord, cpu: Option<u32>, by: Option<CausedBy>) -> Key {
    Key { cause, leg: part.leg, end: part.end, cpu, thread: (part.thread != 0).then_some(part.thread), by }
}

/// A share for the whole time of a part.
fn whole(part: &Piece, cause: CauseWord, cpu: Option<u32>, by: Option<CausedBy>, evidence: Evidence) -> Share {
    let ns = part.to_ns - part.from_ns;
    let low_ns = if evidence == Evidence::AtMost { 0 } else { ns };
    Share { key: key(part, cause, cpu, by), low_ns, high_ns: ns, evidence }
}

/// Divides a time span by the interrupts in it. At each instant the interrupt that began last counts, so that an
/// interrupt inside a soft interrupt counts once.
fn divide(from_ns: i64, to_ns: i64, spans: &[InterruptSpan]) -> Vec<(i64, i64, Option<Interruption>)> {
    let mut parts = Vec::new();
    let mut open: Vec<&InterruptSpan> = Vec::new();
    let mut at = from_ns;
    let mut until = |at: &mut i64, to: i64, by: Option<Interruption>| {
        if *at < to {
            parts.push((*at, to, by));
            *at = to;
        }
    };
    for span in spans {
        while let Some(inner) = open.last().filter(|inner| inner.to_ns <= span.from_ns) {
            until(&mut at, inner.to_ns, Some(inner.by));
            open.pop();
        }
        until(&mut at, span.from_ns, open.last().map(|s| s.by));
        open.push(span);
    }
    while let Some(inner) = open.pop() {
        until(&mut at, inner.to_ns, Some(inner.by));
    }
    until(&mut at, to_ns, None);
    parts
}

/// Divides a time span of a thread that did not run by the times in which its process was stopped.
fn split_by_stops(piece: &Piece, timeline: &Timeline, known: &Circumstances) -> Vec<(i64, i64, Option<Evidence>)> {
    let whole = vec![(piece.from_ns, piece.to_ns, None)];
    if matches!(piece.what, Doing::Ran { .. }) {
        return whole;
    }
    let of_end = known.seen.iter().filter(|s| s.ends.iter().any(|e| e == piece.end));
    let mut stops: Vec<(i64, i64)> = of_end
        .flat_map(|s| &s.stops)
        .filter_map(|(from, to)| {
            // The supervisor may notice a stop late; the process had then not run since it was stopped.
            let from =
                timeline.idle_since(known.threads.of_end(piece.end), *from).map_or(*from, |idle| idle.min(*from));
            let (from, to) = (from.max(piece.from_ns), (*to).min(piece.to_ns));
            (from < to).then_some((from, to))
        })
        .collect();
    if stops.is_empty() {
        return whole;
    }
    stops.sort_unstable();
    let mut parts = Vec::new();
    let mut at = piece.from_ns;
    for (from, to) in stops {
        if at < from {
            parts.push((at, from, None));
        }
        if at.max(from) < to {
            parts.push((at.max(from), to, Some(Evidence::Seen)));
            at = to;
        }
    }
    if at < piece.to_ns {
        parts.push((at, piece.to_ns, None));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_inside_each_other_count_once() {
        let span = |from_ns, to_ns, by| InterruptSpan { from_ns, to_ns, by };
        let (soft, irq) = (Interruption::Softirq(3), Interruption::Irq(7));
        let parts = divide(0, 100, &[span(10, 60, soft), span(20, 30, irq), span(40, 45, irq), span(80, 90, irq)]);
        let expected = [
            (0, 10, None),
            (10, 20, Some(soft)),
            (20, 30, Some(irq)),
            (30, 40, Some(soft)),
            (40, 45, Some(irq)),
            (45, 60, Some(soft)),
            (60, 80, None),
            (80, 90, Some(irq)),
            (90, 100, None),
        ];
        assert_eq!(parts, expected);
    }
}
