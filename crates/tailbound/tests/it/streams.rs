//! Tests of streams: messages that are due at times of CLOCK_TAI.

use crate::gates::without_note_about_tai;
use crate::support::{Bench, succeeded};
use tailbound_record::Record;

/// A stream over the loopback interface, with more keys.
fn study(rest: &str) -> String {
    format!(
        "study: s\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 50, warm_up: 2 }} }}\nrate: 250 Hz\ndriver: udp\n\
         place: process\nattribution: off\n{rest}"
    )
}

#[test]
fn messages_of_a_stream_are_due_at_their_times_of_the_clock() {
    let bench = Bench::new();
    let text = study("factors: { stream.offset: [0 s, 1500 us] }\n");
    let output = bench.tailbound().args(["run", "--out", "record"]).arg(bench.study(&text)).output().unwrap();
    succeeded(&output);
    let record = Record::open(&bench.path("record")).unwrap();
    for trial in &record.manifest.trials {
        let offset_ns = if record.manifest.plan.trials[trial.id].condition == 0 { 0 } else { 1_500_000 };
        let stream = trial.stream.as_ref().unwrap();
        assert_eq!((stream.base_ns, stream.refused.len()), (0, 0));
        // Limit: the clocks are read many times, and the shortest reading counts.
        assert!((1..1_000_000).contains(&stream.within_ns), "{}", stream.within_ns);
        let mut slots = 0;
        record
            .slots(trial.id, &mut |batch| {
                for due_ns in &batch.intended_ns {
                    assert_eq!((due_ns + stream.ahead_ns).rem_euclid(4_000_000), offset_ns);
                    slots += 1;
                }
            })
            .unwrap();
        assert_eq!(slots, 52);
    }
}

#[test]
fn a_check_says_when_messages_of_a_stream_wait_and_leave() {
    let bench = Bench::new();
    let gates = "path: veth\nends:\n  ping:\n    gates:\n      classes: [{ name: stream, priorities: [7] }, { name: rest }]\n      \
                 entries: [{ open: [stream], for: 1 ms }, { open: [rest], for: 3 ms }]\n";
    let driver = |priority| format!("driver: {{ udp: {{ priority: {priority} }} }}");
    let stream = study(&format!("{gates}stream: {{ offset: 2 ms }}\n"));
    let assisted = stream.replace("gates:", "gates:\n      by: assist");
    let of_pong = stream.replace("  ping:", "  pong:");
    let launch = study("path: veth\nstream: { launch: { lead: 5 ms } }\n");
    let netns = |text: String, priority| text.replace("process", "netns").replace("driver: udp", &driver(priority));
    let said = [netns(stream, 7), netns(assisted, 7), netns(of_pong, 7), netns(launch, 3), study("")].map(|text| {
        let output =
            bench.tailbound().args(["gates", "check"]).arg(bench.study(&text).file_name().unwrap()).output().unwrap();
        let code = output.status.code().unwrap();
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        format!("exit {code}\n{}\n{error}", without_note_about_tai(&out))
    });
    insta::assert_snapshot!(said.join("\n"));
}
