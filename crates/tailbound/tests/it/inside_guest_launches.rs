//! Tests of launch times of an interface with gates, inside an emulated guest: both queue disciplines are in force.

use crate::inside_guest::{Guest, unpacked};
use crate::inside_guest_clocks::needed;
use crate::inside_guest_queues::{file, kill_and_clean_up, print, section, shown};
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

/// A study of launch times over the interfaces `two0` and `two1` of two namespaces; `launch`: further keys of `launch`.
fn at_user_interfaces(slots: u32, launch: &str, ping: &str) -> String {
    format!(
        "study: user\nquestion: q\nmeasure: {{ ping-pong: {{ slots: {slots}, warm_up: 5, timeout: 2 s }} }}\nrate: 50 Hz\n\
         driver: {{ udp: {{ priority: 3 }} }}\nattribution: off\n\
         path: {{ existing: {{ ping: {{ interface: two0 }}, pong: {{ interface: two1 }} }} }}\n\
         stream: {{ offset: 2 ms, launch: {{ lead: 16 ms, {launch} }} }}\nends:\n  \
         pong: {{ place: {{ existing-netns: b }} }}\n  ping:\n    place: {{ existing-netns: a }}\n{ping}"
    )
}

/// Gates of the ping that open 2 ms before the launch times of its messages, in the place of what is there.
const GATED: &str = "    gates:\n      replace: yes\n      classes: [{ name: stream, priorities: [3] }, { name: rest }]\n      \
    entries: [{ open: [stream], for: 10 ms }, { open: [rest], for: 10 ms }]\n";

/// Gates of the ping by launch times: frames are given to the device `ahead` before theirs.
fn assisted(ahead: &str) -> String {
    let by = format!("by: {{ assist: {{ ahead: {ahead} }} }}");
    GATED.replace("replace: yes\n", &format!("replace: yes\n      {by}\n"))
}

/// Test: an interface of the user gets a queue with launch times, or has one already. Queue disciplines of a user are replaced only on
/// request, also those with classes, and are back after the run, and after a run was killed.
#[test]
fn what_an_interface_had_is_back_after_a_run_with_launch_times_and_after_a_killed_run() {
    let queues = shown("two0");
    let run = |name: &str| format!("tailbound run {name}.yaml --out {name} -q >said 2>&1");
    let report = |name: &str| print(name, &format!("packed tailbound report {name} --format json"));
    let lines = [
        "cd /root; export TMPDIR=/root; ip netns add a; ip netns add b".to_owned(),
        "ip link add two0 netns a numtxqueues 2 type veth peer name two1 netns b\n\
         ip -n a address add 10.9.0.1/24 dev two0; ip -n b address add 10.9.0.2/24 dev two1\n\
         ip -n a link set two0 up; ip -n b link set two1 up"
            .into(),
        file("plain", &at_user_interfaces(100, "ahead: 4 ms", "")),
        file("replace", &at_user_interfaces(100, "ahead: 4 ms, replace: yes", "")),
        file("existing", &at_user_interfaces(100, "ahead: 5 ms, by: existing", "")),
        file("differs", &at_user_interfaces(100, "ahead: 4 ms, by: existing", "")),
        file("gated", &at_user_interfaces(100, "ahead: 4 ms", GATED)),
        // Launch times are 7 ms, and every second one 17 ms, after the begin of a cycle, whose gate is open for 10 ms.
        file("assist", &at_user_interfaces(100, "ahead: 4 ms", &assisted("4 ms")).replace("2 ms,", "7 ms,").replace("50 Hz", "100 Hz")),
        // Many messages are late for the queue.
        file("late", &at_user_interfaces(100, "ahead: 200 us", &assisted("200 us")).replace("lead: 16 ms", "lead: 250 us")),
        file("long", &at_user_interfaces(20_000, "ahead: 4 ms, replace: yes", "")),
        print("default", &queues),
        print("none", "tailbound run existing.yaml --out none -q 2>&1"),
        run("plain"),
        report("plain"),
        print("restored", &queues),
        "tc -n a qdisc replace dev two0 root handle 10: mqprio num_tc 2 map 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 hw 0\n\
         tc -n a qdisc add dev two0 parent 10:2 etf clockid CLOCK_TAI delta 5000000"
            .into(),
        print("foreign", &queues),
        print("refused", "tailbound run plain.yaml --out refused -q 2>&1"),
        run("existing"),
        report("existing"),
        print("unchanged", &queues),
        print("differs", "tailbound run differs.yaml --out differs -q 2>&1"),
        run("replace"),
        report("replace"),
        print("back", &queues),
        run("gated"),
        report("gated"),
        print("ungated", &queues),
        run("assist"),
        report("assist"),
        run("late"),
        report("late"),
        print("unassisted", &queues),
        kill_and_clean_up("two0", "delta 4000000"),
        print("dry", "tailbound run replace.yaml --dry-run 2>&1 | grep two0"),
        print("end", "true"),
    ];
    let console = Guest::with_kernel(KERNEL).shell(&["--with", "ip,tc"], lines.join("\n") + "\nsleep 1\nexit\n");
    let of = |name| section(&console, name);
    for (name, ahead_ms) in [("plain", 4), ("existing", 5), ("replace", 4), ("gated", 4)] {
        let report = unpacked(of(name), &console);
        assert_eq!(report["status"], "valid", "{}\n{console}", report["warnings"]);
        let launch = &report["conditions"][0]["launch"];
        println!("{name}: {launch} {}", report["path"][0]["ends"][0]["launch"]);
        let number = |key: &str| launch[key].as_i64().unwrap();
        // The timers of a busy guest can be late, so that some launch times pass in the queue.
        assert!(number("messages") > 0, "{launch}");
        assert!(number("early_max_ns") <= ahead_ms * 1_000_000 + 100_000, "{launch}");
        if let Some(gate) = report["conditions"][0]["gates"].as_array().and_then(|gates| gates.first()) {
            assert_eq!((name, &gate["outside"]), ("gated", &0.into()));
        }
    }
    launches_below_assist(["assist", "late"].map(|name| unpacked(of(name), &console)));
    assert_eq!(of("restored"), of("default"));
    assert!(
        of("foreign").contains("qdisc mqprio 10: root tc 2") && of("foreign").contains("delta 5000000"),
        "{console}"
    );
    for name in ["unchanged", "back", "ungated", "unassisted", "cleaned"] {
        assert_eq!(of(name), of("foreign"), "{name}");
    }
    assert!(of("killed").contains("delta 4000000"), "{console}");
    assert!(of("list").contains("give two0 its queue discipline `mqprio 10:` back"), "{console}");
    assert!(of("cleanup").contains("gave two0 `mqprio 10:` back"), "{console}");
    insta::assert_snapshot!(["none", "refused", "differs", "dry"].map(of).join("\n"));
}

/// Reports of messages with launch times below gates by `assist`: those with a launch time in a window leave within it, the kernel drops
/// the others, and its reports about late messages arrive.
fn launches_below_assist([assist, late]: [Value; 2]) {
    let losses = |report: &Value, reason: &str| -> u64 {
        let all = report["conditions"][0]["losses"].as_array().into_iter().flatten();
        let named = all.filter(|loss| loss["reason"].as_str().is_some_and(|text| text.contains(reason)));
        named.map(|loss| loss["count"].as_u64().unwrap()).sum()
    };
    let condition = &assist["conditions"][0];
    assert_eq!(assist["status"], "valid", "{}", assist["warnings"]);
    assert_eq!(losses(&assist, "not open at the launch time"), 50, "{condition}");
    let gate = &condition["gates"][0];
    println!("{gate} {}", condition["launch"]);
    let waits = gate["waits"].as_array().unwrap();
    // A message that its queue may give to the device while its gate is open does not wait for the gate.
    assert!(gate["outside"] == 0 && !waits.is_empty() && waits.iter().all(|row| row["predicted_ns"] == 0.0), "{gate}");
    let launch = &late["conditions"][0]["launch"];
    println!("{launch} {}", late["conditions"][0]["losses"]);
    let refused = ["refused_invalid", "refused_missed"].map(|key| launch[key].as_u64().unwrap());
    assert!(refused.iter().sum::<u64>() > 0, "{launch}");
}
