//! Tests of the causes of late messages: given rows of samples and given events of the kernel, a report must not claim
//! more than they show.

use crate::support::{Given, GivenTrial, T0, lose, slot, thread_table};
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::*;

pub const PERIOD: i64 = 10_000_000;
pub const SLOTS: u64 = 100;
/// Number of the slot whose message is late.
const LATE: u64 = 50;
/// Legs of an ordinary message, ns: way out, turnaround, way back.
pub const USUAL: [i64; 3] = [10_000, 5_000, 80_000];
/// Time for which the thread had had its CPU when it took an answer, ns.
const RAN: i64 = 15_000;
/// Thread ids: the thread of the ping end that takes answers, and a thread that does not belong to an end.
const TAKER: i32 = 4_001;
pub const OTHER: i32 = 30;

/// What a test gives: the legs of the late message and the recorded events.
struct Seen {
    late: [i64; 3],
    events: Switches,
}

/// Time at which the answer of a message with these legs is received, ns.
fn received(seq: u64, legs: [i64; 3]) -> i64 {
    T0 + seq as i64 * PERIOD + 1_000 + legs.iter().sum::<i64>()
}

fn legs_of(seq: u64, late: [i64; 3]) -> [i64; 3] {
    if seq == LATE { late } else { USUAL }
}

/// Events of a record in which whole CPUs could be watched.
pub fn watched(events: Vec<SwitchEvent>) -> Switches {
    Switches {
        ends: vec!["ping".into(), "pong".into()],
        scope: SwitchScope::Cpus(CpuList([0, 1].into())),
        wakes: true,
        windows: vec![(0, T0 + 2_000_000_000)],
        events,
        ..Switches::default()
    }
}

fn event(at_ns: i64, what: SwitchKind) -> SwitchEvent {
    SwitchEvent { at_ns, cpu: 0, what }
}

fn switch(at_ns: i64, out: i32, into: i32) -> SwitchEvent {
    event(at_ns, SwitchKind::Switch { out, into, preempted: false, state: None, limit: None })
}

/// Events of the receipt of an answer: an interrupt wakes the taker while the thread `by` has the CPU, the taker waits
/// for `wait_ns`, and then runs until it has the answer.
pub fn receipt(received_ns: i64, wait_ns: i64, by: i32) -> [SwitchEvent; 4] {
    let (ran, woken) = (received_ns - RAN, received_ns - RAN - wait_ns);
    [
        switch(woken - 2_000, 0, by),
        event(woken, SwitchKind::Wake { thread: TAKER, by, interrupt: true, packet: false, limit: None }),
        switch(ran, by, TAKER),
        switch(received_ns + 5_000, TAKER, 0),
    ]
}

/// Computes the report of one trial whose ends have a main thread and one more thread each.
fn report(Seen { late, events }: Seen) -> Report {
    report_of(events, |slots, echoes| {
        (slots[LATE as usize], echoes[LATE as usize]) = slot(LATE, PERIOD, 1_000, late);
    })
}

pub fn report_of(events: Switches, change: impl FnOnce(&mut [SenderRow], &mut Vec<EchoRow>)) -> Report {
    // The driver udp reports no QoS.
    report_with(events, |manifest| manifest.trials[0].ends.values_mut().for_each(|end| end.qos.clear()), change)
}

/// The same, after `of_manifest` has changed the manifest of the record.
pub fn report_with(
    events: Switches,
    of_manifest: impl FnOnce(&mut Manifest),
    change: impl FnOnce(&mut [SenderRow], &mut Vec<EchoRow>),
) -> Report {
    let (mut slots, mut echoes): (Vec<_>, Vec<_>) = (0..SLOTS).map(|k| slot(k, PERIOD, 1_000, USUAL)).unzip();
    change(&mut slots, &mut echoes);
    let trial = GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None };
    let given = Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(PERIOD)), trials: vec![trial] };
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("record");
    drop(crate::support::write(&dir, &[given], of_manifest));
    for (end, pid, cpu) in [("ping", 4_000, 0), ("pong", 5_000, 1)] {
        let mut table = ThreadTable { pid, ..thread_table(end, cpu) };
        (table.before_ns, table.after_ns) = (Some(T0), Some(T0 + SLOTS as i64 * PERIOD));
        // The threads waited for 345 ms of this second.
        table.after.iter_mut().zip(&table.before).for_each(|(row, before)| row.cpu_ns = before.cpu_ns + 60_000_000);
        for rows in [&mut table.before, &mut table.after] {
            rows.iter_mut().zip(pid..).for_each(|(row, tid)| row.tid = tid);
        }
        std::fs::write(dir.join(format!("threads/0-{end}.json")), serde_json::to_string(&table).unwrap()).unwrap();
    }
    std::fs::create_dir_all(dir.join("switches")).unwrap();
    std::fs::write(dir.join("switches/0-ping.json"), serde_json::to_string(&events).unwrap()).unwrap();
    analyse(&Record::open(&dir).unwrap()).unwrap()
}

/// The only incident of a report.
fn incident(report: &Report) -> &IncidentReport {
    let [one] = report.conditions[0].incidents.as_slice() else { panic!("{:?}", report.conditions[0].incidents) };
    one
}

fn entries(incident: &IncidentReport, cause: CauseWord) -> Vec<&LedgerEntry> {
    incident.ledger.iter().flatten().filter(|e| e.cause == cause).collect()
}

/// Everything that the report says in sentences about causes.
fn sentences(report: &Report) -> String {
    let findings = report.findings.iter().filter(|f| f.code == "causes").map(|f| f.text.as_str());
    let all: Vec<&str> = findings.chain([incident(report).text.as_str()]).collect();
    all.join("\n").replace('\u{202f}', " ")
}

/// One task of a record that is not a thread of an end.
fn task(name: &str, kernel: bool) -> std::collections::BTreeMap<i32, Task> {
    [(OTHER, Task { name: name.into(), policy: None, process: None, kernel })].into()
}

/// Tests that a wait which every message has explains nothing of a delay that came from elsewhere.
#[test]
fn a_wait_that_every_message_has_explains_no_delay() {
    let late = [210_000, 5_000, 80_000];
    let events = (0..SLOTS).flat_map(|k| receipt(received(k, legs_of(k, late)), 60_000, OTHER)).collect();
    let report = report(Seen { late, events: Switches { tasks: task("stress-ng", false), ..watched(events) } });
    let incident = incident(&report);
    assert_eq!(incident.excess_ns, 200_000);
    assert_eq!(entries(incident, CauseWord::WaitedForCpu), [] as [&LedgerEntry; 0], "{}", incident.text);
    let [elsewhere] = entries(incident, CauseWord::Network)[..] else { panic!("{:?}", incident.ledger) };
    assert_eq!((elsewhere.leg.as_str(), elsewhere.ns_low), ("out", 200_000));
}

/// Tests that the ledger follows the thread that received the answer, not another thread of the same end that began to run
/// later. Without the id of the thread in the samples, the wait would not be found.
#[test]
fn the_thread_that_received_the_answer_is_followed() {
    const MAIN: i32 = 4_000;
    let late = [10_000, 5_000, 5_080_000];
    let at = |seq| received(seq, legs_of(seq, late));
    let on_the_other_cpu = |at_ns, out, into| SwitchEvent { cpu: 1, ..switch(at_ns, out, into) };
    let of = |seq| {
        let wait = if seq == LATE { 5_000_000 } else { 1_000 };
        let mut events = receipt(at(seq), wait, OTHER).to_vec();
        // The other thread begins to run 5 us before the receipt, and ends after it.
        events.insert(3, on_the_other_cpu(at(seq) - 5_000, 0, MAIN));
        events.insert(4, on_the_other_cpu(at(seq) + 1_000, MAIN, 0));
        events
    };
    let waited = |thread: Option<u32>| {
        let events = Switches { tasks: task("stress-ng", false), ..watched((0..SLOTS).flat_map(of).collect()) };
        let report = report_of(events, |slots, echoes| {
            (slots[LATE as usize], echoes[LATE as usize]) = slot(LATE, PERIOD, 1_000, late);
            slots.iter_mut().for_each(|row| row.receive_thread = thread);
        });
        entries(incident(&report), CauseWord::WaitedForCpu).iter().map(|e| e.ns_low).sum::<i64>()
    };
    assert_eq!(waited(Some(TAKER as u32)), 4_999_000, "beyond the wait of an ordinary message");
    assert_eq!(waited(None), 0);
}

/// Tests that the finding gives the reason why no cause is known.
#[test]
fn a_finding_without_causes_gives_the_reason() {
    let scope = SwitchScope::Nothing("perf events are not permitted".into());
    let ends = vec!["ping".into(), "pong".into()];
    let report =
        report(Seen { late: [10_000, 5_000, 5_080_000], events: Switches { ends, scope, ..Switches::default() } });
    let reason = "events could not be recorded: perf events are not permitted";
    assert_eq!(incident(&report).no_ledger.as_deref(), Some(reason));
    let said = sentences(&report);
    assert!(said.contains(&format!("No cause is known: {reason}.")), "{said}");
    assert!(said.contains(&format!("No cause: {reason}.")), "{said}");
}

/// Tests what an ordinary user sees: when the taker got its CPU, and how its counter of run delays increased.
#[test]
fn the_counter_of_run_delays_bounds_a_wait_whose_begin_was_not_recorded() {
    let late = [10_000, 5_000, 5_080_000];
    let received_ns = received(LATE, late);
    let due_ns = T0 + LATE as i64 * PERIOD;
    let delay = |from_ns, by| CounterMove { from_ns, to_ns: from_ns + 50_000_000, by };
    let moves = vec![delay(due_ns - 220_000_000, 40_000), delay(due_ns - 20_000_000, 5_000_000)];
    let counter = Counter::RunDelayNs;
    let (of, longest_step_ns) = (format!("thread {TAKER}"), 50_000_000);
    let series = CounterSeries { counter, of, moves, longest_step_ns, complete_from_ns: None };
    let events = vec![
        event(received_ns - RAN, SwitchKind::In(TAKER)),
        event(received_ns + 5_000, SwitchKind::Out { thread: TAKER, preempted: false }),
    ];
    let windows = vec![(due_ns - 2_000_000, received_ns + 500_000)];
    let (scope, counters) = (SwitchScope::OwnThreads, vec![series]);
    let events = Switches { scope, windows, wakes: false, counters, ..watched(events) };
    let report = report(Seen { late, events });
    let [wait] = entries(incident(&report), CauseWord::WaitedForCpu)[..] else { panic!("{}", sentences(&report)) };
    // Twice the usual increase may belong to other waits.
    assert_eq!((wait.ns_low, wait.ns_high, wait.evidence), (4_920_000, 5_000_000, Evidence::Counted));
    assert!(wait.by.is_none() && wait.end.as_deref() == Some("ping"), "{wait:?}");
    assert!(incident(&report).text.contains("98 % to 100 %: "), "{}", incident(&report).text);
}

/// Tests that a wait beyond the usual one is counted, and names the thread that had the CPU.
#[test]
fn a_longer_wait_than_usual_explains_the_difference() {
    let late = [10_000, 5_000, 5_080_000];
    let wait = |k| if k == LATE { 5_060_000 } else { 60_000 };
    let events = (0..SLOTS).flat_map(|k| receipt(received(k, legs_of(k, late)), wait(k), OTHER)).collect();
    let report = report(Seen { late, events: Switches { tasks: task("stress-ng", false), ..watched(events) } });
    let [wait] = entries(incident(&report), CauseWord::WaitedForCpu)[..] else { panic!("{}", sentences(&report)) };
    assert_eq!((wait.ns_low, wait.evidence), (5_000_000, Evidence::Seen));
    assert!(sentences(&report).contains("100 %: `recv` of the ping end waited for CPU 0, which `stress-ng` had"));
}

/// Tests that without recorded wake-ups a wait is an upper bound, is called one, and is in no sum.
#[test]
fn without_wake_ups_a_wait_is_an_upper_bound() {
    let late = [10_000, 5_000, 5_080_000];
    let mut events = receipt(received(LATE, late), 4_000_000, OTHER).to_vec();
    events.retain(|e| !matches!(e.what, SwitchKind::Wake { .. }));
    let events = Switches { wakes: false, tasks: task("stress-ng", false), ..watched(events) };
    let report = report(Seen { late, events });
    let [wait] = entries(incident(&report), CauseWord::WaitedForCpu)[..] else { panic!("{}", sentences(&report)) };
    assert_eq!((wait.ns_low, wait.evidence), (0, Evidence::AtMost));
    assert!((4_000_000..4_100_000).contains(&wait.ns_high), "{wait:?}");
    assert!(report.conditions[0].causes.iter().all(|c| c.cause != CauseWord::WaitedForCpu));
    assert!(
        sentences(&report).contains("at most 80 %: `recv` of the ping end waited for CPU 0"),
        "{}",
        sentences(&report)
    );
}

/// Tests a record of a user without privileges: only the threads of the ends were watched, so that a thread which was
/// woken may have slept or waited.
#[test]
fn what_an_ordinary_user_cannot_see_is_called_not_seen() {
    let late = [10_000, 5_000, 5_080_000];
    let at = received(LATE, late);
    let out = |preempted| SwitchKind::Out { thread: TAKER, preempted };
    let ordinary =
        |woken: Vec<SwitchEvent>| Switches { scope: SwitchScope::OwnThreads, wakes: false, ..watched(woken) };
    let events = vec![event(at - RAN, SwitchKind::In(TAKER)), event(at + 5_000, out(false))];
    let woken = report(Seen { late, events: ordinary(events) });
    assert!(incident(&woken).not_seen_ns >= 4_900_000, "{:?}", incident(&woken));
    let of = [CauseWord::Network, CauseWord::WaitedForCpu, CauseWord::DriverCall];
    assert!(of.iter().all(|cause| entries(incident(&woken), *cause).is_empty()), "{:?}", incident(&woken).ledger);
    assert!(!sentences(&woken).contains("no thread"), "{}", sentences(&woken));
    // A thread that was preempted was ready to run, and who had the CPU is not known.
    let events = vec![
        event(at - 5_070_000, SwitchKind::In(TAKER)),
        event(at - 5_060_000, out(true)),
        event(at - RAN, SwitchKind::In(TAKER)),
        event(at + 5_000, out(false)),
    ];
    let preempted = report(Seen { late, events: ordinary(events) });
    let [wait] = entries(incident(&preempted), CauseWord::WaitedForCpu)[..] else {
        panic!("{}", sentences(&preempted))
    };
    assert_eq!((wait.by.as_ref(), wait.ns_low), (None, 5_000_000));
    assert!(sentences(&preempted).contains("what ran there is not recorded"), "{}", sentences(&preempted));
}

/// Tests that a record without events gives the reason in place of a cause.
#[test]
fn events_that_could_not_be_recorded_give_their_reason() {
    let scope = SwitchScope::Nothing("Permission denied (os error 13)".into());
    let late = [10_000, 5_000, 5_080_000];
    let report = report(Seen { late, events: Switches { scope, ..watched(Vec::new()) } });
    assert_eq!(incident(&report).ledger, None);
    let text = sentences(&report);
    assert!(text.contains("No cause: events could not be recorded: Permission denied (os error 13)."), "{text}");
}

/// Tests that nothing is blamed for a thread that was ready while its CPU was idle: leaving an idle state, a quota,
/// throttling and the hypervisor look the same in these events.
#[test]
fn a_wait_for_an_idle_cpu_has_no_cause() {
    let late = [10_000, 5_000, 5_080_000];
    let at = received(LATE, late);
    let events = vec![
        switch(at - 5_070_000, OTHER, 0),
        event(at - 5_060_000, SwitchKind::Wake { thread: TAKER, by: 0, interrupt: true, packet: false, limit: None }),
        switch(at - RAN, 0, TAKER),
        switch(at + 5_000, TAKER, 0),
    ];
    let report = report(Seen { late, events: watched(events) });
    let incident = incident(&report);
    assert!(incident.unexplained_ns >= 4_950_000, "{incident:?}");
    assert!(incident.ledger.iter().flatten().all(|e| !e.cause.explains()), "{:?}", incident.ledger);
}

/// Tests that the threads of the kernel that pass messages on are seen as what had the CPU.
#[test]
fn a_thread_of_the_kernel_that_had_the_cpu_is_named() {
    let late = [10_000, 5_000, 5_080_000];
    let events = receipt(received(LATE, late), 5_000_000, OTHER).to_vec();
    let report = report(Seen { late, events: Switches { tasks: task("ksoftirqd/0", true), ..watched(events) } });
    let [kernel] = entries(incident(&report), CauseWord::KernelThread)[..] else { panic!("{}", sentences(&report)) };
    assert_eq!(kernel.by.as_ref().map(|by| by.name.as_str()), Some("ksoftirqd/0"));
}

/// Tests that Tailbound's own processes count as a disturbance by the instrument, and not as an explanation.
#[test]
fn a_wait_for_the_instrument_is_no_explanation() {
    let late = [10_000, 5_000, 5_080_000];
    for (name, cause) in [("tailbound", CauseWord::Instrument), ("tb-load-cpu", CauseWord::WaitedForCpu)] {
        let events = receipt(received(LATE, late), 5_000_000, OTHER).to_vec();
        let report = report(Seen { late, events: Switches { tasks: task(name, false), ..watched(events) } });
        assert_eq!(entries(incident(&report), cause).len(), 1, "{}", sentences(&report));
        let share = report.conditions[0].causes.iter().find(|c| c.cause == cause).unwrap();
        assert_eq!(share.explains, cause == CauseWord::WaitedForCpu);
    }
}

/// Tests that a wake-up by an interrupt is not credited to the thread that the interrupt came upon.
#[test]
fn an_interrupt_that_came_upon_a_thread_of_the_pong_is_not_its_work() {
    let late = [10_000, 5_000, 5_080_000];
    let at = received(LATE, late);
    // A thread of the pong ran for 5 ms on the CPU on which the interrupt woke the taker.
    let pong = 5_001;
    let events = |interrupt| {
        vec![
            SwitchEvent { cpu: 1, ..switch(at - 5_070_000, 0, pong) },
            SwitchEvent {
                cpu: 1,
                ..event(
                    at - 20_000,
                    SwitchKind::Wake { thread: TAKER, by: pong, interrupt, packet: false, limit: None },
                )
            },
            switch(at - RAN, 0, TAKER),
            SwitchEvent { cpu: 1, ..switch(at - 10_000, pong, 0) },
            switch(at + 5_000, TAKER, 0),
        ]
    };
    let own_work = |interrupt| {
        let report = report(Seen { late, events: watched(events(interrupt)) });
        entries(incident(&report), CauseWord::OwnWork).iter().filter(|e| e.end.as_deref() == Some("pong")).count()
    };
    assert_eq!((own_work(false), own_work(true)), (1, 0));
}

/// Tests that two findings about the same wait do not contradict each other: CPU times may not show what ran, but events
/// do.
#[test]
fn a_starved_thread_and_its_incident_say_the_same() {
    let late = [10_000, 5_000, 900_080_000];
    let events = receipt(received(LATE, late), 900_000_000, OTHER).to_vec();
    let report = report(Seen { late, events: Switches { tasks: task("stress-ng", false), ..watched(events) } });
    assert!(sentences(&report).contains("waited for CPU 0, which `stress-ng` had"), "{}", sentences(&report));
    let starved = report.findings.iter().find(|f| f.code == "starved").unwrap();
    assert!(
        starved.text.ends_with("While messages were late, threads of this end waited for CPUs that `stress-ng` had."),
        "{starved:?}"
    );
    assert!(!starved.text.contains("do not show"), "{starved:?}");
}

/// Tests that the report says at which place messages were lost, as far as the rows of the pong show it.
#[test]
fn losses_have_the_last_place_at_which_the_message_was_seen() {
    let report = report_with(
        Switches::default(),
        |_| (),
        |slots, echoes| {
            slots[10..16].iter_mut().for_each(lose);
            // The message of slots 10 to 12 never arrived, the pong did not answer the message of slot 13, and the answers
            // of slots 14 and 15 did not arrive.
            echoes[13].end_ns = NO_TIME;
            echoes.drain(10..13);
        },
    );
    let losses: Vec<(LossPlace, u64)> = report.conditions[0].losses.iter().map(|l| (l.place, l.count)).collect();
    assert_eq!(losses, [(LossPlace::OnTheWayOut, 3), (LossPlace::AtThePong, 1), (LossPlace::OnTheWayBack, 2)]);
    let said = "Of the lost messages, the pong recorded no receipt of 3, received and did not answer 1 and answered 2.";
    let texts: Vec<&str> = report.findings.iter().map(|f| f.text.as_str()).filter(|t| t.contains(said)).collect();
    let [text] = texts[..] else { panic!("{:?}", report.findings) };
    assert!(text.contains("6 of 100 messages were lost. Of the lost"), "{text}");
}

/// Tests that the condition with the longest delays does not hide the others: each condition has a sentence, and the
/// conditions with the smallest excesses are counted in one.
#[test]
fn each_condition_with_late_messages_has_a_sentence() {
    let condition = |number: i64| {
        let late = |k| legs_of(k, [10_000, 5_000, number * 1_000_000]);
        let (slots, echoes) = (0..SLOTS).map(|k| slot(k, PERIOD, 1_000, late(k))).unzip();
        let trial = GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None };
        Given { driver: "udp", payload: 64 * number as u64, rate: Rate::Period(Nanos(PERIOD)), trials: vec![trial] }
    };
    let findings = |n| {
        let conditions: Vec<Given> = (1..=n).map(condition).collect();
        let folder = tempfile::tempdir().unwrap();
        let report = analyse(&crate::support::write(&folder.path().join("record"), &conditions, |_| ())).unwrap();
        let all = report.findings.into_iter().filter(|f| f.code == "causes");
        all.map(|f| (f.conditions, f.text.replace('\u{202f}', " "))).collect::<Vec<_>>()
    };
    let of_five = findings(5);
    assert_eq!(of_five.iter().map(|(ids, _)| ids.as_slice()).collect::<Vec<_>>(), [[4], [3], [2], [1], [0]]);
    let of_six = findings(6);
    assert_eq!(of_six.len(), 5, "{of_six:?}");
    assert!(of_six[0].1.contains("late messages took 5.92 ms beyond the usual, in 1 incident"), "{}", of_six[0].1);
    assert_eq!(of_six[4].0, [1, 0]);
    insta::assert_snapshot!("more_conditions", of_six[4].1);
}

/// Receiving thread of the pong end.
const PONG: i32 = 5_001;

/// Hops of a message whose send call begins at `sent`, through a token bucket that holds it for `held_ns`.
fn hops(seq: u64, sent: i64, held_ns: i64) -> [PacketHop; 5] {
    let places = [
        (1_000, HopPlace::Queued, Some(0)),
        (1_000 + held_ns, HopPlace::Transmitted, Some(0)),
        (1_500 + held_ns, HopPlace::Backlog, Some(1)),
        (2_500 + held_ns, HopPlace::Received, Some(1)),
        (3_000 + held_ns, HopPlace::InSocket, None),
    ];
    let hop = |(after, at, device)| PacketHop {
        at_ns: sent + after,
        seq,
        at,
        cpu: 1,
        thread: 4_000,
        buffer: 1,
        device,
        offset: 0,
        part: 0,
        run: 0,
        reason: None,
    };
    places.map(hop)
}

fn followed(hops: Vec<PacketHop>, reads: Vec<SocketRead>) -> Option<Packets> {
    let device = |name: &str, discipline: Option<&str>| PacketDevice {
        name: name.into(),
        namespace: 7,
        discipline: discipline.map(str::to_owned),
    };
    let devices = vec![device("port1", Some("tbf")), device("veth0", None)];
    Some(Packets { windows: vec![(0, T0 + 2_000_000_000)], devices, hops, reads, ..Packets::default() })
}

fn begun(seq: u64) -> i64 {
    T0 + seq as i64 * PERIOD + 1_000
}

/// Tests that a message which a queue discipline held is explained by it, beyond what it holds every message for.
#[test]
fn a_queue_discipline_that_held_the_message_is_the_cause() {
    const HELD: i64 = 5_000_000;
    let late = [USUAL[0] + HELD, USUAL[1], USUAL[2]];
    let held = |seq| if seq == LATE { 500 + HELD } else { 500 };
    let all: Vec<PacketHop> = (0..SLOTS).flat_map(|seq| hops(seq, begun(seq), held(seq))).collect();
    let report = report(Seen { late, events: Switches { packets: followed(all, Vec::new()), ..watched(Vec::new()) } });
    let incident = incident(&report);
    assert_eq!(incident.excess_ns, HELD);
    let [entry] = entries(incident, CauseWord::QueueDiscipline)[..] else { panic!("{:?}", incident.ledger) };
    assert_eq!((entry.leg.as_str(), entry.ns_low, entry.evidence), ("out", HELD, Evidence::Seen));
    assert_eq!(entry.by.as_ref().map(|by| by.name.as_str()), Some("tbf of port1"));
    assert_eq!((entries(incident, CauseWord::Network).len(), incident.unexplained_ns), (0, 0), "{:?}", incident.ledger);
    insta::assert_snapshot!(sentences(&report));
    let spans = &incident.waterfall.as_ref().unwrap().spans;
    assert!(
        spans.iter().any(|s| s.hop == tailbound_report::Hop::WayOut && s.cause == Some(CauseWord::QueueDiscipline)),
        "{spans:?}"
    );
}

/// Tests that a message in two fragments waits for the second one, wherever it is held, and that the report says where.
#[test]
fn a_message_waits_for_the_rest_of_it() {
    const HELD: i64 = 5_000_000;
    let late = [USUAL[0] + HELD, USUAL[1], USUAL[2]];
    let second = |seq: u64| {
        let held = if seq == LATE { 500 + HELD } else { 500 };
        let hops = hops(seq, begun(seq) + 100, held);
        hops.map(|hop| PacketHop { offset: if hop.at == HopPlace::InSocket { 0 } else { 1480 }, buffer: 2, ..hop })
    };
    let both = |seq: u64| {
        let mut all = [&hops(seq, begun(seq), 500)[..4], &second(seq)].concat();
        all.sort_by_key(|hop| hop.at_ns);
        all
    };
    let all: Vec<PacketHop> = (0..SLOTS).flat_map(both).collect();
    let report = report(Seen { late, events: Switches { packets: followed(all, Vec::new()), ..watched(Vec::new()) } });
    let incident = incident(&report);
    let [entry] = entries(incident, CauseWord::Reassembly)[..] else { panic!("{:?}", incident.ledger) };
    assert_eq!(entry.by.as_ref().map(|by| by.name.as_str()), Some("tbf of port1"));
    // The first fragment is received 1,900 ns after the second one was queued; what this takes otherwise is subtracted.
    assert!((HELD - 2_000..=HELD).contains(&entry.ns_low), "{entry:?}");
    insta::assert_snapshot!("rest", sentences(&report));
}

/// Tests that a thread which ran is the cause only while it read other datagrams than the message.
#[test]
fn a_message_behind_other_datagrams_waited_in_its_socket() {
    const LATER: i64 = 5_000_000;
    let late = [USUAL[0] + LATER, USUAL[1], USUAL[2]];
    let all: Vec<PacketHop> = (0..SLOTS).flat_map(|seq| hops(seq, begun(seq), 500)).collect();
    let on = |at_ns, what| SwitchEvent { cpu: 1, ..event(at_ns, what) };
    let came = |seq: u64| begun(seq) + 4_000;
    let taken = |seq: u64| begun(seq) + legs_of(seq, late)[0];
    let thread = |seq: u64| {
        let woken = SwitchKind::Wake { thread: PONG, by: 0, interrupt: true, packet: true, limit: None };
        [
            on(came(seq) - 300, woken),
            on(came(seq), SwitchKind::Switch { out: 0, into: PONG, preempted: false, state: None, limit: None }),
            on(
                taken(seq) + 6_000,
                SwitchKind::Switch { out: PONG, into: 0, preempted: false, state: None, limit: None },
            ),
        ]
    };
    let report_with = |others: &[i64]| {
        let events = Switches { interrupts: true, ..watched((0..SLOTS).flat_map(thread).collect()) };
        let own = (0..SLOTS).map(|seq| taken(seq) - 500);
        let mut times: Vec<i64> = own.chain(others.iter().map(|ns| begun(LATE) + ns)).collect();
        times.sort_unstable();
        let reads = times.into_iter().map(|at_ns| SocketRead { at_ns, thread: PONG, port: 20_000 }).collect();
        report(Seen { late, events: Switches { packets: followed(all.clone(), reads), ..events } })
    };
    let ns = |report: &Report, cause| entries(incident(report), cause).iter().map(|e| e.ns_low).sum::<i64>();
    // The thread reads 100 other datagrams, the last one 1 ms before the message.
    let others: Vec<i64> = (1..=100).map(|n| 40_000 * n + 4_000).collect();
    let report = report_with(&others);
    assert_eq!(ns(&report, CauseWord::SocketQueue), 4_000_000, "{:?}", incident(&report).ledger);
    assert_eq!(ns(&report, CauseWord::OwnWork), LATER - 4_000_000, "{:?}", incident(&report).ledger);
    insta::assert_snapshot!(sentences(&report));
    // The thread worked, and read nothing else.
    let report = report_with(&[]);
    assert_eq!(ns(&report, CauseWord::SocketQueue), 0);
    assert_eq!(ns(&report, CauseWord::OwnWork), LATER);
}
