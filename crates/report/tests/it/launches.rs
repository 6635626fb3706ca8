//! Tests of the causes of late messages with launch times: whatever happened before the launch time of a message did not delay it.

use crate::causes::{OTHER, PERIOD, SLOTS, receipt, report_with, watched};
use crate::support::{T0, skip, slot};
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::*;

/// Number of the slot whose message is late.
const LATE: u64 = 50;
/// Time by which a message is due before its launch time, and by which its queue gives it to the device before the launch time, ns.
const LEAD: i64 = 4_000_000;
const AHEAD: i64 = 300_000;
/// Largest error of the clock of the launch times, ns.
const WITHIN: i64 = 100;
/// Time after the due time from which on a message may leave for certain, ns.
const LEAVES: i64 = LEAD - AHEAD - WITHIN;
/// Time after the due time at which a message is at the pong usually, ns.
const ARRIVES: i64 = LEAD - 200_000;
/// Usual turnaround and way back, ns.
const BACK: [i64; 2] = [5_000, 80_000];
/// Time by which CLOCK_TAI is ahead of the clock of the samples, ns.
const TAI_AHEAD: i64 = 37_000_000_123;
/// Id of the thread of the ping that sends.
const MAIN: i32 = 4_000;

/// The rows of a message that is sent this time after it is due, and arrives `out_ns` later than usual. The answer arrives `back_ns` later
/// than usual.
fn row(seq: u64, late_ns: i64, (out_ns, back_ns): (i64, i64)) -> (SenderRow, EchoRow) {
    slot(seq, PERIOD, late_ns, [ARRIVES + out_ns - late_ns, BACK[0], BACK[1] + back_ns])
}

/// A message is late above this time after it was due, ns: by the rule without it, above twice the usual time, which contains the lead.
const LATE_ABOVE: i64 = ARRIVES + BACK[0] + BACK[1] + 500_000;

/// The messages of a record have launch times.
fn launched(mode: LaunchMode) -> impl FnOnce(&mut Manifest) {
    move |manifest| {
        let launch = LaunchSpec { lead: Nanos(LEAD), ahead: Nanos(AHEAD), mode, priority: 3, ..LaunchSpec::default() };
        let stream = StreamSpec { offset: Nanos(0), launch: Some(launch) };
        manifest.plan.conditions[0].spec.stream = Some(stream);
        manifest.plan.report.late_above = Some(Nanos(LATE_ABOVE));
        let fact = StreamFact { within_ns: WITHIN, ahead_ns: TAI_AHEAD, ..StreamFact::default() };
        manifest.trials[0].stream = Some(fact);
    }
}

fn usual(seq: u64) -> (SenderRow, EchoRow) {
    row(seq, 1_000, (0, 0))
}

/// The report of messages of which one is late.
fn report(late: (SenderRow, EchoRow), mode: LaunchMode, events: impl IntoIterator<Item = SwitchEvent>) -> Report {
    let mut events: Vec<SwitchEvent> = events.into_iter().collect();
    events.sort_by_key(|event| event.at_ns);
    let task = Task { name: "stress-ng".into(), policy: None, process: None, kernel: false };
    let events = Switches { tasks: [(OTHER, task)].into(), ..watched(events) };
    report_with(events, launched(mode), |slots, echoes| {
        (0..SLOTS).for_each(|seq| (slots[seq as usize], echoes[seq as usize]) = usual(seq));
        (slots[LATE as usize], echoes[LATE as usize]) = late;
    })
}

/// Events in which the taker of the answers waits for 1 us for its CPU, and for the late answer for `wait_ns`.
fn receipts(late: &SenderRow, wait_ns: i64) -> impl Iterator<Item = SwitchEvent> {
    let of = move |seq, late: SenderRow| match seq == LATE {
        true => receipt(late.receive_ns, wait_ns, OTHER),
        false => receipt(usual(seq).0.receive_ns, 1_000, OTHER),
    };
    let late = *late;
    (0..SLOTS).flat_map(move |seq| of(seq, late))
}

/// Events in which the sender waits for its CPU from the due time of the late message until it sends.
fn late_sender(late: &SenderRow) -> [SwitchEvent; 4] {
    let event = |at_ns, what| SwitchEvent { at_ns, cpu: 0, what };
    let switch = |out, into| SwitchKind::Switch { out, into, preempted: false, state: None, limit: None };
    let due_ns = late.intended_ns;
    [
        event(due_ns - 1_000, switch(0, OTHER)),
        event(due_ns, SwitchKind::Wake { thread: MAIN, by: OTHER, interrupt: true, packet: false, limit: None }),
        event(late.send_begin_ns - 500, switch(OTHER, MAIN)),
        event(late.send_end_ns + 1_000, switch(MAIN, 0)),
    ]
}

fn incident(report: &Report) -> &IncidentReport {
    let [one] = &report.conditions[0].incidents[..] else { panic!("{:?}", report.conditions[0].incidents) };
    one
}

/// The entries of the ledger with a lower end above 0: cause, leg, lower end.
fn entries(incident: &IncidentReport) -> Vec<(CauseWord, &str, i64)> {
    incident.ledger.iter().flatten().filter(|e| e.ns_low > 0).map(|e| (e.cause, e.leg.as_str(), e.ns_low)).collect()
}

#[test]
fn a_late_wake_up_before_the_launch_time_delayed_nothing() {
    // The sender is 3 ms late, but the message leaves at its time. The thread that takes the answer waits for 2 ms.
    let late = row(LATE, 3_000_000, (0, 2_000_000));
    let events = receipts(&late.0, 2_000_000).chain(late_sender(&late.0));
    let launched = report(late, LaunchMode::Strict, events);
    let one = incident(&launched);
    assert_eq!((one.excess_ns, one.leg.as_deref()), (2_000_000, Some("back")), "{}", one.text);
    assert_eq!(entries(one), [(CauseWord::WaitedForCpu, "back", 1_999_000)], "{}", one.text);
    assert!(!one.inconsistent && one.unexplained_ns == 1_000, "{one:?}");
}

#[test]
fn a_message_that_leaves_at_any_time_before_its_deadline_is_delayed_by_its_sender() {
    let late = row(LATE, 3_000_000, (3_000_000, 4_000_000));
    let events = receipts(&late.0, 4_000_000).chain(late_sender(&late.0));
    let deadline = report(late, LaunchMode::Deadline, events);
    let found = entries(incident(&deadline));
    let waited = |leg, least_ns| {
        found.iter().any(|(cause, of, ns)| (*cause, *of) == (CauseWord::WaitedForCpu, leg) && *ns > least_ns)
    };
    assert!(waited("send_lateness", 2_900_000) && waited("back", 3_900_000), "{found:?}");
}

#[test]
fn the_wait_for_the_launch_time_is_in_the_picture_and_not_in_the_ledger() {
    let late = row(LATE, 1_000, (2_000_000, 0));
    let launched = report(late, LaunchMode::Strict, receipts(&late.0, 1_000));
    let one = incident(&launched);
    assert_eq!(entries(one), [(CauseWord::Network, "out", 2_000_000)], "{}", one.text);
    let spans = &one.waterfall.as_ref().unwrap().spans;
    let [wait] = &spans.iter().filter(|span| span.cause == Some(CauseWord::Launch)).collect::<Vec<_>>()[..] else {
        panic!("{spans:?}")
    };
    assert_eq!(
        (wait.hop, wait.to_ns, wait.evidence),
        (tailbound_report::Hop::WayOut, LEAVES, Some(Evidence::Inferred))
    );
    assert!(wait.from_ns < 10_000, "{wait:?}");
    let page = render_html(&launched).replace("&nbsp;", " ");
    assert!(page.contains("before its launch time"), "the picture says what the message waited for");
}

#[test]
fn no_message_would_leave_before_its_launch_time_without_a_cause() {
    // While the answer waits for 8 ms for its thread, the next message becomes due, and waits for its launch time.
    let late = row(LATE, 1_000, (0, 8_000_000));
    let launched = report(late, LaunchMode::Strict, receipts(&late.0, 8_000_000));
    let next_due_ns = T0 + (LATE + 1) as i64 * PERIOD;
    assert!(next_due_ns < late.0.receive_ns && late.0.receive_ns < next_due_ns + LEAVES);
    let [without] = &launched.conditions[0].without_cause[..] else { panic!("{:?}", launched.conditions[0]) };
    assert_eq!((without.cause, without.shortened), (CauseWord::WaitedForCpu, 1));
}

#[test]
fn a_message_whose_launch_time_is_in_no_window_was_dropped_because_of_that() {
    // The gate is open for 5 of 20 ms. Even slots have launch times 1 ms after it opens, odd slots 11 ms after.
    let entry = |open, ms: i64| GateEntry { open, time: Nanos(ms * 1_000_000) };
    let gates = GatesFact {
        class_of_priority: vec![1, 1, 1, 0],
        entries: vec![entry(1, 5), entry(2, 15)],
        cycle_ns: 2 * PERIOD,
        base_ns: T0 + TAI_AHEAD + LEAD - 1_000_000,
        clock: 11,
        ..GatesFact::default()
    };
    let gated = |manifest: &mut Manifest| {
        launched(LaunchMode::Strict)(manifest);
        let options = &mut manifest.plan.conditions[0].spec.driver.options;
        options.insert("priority".into(), "3".into());
        manifest.trials[0].path.as_mut().unwrap().ends[0].gates = Some(gates);
    };
    let report = report_with(watched(Vec::new()), gated, |slots, echoes| {
        (0..SLOTS).for_each(|seq| (slots[seq as usize], echoes[seq as usize]) = usual(seq));
        // The kernel refused three messages; the fourth was not sent at all, because the sender was stopped.
        for seq in [21, 22, 41] {
            let begun_ns = slots[seq].send_begin_ns;
            skip(&mut slots[seq]);
            slots[seq].send_begin_ns = begun_ns;
        }
        skip(&mut slots[61]);
        echoes.retain(|echo| ![21, 22, 41, 61].contains(&echo.seq));
    });
    let losses: Vec<_> = report.conditions[0].losses.iter().map(|loss| (loss.reason.as_deref(), loss.count)).collect();
    let outside = "the gate of the ping end was not open at the launch time of the message, so that the kernel dropped it (taprio)";
    assert_eq!(losses, [(None, 2), (Some(outside), 2)]);
}
