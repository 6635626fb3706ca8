//! Tests of flows over drivers that are shared objects, over loopback and veth: the numbers of messages add up, even
//! with losses.

use crate::support::{Bench, fastdds, ros2, succeeded};
use tailbound_model::FlowPart;
use tailbound_record::Record;

const WAYS: [&str; 2] = ["path: loopback\nplace: process", "path: veth\nplace: netns"];

fn study(driver: &str, receive: &str, way: &str) -> String {
    format!(
        "study: flows\nquestion: q\nquiet: off\ndriver: {driver}\n{way}\n\
         measure: {{ throughput: {{ duration: 500 ms, ramp_up: 100 ms, receive: {receive} }} }}\n\
         factors:\n  payload: [64 B, 1 KiB, 63000 B]\n  qos:\n    - {{ reliability: reliable, history: keep-all }}\n    \
         - {{ reliability: best-effort, history: {{ keep-last: 1 }} }}\n"
    )
}

/// Result of one trial: whether the flow was reliable, and the numbers of received and lost messages before, in and
/// after the window together.
struct Seen {
    reliable: bool,
    received: u64,
    lost: u64,
}

/// Runs the study and checks the numbers of each trial: the lost messages are the gaps that the subscriber counted plus
/// the messages after the last message that arrived.
fn run(driver: &str, receive: &str, way: &str) -> Vec<Seen> {
    let bench = Bench::new();
    succeeded(&bench.run(&study(driver, receive, way), &[]));
    let record = Record::open(&bench.path("record")).unwrap();
    let report = bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let trials = &record.manifest.trials;
    assert_eq!(trials.len(), 6);
    let seen = |trial: &tailbound_record::TrialRecord| {
        let [sent, received] = ["ping", "pong"].map(|end| trial.ends[end].flow.clone().unwrap());
        let lost = sent.messages() - received.messages();
        let tail = sent.next - received.next;
        assert_eq!(sent.messages(), sent.next, "every number was sent once");
        assert_eq!(lost, received.missing + tail, "gaps that the subscriber saw, and the tail");
        assert_eq!((received.foreign, received.stale), (0, 0));
        let condition = record.manifest.plan.trials.iter().find(|t| t.id == trial.id).unwrap().condition;
        let told = &report["conditions"][condition]["flow"]["trials"][0];
        let number = |key: &str| told["subscribers"][0][key].as_u64().unwrap();
        assert_eq!(told["sent"].as_u64().unwrap(), sent.part(FlowPart::Window).messages);
        assert_eq!(told["sent"].as_u64().unwrap(), number("received") + number("lost"));
        assert_eq!(told["told"]["matched"], 1, "{told}");
        let reliable = record.manifest.plan.conditions[condition].spec.qos["reliability"] == "reliable";
        println!("{driver} {way:?} reliable {reliable}: sent {}, lost {lost}", sent.messages());
        Seen { reliable, received: received.messages(), lost }
    };
    trials.iter().map(seen).collect()
}

#[test]
fn fastdds_loses_nothing_that_is_reliable() {
    if fastdds::built().is_none() {
        return;
    }
    for way in WAYS {
        for seen in run("fastdds", "listener", way) {
            assert!(seen.received > 100, "{way}: {} received", seen.received);
            assert!(!seen.reliable || seen.lost == 0, "{way}: {} lost", seen.lost);
        }
    }
}

/// Test: RustDDS stores 64 messages for a reader, reliable or not, so messages may be lost in both cases; the numbers
/// must add up.
#[test]
fn ros2_accounts_for_what_it_loses() {
    ros2::built();
    for way in WAYS {
        let all = run("ros2", "block", way);
        assert!(all.iter().map(|s| s.received).sum::<u64>() > 100, "{way}");
    }
}
