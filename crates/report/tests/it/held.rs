//! Tests of messages that were held on their way and released together: what a report says about planted bursts, also if the ends
//! have different clocks, and what the ledger calls them.

use crate::causes::{OTHER, PERIOD, SLOTS, USUAL, receipt, report_of, watched};
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
        assert!(page.contains("<section id=\"held\">") && page.contains("<a href=\"#held\">Held</a>"));
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
