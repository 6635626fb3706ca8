//! Tests of following a thread back, with events made by hand.

use super::*;
use crate::why::timeline::UNKNOWN;
use tailbound_model::{
    Attribution, CpuList, Packets, RecordedBy, Recorder, SocketRead, SwitchEvent, SwitchKind, SwitchScope, Switches,
};

const KNOWN: Known = Known {
    is_of_an_end: &|tid| tid == SENDER || tid == TAKER || tid == KEEPER,
    same_end: &|one, other| (one == KEEPER || one == TAKER) && (other == KEEPER || other == TAKER),
    outranks: &|_, _| false,
    awaits_acks: &|_| false,
};
const SENDER: i32 = 10;
/// Another thread of the taker's process.
const KEEPER: i32 = 21;
const TAKER: i32 = 20;
const HOG: i32 = 30;

fn switch(at_ns: i64, cpu: u32, out: i32, into: i32, preempted: bool) -> SwitchEvent {
    SwitchEvent { at_ns, cpu, what: SwitchKind::Switch { out, into, preempted, state: None, limit: None } }
}

fn wake(at_ns: i64, cpu: u32, by: i32, interrupt: bool) -> SwitchEvent {
    SwitchEvent { at_ns, cpu, what: SwitchKind::Wake { thread: TAKER, by, interrupt, packet: false, limit: None } }
}

fn seen(wakes: bool, events: &[SwitchEvent]) -> Timeline {
    seen_in(wakes, (0, 1000), events)
}

fn seen_in(wakes: bool, window: (i64, i64), events: &[SwitchEvent]) -> Timeline {
    seen_with(wakes, window, events, None)
}

fn seen_with(wakes: bool, window: (i64, i64), events: &[SwitchEvent], packets: Option<Packets>) -> Timeline {
    let scope = SwitchScope::Cpus(CpuList([0, 1].into()));
    let recorder =
        Recorder { level: Attribution::Machine, by: RecordedBy::Bpf, instead: None, cost: None, others: Vec::new() };
    let (windows, events) = (vec![window], events.to_vec());
    let seen = Switches { scope, wakes, windows, events, recorder: Some(recorder), packets, ..Switches::default() };
    Timeline::of(&[seen], window)
}

fn waited(cpu: u32, evidence: Evidence) -> What {
    What::Waited { cpu, evidence, limited: None }
}

fn way(timeline: &Timeline) -> Vec<(i32, What, i64, i64)> {
    let way = back(timeline, TAKER, (100, 900), None, &KNOWN);
    way.iter().map(|s| (s.thread, s.what, s.begin_ns, s.end_ns)).collect()
}

#[test]
fn the_way_leads_over_who_woke_whom() {
    let events = |interrupt| {
        [
            switch(50, 0, 0, SENDER, true),
            switch(60, 1, 0, HOG, true),
            wake(300, 0, SENDER, interrupt),
            switch(310, 0, SENDER, 0, false),
            switch(800, 1, HOG, TAKER, false),
        ]
    };
    let timeline = seen(true, &events(false));
    let expected = [
        (TAKER, What::Ran { cpu: 1 }, 800, 900),
        (TAKER, waited(1, Evidence::Seen), 300, 800),
        (SENDER, What::Ran { cpu: 0 }, 100, 300),
    ];
    assert_eq!(way(&timeline), expected);
    assert_eq!(timeline.occupants(1, 300, 800), [(300, 800, HOG)]);
    // An interrupt that came while the sender ran has nothing to do with the sender.
    assert_eq!(way(&seen(true, &events(true)))[2], (TAKER, What::Slept(None), 100, 300));
    // Without recorded wake-ups, the thread cannot have waited for longer than the CPU was busy.
    let at_most = waited(1, Evidence::AtMost);
    let timeline = seen(false, &[switch(60, 1, 0, HOG, true), switch(800, 1, HOG, TAKER, false)]);
    assert_eq!(way(&timeline)[1], (TAKER, at_most, 100, 800));
    let timeline = seen(false, &[switch(700, 1, 0, HOG, true), switch(800, 1, HOG, TAKER, false)]);
    assert_eq!(way(&timeline)[1..], [(TAKER, at_most, 700, 800), (TAKER, What::Slept(None), 100, 700)]);
}

#[test]
fn who_is_preempted_waits_and_who_sleeps_does_not() {
    let events = [
        switch(200, 1, TAKER, HOG, true),
        switch(400, 1, HOG, TAKER, false),
        switch(500, 1, TAKER, 0, false),
        wake(790, 1, HOG, false),
        switch(800, 1, 0, TAKER, false),
    ];
    let expected = [
        (TAKER, What::Ran { cpu: 1 }, 800, 900),
        (TAKER, waited(1, Evidence::Seen), 790, 800),
        // An unknown thread woke this thread, so the reason is not known.
        (TAKER, What::Slept(None), 500, 790),
    ];
    assert_eq!(way(&seen(true, &events)), expected);
    let expected = [
        (TAKER, What::Ran { cpu: 1 }, 400, 900),
        (TAKER, waited(1, Evidence::Seen), 200, 400),
        (TAKER, What::Ran { cpu: 1 }, 100, 200),
    ];
    assert_eq!(way(&seen(true, &events[..2])), expected);
}

/// Tests wake-ups by idle CPUs, which are not recorded. If the thread that ran on the CPU gave up the CPU by
/// itself, the woken thread counts as having waited for it; if it was preempted, the woken thread counts as not
/// having waited.
#[test]
fn a_wake_up_that_is_not_recorded_is_concluded_from_who_left_the_cpu() {
    let found = |preempted| way(&seen(true, &[switch(300, 1, 0, HOG, true), switch(800, 1, HOG, TAKER, preempted)]));
    assert_eq!(found(false)[1], (TAKER, waited(1, Evidence::Inferred), 300, 800));
    assert_eq!(found(true)[1], (TAKER, What::Slept(None), 100, 800));
}

fn woken(thread: i32, at_ns: i64, by: i32, (interrupt, packet): (bool, bool)) -> SwitchEvent {
    SwitchEvent { at_ns, cpu: 0, what: SwitchKind::Wake { thread, by, interrupt, packet, limit: None } }
}

/// The taker sleeps in its send call from 200 to 700, until another thread of its process wakes it.
fn locked(keeper: SwitchEvent, call_begins: i64) -> Vec<(i32, What, i64, i64)> {
    let events = [
        switch(200, 1, TAKER, 0, false),
        keeper,
        switch(650, 0, 0, KEEPER, false),
        woken(TAKER, 700, KEEPER, (false, false)),
        switch(710, 1, 0, TAKER, false),
    ];
    let call = Call { begun_ns: call_begins, ended_ns: 800, thread: TAKER };
    let way = back(&seen(true, &events), TAKER, (100, 900), Some(call), &KNOWN);
    way.iter().map(|s| (s.thread, s.what, s.begin_ns, s.end_ns)).collect()
}

#[test]
fn a_thread_that_was_not_woken_for_a_message_held_a_lock() {
    let expected = [
        (TAKER, What::Ran { cpu: 1 }, 710, 900),
        (TAKER, waited(1, Evidence::Seen), 700, 710),
        (TAKER, What::Locked { by: KEEPER }, 200, 700),
        (TAKER, What::Ran { cpu: 1 }, 100, 200),
    ];
    // A timer woke the other thread.
    assert_eq!(locked(woken(KEEPER, 640, 0, (true, false)), 150), expected);
    // A packet, or a thread of another process, woke the other thread: it passes a message on.
    assert_eq!(locked(woken(KEEPER, 640, 0, (true, true)), 150)[2].0, KEEPER);
    assert_eq!(locked(woken(KEEPER, 640, HOG, (false, false)), 150)[2].0, KEEPER);
    // The thread did not sleep in its call.
    assert_eq!(locked(woken(KEEPER, 640, 0, (true, false)), 750)[2].0, KEEPER);
}

/// What the taker, which sleeps in its send call from 200 to 700, and another thread of its process, which wakes it, did
/// before. `keeper`: the time at which the other thread falls asleep, its wake-up, and the time at which it reads a datagram.
fn throttled(
    awaits_acks: &dyn Fn(i32) -> bool,
    (asleep_ns, keeper, read_ns): (i64, SwitchEvent, i64),
    call_begins: i64,
) -> Vec<(i32, What, i64, i64)> {
    let state = Some(SleepState::Interruptible);
    let asleep = SwitchKind::Switch { out: TAKER, into: 0, preempted: false, state, limit: None };
    let mut events = vec![
        switch(asleep_ns, 0, KEEPER, 0, false),
        SwitchEvent { at_ns: 200, cpu: 1, what: asleep },
        keeper,
        switch(650, 0, 0, KEEPER, false),
        // Preempted while it handles the packet.
        switch(660, 0, KEEPER, HOG, true),
        switch(690, 0, HOG, KEEPER, false),
        woken(TAKER, 700, KEEPER, (false, false)),
        switch(710, 1, 0, TAKER, false),
    ];
    events.sort_by_key(|e| e.at_ns);
    let call = Call { begun_ns: call_begins, ended_ns: 800, thread: TAKER };
    let reads = vec![SocketRead { at_ns: read_ns, thread: KEEPER, port: 7400 }];
    let timeline = seen_with(true, (0, 1000), &events, Some(Packets { reads, ..Packets::default() }));
    let way = back(&timeline, TAKER, (100, 900), Some(call), &Known { awaits_acks, ..KNOWN });
    way.iter().map(|s| (s.thread, s.what, s.begin_ns, s.end_ns)).collect()
}

#[test]
fn a_writer_waits_for_an_acknowledgement_until_a_packet_wakes_the_thread_that_wakes_it() {
    let packet = woken(KEEPER, 600, 0, (true, true));
    let before = [
        (TAKER, What::Ran { cpu: 1 }, 710, 900),
        (TAKER, waited(1, Evidence::Seen), 700, 710),
        (KEEPER, What::Ran { cpu: 0 }, 690, 700),
        (KEEPER, waited(0, Evidence::Seen), 660, 690),
        (KEEPER, What::Ran { cpu: 0 }, 650, 660),
        (KEEPER, waited(0, Evidence::Seen), 600, 650),
    ];
    let then = [(TAKER, What::Throttled { by: KEEPER }, 200, 600), (TAKER, What::Ran { cpu: 1 }, 100, 200)];
    assert_eq!(throttled(&|tid| tid == TAKER, (150, packet, 655), 180), [&before[..], &then].concat());
    // The writer does not wait for acknowledgements, or the thread did not sleep in its call.
    let slept = (KEEPER, What::Slept(None), 150, 600);
    assert_eq!(throttled(&|_| false, (150, packet, 655), 180)[6..], [slept]);
    assert_eq!(throttled(&|_| true, (150, packet, 655), 750)[6..], [slept]);
}

#[test]
fn a_thread_that_was_awake_when_a_sender_fell_asleep_can_have_held_a_lock() {
    let is_throttled = |asleep_ns, keeper, read_ns| {
        let way = throttled(&|_| true, (asleep_ns, keeper, read_ns), 180);
        way.iter().any(|(_, what, ..)| matches!(what, What::Throttled { .. }))
    };
    let packet = |at_ns| woken(KEEPER, at_ns, 0, (true, true));
    assert!(is_throttled(150, packet(600), 655));
    // It ran, or waited for its CPU.
    assert!(!is_throttled(300, packet(600), 655));
    assert!(!is_throttled(150, packet(190), 655));
    // It read no datagram before it woke the sender: it can have waited for room in the buffer of its socket.
    assert!(!is_throttled(150, packet(600), 705));
    assert!(!is_throttled(150, packet(600), 140));
    // A timer, or a thread, woke it.
    assert!(!is_throttled(150, woken(KEEPER, 600, 0, (true, false)), 655));
    assert!(!is_throttled(150, woken(KEEPER, 600, SENDER, (false, false)), 655));
}

#[test]
fn a_limit_of_cpu_time_lasted_until_another_thread_got_the_cpu_last() {
    let limit = Some(CpuLimit::Quota);
    let left = SwitchKind::Switch { out: TAKER, into: HOG, preempted: true, state: None, limit };
    let way_with = |last: i32| {
        let left = SwitchEvent { at_ns: 200, cpu: 1, what: left };
        way(&seen(true, &[left, switch(600, 1, HOG, last, false), switch(800, 1, last, TAKER, false)]))[1]
    };
    let limited = |until_ns| Some(Limited { limit: CpuLimit::Quota, until_ns });
    let waited = |limited| (TAKER, What::Waited { cpu: 1, evidence: Evidence::Seen, limited }, 200, 800);
    assert_eq!(way_with(0), waited(limited(800)));
    // The limit can have ended when the last thread before the taker got the CPU.
    assert_eq!(way_with(HOG + 1), waited(limited(600)));
}

#[test]
fn a_limit_of_cpu_time_lasted_until_it_was_seen_last() {
    let limit = CpuLimit::Quota;
    let left = SwitchKind::Switch { out: TAKER, into: HOG, preempted: true, state: None, limit: Some(limit) };
    let until_ns = |held: &[(i64, i32)]| {
        let held = held.iter().map(|&(at_ns, thread)| (at_ns, SwitchKind::Limited { thread, limit }));
        let held = held.map(|(at_ns, what)| SwitchEvent { at_ns, cpu: 1, what });
        let others = [SwitchEvent { at_ns: 200, cpu: 1, what: left }, switch(800, 1, HOG, TAKER, false)];
        let mut events: Vec<SwitchEvent> = others.into_iter().chain(held).collect();
        events.sort_by_key(|e| e.at_ns);
        match way(&seen(true, &events))[1].1 {
            What::Waited { limited: Some(limited), .. } => limited.until_ns,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(until_ns(&[]), 200);
    assert_eq!(until_ns(&[(300, TAKER), (720, TAKER)]), 720);
    // Another thread, and a limit at another time.
    assert_eq!(until_ns(&[(300, TAKER), (720, HOG), (850, TAKER)]), 300);
}

#[test]
fn a_limit_of_real_time_lasted_until_the_thread_displaced_one_of_lower_rank() {
    let waits = |limit, outranks: &dyn Fn(i32, i32) -> bool| {
        let left = SwitchKind::Switch { out: TAKER, into: HOG, preempted: true, state: None, limit: Some(limit) };
        let left = SwitchEvent { at_ns: 200, cpu: 1, what: left };
        let timeline = seen(true, &[left, switch(600, 1, HOG, HOG + 1, false), switch(800, 1, HOG + 1, TAKER, true)]);
        match back(&timeline, TAKER, (100, 900), None, &Known { outranks, ..KNOWN })[1].what {
            What::Waited { limited: Some(limited), .. } => limited.until_ns,
            other => panic!("{other:?}"),
        }
    };
    let taker_first = |one, other| one == TAKER && other != TAKER;
    assert_eq!(waits(CpuLimit::RealTime, &taker_first), 800);
    // Another real-time thread can have had the CPU because of its priority.
    assert_eq!(waits(CpuLimit::RealTime, &|_, _| false), 600);
    assert_eq!(waits(CpuLimit::Quota, &taker_first), 600);
    assert_eq!(waits(CpuLimit::Deadline, &taker_first), 800);
    // Another thread with the policy deadline can have had an earlier deadline.
    assert_eq!(waits(CpuLimit::Deadline, &|_, _| false), 600);
}

#[test]
fn the_run_time_of_the_policy_deadline_stops_one_thread_until_an_idle_cpu_runs_it() {
    let limit = Some(CpuLimit::Deadline);
    let left = SwitchKind::Switch { out: TAKER, into: 0, preempted: true, state: None, limit };
    let timeline = seen(true, &[SwitchEvent { at_ns: 200, cpu: 1, what: left }, switch(800, 1, 0, TAKER, false)]);
    let What::Waited { limited, .. } = way(&timeline)[1].1 else { panic!("{:?}", way(&timeline)) };
    assert_eq!(limited, Some(Limited { limit: CpuLimit::Deadline, until_ns: 800 }));
    // It says nothing about other threads that wait for this CPU.
    assert_eq!(timeline.limit(1, 100, 700), None);
}

#[test]
fn a_thread_that_is_moved_waits_for_the_cpu_to_which_it_was_moved() {
    let moved = |at_ns, to| SwitchEvent { at_ns, cpu: 1, what: SwitchKind::Moved { thread: TAKER, to } };
    let timeline = seen(
        true,
        &[
            switch(100, 0, 0, TAKER, false),
            switch(150, 0, TAKER, 0, false),
            wake(290, 0, 0, true),
            moved(300, 1),
            moved(800, 0),
            switch(810, 0, 0, TAKER, false),
        ],
    );
    let expected = [(800, 810, 0), (300, 800, 1), (290, 300, 0)];
    assert_eq!(timeline.waited_for(TAKER, 290, 810, 0), expected);
    let waits = way(&timeline).into_iter().filter(|w| matches!(w.1, What::Waited { .. }));
    assert_eq!(waits.map(|w| (w.2, w.3)).collect::<Vec<_>>(), [(800, 810), (300, 800), (290, 300)]);
}

#[test]
fn a_page_fault_interrupts_the_work_of_a_thread_and_is_no_wait_for_a_message() {
    let way_with = |state, waker: i32, fault: Option<SwitchKind>| {
        let asleep = SwitchKind::Switch { out: TAKER, into: 0, preempted: false, state, limit: None };
        let mut events = vec![
            switch(50, 0, 0, SENDER, true),
            switch(150, 1, TAKER, 0, false),
            wake(290, 1, 0, true),
            switch(300, 1, 0, TAKER, false),
            SwitchEvent { at_ns: 400, cpu: 1, what: asleep },
            wake(800, 0, waker, waker == 0),
            switch(800, 1, 0, TAKER, false),
        ];
        events.extend(fault.map(|what| SwitchEvent { at_ns: 350, cpu: 1, what }));
        way(&seen(true, &events))
    };
    let expected = [
        (TAKER, What::Ran { cpu: 1 }, 800, 900),
        (TAKER, What::Slept(Some(SleepState::PageFault)), 400, 800),
        (TAKER, What::Ran { cpu: 1 }, 300, 400),
        (TAKER, waited(1, Evidence::Seen), 290, 300),
        (TAKER, What::Slept(None), 150, 290),
    ];
    assert_eq!(way_with(Some(SleepState::PageFault), 0, None), expected);
    // If the page fault itself is recorded, neither the state nor the thread that woke this one matters.
    let fault = SwitchKind::PageFault { thread: TAKER, ns: 500, disk: true };
    assert_eq!(way_with(None, SENDER, Some(fault)), expected);
}

#[test]
fn a_thread_that_sleeps_thousands_of_times_is_followed_to_the_begin() {
    let events = (0..4_000).flat_map(|n| {
        let asleep = SwitchKind::Switch {
            out: TAKER,
            into: 0,
            preempted: false,
            state: Some(SleepState::PageFault),
            limit: None,
        };
        let at_ns = 100_000 + n * 100;
        [SwitchEvent { at_ns, cpu: 1, what: asleep }, switch(at_ns + 90, 1, 0, TAKER, false)]
    });
    let timeline = seen_in(true, (0, 1_000_000), &events.collect::<Vec<_>>());
    let way = back(&timeline, TAKER, (100_000, 500_000), None, &KNOWN);
    let slept: i64 = way.iter().filter(|s| matches!(s.what, What::Slept(_))).map(|s| s.end_ns - s.begin_ns).sum();
    assert_eq!((slept, way.last().map(|s| s.begin_ns)), (360_000, Some(100_000)));
}

#[test]
fn a_thread_that_ends_keeps_its_id() {
    let timeline = seen(true, &[switch(100, 1, 0, HOG, false), switch(800, 1, -1, TAKER, false)]);
    assert_eq!(timeline.occupants(1, 200, 800), [(200, 800, HOG)]);
}

/// Some kernels do not report some context switches: the one away from the thread 40, here.
#[test]
fn a_switch_that_was_not_reported_leaves_the_thread_before_it_unknown() {
    let timeline = seen(
        true,
        &[
            switch(200, 1, TAKER, 40, false),
            wake(300, 0, 0, true),
            woken(HOG, 500, 0, (true, false)),
            switch(800, 1, HOG, TAKER, true),
        ],
    );
    assert_eq!(way(&timeline)[1], (TAKER, waited(1, Evidence::Seen), 300, 800));
    assert_eq!(timeline.occupants(1, 300, 800), [(300, 500, UNKNOWN), (500, 800, HOG)]);
    // The taker got the CPU unseen, at some time after it was woken.
    let asleep = |at_ns, into| {
        let what =
            SwitchKind::Switch { out: TAKER, into, preempted: false, state: Some(SleepState::PageFault), limit: None };
        SwitchEvent { at_ns, cpu: 1, what }
    };
    let timeline = seen(
        true,
        &[
            asleep(200, 40),
            wake(300, 0, 0, true),
            asleep(500, 0),
            wake(790, 0, 0, true),
            switch(800, 1, 0, TAKER, false),
        ],
    );
    let expected = [
        (TAKER, What::Ran { cpu: 1 }, 800, 900),
        (TAKER, waited(1, Evidence::Seen), 790, 800),
        (TAKER, What::Slept(Some(SleepState::PageFault)), 500, 790),
        (TAKER, What::Ran { cpu: 1 }, 300, 500),
        (TAKER, What::Slept(Some(SleepState::PageFault)), 200, 300),
        (TAKER, What::Ran { cpu: 1 }, 100, 200),
    ];
    assert_eq!(way(&timeline), expected);
}

#[test]
fn a_time_span_without_records_is_not_covered() {
    let scope = SwitchScope::OwnThreads;
    let seen = Switches { scope, windows: vec![(0, 1000)], gaps: vec![(850, 860)], ..Switches::default() };
    let timeline = Timeline::of(std::slice::from_ref(&seen), (0, 1000));
    assert!(!timeline.covers(100, 900) && timeline.covers(100, 800) && !timeline.covers(900, 1100));
}
