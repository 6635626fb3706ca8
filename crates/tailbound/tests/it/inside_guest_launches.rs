//! Tests of launch times of an interface with gates, inside an emulated guest: both queue disciplines are in force.

use crate::inside_guest::Guest;
use crate::inside_guest_clocks::needed;
use crate::support::guests::KERNEL;
use serde_json::Value;
use tailbound_model::{GatesFact, LaunchQueueFact, NO_TIME, StageRow, StreamFact};
use tailbound_record::{Record, TrialRecord};

/// Cycle of the gates, the time for which the gate of the messages is open after its begin, and the launch times after that begin, ns.
const CYCLE_NS: i64 = 20_000_000;
const OPEN_NS: i64 = 5_000_000;
const LAUNCH_NS: i64 = 2_000_000;
/// Time by which messages are due before their launch time, and by which the queue may give them to the device before it, ns.
const LEAD_NS: i64 = 16_000_000;
const AHEAD_NS: i64 = 4_000_000;

/// The messages of both levels are launched 2 ms after the begin of a cycle, and, with 100 Hz, every second one 12 ms after it, when
/// their gate is closed.
const STUDY: &str = "study: both\nquestion: q\nmeasure: { ping-pong: { slots: 300, warm_up: 20, timeout: 3 s } }\npayload: 64 B\n\
    factors: { rate: [50 Hz, 100 Hz] }\ndriver: { udp: { priority: 3, timestamps: stages } }\npath: veth\nplace: netns\nattribution: machine\n\
    stream: { offset: 2 ms, launch: { lead: 16 ms, ahead: 4 ms } }\nends:\n  ping:\n    gates:\n      \
    classes: [{ name: rest }, { name: stream, priorities: [3], queues: 2 }]\n      \
    entries: [{ open: [stream], for: 5 ms }, { open: [rest], for: 15 ms }]\n";

#[test]
fn messages_leave_at_their_launch_times_within_their_windows() {
    leave_in_both(Guest::with_kernel(KERNEL));
}

#[test]
fn messages_leave_at_their_launch_times_within_their_windows_on_a_newer_kernel() {
    let Some([kernel]) = needed(["guests/rt-backports.deb"]) else { return };
    leave_in_both(Guest::with_kernel(&kernel));
}

/// Test: no message leaves before its queue may give it to the device, nor while its gate is closed; a message whose launch time is in no
/// window is not sent, and its loss has this reason.
fn leave_in_both(guest: Guest) {
    let report = guest.run_of_any_status(&[], STUDY);
    let record = guest.record();
    for trial in &record.manifest.trials {
        let condition = &record.manifest.plan.conditions[record.manifest.plan.trials[trial.id].condition];
        let half = condition.levels["rate"] == "100 Hz";
        let of_report = &report["conditions"][condition.id];
        assert_eq!(trial.status, tailbound_model::TrialStatus::Valid, "{}", report["warnings"]);
        let sent = sent_in_time(&record, trial);
        let refused = trial.stream.as_ref().unwrap().refused.len();
        println!("{} of {} launched, {refused} refused by etf, {}", sent[0], sent[0] + sent[1], of_report["losses"]);
        // The timers of a busy guest can be late, so that some launch times pass in the queue.
        assert!(sent[0] > 0 && (sent[1] > 0) == half, "{sent:?}");
        let losses = of_report["losses"].as_array().unwrap();
        let of = |reason: &str| -> u64 {
            let named = losses.iter().filter(|loss| loss["reason"].as_str().is_some_and(|text| text.contains(reason)));
            named.map(|loss| loss["count"].as_u64().unwrap()).sum()
        };
        assert_eq!(of("not open at the launch time"), if half { 150 } else { 0 }, "{losses:?}");
        assert_eq!(of("launch time"), losses.iter().map(|loss| loss["count"].as_u64().unwrap()).sum::<u64>());
        let [gate] = &of_report["gates"].as_array().unwrap()[..] else { panic!("{}", of_report["gates"]) };
        assert_eq!((&gate["class"], &gate["outside"]), (&"stream".into(), &0.into()));
        // Whatever the sender did before the launch time delayed nothing.
        let incidents = of_report["incidents"].as_array().unwrap();
        let ledgers = incidents.iter().filter_map(|incident| incident["ledger"].as_array());
        let entries: Vec<&Value> = ledgers.flatten().collect();
        println!("{} entries of ledgers of {} incidents", entries.len(), incidents.len());
        assert!(
            entries.iter().all(|entry| entry["leg"] != "send_lateness" && entry["cause"] != "launch"),
            "{entries:?}"
        );
    }
    let codes = report["warnings"].as_array().unwrap().iter().filter_map(|w| w["code"].as_str());
    assert_eq!(codes.filter(|code| *code == "launch_outside_window").count(), 1, "{}", report["warnings"]);
}

/// Checks when the messages of a trial left. Returns the numbers of messages with a launch time in a window and in none.
fn sent_in_time(record: &Record, trial: &TrialRecord) -> [u64; 2] {
    let end = &trial.path.as_ref().unwrap().ends[0];
    let (gates, launch): (&GatesFact, LaunchQueueFact) = (end.gates.as_ref().unwrap(), end.launch.unwrap());
    assert_eq!((launch.ahead_ns, launch.clock, launch.deadline, gates.flags), (AHEAD_NS, 11, false, 0));
    assert_eq!((gates.class_of_priority[..4].to_vec(), end.tx_queues), (vec![0, 0, 0, 1], Some(3)));
    let stream: &StreamFact = trial.stream.as_ref().unwrap();
    assert_eq!(stream.base_ns, gates.base_ns);
    let width_ns = trial.ends["ping"].stages.as_ref().unwrap().width_ns.unwrap_or(0);
    let stages: Vec<StageRow> = record.stages(trial.id, "ping").unwrap();
    let mut numbers = [0, 0];
    let within_ns = stream.within_ns + gates.within_ns;
    let (mut stamped, mut late) = (0, 0);
    record
        .slots(trial.id, &mut |batch| {
            for i in 0..batch.len() {
                let launch_ns = batch.intended_ns[i] + LEAD_NS;
                let phase_ns = (launch_ns + stream.ahead_ns - gates.base_ns).rem_euclid(CYCLE_NS);
                assert!([LAUNCH_NS, LAUNCH_NS + CYCLE_NS / 2].contains(&phase_ns), "{phase_ns}");
                numbers[usize::from(phase_ns != LAUNCH_NS)] += 1;
                let arrived_ns = Some(batch.echo_in_ns[i]).filter(|ns| *ns != NO_TIME);
                let Some(arrived_ns) = arrived_ns else { continue };
                assert_eq!(phase_ns, LAUNCH_NS, "a message that is launched while its gate is closed is dropped");
                // The gate opens later than the queue may give the message to the device.
                let opens_ns = launch_ns - LAUNCH_NS;
                assert!(
                    opens_ns > launch_ns - AHEAD_NS && arrived_ns > opens_ns - within_ns,
                    "{arrived_ns} {opens_ns}"
                );
                let row = stages.binary_search_by_key(&batch.seq[i], |row| row.seq).map(|at| stages[at]);
                let left_ns = row.ok().map(|row| row.sent_ns).filter(|ns| *ns != NO_TIME);
                let Some(left_ns) = left_ns else { continue };
                let early_ns = opens_ns - left_ns - width_ns - within_ns;
                assert!(early_ns <= 0, "{left_ns} {opens_ns}");
                stamped += 1;
                late += usize::from(left_ns - opens_ns > OPEN_NS);
            }
        })
        .unwrap();
    println!("{late} of {stamped} left after the gate had closed");
    // Limit: a busy host stops a virtual CPU now and then between the queue and the driver of the interface, where the kernel stamps
    // the message.
    assert!(late * 10 <= stamped, "{late} of {stamped}");
    numbers
}
