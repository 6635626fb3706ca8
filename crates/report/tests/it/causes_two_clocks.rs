//! Tests of the causes of late messages if the pong has another clock. The same messages and events are given twice, once
//! with the times and ids of another host: whatever the offset and the drift are, the ledger must name the planted cause at
//! its end, and must hold what the exact times say.

use crate::support::{Given, GivenTrial, Random, T0, slot, thread_table};
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::{Hop, *};

const PERIOD: i64 = 10_000_000;
const SLOTS: u64 = 200;
/// Number of the slot whose message is late.
const LATE: u64 = 120;
/// Time for which the thread that takes a message has the CPU before, ns.
const RAN: i64 = 3_000;
/// Wait of every thread for its CPU, ns.
const WAIT: i64 = 1_000;
/// Id of a thread that does not belong to an end.
const OTHER: i32 = 30;

/// A clock that is ahead of the clock of the ping, by more as time passes.
#[derive(Debug, Clone, Copy)]
struct Clock {
    offset_ns: i64,
    drift_ppm: f64,
}

impl Clock {
    fn at(self, ns: i64) -> i64 {
        ns + self.offset_ns + ((ns - T0) as f64 * self.drift_ppm / 1e6).round() as i64
    }
}

/// Where the planted delay of the late message was.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Planted {
    WayOut,
    WaitAtPong,
    WaitAtPing,
    StoppedPong,
}

/// The host of the pong: its clock, and the ids of its threads and its CPU.
#[derive(Clone, Copy)]
struct Host {
    clock: Option<Clock>,
    pid: i32,
    cpu: u32,
}

/// The pong on the ping's host, with threads and a CPU of its own.
const SAME: Host = Host { clock: None, pid: 5_000, cpu: 1 };

/// A pong on another host, on which threads and the CPU happen to have the ids of the ping's.
fn other(clock: Clock) -> Host {
    Host { clock: Some(clock), pid: 4_000, cpu: 0 }
}

fn switch(at_ns: i64, cpu: u32, out: i32, into: i32) -> SwitchEvent {
    let what = SwitchKind::Switch { out, into, preempted: false, state: None, limit: None };
    SwitchEvent { at_ns, cpu, what }
}

/// Events of the receipt of a message: an interrupt wakes `taker` while another thread has the CPU.
fn receipt(at_ns: i64, wait_ns: i64, cpu: u32, taker: i32) -> [SwitchEvent; 4] {
    let (ran, woken) = (at_ns - RAN, at_ns - RAN - wait_ns);
    let wake = SwitchKind::Wake { thread: taker, by: OTHER, interrupt: true, packet: false, limit: None };
    [
        switch(woken - 500, cpu, 0, OTHER),
        SwitchEvent { at_ns: woken, cpu, what: wake },
        switch(ran, cpu, OTHER, taker),
        switch(at_ns + 6_000, cpu, taker, 0),
    ]
}

fn watched(end: &str, cpu: u32, mut events: Vec<SwitchEvent>) -> Switches {
    events.sort_by_key(|e| e.at_ns);
    let task = Task { name: format!("hog-at-{end}"), policy: None, process: None, kernel: false };
    Switches {
        ends: vec![end.into()],
        scope: SwitchScope::Cpus(CpuList::one(cpu)),
        wakes: true,
        windows: vec![(T0 - 1_000_000_000, T0 + 4_000_000_000)],
        events,
        tasks: [(OTHER, task)].into(),
        ..Switches::default()
    }
}

/// Computes the report of one trial with a planted delay. `legs` draws how long ordinary messages take on their way.
fn report(host: Host, planted: Planted, delay_ns: i64, seed: u64, change: impl FnOnce(&mut Vec<Switches>)) -> Report {
    let mut random = Random(seed);
    let (mut slots, mut echoes) = (Vec::new(), Vec::new());
    let [mut at_ping, mut at_pong] = [Vec::new(), Vec::new()];
    let mut stops = Vec::new();
    for k in 0..SLOTS {
        let late = |at: Planted| if k == LATE && planted == at { delay_ns } else { 0 };
        let jitter = |random: &mut Random| (random.unit() * 9_000.0) as i64;
        let out = 12_000 + jitter(&mut random);
        let back = 40_000 + jitter(&mut random);
        let at_pong_ns = late(Planted::WaitAtPong);
        let stopped_ns = late(Planted::StoppedPong);
        let legs = [out + late(Planted::WayOut) + at_pong_ns + stopped_ns, 5_000, back + late(Planted::WaitAtPing)];
        let (row, echo) = slot(k, PERIOD, 1_000, legs);
        at_pong.extend(receipt(echo.in_ns, WAIT + at_pong_ns, host.cpu, host.pid + 1));
        at_ping.extend(receipt(row.receive_ns, WAIT + late(Planted::WaitAtPing), 0, 4_001));
        if stopped_ns > 0 {
            let until = echo.in_ns - RAN - WAIT - 600;
            stops.push((until - stopped_ns, until));
        }
        slots.push(row);
        echoes.push(echo);
    }
    let mut seen = vec![watched("ping", 0, at_ping), Switches { stops, ..watched("pong", host.cpu, at_pong) }];
    if let Some(clock) = host.clock {
        seen[1].convert_times(|at_ns| clock.at(at_ns));
        for echo in &mut echoes {
            (echo.in_ns, echo.begin_ns, echo.end_ns) =
                (clock.at(echo.in_ns), clock.at(echo.begin_ns), clock.at(echo.end_ns));
        }
    }
    change(&mut seen);
    let trial = GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None };
    let given = Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(PERIOD)), trials: vec![trial] };
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("record");
    drop(crate::support::write(&dir, &[given], |manifest| {
        if host.clock.is_some() {
            manifest.trials[0].ends.get_mut("pong").unwrap().clock = "another".into();
        }
    }));
    for (end, pid, cpu) in [("ping", 4_000, 0), ("pong", host.pid, host.cpu)] {
        let mut table = ThreadTable { pid, ..thread_table(end, cpu) };
        for rows in [&mut table.before, &mut table.after] {
            rows.iter_mut().zip(pid..).for_each(|(row, tid)| row.tid = tid);
        }
        std::fs::write(dir.join(format!("threads/0-{end}.json")), serde_json::to_string(&table).unwrap()).unwrap();
    }
    std::fs::create_dir_all(dir.join("switches")).unwrap();
    for seen in seen {
        let file = dir.join(format!("switches/0-{}.json", seen.ends[0]));
        std::fs::write(file, serde_json::to_string(&seen).unwrap()).unwrap();
    }
    analyse(&Record::open(&dir).unwrap()).unwrap()
}

/// The only incident of a report.
fn incident(report: &Report) -> &IncidentReport {
    let [one] = report.conditions[0].incidents.as_slice() else { panic!("{:?}", report.conditions[0].incidents) };
    one
}

/// Lower and upper end of all entries with this cause, on this part of the way and at this end.
fn sum(incident: &IncidentReport, of: (CauseWord, &str, &str)) -> [i64; 2] {
    let is_of = |e: &&LedgerEntry| (e.cause, e.leg.as_str(), e.end.as_deref()) == (of.0, of.1, Some(of.2));
    let found = incident.ledger.iter().flatten().filter(is_of);
    found.fold([0, 0], |[low, high], e| [low + e.ns_low, high + e.ns_high])
}

/// The cause that a planted delay must get.
fn expected(planted: Planted) -> (CauseWord, &'static str, &'static str) {
    match planted {
        Planted::WayOut => (CauseWord::Network, "out", "pong"),
        Planted::WaitAtPong => (CauseWord::WaitedForCpu, "out", "pong"),
        Planted::WaitAtPing => (CauseWord::WaitedForCpu, "back", "ping"),
        Planted::StoppedPong => (CauseWord::Stopped, "out", "pong"),
    }
}

const ALL: [Planted; 4] = [Planted::WayOut, Planted::WaitAtPong, Planted::WaitAtPing, Planted::StoppedPong];

/// Timestamps are whole nanoseconds, and shares of less than a thousandth of the excess are left out.
fn tolerance_ns(incident: &IncidentReport) -> i64 {
    20 + incident.excess_ns / 1_000
}

/// Tests random clocks, delays and places: each range of the ledger between two clocks contains the time that the ledger of
/// the same events has with one clock, and the lower ends add up to no more than the planted delay.
#[test]
fn the_ledger_between_two_clocks_holds_the_exact_one() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for case in 0..48 {
        let planted = ALL[case % ALL.len()];
        let clock = Clock {
            offset_ns: ((random.unit() - 0.5) * 4e18) as i64,
            drift_ppm: if case < 8 { 0.0 } else { (random.unit() - 0.5) * 400.0 },
        };
        let delay_ns = 400_000 + (random.unit() * 8e6) as i64;
        let seed = random.next() | 1;
        let exact = report(SAME, planted, delay_ns, seed, |_| ());
        let report = report(other(clock), planted, delay_ns, seed, |_| ());
        let (exact, between) = (incident(&exact), incident(&report));
        let case = format!("{planted:?} {delay_ns} ns, {clock:?}: {}\n{:?}", between.text, between.ledger);
        assert_eq!(between.excess_ns, exact.excess_ns, "{case}");
        let tolerance_ns = tolerance_ns(exact);
        for cause in [CauseWord::Network, CauseWord::WaitedForCpu, CauseWord::Stopped, CauseWord::OwnWork] {
            for (leg, end) in
                [("out", "ping"), ("out", "pong"), ("turnaround", "pong"), ("back", "pong"), ("back", "ping")]
            {
                let [true_ns, _] = sum(exact, (cause, leg, end));
                let [low, high] = sum(between, (cause, leg, end));
                let held = low <= true_ns + tolerance_ns && true_ns <= high + tolerance_ns;
                assert!(held, "{cause:?} {leg} {end}: {true_ns} not in {low} to {high}; {case}");
            }
        }
        // The planted cause is named at its end, with its size.
        let [low, high] = sum(between, expected(planted));
        let width_ns = between.other_clock.as_ref().and_then(|c| c.width_ns).expect("the pong is followed");
        // The fastest messages took 12 us out and 40 us back.
        assert!((52_000..62_000).contains(&width_ns), "{width_ns}: {case}");
        assert!(low <= delay_ns + tolerance_ns && delay_ns - 10_000 <= high, "{low} to {high}: {case}");
        assert!(low >= delay_ns - width_ns, "{low} to {high}: {case}");
        let sum_low: i64 = between.ledger.iter().flatten().map(|e| e.ns_low).sum();
        assert!(sum_low <= between.excess_ns && !between.inconsistent, "{sum_low}: {case}");
        assert_eq!(between.unexplained_ns, between.excess_ns - sum_low, "{case}");
        // What lies within one clock is exact.
        if planted == Planted::WaitAtPong {
            assert!(high - low <= tolerance_ns, "{low} to {high}: {case}");
        }
    }
}

#[test]
fn the_threads_and_cpus_of_the_pong_are_those_of_its_own_host() {
    let clock = Clock { offset_ns: -77_000_000_000, drift_ppm: 12.5 };
    let report = report(other(clock), Planted::WaitAtPong, 5_000_000, 7, |_| ());
    let incident = incident(&report);
    let entry = incident.ledger.iter().flatten().find(|e| e.cause == CauseWord::WaitedForCpu).unwrap();
    assert_eq!((entry.cpu, entry.thread.as_deref()), (Some(0), Some("recv")));
    let by = entry.by.as_ref().unwrap();
    assert_eq!((by.name.as_str(), by.tid), ("hog-at-pong", Some(OTHER)));
    assert_eq!(incident.leg.as_deref(), Some("out"));
    let text = incident.text.replace('\u{202f}', " ");
    assert!(text.contains("`recv` of the pong end waited for CPU 0, which `hog-at-pong` had"), "{text}");
    assert!(text.contains("The pong has another clock, which is known to within 5"), "{text}");
    let course = incident.waterfall.as_ref().unwrap();
    let [least, most] = course.pong_shift_ns.unwrap();
    assert!(least <= 0 && 0 <= most && Some(most - least) == incident.other_clock.as_ref().unwrap().width_ns);
    let span = course.spans.iter().find(|s| s.hop == Hop::PongReceiver && s.cause == Some(CauseWord::WaitedForCpu));
    assert!(span.is_some_and(|s| (4_999_000..5_010_000).contains(&(s.to_ns - s.from_ns)) && s.cpu == Some(0)));
    assert!(course.spans.iter().all(|s| s.hop != Hop::AwayFromPing));
}

/// Tests a pong whose events were not recorded, or could not be recorded: only the ping is followed, and the report says
/// why.
#[test]
fn a_pong_without_events_is_not_followed_and_the_report_says_why() {
    let clock = Clock { offset_ns: 5_000_000_000, drift_ppm: 0.0 };
    let without = |change: fn(&mut Vec<Switches>)| report(other(clock), Planted::WaitAtPong, 5_000_000, 7, change);
    let scope = |why: &str| SwitchScope::Nothing(why.into());
    let refused = report(other(clock), Planted::WaitAtPong, 5_000_000, 7, |seen| {
        seen[1] = Switches { ends: vec!["pong".into()], scope: scope("not permitted"), ..Switches::default() };
    });
    let absent = without(|seen| drop(seen.pop()));
    for (report, why) in [
        (&refused, "no events were recorded at the pong: not permitted"),
        (&absent, "no events were recorded at the pong"),
    ] {
        let incident = incident(report);
        assert_eq!(incident.other_clock.as_ref().unwrap().not_followed.as_deref(), Some(why));
        let text = format!("The pong has another clock, and only the side of the ping is followed: {why}.");
        assert!(incident.text.ends_with(&text), "{}", incident.text);
        assert_eq!(incident.leg.as_deref(), Some("round_trip"));
        assert_eq!(sum(incident, expected(Planted::WaitAtPong)), [0, 0], "{:?}", incident.ledger);
        let course = incident.waterfall.as_ref().unwrap();
        assert!(course.pong_shift_ns.is_none() && course.spans.iter().any(|s| s.hop == Hop::AwayFromPing));
    }
}
