//! Causes of the time spans of a message: who had the CPU, who stopped the thread, or where the message was.

use crate::why::carriers;
use crate::why::course::{Doing, Piece};
use crate::why::guest::{Guest, Kept, in_turn, without};
use crate::why::interruptions::{divide, interrupted};
use crate::why::other_clock::Machine;
use crate::why::share::{Circumstances, Key, Share, key, whole};
use crate::why::slow;
use crate::why::timeline::{Idle, Timeline};
use crate::why::timers;
use crate::why::waits::{asleep, hidden_page_fault, hidden_wait, limited_share, waited};
use crate::why::walk::Limited;
use crate::why::way::{Place, Step};
use tailbound_document::{CauseWord, CausedBy, Evidence};
use tailbound_model::{Interruption, SleepState};

/// The soft interrupt that receives packets, in the order of `/proc/softirqs`.
const NET_RX: u32 = 3;

/// The causes of one time span. A part of the span without any cause has no share.
pub(crate) fn shares(piece: &Piece, timeline: &Timeline, known: &Circumstances) -> Vec<Share> {
    let mut shares = Vec::new();
    let mut at = piece.from_ns;
    let all = kept(piece, timeline, known);
    let is_kept = !all.is_empty();
    for (kept, found) in all {
        shares.extend(of_ends(&Piece { from_ns: at, to_ns: kept.from_ns, ..*piece }, timeline, known));
        shares.extend(found);
        at = kept.to_ns;
    }
    shares.extend(of_ends(&Piece { from_ns: at, ..*piece }, timeline, known));
    if shares.is_empty() && !is_kept {
        shares.extend(timers::late(piece, timeline, known));
    }
    shares
}

/// The times within a piece in which a kernel thread waited that the message needed, or a thread of the host kept a guest from
/// working, each with its causes, in their order. They do not overlap.
fn kept(piece: &Piece, timeline: &Timeline, known: &Circumstances) -> Vec<(Kept, Vec<Share>)> {
    let of_host = |kept: Kept| of_guest(piece, kept, timeline, known);
    let carriers = carriers::kept(piece, timeline, known.threads);
    // While the virtual CPU of a kernel thread stood still, the thread would not have run either.
    let still: Vec<Kept> = carriers.iter().flat_map(|kept| still(piece, kept, timeline, known)).collect();
    let mut all = Vec::new();
    add(&mut all, &still, of_host);
    // A kernel thread that waits has work: packets that come later wait for it, whatever kept them before.
    add(&mut all, &carriers, |kept| of_carrier(piece, kept, timeline, known));
    all.retain(|(kept, found)| !found.is_empty() || still.contains(kept));
    let of_guests = known.guests.iter().flat_map(|guest| guest.kept(piece, timeline));
    add(&mut all, &in_turn(of_guests.collect()), of_host);
    // What remains of the waits of kernel threads has no known cause.
    add(&mut all, &carriers, |_| Vec::new());
    all
}

/// Adds the parts of time spans that are not taken yet, each with its causes, and puts all into their order.
fn add(all: &mut Vec<(Kept, Vec<Share>)>, spans: &[Kept], causes: impl Fn(Kept) -> Vec<Share>) {
    let taken: Vec<Kept> = all.iter().map(|(kept, _)| *kept).collect();
    all.extend(spans.iter().flat_map(|kept| without(*kept, &taken)).map(|kept| (kept, causes(kept))));
    all.sort_by_key(|(kept, _)| kept.from_ns);
}

/// The times in which the virtual CPU stood still for which a thread of the guest's kernel waited.
fn still(piece: &Piece, kept: &Kept, timeline: &Timeline, known: &Circumstances) -> Vec<Kept> {
    let Idle::Ready { cpu, .. } = kept.idle else { return Vec::new() };
    let end = match Machine::of_cpu(cpu) {
        Machine::Ping => "ping",
        Machine::Pong => "pong",
        Machine::Host => return Vec::new(),
    };
    let Some(guest) = known.guests.iter().find(|guest| guest.is_of(end)) else { return Vec::new() };
    let end = if guest.is_of(piece.end) { piece.end } else { end };
    let evidence = kept.evidence;
    let what = Doing::Waited { cpu, evidence, limited: None };
    let waited = Piece { from_ns: kept.from_ns, to_ns: kept.to_ns, end, what, ..*piece };
    let of_cpu = guest.kept(&waited, timeline).into_iter();
    of_cpu.map(|still| Kept { evidence: still.evidence.max(evidence), ..still }).collect()
}

/// The causes of a time in which a thread of the host kept the guest of an end from working.
fn of_guest(piece: &Piece, kept: Kept, timeline: &Timeline, known: &Circumstances) -> Vec<Share> {
    let Kept { from_ns, to_ns, thread, idle, evidence } = kept;
    let guest = known.guests.iter().find(|guest| guest.has(thread));
    let others = guest.filter(|guest| !guest.is_of(piece.end)).and_then(|guest| guest.ends.first());
    let end = others.copied().unwrap_or(piece.end);
    let part = Piece { from_ns, to_ns, end, thread, ..*piece };
    let mut shares = Vec::new();
    let hypervisor = guest.map(Guest::hypervisor);
    // All threads of the process stand still: one of them stands for all, whichever was looked at.
    let all = Piece { thread: guest.and_then(Guest::first_thread).unwrap_or(thread), ..part };
    match idle {
        Idle::Ready { cpu, limit } => {
            let limited = limit.map(|limit| Limited { limit, until_ns: timeline.freed(cpu, from_ns, to_ns) });
            of_part(&Piece { what: Doing::Waited { cpu, evidence, limited }, ..part }, timeline, known, &mut shares);
        }
        Idle::Stopped => shares.push(whole(&all, CauseWord::Stopped, None, hypervisor, evidence)),
        Idle::Frozen => shares.push(whole(&all, CauseWord::Frozen, None, hypervisor, evidence)),
    }
    // What had the CPU is no better known than that the message waited for this thread.
    shares.iter_mut().for_each(|share| *share = share.no_better_known(evidence));
    shares
}

/// The causes of a time in which a thread of the kernel that the message needed waited for a CPU.
fn of_carrier(piece: &Piece, kept: Kept, timeline: &Timeline, known: &Circumstances) -> Vec<Share> {
    let Kept { from_ns, to_ns, thread, idle, evidence } = kept;
    let Idle::Ready { cpu, .. } = idle else { return Vec::new() };
    let end = known.threads.end_of_cpu(cpu).unwrap_or(piece.end);
    let mut shares = Vec::new();
    waited(&Piece { from_ns, to_ns, end, thread, ..*piece }, (cpu, evidence), timeline, known, &mut shares);
    let carried = shares.into_iter().filter_map(|mut share| {
        share = share.no_better_known(evidence);
        // Not a thread of an end waited, but one of the kernel.
        if share.key.cause == CauseWord::WaitedForCpu {
            share.key.cause = CauseWord::KernelThread;
        }
        match (share.key.cause, &mut share.key.by) {
            (CauseWord::KernelThread | CauseWord::Instrument, Some(by)) => by.carrier = known.threads.name(thread),
            (CauseWord::Irq | CauseWord::Ipi | CauseWord::Softirq, Some(_)) => {}
            // It is not known what had the CPU, or it is said in words about a thread of an end.
            _ => return None,
        }
        Some(share)
    });
    carried.collect()
}

/// The causes of one time span, as far as the recorded events of the ends show them.
fn of_ends(piece: &Piece, timeline: &Timeline, known: &Circumstances) -> Vec<Share> {
    let mut shares = Vec::new();
    let hidden = piece.is_hidden(timeline);
    for (from_ns, to_ns, stopped) in split_by_stops(piece, timeline, known) {
        let part = Piece { from_ns, to_ns, ..*piece };
        match stopped {
            Some((cause, evidence)) => shares.push(whole(&part, cause, None, None, evidence)),
            None if hidden => shares.extend(hidden_wait(&part, timeline, known)),
            None => of_part(&part, timeline, known, &mut shares),
        }
    }
    shares
}

fn of_part(part: &Piece, timeline: &Timeline, known: &Circumstances, shares: &mut Vec<Share>) {
    match part.what {
        Doing::Ran { cpu } => ran(part, (cpu, CauseWord::OwnWork), timeline, known, shares),
        Doing::ReadOthers { cpu } => ran(part, (cpu, CauseWord::SocketQueue), timeline, known, shares),
        Doing::HandledAnother { cpu: Some(cpu), arrived: true } => {
            ran(part, (cpu, CauseWord::Executor), timeline, known, shares);
        }
        Doing::HandledAnother { arrived: true, .. } => {
            shares.push(whole(part, CauseWord::Executor, None, None, Evidence::Seen));
        }
        // The message can have been on its way meanwhile.
        Doing::HandledAnother { .. } => {
            let at_most = |cause, thread| {
                let part = Piece { thread, ..*part };
                whole(&part, cause, None, None, Evidence::AtMost)
            };
            shares.extend([at_most(CauseWord::Executor, part.thread), at_most(CauseWord::Network, 0)]);
        }
        Doing::Polled { cpu } => polled(part, cpu, timeline, known, shares),
        Doing::Passed(step, evidence) => shares.extend(passed(part, (step, evidence), timeline, known)),
        Doing::Waited { cpu, evidence, limited } => {
            let free = limited.map_or(part.from_ns, |l| l.until_ns.clamp(part.from_ns, part.to_ns));
            if let Some(Limited { limit, .. }) = limited {
                shares.push(limited_share(part, (cpu, limit), free));
            }
            // What had the CPU after the limit can have ended may have had it because of the limit.
            let evidence = if limited.is_some() { Evidence::AtMost } else { evidence };
            waited(&Piece { from_ns: free, ..*part }, (cpu, evidence), timeline, known, shares);
        }
        Doing::Locked { by } => {
            let (_, by) = known.threads.had_the_cpu(by);
            shares.push(whole(part, CauseWord::UserLock, None, Some(by), Evidence::Inferred));
        }
        Doing::Throttled { by } => {
            let (_, by) = known.threads.had_the_cpu(by);
            shares.push(whole(part, CauseWord::WriterThrottled, None, Some(by), Evidence::Inferred));
        }
        Doing::SleptInCall(Some(SleepState::PageFault))
        | Doing::SleptForMessage(Some(SleepState::PageFault))
        | Doing::Slept(Some(SleepState::PageFault))
            if !timeline.sees_waits(part.end) =>
        {
            shares.extend(hidden_page_fault(part, timeline, known));
        }
        Doing::SleptInCall(state) => {
            let (cause, evidence) = state.and_then(asleep).unwrap_or((CauseWord::DriverCall, Evidence::Seen));
            shares.push(whole(part, cause, None, None, evidence));
        }
        Doing::SleptForMessage(state) => {
            // That no thread had the message is concluded from the absence of events.
            let (cause, evidence) = state.and_then(asleep).unwrap_or((CauseWord::Network, Evidence::Inferred));
            shares.push(Share {
                key: Key { thread: None, ..key(part, cause, None, None) },
                ..whole(part, cause, None, None, evidence)
            });
        }
        Doing::Slept(state) => {
            let cause = state.and_then(asleep);
            shares.extend(cause.map(|(cause, evidence)| whole(part, cause, None, None, evidence)));
        }
        Doing::Unknown => {}
    }
}

/// The causes of a time in which a thread of an end had a CPU: interrupts, page faults that it handled, and what the
/// thread did itself, with the cause `own`, unless the hypervisor had the CPU.
fn ran(
    part: &Piece,
    (cpu, own): (u32, CauseWord),
    timeline: &Timeline,
    known: &Circumstances,
    shares: &mut Vec<Share>,
) {
    // If interrupts are not recorded, any part of the time can be theirs.
    let evidence = if timeline.sees_interrupts(cpu) { Evidence::Seen } else { Evidence::AtMost };
    for (from_ns, to_ns, by) in divide(part.from_ns, part.to_ns, &timeline.interrupts(cpu, part.from_ns, part.to_ns)) {
        let span = |from_ns, to_ns| Piece { from_ns, to_ns, ..*part };
        if let Some(by) = by {
            let share = interrupted(&span(from_ns, to_ns), cpu, by, known.threads);
            shares.extend(slow::interrupt(share, by, cpu, timeline));
            continue;
        }
        for (from_ns, to_ns, memory) in timeline.memory.divide(part.thread, from_ns, to_ns) {
            let span = span(from_ns, to_ns);
            match memory.and_then(asleep) {
                // Without the CPU, so that it is one entry with the sleep for the same reason.
                Some((cause, evidence)) => {
                    let share = whole(&span, cause, None, None, evidence);
                    shares.extend(slow::without_standstill(share, cpu, timeline));
                }
                None => shares.extend(slow::ran(&span, (cpu, own, evidence), timeline, known)),
            }
        }
    }
}

/// The causes of a time in which a thread asked for a message that had not arrived: what interrupted the thread may have
/// kept the message, too; in the rest of the time the message was on its way.
fn polled(part: &Piece, cpu: u32, timeline: &Timeline, known: &Circumstances, shares: &mut Vec<Share>) {
    for (from_ns, to_ns, by) in divide(part.from_ns, part.to_ns, &timeline.interrupts(cpu, part.from_ns, part.to_ns)) {
        let span = Piece { from_ns, to_ns, ..*part };
        shares.extend(match by {
            Some(by) => {
                let share = Share { evidence: Evidence::Inferred, ..interrupted(&span, cpu, by, known.threads) };
                slow::interrupt(share, by, cpu, timeline)
            }
            None => {
                let network = whole(&Piece { thread: 0, ..span }, CauseWord::Network, None, None, Evidence::Inferred);
                slow::without_standstill(network, cpu, timeline)
            }
        });
    }
}

/// The cause of a time in which the kernel had the message.
fn passed(part: &Piece, (step, evidence): (Step, Evidence), timeline: &Timeline, known: &Circumstances) -> Vec<Share> {
    let by = |name: String| Some(CausedBy::named(name));
    let device = |index: Option<usize>| index.and_then(|index| timeline.hops.device(index));
    let at = |place| match place {
        Place::Discipline(index) => {
            let name = |(name, kind): (&str, Option<&str>)| match kind {
                Some(kind) => format!("{kind} of {name}"),
                None => name.to_owned(),
            };
            (CauseWord::QueueDiscipline, None, device(index).and_then(|found| by(name(found))))
        }
        Place::Device(index) => (CauseWord::DeviceQueue, None, device(index).and_then(|(name, _)| by(name.to_owned()))),
        Place::Receive { cpu, .. } => (CauseWord::Softirq, Some(cpu), by("NET_RX".to_owned())),
    };
    let (cause, cpu, by) = match step {
        Step::At(place) => at(place),
        Step::Rest(place) => (CauseWord::Reassembly, None, at(place).2),
        Step::SentAgain => (CauseWord::Retransmission, None, None),
        Step::Between => (CauseWord::Network, None, None),
    };
    // On the loopback interface, the soft interrupt runs on the CPU of the sender.
    let end = cpu.and_then(|cpu| known.threads.end_of_cpu(cpu)).unwrap_or(part.end);
    let share = whole(&Piece { end, ..*part }, cause, cpu, by, evidence);
    match cpu {
        Some(cpu) => slow::interrupt(share, Interruption::Softirq(NET_RX), cpu, timeline),
        None => vec![share],
    }
}

/// Divides a time span of a thread that did not run by the times in which its process was stopped or frozen.
fn split_by_stops(piece: &Piece, timeline: &Timeline, known: &Circumstances) -> Vec<(i64, i64, Option<Halt>)> {
    let mut halts = match piece.what {
        Doing::Ran { .. } | Doing::ReadOthers { .. } | Doing::Polled { .. } | Doing::Passed(..) => Vec::new(),
        Doing::HandledAnother { cpu: Some(_), .. } => Vec::new(),
        _ => halts(piece, timeline, known),
    };
    halts.sort_unstable();
    let mut parts = Vec::new();
    let mut at = piece.from_ns;
    for (from, to, halt) in halts {
        if at < from {
            parts.push((at, from, None));
        }
        if at.max(from) < to {
            parts.push((at.max(from), to, Some(halt)));
            at = to;
        }
    }
    if at < piece.to_ns {
        parts.push((at, piece.to_ns, None));
    }
    parts
}

/// What stopped all threads of a process, and how it is known.
type Halt = (CauseWord, Evidence);

/// The times within a piece in which the process of its end was stopped or frozen.
fn halts(piece: &Piece, timeline: &Timeline, known: &Circumstances) -> Vec<(i64, i64, Halt)> {
    let threads = || known.threads.of_end(piece.end);
    let noticed = known.of_end(piece.end).flat_map(|s| &s.stops).filter_map(|(from, to)| {
        // The supervisor may notice a stop late, or only with its end, at time 0; the process had then not run since it
        // was stopped.
        let seen_ns = if *from == 0 { *to } else { *from };
        let from = timeline.idle_since(threads(), seen_ns).map_or(seen_ns, |idle| idle.min(seen_ns));
        // It may also notice late that the process goes on: a thread that was woken then waits for its CPU.
        let stopped = |tid| timeline.asleep_within(tid, SleepState::Stopped, (from, *to));
        let of_threads: Vec<Vec<(i64, i64)>> = threads().map(stopped).collect();
        // Of several stops that follow each other, it may notice one.
        let is_one = of_threads.iter().all(|spans| spans.len() <= 1);
        let woken = of_threads.iter().flatten().map(|(_, woken_ns)| *woken_ns).min().filter(|_| is_one);
        let to = woken.unwrap_or(*to);
        Some((from, to, (CauseWord::Stopped, Evidence::Seen))).filter(|(from, to, _)| from < to)
    });
    // The freezer does not wake threads that sleep in some system calls, so that only other threads of their process
    // show it.
    let shown = threads().flat_map(|tid| {
        let evidence = if tid == piece.thread { Evidence::Seen } else { Evidence::Inferred };
        timeline
            .asleep_within(tid, SleepState::Frozen, (piece.from_ns, piece.to_ns))
            .into_iter()
            .map(move |(from, to)| (from, to, (CauseWord::Frozen, evidence)))
    });
    let clipped = |(from, to, halt): (i64, i64, Halt)| (from.max(piece.from_ns), to.min(piece.to_ns), halt);
    noticed.chain(shown).map(clipped).filter(|(from, to, _)| from < to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::guest::Guest;
    use crate::why::kernels::Kernel;
    use crate::why::other_clock::Pong;
    use crate::why::threads::Threads;
    use std::collections::BTreeMap;
    use tailbound_document::{Thread, ThreadReport};
    use tailbound_model::{
        Counter, CounterMove, CounterSeries, CpuList, Interruption, Metric, SwitchEvent, SwitchKind, SwitchScope,
        Switches, Task,
    };

    const THREAD: i32 = 20;

    /// The shares of a thread that runs on CPU 1 from 100 to 900, as (cause, lower end, upper end).
    fn shares_of_a_run(interrupts: bool, events: &[(i64, SwitchKind)]) -> Vec<(CauseWord, i64, i64)> {
        shares_with(interrupts, events, Vec::new())
    }

    fn shares_with(
        interrupts: bool,
        events: &[(i64, SwitchKind)],
        counters: Vec<CounterSeries>,
    ) -> Vec<(CauseWord, i64, i64)> {
        let scope = SwitchScope::Cpus(CpuList::one(1));
        let events = events.iter().map(|(at_ns, what)| SwitchEvent { at_ns: *at_ns, cpu: 1, what: *what }).collect();
        let ends = vec!["pong".to_owned()];
        let seen = [Switches { ends, scope, interrupts, events, counters, ..Switches::default() }];
        let timeline = Timeline::of(&seen, (60, 1_000));
        let (leg, what) = (Metric::Turnaround, Doing::Ran { cpu: 1 });
        let piece = Piece { from_ns: 100, to_ns: 900, leg, end: "pong", thread: THREAD, what };
        let mut shares = Vec::new();
        let threads = Threads::default();
        let known = Circumstances { threads: &threads, seen: &seen, incidents: &[], guests: &[] };
        ran(&piece, (1, CauseWord::OwnWork), &timeline, &known, &mut shares);
        let mut sums: BTreeMap<CauseWord, (i64, i64)> = BTreeMap::new();
        for share in shares {
            let sum = sums.entry(share.key.cause).or_default();
            *sum = (sum.0 + share.low_ns, sum.1 + share.high_ns);
        }
        sums.into_iter().map(|(cause, (low_ns, high_ns))| (cause, low_ns, high_ns)).collect()
    }

    #[test]
    fn a_page_fault_is_no_work_of_the_thread_and_contains_no_interrupt() {
        let fault = |thread, ns| SwitchKind::PageFault { thread, ns, disk: false };
        let interrupt = SwitchKind::Interrupted { by: Interruption::Softirq(3), ns: 50 };
        // The first page fault began before the run, and before the recorded time span.
        let seen = shares_of_a_run(true, &[(50, fault(THREAD, 150)), (400, fault(THREAD, 300)), (500, interrupt)]);
        let expected = [(CauseWord::Softirq, 50, 50), (CauseWord::PageFault, 350, 350), (CauseWord::OwnWork, 400, 400)];
        assert_eq!(seen, expected);
        // The kernel frees memory within a page fault.
        let reclaim = SwitchKind::Reclaim { thread: THREAD, ns: 100 };
        let seen = shares_of_a_run(true, &[(400, fault(THREAD, 300)), (450, reclaim)]);
        let expected =
            [(CauseWord::PageFault, 200, 200), (CauseWord::Reclaim, 100, 100), (CauseWord::OwnWork, 500, 500)];
        assert_eq!(seen, expected);
        // Page faults of other threads do not concern this one.
        assert_eq!(shares_of_a_run(true, &[(400, fault(THREAD + 1, 300))]), [(CauseWord::OwnWork, 800, 800)]);
    }

    #[test]
    fn a_hypervisor_can_have_had_the_cpu_of_a_thread_that_ran() {
        let stolen = CounterMove { from_ns: 0, to_ns: 1_000, by: 10_000_000 };
        let of = |of: &str| CounterSeries {
            counter: Counter::StealNs,
            of: of.into(),
            moves: vec![stolen],
            longest_step_ns: 1_000,
            complete_from_ns: None,
        };
        let interrupt = SwitchKind::Interrupted { by: Interruption::Softirq(3), ns: 50 };
        let bounded = [(CauseWord::Softirq, 50, 50), (CauseWord::Steal, 0, 750), (CauseWord::OwnWork, 0, 750)];
        assert_eq!(shares_with(true, &[(500, interrupt)], vec![of("cpu 1")]), bounded);
        assert_eq!(shares_with(true, &[], vec![of("cpu 2")]), [(CauseWord::OwnWork, 800, 800)]);
    }

    /// Test: the process is stopped from 100 to 500, and then waits for its CPU until 900. Its supervisor, which waits for a CPU
    /// too, notices the stop at 600 and its end at 950.
    #[test]
    fn a_process_that_goes_on_waits_for_its_cpu_and_is_no_longer_stopped() {
        let event = |at_ns, what| SwitchEvent { at_ns, cpu: 1, what };
        let switch = |out, into, state| SwitchKind::Switch { out, into, preempted: false, state, limit: None };
        let woken = SwitchKind::Wake { thread: THREAD, by: 40, interrupt: false, packet: false, limit: None };
        let events = vec![
            event(100, switch(THREAD, 40, Some(SleepState::Stopped))),
            event(500, woken),
            event(900, switch(40, THREAD, None)),
        ];
        let (ends, scope) = (vec!["pong".to_owned()], SwitchScope::Cpus(CpuList::one(1)));
        let seen = [Switches { ends, scope, wakes: true, events, stops: vec![(600, 950)], ..Switches::default() }];
        let thread = Thread { tid: THREAD, ..Thread::default() };
        let of_end = ThreadReport { ends: vec!["pong".into()], before: vec![thread], ..ThreadReport::default() };
        let tables = [of_end];
        let threads = Threads::of(&tables, 0, &seen, &Pong::SameClock);
        let known = Circumstances { threads: &threads, seen: &seen, incidents: &[], guests: &[] };
        let what = Doing::Slept(Some(SleepState::Stopped));
        let piece = Piece { from_ns: 100, to_ns: 900, leg: Metric::Out, end: "pong", thread: THREAD, what };
        let stopped: Vec<_> = halts(&piece, &Timeline::of(&seen, (60, 1_000)), &known);
        assert_eq!(stopped, [(100, 500, (CauseWord::Stopped, Evidence::Seen))]);
    }

    #[test]
    fn a_packet_that_a_kernel_thread_has_waits_for_what_has_the_cpu() {
        const CARRIER: i32 = 30;
        const HOG: i32 = 40;
        let event = |at_ns, what| SwitchEvent { at_ns, cpu: 1, what };
        let switch = |out, into, preempted| SwitchKind::Switch { out, into, preempted, state: None, limit: None };
        let wake = |thread, by, packet| SwitchKind::Wake { thread, by, interrupt: true, packet, limit: None };
        let events = vec![
            event(50, switch(CARRIER, 0, false)),
            event(200, switch(0, HOG, false)),
            event(300, wake(CARRIER, HOG, false)),
            event(600, switch(HOG, CARRIER, true)),
            event(650, wake(THREAD, CARRIER, true)),
        ];
        let task = |name: &str, kernel| Task { name: name.into(), policy: None, process: None, kernel };
        let tasks = [(CARRIER, task("ksoftirqd/1", true)), (HOG, task("hog", false))].into();
        let scope = SwitchScope::Cpus(CpuList::one(1));
        let seen = [Switches { scope, wakes: true, events, tasks, ..Switches::default() }];
        let kernel = Kernel { is_real_time: true, has_irq_threads: true, is_one: true, ..Kernel::default() };
        let threads = Threads::of_tasks(&seen).of_kernels([kernel; 3]);
        let known = Circumstances { threads: &threads, seen: &seen, incidents: &[], guests: &[] };
        let what = Doing::SleptForMessage(Some(SleepState::Interruptible));
        let piece = Piece { from_ns: 100, to_ns: 650, leg: Metric::Out, end: "pong", thread: THREAD, what };
        let found = shares(&piece, &Timeline::of(&seen, (0, 1_000)), &known);
        let by = |share: &Share| share.key.by.clone().map(|by| (by.name, by.carrier));
        let found: Vec<_> = found.iter().map(|s| (s.from_ns, s.to_ns, s.key.cause, by(s), s.evidence)).collect();
        let waited = Some(("hog".to_owned(), Some("ksoftirqd/1".to_owned())));
        let expected = [
            (100, 300, CauseWord::Network, None, Evidence::Inferred),
            (300, 600, CauseWord::KernelThread, waited, Evidence::Inferred),
            (600, 650, CauseWord::Network, None, Evidence::Inferred),
        ];
        assert_eq!(found, expected);
    }

    /// Test: in the guest of the pong, a thread of the kernel that has to receive packets waits from 300 to 600 for CPU 1. On the
    /// host, the main thread of QEMU waits for a CPU from 200 to 250 and from 350 to 380, and the thread of this virtual CPU from
    /// 370 to 450.
    #[test]
    fn of_a_guest_its_virtual_cpu_comes_first_then_its_kernel_and_then_the_packets_on_the_host() {
        let [carrier, receiver, hog] = [30, 20, 40].map(|thread| Machine::Pong.thread(thread));
        let (qemu, vcpu, other) = (50, 51, 60);
        let event = |at_ns, cpu, what| SwitchEvent { at_ns, cpu, what };
        let switch = |out, into, preempted, state| SwitchKind::Switch { out, into, preempted, state, limit: None };
        let wake = |thread, by, packet| SwitchKind::Wake { thread, by, interrupt: true, packet, limit: None };
        let asleep = Some(SleepState::Interruptible);
        let cpu = Machine::Pong.cpu(1);
        let in_guest = vec![
            event(40, cpu, switch(carrier, hog, false, asleep)),
            event(300, cpu, wake(carrier, hog, false)),
            event(600, cpu, switch(hog, carrier, false, asleep)),
            event(650, cpu, wake(receiver, carrier, true)),
        ];
        let mut on_host = vec![
            event(50, 0, switch(other, qemu, false, asleep)),
            event(200, 0, switch(qemu, other, true, None)),
            event(250, 0, switch(other, qemu, true, None)),
            event(350, 0, switch(qemu, other, true, None)),
            event(380, 0, switch(other, qemu, true, None)),
            event(60, 1, switch(other, vcpu, false, asleep)),
            event(370, 1, switch(vcpu, other, true, None)),
            event(450, 1, switch(other, vcpu, true, None)),
        ];
        on_host.sort_by_key(|event| event.at_ns);
        let task = |name: &str, kernel| Task { name: name.into(), policy: None, process: None, kernel };
        let of = |end: &str, cpus, events, tasks: &[(i32, &str, bool)]| Switches {
            ends: vec![end.into()],
            scope: SwitchScope::Cpus(cpus),
            wakes: true,
            events,
            tasks: tasks.iter().map(|(tid, name, kernel)| (*tid, task(name, *kernel))).collect(),
            ..Switches::default()
        };
        let seen = [
            of("ping", CpuList([0, 1].into()), on_host, &[(qemu, "qemu", false), (other, "other", false)]),
            of("pong", CpuList::one(cpu), in_guest, &[(carrier, "irq/25-eth0", true), (hog, "hog", false)]),
        ];
        let kernel = Kernel { has_irq_threads: true, is_one: true, ..Kernel::default() };
        let threads = Threads::of_tasks(&seen).of_kernels([kernel; 3]);
        let guest = Guest {
            ends: vec!["pong"],
            name: "g".into(),
            others: vec![qemu],
            vcpus: [(1, vcpu)].into(),
            ..Guest::default()
        };
        let known = Circumstances { threads: &threads, seen: &seen, incidents: &[], guests: &[guest] };
        let what = Doing::SleptForMessage(asleep);
        let piece = Piece { from_ns: 100, to_ns: 650, leg: Metric::Out, end: "pong", thread: receiver, what };
        let found = shares(&piece, &Timeline::of(&seen, (0, 1_000)), &known);
        let found: Vec<_> = found.iter().map(|s| (s.from_ns, s.to_ns, s.key.cause)).collect();
        let expected = [
            (100, 200, CauseWord::Network),
            (200, 250, CauseWord::WaitedForCpu),
            (250, 300, CauseWord::Network),
            (300, 370, CauseWord::KernelThread),
            (370, 450, CauseWord::WaitedForCpu),
            (450, 600, CauseWord::KernelThread),
            (600, 650, CauseWord::Network),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn without_recorded_interrupts_the_work_of_a_thread_is_an_upper_bound() {
        assert_eq!(shares_of_a_run(true, &[]), [(CauseWord::OwnWork, 800, 800)]);
        assert_eq!(shares_of_a_run(false, &[]), [(CauseWord::OwnWork, 0, 800)]);
    }
}
