//! Tests of the tail that would remain without a cause: stalls of known length are planted into a record whose tail
//! without them is known.

use crate::support::{Given, GivenTrial, T0, lose, slot, thread_table};
use std::collections::BTreeMap;
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::*;

const PERIOD: i64 = 1_000_000;
const SLOTS: u64 = 4_000;
/// Time for which the thread that took an answer had the CPU before, ns.
const RAN: i64 = 15_000;
/// Time for which the thread that takes an answer waits for its CPU before every message, ns.
const USUAL_WAIT: i64 = 30_000;
/// Time in which the thread takes the answer of one more message, ns.
const NEXT: i64 = 2_000;
const TAKER: i32 = 4_001;
/// Thread ids of a program and of a thread of the kernel.
const HOG: i32 = 30;
const KERNEL: i32 = 31;

/// A time span in which another thread has the CPU of the thread that takes answers: it begins while the message of
/// this slot is on its way back, and lasts for some ns.
#[derive(Clone, Copy)]
struct Stall {
    slot: u64,
    ns: i64,
    by: i32,
}

/// Time from the due time to the receipt of the answer of a message that no stall delays, ns.
fn usual(seq: u64) -> i64 {
    1_000 + 10_000 + 5_000 + 60_000 + (seq as i64 * 7_919) % 20_000
}

fn due(seq: u64) -> i64 {
    T0 + seq as i64 * PERIOD
}

fn switch(at_ns: i64, out: i32, into: i32) -> SwitchEvent {
    let what = SwitchKind::Switch { out, into, preempted: false, state: None, limit: None };
    SwitchEvent { at_ns, cpu: 0, what }
}

/// The messages of a trial with these stalls: when each answer is received, and the events of the kernel.
fn trial(stalls: &[Stall]) -> (Vec<i64>, Vec<SwitchEvent>) {
    let (mut received, mut events) = (Vec::new(), Vec::new());
    let mut k = 0;
    while k < SLOTS {
        let stall = stalls.iter().find(|s| s.slot == k);
        let woken = due(k) + usual(k) - RAN - USUAL_WAIT;
        let (by, runs) = stall.map_or((HOG, woken + USUAL_WAIT), |s| (s.by, woken + s.ns));
        events.push(switch(woken - 1_000, 0, by));
        let what = SwitchKind::Wake { thread: TAKER, by, interrupt: true, packet: false, limit: None };
        events.push(SwitchEvent { at_ns: woken, cpu: 0, what });
        events.push(switch(runs, by, TAKER));
        // All messages that have arrived meanwhile are taken one after another.
        let mut at = runs + RAN;
        received.push(at);
        k += 1;
        while k < SLOTS && due(k) + usual(k) - RAN - USUAL_WAIT <= at {
            at += NEXT;
            received.push(at);
            k += 1;
        }
        events.push(switch(at + 5_000, TAKER, 0));
    }
    (received, events)
}

fn report(stalls: &[Stall], windows: Vec<(i64, i64)>, lost: u64) -> Report {
    let (received, events) = trial(stalls);
    let row = |k: u64| slot(k, PERIOD, 1_000, [10_000, 5_000, received[k as usize] - due(k) - 16_000]);
    let (mut slots, echoes): (Vec<_>, Vec<_>) = (0..SLOTS).map(row).unzip();
    slots[..lost as usize].iter_mut().for_each(lose);
    let given = GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None };
    let given = Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(PERIOD)), trials: vec![given] };
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("record");
    drop(crate::support::write(&dir, &[given], |_| ()));
    for (end, pid, cpu) in [("ping", 4_000, 0), ("pong", 5_000, 1)] {
        let mut table = ThreadTable { pid, ..thread_table(end, cpu) };
        for rows in [&mut table.before, &mut table.after] {
            rows.iter_mut().zip(pid..).for_each(|(row, tid)| row.tid = tid);
        }
        std::fs::write(dir.join(format!("threads/0-{end}.json")), serde_json::to_string(&table).unwrap()).unwrap();
    }
    let task = |name: &str, kernel| Task { name: name.into(), policy: None, process: None, kernel };
    let events = Switches {
        ends: vec!["ping".into(), "pong".into()],
        scope: SwitchScope::Cpus(CpuList([0, 1].into())),
        wakes: true,
        windows,
        tasks: BTreeMap::from([(HOG, task("stress-ng", false)), (KERNEL, task("ksoftirqd/0", true))]),
        events,
        ..Switches::default()
    };
    std::fs::create_dir_all(dir.join("switches")).unwrap();
    std::fs::write(dir.join("switches/0-ping.json"), serde_json::to_string(&events).unwrap()).unwrap();
    analyse(&Record::open(&dir).unwrap()).unwrap()
}

fn everything() -> Vec<(i64, i64)> {
    vec![(0, due(SLOTS) + 1_000_000_000)]
}

/// Ten stalls of 5 ms by a program, and ten of 3 ms by a thread of the kernel.
fn stalls() -> Vec<Stall> {
    let stall = |n: u64| match n % 2 {
        0 => Stall { slot: 150 + n * 180, ns: 5_000_000, by: HOG },
        _ => Stall { slot: 150 + n * 180, ns: 3_000_000, by: KERNEL },
    };
    (0..20).map(stall).collect()
}

fn without(report: &Report, cause: CauseWord) -> &WithoutCause {
    let all = &report.conditions[0].without_cause;
    all.iter().find(|w| w.cause == cause).unwrap_or_else(|| panic!("{all:?}"))
}

/// Measured value and estimate of a quantile, ns.
fn quantile(of: &WithoutCause, q: f64) -> (Option<i64>, Option<i64>) {
    let one = of.quantiles.iter().find(|r| r.q == q).unwrap();
    (one.value_ns, one.without_ns)
}

fn sentences(report: &Report) -> String {
    let findings = report.findings.iter().filter(|f| f.code == "causes").map(|f| f.text.as_str());
    findings.collect::<Vec<_>>().join("\n").replace('\u{202f}', " ")
}

/// Tests that without the only cause the tail is the tail of the same trial without stalls.
#[test]
fn without_its_only_cause_the_tail_is_the_undisturbed_one() {
    let hogs: Vec<Stall> = stalls().iter().map(|s| Stall { by: HOG, ..*s }).collect();
    let (disturbed, calm) = (report(&hogs, everything(), 0), report(&[], everything(), 0));
    let of = without(&disturbed, CauseWord::WaitedForCpu);
    let calm = calm.conditions[0].from_intended.as_ref().unwrap();
    for q in [0.99, 0.999] {
        let (measured, estimate) = quantile(of, q);
        let truth = calm.quantile(q).unwrap().value_ns().unwrap();
        assert_eq!(measured, disturbed.conditions[0].from_intended.as_ref().unwrap().quantile(q).unwrap().value_ns());
        assert!(measured.unwrap() > 20 * truth, "{of:?}");
        assert!((estimate.unwrap() - truth).abs() * 50 <= truth, "{estimate:?} instead of {truth}");
    }
    // Messages that waited together are taken one after another, which takes some us of work.
    assert!(of.max_ns > 5_000_000 && of.max_without_ns < calm.max_ns.unwrap() * 6 / 5, "{of:?}");
    assert_eq!((of.covered_late, of.metric.as_str()), (of.late, "from_intended"));
    insta::assert_snapshot!("without_the_only_cause", sentences(&disturbed));
}

/// Tests that the time of other causes stays.
#[test]
fn without_one_of_two_causes_the_other_remains() {
    let both = report(&stalls(), everything(), 0);
    let (hog, kernel) = (without(&both, CauseWord::WaitedForCpu), without(&both, CauseWord::KernelThread));
    // The truth is the same trial with the stalls of the other cause only.
    let only = |by| report(&stalls().into_iter().filter(|s| s.by == by).collect::<Vec<_>>(), everything(), 0);
    for (of, rest) in [(hog, only(KERNEL)), (kernel, only(HOG))] {
        let near = |value: i64, truth: i64| (value - truth).abs() * 50 <= truth;
        let truth = rest.conditions[0].from_intended.as_ref().unwrap();
        assert!(near(of.max_without_ns, truth.max_ns.unwrap()), "{of:?}");
        for q in [0.99, 0.999] {
            let exact = truth.quantile(q).unwrap().value_ns().unwrap();
            assert!(near(quantile(of, q).1.unwrap(), exact), "{of:?}: {exact}");
        }
    }
    assert_eq!(kernel.max_without_ns, kernel.max_ns);
    // Ordinary messages are as they were.
    assert!(hog.shortened < 100 && kernel.shortened < 100, "{hog:?}\n{kernel:?}");
}

/// Tests that messages of incidents without events keep their time, and that the report says so.
#[test]
fn without_events_a_message_keeps_its_time() {
    let all = stalls();
    let first = due(all[0].slot) - PERIOD;
    let windows = vec![(0, first), (first + 10 * PERIOD, due(SLOTS) + PERIOD)];
    let report = report(&all, windows, 0);
    let of = without(&report, CauseWord::WaitedForCpu);
    assert_eq!(of.max_without_ns, of.max_ns, "{of:?}");
    let uncovered = of.late - of.covered_late;
    assert!((4..=6).contains(&uncovered), "{of:?}");
    let said = format!("; {uncovered} of {} late messages keep their time, because their causes are not known", of.late);
    assert!(sentences(&report).contains(&said), "{}", sentences(&report));
}

/// Tests that a lost message stays lost: a quantile among the lost messages has no estimate.
#[test]
fn what_is_lost_stays_lost() {
    let report = report(&stalls(), everything(), 5);
    let of = without(&report, CauseWord::WaitedForCpu);
    assert_eq!(quantile(of, 0.999), (None, None), "{of:?}");
    assert!(quantile(of, 0.99).1.is_some());
}
