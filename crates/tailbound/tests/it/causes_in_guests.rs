//! Causes inside a guest, which the report finds with the help of the recording of its host.

use crate::support::guests::{self, Guests};
use crate::support::may_be_real_time;
use serde_json::Value;

/// Test: the pong is in an emulated guest with a real-time kernel, and the ping on its host. On the CPU of the pong, which has
/// priority 80, a load of priority 70 starves the kernel threads that receive packets.
#[test]
fn a_kernel_thread_that_receives_packets_in_a_guest_and_is_starved_is_named() {
    if !may_be_real_time() {
        return;
    }
    let guests = Guests::new();
    let load = |start, length| {
        format!(
            "  - {{ run: cpu, at: pong, scheduling: {{ policy: fifo, priority: 70, cpus: \"1\" }}, start: {start}, duration: {length} }}\n"
        )
    };
    let loads = load("1 s", "300 ms") + &load("2500 ms", "400 ms");
    let rest = format!("driver: udp\npath: bridge\nattribution: machine\nload:\n{loads}");
    let text = guests::study("duration: 4 s, warm_up: 20, timeout: 5 s", ", emulator: { cpus: \"0\" }", &rest)
        .replace("vcpus: 1", "vcpus: 2")
        .replace("rate: 200 Hz", "rate: 50 Hz")
        .replace("place:", "ends:\n  ping: { place: netns, cpus: \"0\" }\n  pong:\n    cpus: \"1\"\n    scheduling: { policy: fifo, priority: 80 }\n    place:");
    let output = guests.measuring(&text).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", guests.bench.stderr());
    let report = guests.bench.report();
    let incidents = report["conditions"][0]["incidents"].as_array().unwrap();
    // What the host takes from the guest in the same time is not the load's.
    let is_of_load = |incident: &&Value| {
        let of_load = |entry: &&Value| entry["cause"] == "kernel_thread" && entry["by"]["name"] == "tb-load-cpu";
        let entries = incident["ledger"].as_array().into_iter().flatten();
        let ns: i64 = entries.filter(of_load).map(|entry| entry["ns_low"].as_i64().unwrap()).sum();
        // Limit: the shorter load keeps the CPU for 300 ms.
        ns > 150_000_000 && ns * 2 > incident["excess_ns"].as_i64().unwrap()
    };
    let found: Vec<&Value> = incidents.iter().filter(is_of_load).collect();
    assert_eq!(found.len(), 2, "{}", serde_json::to_string_pretty(incidents).unwrap());
    for incident in found {
        let carrier = incident["ledger"][0]["by"]["carrier"].as_str().unwrap_or_default();
        assert!(carrier.starts_with("irq/") || carrier == "ksoftirqd/1", "{incident:#}");
    }
    guests.nothing_is_left();
}
