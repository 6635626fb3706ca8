//! Tests of `tailbound watch --uprobes`: calls of real programs of ROS 2, beside the times that their ends recorded.

use crate::support::host::cannot;
use crate::support::rcl::{Ros, real};
use crate::support::ros2::study;
use crate::support::{Bench, exit_and_stderr};
use crate::watch::{SENT, in_namespace, in_namespace_of, watched};
use serde_json::Value;
use tailbound_model::NO_TIME;

/// The calls of a capture; `None` = BPF cannot be used here.
fn calls(found: &Value) -> Option<&Vec<Value>> {
    let warnings = found["warnings"].to_string();
    // A program that the kernel refuses for another reason is a failure.
    if warnings.contains("BPF cannot be used: the kernel permits it to root") || warnings.contains("/sys/kernel/btf") {
        println!("skipped: BPF cannot be used here: {warnings}");
        return None;
    }
    Some(found["calls"]["topics"].as_array().unwrap_or_else(|| panic!("{found:#}")))
}

/// Smallest and largest time of a range.
fn ends(range: &Value) -> (i64, i64) {
    let of = |name: &str| range[name].as_i64().unwrap_or_else(|| panic!("{range:#}"));
    (of("min_ns"), of("max_ns"))
}

/// What the ends of a record say of one way: the times in the call that sends, and those from its begin to the receipt.
struct Way {
    sends: Vec<i64>,
    one_way: Vec<i64>,
}

fn way(bench: &Bench, out: bool) -> Way {
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    let mut way = Way { sends: Vec::new(), one_way: Vec::new() };
    record
        .slots(0, &mut |batch| {
            let (begin, end, received) = match out {
                true => (&batch.send_begin_ns, &batch.send_end_ns, &batch.echo_in_ns),
                false => (&batch.echo_begin_ns, &batch.echo_end_ns, &batch.receive_ns),
            };
            for ((begin, end), received) in begin.iter().zip(end).zip(received) {
                assert!(![*begin, *end, *received].contains(&NO_TIME), "every message was answered");
                way.sends.push(end - begin);
                way.one_way.push(received - begin);
            }
        })
        .unwrap();
    way
}

/// Test: every message is found with the call that published it, and the times lie within those that the ends of the study recorded:
/// the call to publish within the call of the driver, and the take before the receipt by the driver.
fn calls_lie_within_those_of_the_ends(driver: &str, ros: &Ros, has_callbacks: bool) {
    let bench = Bench::new();
    bench.study(&study(driver, "listener", "process", "loopback"));
    let script = "watching --uprobes; \"$T\" run study.yaml --out record >/dev/null; stop";
    let found = watched(&bench, &in_namespace_of(&bench, script, Some(ros)));
    let Some(topics) = calls(&found) else { return };
    assert_eq!(found["calls"]["lost"], 0, "{found:#}");
    let own = topics.iter().filter(|topic| topic["topic"].as_str().unwrap().contains("tailbound_p"));
    // Beside them are topics of ROS 2 itself, and one on which the driver `rcl` tests itself.
    let own: Vec<&Value> = own.collect();
    assert_eq!(own.len(), 2, "{topics:#?}");
    for topic in own {
        let way = way(&bench, topic["topic"].as_str().unwrap().contains("ping"));
        assert_eq!((topic["published"].as_u64(), way.sends.len() as u64), (Some(SENT), SENT), "{topic:#}");
        // One process publishes, another one takes.
        let [taker] = &topic["takers"].as_array().unwrap()[..] else { panic!("{topic:#}") };
        let figures = ["taken", "matched", "ambiguous"].map(|name| taker[name].as_u64().unwrap());
        assert_eq!(figures, [SENT, SENT, 0], "{taker:#}");
        let most = |times: &[i64]| times.iter().copied().max().unwrap();
        let least = |times: &[i64]| times.iter().copied().min().unwrap();
        let (publish, whole, wire) =
            (ends(&topic["publish"]), ends(&taker["publish_to_take"]), ends(&taker["wire_to_take"]));
        assert!(publish.0 > 0 && publish.1 <= most(&way.sends), "{publish:?}, {}", most(&way.sends));
        assert!(publish.0 <= least(&way.sends), "{publish:?}, {}", least(&way.sends));
        // The driver's call begins before the one of rmw, and its receipt is after the take.
        assert!(whole.1 <= most(&way.one_way) && whole.0 <= least(&way.one_way), "{whole:?}: {topic:#}");
        assert!(wire.0 > 0 && wire.1 < whole.1, "{wire:?}, {whole:?}");
        assert_eq!(taker["wire_to_take"]["count"].as_u64(), Some(SENT), "{taker:#}");
        let callbacks = taker["callback"]["count"].as_u64().unwrap_or(0);
        assert_eq!(callbacks, if has_callbacks { SENT } else { 0 }, "{taker:#}");
        let latest = taker["latest"].as_array().unwrap();
        assert_eq!(latest.len(), 5, "{taker:#}");
        let names: Vec<&str> =
            latest[0]["parts"].as_array().unwrap().iter().map(|part| part["name"].as_str().unwrap()).collect();
        let all = ["publish to wire", "wire to take", "callback"];
        assert_eq!(names, all[..if has_callbacks { 3 } else { 2 }], "{taker:#}");
    }
}

#[test]
fn calls_of_rclcpp_lie_within_those_of_the_ends() {
    if let Some(ros) = real().filter(|_| !cannot()) {
        for executor in ["single", "multi", "events"] {
            calls_lie_within_those_of_the_ends(&format!("{{ rclcpp: {{ executor: {executor} }} }}"), &ros, true);
        }
    }
}

#[test]
fn calls_of_rcl_lie_within_those_of_the_ends() {
    if let Some(ros) = real().filter(|_| !cannot()) {
        calls_lie_within_those_of_the_ends("rcl", &ros, false);
    }
}

/// Runs a study of rclcpp whose pong may use CPU 0 alone and whose ping CPU 1, and a disturbance with `$P`, a process of the pong, while it is measured.
/// Returns the parts of the latest message of the ping, and the text. `None` = BPF cannot be used here.
fn disturbed(ros: &Ros, disturbance: &str) -> Option<(Vec<Value>, String)> {
    let bench = Bench::new();
    let text = study("{ rclcpp: { executor: single } }", "listener", "process", "loopback");
    bench.study(&format!("{text}ends: {{ ping: {{ cpus: 1 }}, pong: {{ cpus: 0 }} }}\n"));
    let script = format!(
        "export TAILBOUND_LOG=debug; \"$T\" watch --for 100s --uprobes --out seen >watched.txt 2>watched.err & W=$!; \
        until grep -q '^watching' watched.err; do kill -0 $W; sleep 0.05; done; \
        \"$T\" run study.yaml --out record >/dev/null 2>run.err & R=$!; \
        until grep -q 'measuring begins' record/logs/controller.log; do kill -0 $R; sleep 0.02; done; sleep 0.2; \
        {disturbance}; wait $R || true; kill -INT $W; wait $W; cp seen/watch.json watched.json"
    );
    let found = watched(&bench, &in_namespace_of(&bench, &script, Some(ros)));
    let topics = calls(&found)?;
    let ping = topics.iter().find(|topic| topic["topic"].as_str().unwrap().contains("ping")).unwrap();
    let parts = ping["takers"][0]["latest"][0]["parts"].as_array().unwrap().clone();
    let text = std::fs::read_to_string(bench.path("watched.txt")).unwrap();
    Some((parts, text.split_whitespace().collect::<Vec<_>>().join(" ")))
}

fn of_part(parts: &[Value], name: &str) -> (i64, i64) {
    let part = parts.iter().find(|part| part["name"] == name).unwrap_or_else(|| panic!("{parts:#?}"));
    (part["time_ns"].as_i64().unwrap(), part["wait"]["time_ns"].as_i64().unwrap_or(0))
}

/// Test: the listener is stopped for 300 ms while messages are on their way: the part that made the latest message late, and that it did
/// not wait for a CPU.
#[test]
fn a_stopped_listener_makes_messages_late_before_the_take() {
    let Some(ros) = real().filter(|_| !cannot()) else { return };
    let stop = "P=$(pgrep --ns $$ --nslist net -x tb-pong); kill -STOP $P; sleep 0.3; kill -CONT $P";
    let Some((parts, text)) = disturbed(&ros, stop) else { return };
    let (late_ns, waited_ns) = of_part(&parts, "wire to take");
    assert!(late_ns > 250_000_000 && waited_ns < late_ns / 2, "{parts:#?}");
    assert!(text.contains("; wire to take made it late, not for want of a CPU"), "{text}");
}

/// Test: a real-time program takes the CPU of the listener for 60 ms: a thread of the listener was ready and waited for it.
#[test]
fn a_taken_cpu_makes_messages_late_before_the_take() {
    let Some(ros) = real().filter(|_| !cannot()) else { return };
    let hog = "timeout 0.06 chrt -f 50 taskset -c 0 sh -c 'while :; do :; done' || true";
    let Some((parts, text)) = disturbed(&ros, hog) else { return };
    let (late_ns, waited_ns) = of_part(&parts, "wire to take");
    assert!(late_ns > 40_000_000 && waited_ns > late_ns / 2, "{parts:#?}");
    let wait = &parts.iter().find(|part| part["name"] == "wire to take").unwrap()["wait"];
    assert!(wait["by"] == "sh" && wait["by_ns"].as_i64().unwrap() > late_ns / 2, "{parts:#?}");
    assert!(text.contains("; wire to take made it late: its thread "), "{text}");
    assert!(text.contains("for a CPU, which sh had for"), "{text}");
}

/// Test: without rights for BPF, packets are captured all the same, and a warning says what is missing.
#[test]
fn a_refused_attachment_is_said() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    let script = "setpriv --bounding-set -all,+net_raw,+net_admin --inh-caps -all,+net_raw --ambient-caps -all \
        \"$T\" watch --for 300ms --uprobes --format json >watched.json 2>watched.err";
    let found = watched(&bench, &in_namespace(&bench, script));
    let printed = std::fs::read_to_string(bench.path("watched.err")).unwrap();
    let refused = "BPF cannot be used: the kernel permits it to root, or with CAP_BPF and CAP_PERFMON";
    assert!(printed.contains(&format!("warning: --uprobes: {refused}")), "{printed}");
    assert!(found["warnings"].to_string().contains(refused) && found.get("calls").is_none(), "{found:#}");
}

/// Test: nothing here is a program of ROS 2.
#[test]
fn a_place_without_ros_is_said() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    let output = in_namespace(&bench, "\"$T\" watch --for 300ms --uprobes --format json >watched.json 2>watched.err");
    assert_eq!(exit_and_stderr(&output).0, 0, "{}", exit_and_stderr(&output).1);
    let found = watched(&bench, &output);
    if calls(&found).is_some() {
        assert!(
            found["warnings"].to_string().contains("no process of this network namespace has a library of ROS 2"),
            "{found:#}"
        );
    }
}
