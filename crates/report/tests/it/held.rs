//! Tests of messages that were held on their way and released together: what a report says about planted bursts, also if the ends
//! have different clocks, and what the ledger calls them. Tests of slow movements of the times on the ways.

use crate::causes::{OTHER, PERIOD, SLOTS, USUAL, receipt, report_of, report_with, watched};
use crate::support::{Given, GivenTrial, slot, write};
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::*;

/// The slots whose messages are held: until 45 % of a period after the last of them was due.
const HELD: std::ops::Range<u64> = 50..57;

/// Time by which the message of a slot takes longer than usual, if it is held until 45 % of a period after the last one is due.
/// They are received 100 us after each other.
fn hold_ns(seq: u64) -> i64 {
    let before_last = HELD.end - 1 - seq;
    before_last as i64 * PERIOD + PERIOD * 45 / 100 + (seq - HELD.start) as i64 * 100_000
}

fn row(seq: u64, leg: usize) -> (SenderRow, EchoRow) {
    let mut legs = USUAL;
    legs[leg] += if HELD.contains(&seq) { hold_ns(seq) } else { 0 };
    slot(seq, PERIOD, 1_000, legs)
}

/// The report of one trial whose messages were held on the way out and, later, on the way back. The clock of the pong is ahead of
/// the clock of the ping by this time, ns.
fn planted(ahead_ns: i64) -> Report {
    let back = |seq: u64| seq.checked_sub(200).filter(|seq| HELD.contains(seq));
    let both = |seq: u64| match back(seq) {
        Some(held) => slot(seq, PERIOD, 1_000, [USUAL[0], USUAL[1], USUAL[2] + hold_ns(held)]),
        None => row(seq, 0),
    };
    let (slots, mut echoes): (Vec<_>, Vec<_>) = (0..400).map(both).unzip();
    for echo in &mut echoes {
        for ns in [&mut echo.in_ns, &mut echo.begin_ns, &mut echo.end_ns] {
            *ns += ahead_ns;
        }
    }
    let trial = GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None };
    let given = Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(PERIOD)), trials: vec![trial] };
    let folder = tempfile::tempdir().unwrap();
    let other_clock = |manifest: &mut Manifest| {
        // The driver udp reports no QoS.
        manifest.trials[0].ends.values_mut().for_each(|end| end.qos.clear());
        let pong = manifest.trials[0].ends.get_mut("pong").unwrap();
        if ahead_ns != 0 {
            (pong.host, pong.clock) = ("bench-2".into(), "another boot".into());
        }
    };
    analyse(&write(&folder.path().join("record"), &[given], other_clock)).unwrap()
}

#[test]
fn planted_bursts_are_in_the_report_of_each_direction_also_between_two_clocks() {
    for ahead_ns in [0, 3_600_000_000_000, -7_000_000_000_000] {
        let report = planted(ahead_ns);
        let [out, back] = &report.conditions[0].hold_and_release[..] else {
            panic!("{:?}", report.conditions[0].hold_and_release)
        };
        for (held, leg, first) in [(out, "out", 50), (back, "back", 250)] {
            assert_eq!((held.leg.as_str(), held.bursts, held.messages, held.most_messages), (leg, 1, 7, 7));
            let burst = HeldBurstReport {
                trial: 0,
                first_slot: first,
                last_slot: first + 6,
                from_ns: first as i64 * PERIOD,
                to_ns: (first as i64 + 6) * PERIOD,
                messages: 7,
                held_ns: hold_ns(50),
                received_within_ns: 600_000,
            };
            assert_eq!((&held.longest[..], held.longest_ns), (&[burst][..], hold_ns(50)));
        }
        let text = render_terminal(&report, 400, false).replace(['\u{202f}', '\u{a0}', '\u{2009}'], " ");
        let said = "Held and released together (udp, 64 B, 100 Hz, veth, on the way back): 7 messages in 1 burst were sent in their time";
        let name = &report.conditions[0].name;
        assert!(text.contains(&said.replace("udp, 64 B, 100 Hz, veth", name)), "{text}");
        assert!(
            text.contains(
                "The longest hold, of 64.5 ms, was in trial 0, from 500 ms to 560 ms after slot 0: 7 messages"
            ),
            "{text}"
        );
        let page = render_html(&report).replace("&nbsp;", " ");
        assert!(
            page.contains("<section id=\"held\">") && page.contains("<a href=\"#held\">Held and released together</a>")
        );
    }
}

/// Events of a trial in which the receiving thread sleeps until each answer comes.
fn asleep(leg: usize) -> Switches {
    let received = |seq| row(seq, leg).0.receive_ns;
    watched((0..SLOTS).flat_map(|seq| receipt(received(seq), 1_000, OTHER)).collect())
}

fn held_entries(report: &Report) -> (i64, Vec<&LedgerEntry>) {
    let [incident] = &report.conditions[0].incidents[..] else { panic!("{:?}", report.conditions[0].incidents) };
    let entries = incident.ledger.iter().flatten().filter(|e| e.cause == CauseWord::HoldAndRelease);
    (incident.excess_ns, entries.collect())
}

#[test]
fn a_ledger_calls_the_time_of_a_hold_so_if_no_thread_had_the_message() {
    for (leg, name, end) in [(2, "back", "ping"), (0, "out", "pong")] {
        let report = report_of(asleep(leg), |slots, echoes| {
            HELD.for_each(|seq| (slots[seq as usize], echoes[seq as usize]) = row(seq, leg));
        });
        let (excess_ns, entries) = held_entries(&report);
        let [entry] = entries[..] else { panic!("{:?}", report.conditions[0].incidents) };
        assert_eq!((entry.leg.as_str(), entry.end.as_deref()), (name, Some(end)));
        assert!(excess_ns > 60_000_000 && entry.ns_low * 100 > excess_ns * 95, "{entry:?} of {excess_ns}");
        assert!(!CauseWord::HoldAndRelease.explains());
        let causes = report.findings.iter().find(|finding| finding.code == "causes").unwrap();
        assert!(
            causes.text.contains(&format!("held on the way to the {end} end and released together")),
            "{}",
            causes.text
        );
    }
}

/// Tests that messages which a reliable writer may have sent again are not called held, although they were received together.
#[test]
fn messages_that_were_perhaps_sent_again_are_not_called_held() {
    let reliable = |manifest: &mut Manifest| {
        for end in manifest.trials[0].ends.values_mut() {
            end.qos = [("reliability".to_owned(), "reliable".to_owned())].into();
        }
    };
    let report = report_with(asleep(2), reliable, |slots, echoes| {
        HELD.for_each(|seq| (slots[seq as usize], echoes[seq as usize]) = row(seq, 2));
    });
    let (excess_ns, entries) = held_entries(&report);
    assert!(entries.is_empty(), "{entries:?}");
    let ledger = report.conditions[0].incidents[0].ledger.iter().flatten();
    let network_ns: i64 = ledger.filter(|e| e.cause == CauseWord::Network).map(|e| e.ns_low).sum();
    assert!(network_ns * 100 > excess_ns * 95, "{network_ns} of {excess_ns}");
    assert!(report.conditions[0].hold_and_release[0].perhaps_sent_again);
    let found = report.findings.iter().find(|finding| finding.code == "hold_and_release").unwrap();
    assert!(found.text.starts_with("Held and released together, or lost and sent again together ("), "{}", found.text);
}

#[test]
fn a_seen_cause_is_not_replaced_by_a_hold() {
    // The thread was woken when the first answer would have arrived, and another thread had its CPU until the release.
    let received = |seq| row(seq, 2).0.receive_ns;
    let wait = |seq| if seq == HELD.start { hold_ns(HELD.start) - 1_000 } else { 1_000 };
    let events = (0..SLOTS).flat_map(|seq| receipt(received(seq), wait(seq), OTHER)).collect();
    let mut events: Switches = watched(events);
    events.tasks = [(OTHER, Task { name: "stress-ng".into(), policy: None, process: None, kernel: false })].into();
    let report = report_of(events, |slots, echoes| {
        HELD.for_each(|seq| (slots[seq as usize], echoes[seq as usize]) = row(seq, 2));
    });
    let (excess_ns, entries) = held_entries(&report);
    let waited = report.conditions[0].incidents[0].ledger.iter().flatten();
    let waited_ns: i64 = waited.filter(|e| e.cause == CauseWord::WaitedForCpu).map(|e| e.ns_low).sum();
    assert!(waited_ns * 10 > excess_ns * 9, "{waited_ns} of {excess_ns}: {}", report.conditions[0].incidents[0].text);
    assert!(entries.iter().map(|e| e.ns_low).sum::<i64>() * 10 < excess_ns, "{entries:?}");
    // The burst itself is in the report.
    assert_eq!(report.conditions[0].hold_and_release[0].messages, 7);
}

/// The movements of a trial of 4,800 messages, whose legs come from `legs`, ns. The clock of the pong is ahead of the clock of the
/// ping by `ahead_ns`, if it has its own.
fn moved(legs: impl Fn(u64) -> [i64; 3], ahead_ns: Option<fn(i64) -> i64>) -> Report {
    let (slots, mut echoes): (Vec<_>, Vec<_>) = (0..4_800).map(|k| slot(k, PERIOD, 1_000, legs(k))).unzip();
    let ahead = ahead_ns.unwrap_or(|_| 0);
    for echo in &mut echoes {
        let by = ahead(echo.in_ns);
        [&mut echo.in_ns, &mut echo.begin_ns, &mut echo.end_ns].into_iter().for_each(|ns| *ns += by);
    }
    let trial = GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None };
    let given = Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(PERIOD)), trials: vec![trial] };
    let folder = tempfile::tempdir().unwrap();
    let clock = |manifest: &mut Manifest| {
        let pong = manifest.trials[0].ends.get_mut("pong").unwrap();
        if ahead_ns.is_some() {
            (pong.host, pong.clock) = ("bench-2".into(), "another boot".into());
        }
    };
    analyse(&write(&folder.path().join("record"), &[given], clock)).unwrap()
}

/// Legs with a jitter of up to 2 us.
fn jittered(k: u64) -> [i64; 3] {
    let jitter = |n: u64| ((k * 7_919 + n * 104_729) % 2_003) as i64;
    [USUAL[0] + jitter(1), USUAL[1], USUAL[2] + jitter(2)]
}

#[test]
fn a_phase_sweep_and_a_clock_error_are_told_apart() {
    // A gate that is open for 101 of 503 us; the phase moves by 0.4 us for each message of 10 ms: 40 ppm.
    let wait_ns = |k: u64| match (k as i64 * 400).rem_euclid(503_000) {
        phase_ns if phase_ns < 101_000 => 0,
        phase_ns => 503_000 - phase_ns,
    };
    let swept = |k| {
        let [out, turnaround, back] = jittered(k);
        [out + wait_ns(k), turnaround, back]
    };
    let sweep = moved(swept, None);
    let [MovementReport { trial: 0, kind: MovementKind::PhaseSweep { leg, ppm, worst_wait_ns, ramps } }] =
        &sweep.conditions[0].movements[..]
    else {
        panic!("{:?}", sweep.conditions[0].movements)
    };
    assert_eq!((leg.as_str(), *ramps), ("out", 4));
    assert!((*ppm + 40.0).abs() < 1.0 && (worst_wait_ns - 402_000).abs() < 12_000, "{ppm} {worst_wait_ns}");
    // The clock of the pong swings by 60 us in 12 s.
    let swing = |ns: i64| 5_000_000_000 + (60e3 * ((ns as f64) / 12e9 * std::f64::consts::TAU).sin()) as i64;
    let hunting = moved(jittered, Some(swing));
    let [MovementReport { kind: MovementKind::ClockError { moved_ns, sum_moved_ns, .. }, .. }] =
        &hunting.conditions[0].movements[..]
    else {
        panic!("{:?}", hunting.conditions[0].movements)
    };
    assert!((90_000..140_000).contains(moved_ns) && *sum_moved_ns < 5_000, "{moved_ns} {sum_moved_ns}");
    // The same sweep between two clocks, of which one is steady or swings.
    let steady = |ns: i64| 5_000_000_000 + ns / 50_000;
    let [between, meanwhile] = [moved(swept, Some(steady)), moved(swept, Some(swing))];
    for (report, way) in [(&between, "out"), (&meanwhile, "round_trip")] {
        let [MovementReport { kind: MovementKind::PhaseSweep { leg, ppm, worst_wait_ns, .. }, .. }] =
            &report.conditions[0].movements[..]
        else {
            panic!("{:?}", report.conditions[0].movements)
        };
        assert!(leg == way && (*ppm + 40.0).abs() < 1.0, "{leg} {ppm}");
        assert!((worst_wait_ns - 402_000).abs() < 12_000, "{worst_wait_ns}");
    }
    for quiet in [moved(jittered, None), moved(jittered, Some(|ns| 5_000_000_000 + ns / 50_000))] {
        assert_eq!(quiet.conditions[0].movements, []);
    }
    let texts = [&sweep, &meanwhile, &hunting].map(|report| {
        let found = report.findings.iter().find(|f| ["phase_sweep", "clock_error"].contains(&f.code.as_str()));
        found.unwrap().text.replace(['\u{202f}', '\u{a0}', '\u{2009}'], " ")
    });
    insta::assert_snapshot!(texts.join("\n"));
}
