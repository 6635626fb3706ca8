//! Tests of throughput and fan-out: sent = received + lost for every subscriber, compared with the counters of the
//! kernel.

use crate::support::processes::{descendants, kill, wait_for_measuring};
use crate::support::{Bench, exit_and_stderr, succeeded};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;
use tailbound_model::{FlowCounts, FlowPart};
use tailbound_record::Record;

fn study(measure: &str, rest: &str) -> String {
    format!("study: flows\nquestion: q\nmeasure: {{ {measure} }}\nquiet: off\n{rest}\n")
}

/// Message counts of all ends of trial 0: first the counts of the publisher, then the counts of each subscriber with
/// its name.
fn counts(bench: &Bench) -> (FlowCounts, Vec<(String, FlowCounts)>) {
    let record = Record::open(&bench.path("record")).unwrap();
    let ends = &record.manifest.trials[0].ends;
    let of = |name: &str| ends[name].flow.clone().unwrap_or_else(|| panic!("{name} has no counts"));
    let receiving = ends.keys().filter(|name| *name != "ping").map(|name| (name.clone(), of(name)));
    (of("ping"), receiving.collect())
}

fn flow(report: &Value) -> &Value {
    &report["conditions"][0]["flow"]
}

/// Checks in the report that sent = received + lost for every subscriber. Returns the number of lost messages of all
/// subscribers.
fn adds_up(report: &Value, subscribers: usize) -> u64 {
    let trial = &flow(report)["trials"][0];
    let of = trial["subscribers"].as_array().unwrap();
    assert_eq!(of.len(), subscribers);
    let number = |v: &Value| v.as_u64().unwrap();
    for one in of {
        assert_eq!(number(&trial["sent"]), number(&one["received"]) + number(&one["lost"]), "{one}");
    }
    of.iter().map(|one| number(&one["lost"])).sum()
}

/// Checks that the counts of all seconds add up to the counts of the trial.
fn seconds_hold_all(counts: &FlowCounts) {
    assert_eq!(counts.seconds.iter().map(|s| s.messages).sum::<u64>(), counts.messages());
    let bytes: u64 = counts.parts.iter().map(|p| p.bytes).sum();
    assert_eq!(counts.seconds.iter().map(|s| s.bytes).sum::<u64>(), bytes);
}

/// Test of a publisher that is faster than its subscriber: the number of lost messages equals the number that the
/// kernel dropped.
#[test]
fn losses_are_those_that_the_kernel_counts() {
    let bench = Bench::new();
    let text = study(
        "throughput: { duration: 2 s, ramp_up: 300 ms }",
        "driver: { udp: { rcvbuf: 4096 } }\nplace: netns\npath: veth\npayload: 1 KiB",
    );
    succeeded(&bench.run(&text, &[]));
    let (sent, received) = counts(&bench);
    let (_, received) = &received[0];
    let lost = sent.messages() - received.messages();
    let record = Record::open(&bench.path("record")).unwrap();
    let counters = &record.manifest.trials[0].ends["pong"].counters;
    println!("sent {}, lost {lost}, {counters:?}", sent.messages());
    assert!(lost > 100, "a buffer of 4 KiB lost {lost} of {} messages", sent.messages());
    assert_eq!(lost as i64, counters["Udp.RcvbufErrors"]);
    let tail = sent.next - received.next;
    assert_eq!(lost, received.missing + tail, "gaps that the subscriber saw, and the tail");
    seconds_hold_all(&sent);
    seconds_hold_all(received);
    adds_up(&bench.report(), 1);
}

#[test]
fn eight_reliable_subscribers_lose_nothing() {
    let bench = Bench::new();
    let text = study(
        "throughput: { duration: 1 s, ramp_up: 200 ms, subscribers: 8, pack: 4 }",
        "driver: cyclonedds\nplace: process\npayload: 64 B\n\
         qos: { reliability: { reliable: { max_blocking_time: 2 s } }, history: keep-all }",
    );
    succeeded(&bench.run(&text, &[]));
    let (sent, received) = counts(&bench);
    for (name, counts) in &received {
        assert_eq!(counts.parts.map(|p| p.messages), sent.parts.map(|p| p.messages), "{name}");
        assert_eq!(counts.part(FlowPart::Window).bytes, counts.part(FlowPart::Window).messages * 4 * 64, "{name}");
        assert_eq!((counts.missing, counts.duplicates, counts.foreign), (0, 0, 0), "{name}");
    }
    let report = bench.report();
    assert_eq!(adds_up(&report, 8), 0);
    let flow = flow(&report);
    assert_eq!(flow["sent"].as_u64().unwrap(), sent.part(FlowPart::Window).messages * 4);
    assert!(flow["discovery_ns"]["median"].as_f64().unwrap() > 0.0);
    assert!(flow["publisher_cpu_ns"]["median"].as_f64().unwrap() > 0.0);
    assert!(
        report["functional_only"].as_str().unwrap().contains("9 measured threads"),
        "{}",
        report["functional_only"]
    );
}

/// Test: with a rate, the measuring window has exactly the messages that were due in it; and the figures of the messages
/// that are answered (`ping_every`) are those of a ping-pong.
#[test]
fn a_rate_is_kept_and_pings_are_round_trips() {
    let bench = Bench::new();
    let text = study(
        "throughput: { duration: 1 s, ramp_up: 200 ms, ping_every: 10, subscribers: 2 }",
        "driver: udp\nplace: process\nrate: 2 kHz",
    );
    succeeded(&bench.run(&text, &[]));
    let (sent, received) = counts(&bench);
    assert_eq!(sent.parts.map(|p| p.messages), [400, 2000, 400]);
    assert_eq!(received.len(), 2);
    received.iter().for_each(|(_, counts)| seconds_hold_all(counts));
    let report = bench.report();
    let condition = &report["conditions"][0];
    assert_eq!(condition["counts"]["scheduled"], 200);
    assert_eq!(condition["counts"]["warm_up"], 40);
    assert!(condition["counts"]["answered"].as_u64().unwrap() > 190, "{}", condition["counts"]);
    let message = &condition["median_message"];
    let legs = ["out_ns", "turnaround_ns", "back_ns"].map(|leg| message[leg].as_i64().unwrap());
    assert_eq!(legs.iter().sum::<i64>(), message["round_trip_ns"].as_i64().unwrap());
    let intended = condition["worst"][0]["intended_ns"].as_i64().unwrap();
    let t0 = report["trials"][0]["t0_ns"].as_i64().unwrap();
    assert_eq!((intended - t0) % 5_000_000, 0, "every tenth message of 2 kHz");
}

#[test]
fn inside_one_process_nothing_is_lost() {
    let bench = Bench::new();
    let text = study("throughput: { duration: 500 ms, ramp_up: 100 ms }", "driver: \"null\"\nplace: same-process");
    succeeded(&bench.run(&text, &[]));
    let (sent, received) = counts(&bench);
    assert!(sent.messages() > 1000, "{sent:?}");
    assert_eq!(received[0].1.messages(), sent.messages());
    assert_eq!(adds_up(&bench.report(), 1), 0);
}

#[test]
fn fan_out_reports_delays_of_each_and_of_the_last_subscriber() {
    let bench = Bench::new();
    let text = study(
        "fan-out: { duration: 1 s, ramp_up: 200 ms, subscribers: 3 }",
        "driver: udp\nplace: process\nrate: 1 kHz",
    );
    succeeded(&bench.run(&text, &[]));
    let report = bench.report();
    let flow = flow(&report);
    let one_way = flow["one_way"].as_array().unwrap();
    assert_eq!(one_way.len(), 3);
    let median = |figures: &Value| figures["quantiles"][0]["value_ns"].as_i64().unwrap();
    let medians: Vec<i64> = one_way.iter().map(|s| median(&s["figures"])).collect();
    for one in one_way {
        assert_eq!(one["figures"]["scheduled"], 1000);
    }
    assert_eq!(flow["slowest"]["scheduled"], 1000);
    assert!(median(&flow["slowest"]) >= *medians.iter().max().unwrap(), "{medians:?} {}", flow["slowest"]);
    assert!(median(&flow["slowest_from_intended"]) >= median(&flow["slowest"]));
    adds_up(&report, 3);
}

/// Test of four namespaces on a bridge: `udp` sends one datagram to each subscriber, and the IP counters show the same
/// number.
#[test]
fn datagrams_of_each_subscriber_are_counted_in_its_namespace() {
    let bench = Bench::new();
    let text = study(
        "fan-out: { duration: 1 s, ramp_up: 200 ms, subscribers: 4, spread: namespaces }",
        "driver: udp\nplace: netns\npath: bridge\nrate: 500 Hz",
    );
    succeeded(&bench.run(&text, &[]));
    let report = bench.report();
    assert_eq!(adds_up(&report, 4), 0);
    let trial = &flow(&report)["trials"][0];
    let cast = &trial["cast"];
    assert_eq!(cast["way"], "unicast", "{cast}");
    let single = cast["to_single"].as_f64().unwrap();
    assert!((3.9..=4.2).contains(&single), "{cast}");
    // An independent count: packets that arrived at the interface of each subscriber.
    let (sent, received) = counts(&bench);
    let record = Record::open(&bench.path("record")).unwrap();
    for (name, counts) in &received {
        let came = record.manifest.trials[0].ends[name].counters["Udp.InDatagrams"];
        assert!(came >= counts.messages() as i64 && came <= sent.messages() as i64 + 100, "{name}: {came}");
    }
}

/// Test of Cyclone DDS with multicast: one datagram reaches all subscribers of a group.
#[test]
fn one_datagram_to_a_group_reaches_all() {
    let bench = Bench::new();
    let text = study(
        "fan-out: { duration: 1 s, ramp_up: 200 ms, subscribers: 4, spread: namespaces }",
        "driver: { cyclonedds: { multicast: on } }\nplace: netns\npath: bridge\nrate: 500 Hz\n\
         qos: { reliability: best-effort }",
    );
    succeeded(&bench.run(&text, &[]));
    let report = bench.report();
    assert_eq!(flow(&report)["trials"][0]["subscribers"].as_array().unwrap().len(), 4);
    let cast = &flow(&report)["trials"][0]["cast"];
    println!("{cast}");
    assert_eq!(cast["way"], "multicast", "{cast}");
    assert!((0.9..=1.2).contains(&cast["to_groups"].as_f64().unwrap()), "{cast}");
    assert!(cast["groups"].as_array().unwrap().len() >= 4, "each of them has joined: {cast}");
}

/// Test: batching changes the packets on the path, not the messages that arrive. A driver without batching refuses the
/// study. The path is an interface of its own: the counters of the loopback interface also contain what other tests send.
#[test]
fn batches_arrive_whole_and_a_driver_without_them_refuses_them() {
    let bench = Bench::new();
    let text = study(
        "throughput: { duration: 1 s, ramp_up: 200 ms }",
        "driver: udp\nplace: netns\npath: veth\nqos: { reliability: { reliable: { max_blocking_time: 2 s } }, history: keep-all }\n\
         factors:\n  driver: [cyclonedds]\n  measure.batching: [off, on]",
    );
    let text = text.replace("driver: udp\n", "");
    succeeded(&bench.run(&text, &[]));
    let report = bench.report();
    let of = |i: usize| &report["conditions"][i]["flow"];
    for i in 0..2 {
        assert_eq!(of(i)["lost"], 0, "{}", of(i));
    }
    let bytes = |i: usize| of(i)["trials"][0]["wire_octets_per_message"].as_f64().unwrap();
    println!("octets per message: {} without, {} with batching", bytes(0), bytes(1));
    assert!(bytes(1) < 0.8 * bytes(0), "{} and {}", bytes(0), bytes(1));

    let bench = Bench::new();
    let text = study("throughput: { batching: on }", "driver: udp\nplace: process");
    let (code, printed) = exit_and_stderr(&bench.run(&text, &[]));
    assert_eq!(code, 2, "{printed}");
    assert!(printed.contains("driver udp has no batching"), "{printed}");
}

/// Test: a killed subscriber makes the trial invalid, and the warning names the subscriber; the counts of all ends up
/// to the kill remain in the record.
#[test]
fn a_subscriber_that_dies_leaves_the_counts_of_the_others() {
    let bench = Bench::new();
    let text = study(
        "throughput: { duration: 3 s, ramp_up: 200 ms, subscribers: 3 }",
        "driver: udp\nplace: process\nrate: 1 kHz",
    );
    let file = bench.study(&text);
    let mut command = bench.tailbound();
    command.arg("run").arg(file).arg("--out").arg(bench.path("record"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let measuring = descendants(wait_for_measuring(child.id() as i32, "pong2"))[0];
    std::thread::sleep(Duration::from_millis(1000));
    kill(measuring);
    let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
    assert_eq!(code, 6, "{text}");
    let (sent, received) = counts(&bench);
    let messages = |name: &str| received.iter().find(|(n, _)| n == name).unwrap().1.messages();
    for other in ["pong", "pong3"] {
        assert!(messages(other) > sent.messages() - 50, "{other}: {} of {}", messages(other), sent.messages());
    }
    let dead = messages("pong2");
    assert!(dead > 100 && dead < sent.messages() - 500, "{dead} of {}", sent.messages());
    let report = bench.report();
    assert_eq!(report["status"], "invalid");
    let told = report["warnings"].to_string();
    assert!(told.contains("agent pong2 was lost in mid-trial"), "{told}");
    assert!(adds_up(&report, 3) > 500);
}

/// Test: both drivers that have a limit of unacknowledged messages apply the same limit and report its value. A driver
/// without such a limit refuses the setting, and so does a best-effort writer.
#[test]
fn a_limit_of_unacknowledged_messages_is_read_back() {
    let bench = Bench::new();
    let text = study(
        "throughput: { duration: 500 ms, ramp_up: 100 ms }",
        "place: process\npayload: 64 B\n\
         qos: { reliability: { reliable: { max_blocking_time: 2 s } }, history: keep-all }\n\
         factors:\n  driver: [cyclonedds]\n  measure.unacked_limit: [none, 20, 5]",
    );
    let drivers = if crate::support::fastdds::built().is_some() { "[cyclonedds, fastdds]" } else { "[cyclonedds]" };
    succeeded(&bench.run(&text.replace("[cyclonedds]", drivers), &[]));
    let report = bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    for condition in report["conditions"].as_array().unwrap() {
        let told = &condition["flow"]["trials"][0]["told"];
        let asked = condition["levels"]["measure.unacked_limit"].as_str().unwrap();
        assert_eq!(told["unacked_limit"].as_u64(), asked.parse().ok(), "{told}");
        assert_eq!(condition["flow"]["lost"], 0);
        if condition["levels"]["driver"] == "cyclonedds" && asked != "none" {
            // Cyclone DDS counts 160 B for a message of 64 B, and its limit is one message lower.
            assert_eq!(told["unacked_limit_bytes"], (asked.parse::<u64>().unwrap() - 1) * 160, "{told}");
            assert!(told["throttled_times"].as_u64().unwrap() > 0, "{told}");
        }
    }
    let output = bench.tailbound().args(["report", "record"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("limit in force"), "{text}");
    assert!(drivers == "[cyclonedds]" || text.contains("not told"), "{text}");

    let refused = |rest: &str| {
        let bench = Bench::new();
        let (code, text) = exit_and_stderr(&bench.run(&study("throughput: { unacked_limit: 20 }", rest), &[]));
        format!("exit {code}\n{}", text.replace(bench.dir.path().to_str().unwrap(), "BENCH"))
    };
    insta::assert_snapshot!(
        [
            "driver: udp\nplace: process",
            "driver: cyclonedds\nplace: process",
            "driver: cyclonedds\nplace: process\nqos: { reliability: best-effort, history: keep-all }",
            "driver: { cyclonedds: { unacked_limit: 7 } }\nplace: process\nqos: { history: keep-all }",
        ]
        .map(refused)
        .join("\n")
    );
}

/// Test with the largest allowed number of subscribers: every row of samples is stored, and the record has the CPU time
/// of the controller.
#[test]
fn sixty_four_subscribers_keep_every_row() {
    let bench = Bench::new();
    let text = study(
        "fan-out: { duration: 2 s, ramp_up: 500 ms, subscribers: 64 }",
        "driver: udp\nplace: process\nrate: 50 Hz\nends: { pong: { cpus: any } }",
    );
    succeeded(&bench.run(&text, &[]));
    let report = bench.report();
    assert_eq!(adds_up(&report, 64), 0);
    let one_way = flow(&report)["one_way"].as_array().unwrap();
    assert_eq!(one_way.len(), 64);
    for one in one_way {
        assert_eq!((&one["figures"]["n"], &one["figures"]["scheduled"]), (&100.into(), &100.into()), "{one}");
    }
    let record = Record::open(&bench.path("record")).unwrap();
    let ends = &record.manifest.trials[0].ends;
    assert!(ends.values().all(|end| end.rows_dropped == 0));
    assert!(report["functional_only"].as_str().unwrap().contains("65 measured threads"));
    let share = report["trials"][0]["controller_share"].as_f64().unwrap();
    println!("the controller took {:.2} % of a CPU", 100.0 * share);
    assert!(share > 0.0);
    assert_eq!(flow(&report)["controller_share"]["median"], share);
}

/// Test of a publisher that is faster than three best-effort subscribers: each subscriber lost as many messages as the
/// kernel dropped for it.
#[test]
fn a_publisher_outruns_its_subscribers_for_a_minute() {
    let bench = Bench::new();
    let text = study(
        "throughput: { duration: 60 s, ramp_up: 300 ms, subscribers: 3, spread: namespaces }",
        "driver: { udp: { rcvbuf: 4096 } }\nplace: netns\npath: bridge\npayload: 1 KiB\nends: { pong: { cpus: any } }",
    );
    succeeded(&bench.run(&text, &[]));
    let (sent, received) = counts(&bench);
    let record = Record::open(&bench.path("record")).unwrap();
    assert_eq!(received.len(), 3);
    for (name, counts) in &received {
        let lost = sent.messages() - counts.messages();
        println!("{name}: sent {}, lost {lost}", sent.messages());
        assert!(lost > 100, "{name}: {lost}");
        assert_eq!(lost, counts.missing + sent.next - counts.next, "{name}: gaps that it saw, and the tail");
        let dropped = &record.manifest.trials[0].ends[name].counters;
        // Dropped by the buffer of the socket; on a busy machine also by the queue of the interface (netdev_max_backlog).
        let by_kernel = dropped["Udp.RcvbufErrors"] + dropped["interface.rx_drop"];
        assert_eq!(lost as i64, by_kernel, "{name}: {dropped:?}");
        seconds_hold_all(counts);
    }
    seconds_hold_all(&sent);
    assert!(sent.seconds.len() >= 60, "{} seconds", sent.seconds.len());
    assert!(adds_up(&bench.report(), 3) > 300);
}

/// Test: the chart on the HTML page whose horizontal axis is the payload shows the values of the report's JSON
/// document; Markdown and CSV have the same figures.
#[test]
fn figures_over_the_payload_are_those_of_the_document() {
    let bench = Bench::new();
    let text = study(
        "throughput: { duration: 300 ms, ramp_up: 50 ms }",
        "driver: udp\nplace: process\nrepeat: 2\nfactors:\n  payload: [64 B, 1 KiB]",
    );
    succeeded(&bench.run(&text, &[]));
    let report = bench.report();
    let page = std::fs::read_to_string(bench.path("record/report.html")).unwrap();
    let (_, drawn) = page.split_once("<section id=\"flow-axis\">").expect("the figures");
    let drawn = drawn.split_once("</section>").unwrap().0;
    assert!(!page.contains("<section id=\"conditions\">"), "a table of round trips without one");
    let printed = |format: &str| {
        let output = bench.tailbound().args(["report", "record", "--format", format]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let (markdown, csv) = (printed("md"), printed("csv"));
    assert_eq!(csv.lines().filter(|line| line.contains(",flow,")).count(), 2, "{csv}");
    let widths: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert!(csv.contains('"') || widths.iter().all(|w| *w == widths[0]), "{widths:?}");
    for condition in report["conditions"].as_array().unwrap() {
        assert_eq!(condition["flow"]["trials"].as_array().unwrap().len(), 2);
        for key in ["samples_per_s", "payload_mbit_s", "publisher_cpu_ns"] {
            let median = condition["flow"][key]["median"].as_f64().unwrap();
            assert!(drawn.contains(&format!("data-value=\"{median}\"")), "{key} {median}: {drawn}");
        }
        assert!(csv.contains(&condition["flow"]["samples_per_s"]["median"].to_string()), "{csv}");
    }
    assert!(markdown.contains("| payload |") && markdown.contains("limit in force"), "{markdown}");
}
