//! Causes inside a guest, which the report finds with the help of the recording of its host.

use crate::causes_of_late_messages::{Fault, Injected, Judged, judge};
use crate::support::guests::{self, Guests};
use crate::support::host::stands_still;
use crate::support::{Bench, may_be_real_time};
use serde_json::Value;
use std::time::Duration;
use tailbound_host::{monotonic_ns, scheduling};
use tailbound_model::{CpuList, Policy, RoleScheduling, Switches};

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

/// Test: the pong is in an emulated guest, and the ping on its host. A thread of the host takes the CPU of the guest's vCPU,
/// or the process that emulates the guest is stopped: nothing of that can be seen inside the guest.
#[test]
fn what_keeps_a_guest_from_working_is_named() {
    if !may_be_real_time() {
        return;
    }
    let threads = ", vcpu_threads: [{ cpus: \"1\" }], emulator: { cpus: \"0\" }";
    let ends = "ends:\n  ping: { place: netns, cpus: \"0\" }\n  pong:\n    place:";
    disturbed_guest_of_the_pong(&|text| text.replace("place:", ends), threads, &|_| 0);
}

/// Test: as before, but the ping is in a guest too, so that only the controller can record what happens on the host.
#[test]
fn what_keeps_one_of_two_guests_from_working_is_named() {
    if !may_be_real_time() {
        return;
    }
    let guest = |cpu| format!(", vcpu_threads: [{{ cpus: \"{cpu}\" }}], emulator: {{ cpus: \"0\" }}");
    let apart = |text: &str| {
        let place = text.lines().find(|line| line.starts_with("place:")).unwrap();
        let of_ping = place.replace(&guest(1), &guest(0));
        text.replace(place, &format!("ends:\n  ping:\n    {of_ping}\n  pong:\n    {place}"))
    };
    let ahead_ns = |bench: &Bench| {
        let seen = std::fs::read(bench.path("record/switches/0-host.json")).unwrap();
        let seen: Switches = serde_json::from_slice(&seen).unwrap();
        let readings = seen.host.expect("a recording of the host").ping_clock;
        let shortest = readings.iter().min_by_key(|reading| reading.after_ns - reading.before_ns).unwrap();
        (shortest.before_ns + shortest.after_ns) / 2 - shortest.other_ns
    };
    disturbed_guest_of_the_pong(&apart, &guest(1), &ahead_ns);
}

/// Runs a trial whose pong is in a guest with these keys that is disturbed, and judges the report. `ends`: puts the ends into the
/// text of the study. `ahead_ns`: time by which the clock of this host is ahead of the clock of the ping, ns.
fn disturbed_guest_of_the_pong(ends: &dyn Fn(&str) -> String, guest: &str, ahead_ns: &dyn Fn(&Bench) -> i64) {
    let guests = Guests::new();
    let rest = "driver: udp\npath: bridge\nattribution: machine";
    let child = guests.measuring(&ends(&guests::study("duration: 8 s, warm_up: 20, timeout: 5 s", guest, rest)));
    let qemu = guests.of_end("pong");
    guests.bench.wait_for_event("measuring begins", 1);
    let mut faults = std::thread::spawn(move || disturb(qemu)).join().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", guests.bench.stderr());
    let ahead_ns = ahead_ns(&guests.bench);
    faults
        .iter_mut()
        .for_each(|fault| (fault.begin_ns, fault.end_ns) = (fault.begin_ns - ahead_ns, fault.end_ns - ahead_ns));
    let mut judged = Judged::new("injected-hog");
    let report = guests.bench.report();
    let wrong = judge(&report, &faults, &mut judged);
    if judged.incidents < 10 || wrong * 5 > judged.incidents {
        assert!(stands_still(), "{wrong} of {} wrong", judged.incidents);
        return;
    }
    let text = report["conditions"][0]["incidents"].to_string();
    let hog = "`vCPU 0 of guest pong` of the pong end waited for CPU 1, which `injected-hog` (";
    let stop = "`the hypervisor of guest pong` was stopped (SIGSTOP, or a debugger)";
    assert!(text.contains(hog) && text.contains(stop), "{text}");
    // The receiver of the ping did not cause it.
    let stopped_at = |incident: &Value| -> Vec<Value> {
        let spans = incident["waterfall"]["spans"].as_array().into_iter().flatten();
        spans.filter(|span| span["cause"] == "stopped").map(|span| span["hop"].clone()).collect()
    };
    let hops: Vec<Value> =
        report["conditions"][0]["incidents"].as_array().unwrap().iter().flat_map(stopped_at).collect();
    assert!(!hops.is_empty() && !hops.contains(&"ping_receiver".into()), "{hops:?}");
    guests.nothing_is_left();
}

/// Keeps CPU 1 busy, or stops the process `qemu`, for 30 ms each in turn.
fn disturb(qemu: i32) -> Vec<Injected> {
    let hog = RoleScheduling { policy: Some(Policy::Fifo { priority: 90 }), cpus: Some(CpuList::one(1)) };
    scheduling::apply(0, &hog).unwrap();
    nix::sys::prctl::set_name(c"injected-hog").unwrap();
    let length = Duration::from_millis(30);
    let one = |n: u32| {
        std::thread::sleep(Duration::from_millis(300));
        let begin_ns = monotonic_ns();
        let fault = if n.is_multiple_of(2) {
            while monotonic_ns() < begin_ns + length.as_nanos() as i64 {}
            Fault::Hog { cpu: 1 }
        } else {
            // SAFETY: a process of a run that this test started.
            unsafe { libc::kill(qemu, libc::SIGSTOP) };
            std::thread::sleep(length);
            // SAFETY: as above.
            unsafe { libc::kill(qemu, libc::SIGCONT) };
            Fault::Stop { end: "pong" }
        };
        Injected { fault, planned_ns: length.as_nanos() as i64, begin_ns, end_ns: monotonic_ns() }
    };
    (0..20).map(one).collect()
}

/// Test: both ends and the controller are in one emulated guest, which is stopped as a whole. Inside of it, nothing shows who did
/// that: timers are late, or a CPU that runs a thread gets no interrupt of its timer. Nothing else may be named.
#[test]
fn a_stop_of_the_whole_machine_is_seen_from_inside_as_what_it_can_be() {
    let guests = Guests::new();
    let study = "study: stopped\nquestion: q\nmeasure: { ping-pong: { duration: 4 s, warm_up: 20, timeout: 5 s } }\n\
                 payload: 64 B\ndriver: udp\nplace: netns\npath: veth\nattribution: machine\n\
                 ends: { ping: { cpus: \"0\" }, pong: { cpus: \"1\" } }\n\
                 factors:\n  setting:\n    asleep: { rate: 100 Hz, measure.receive: block, ends.ping.scheduling: { policy: fifo, priority: 80 } }\n\
                 \x20   polling: { rate: max, measure.receive: spin }\n";
    let mut command = guests.tailbound();
    command.args(["guest", "run", "--kernel", guests::KERNEL, "--accelerator", "emulated", "--vcpus", "2"]);
    let mut child = command.args(["--out", "record"]).arg(guests.bench.study(study)).spawn().unwrap();
    let stop_ns = 40_000_000;
    while child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(350));
        for qemu in guests.processes("qemu-system") {
            // SAFETY: a process of a run that this test started.
            unsafe { libc::kill(qemu, libc::SIGSTOP) };
            std::thread::sleep(Duration::from_nanos(stop_ns));
            // SAFETY: as above.
            unsafe { libc::kill(qemu, libc::SIGCONT) };
        }
    }
    assert!(child.wait().unwrap().success());
    let report = guests.bench.report();
    let mut named = [0, 0];
    for incident in report["conditions"].as_array().unwrap().iter().flat_map(|c| c["incidents"].as_array().unwrap()) {
        let excess_ns = incident["excess_ns"].as_i64().unwrap();
        // Limit: a message that was due within a stop waits for the rest of it.
        if excess_ns < 25_000_000 {
            continue;
        }
        let entries = incident["ledger"].as_array().map_or(&[][..], Vec::as_slice);
        for (at, (cause, bound)) in [("timer_late", "ns_low"), ("machine_gap", "ns_high")].into_iter().enumerate() {
            let ns = entries.iter().filter(|e| e["cause"] == cause).map(|e| e[bound].as_i64().unwrap()).sum::<i64>();
            named[at] += i32::from(ns * 2 > excess_ns);
        }
        let said = ["timer_late", "machine_gap", "network", "driver_call", "instrument"];
        // Limit: in an emulated guest, other threads really have a CPU for some milliseconds of each incident.
        let is_false =
            |e: &&Value| !said.contains(&e["cause"].as_str().unwrap()) && e["ns_low"].as_i64().unwrap() * 2 > excess_ns;
        assert_eq!(entries.iter().find(is_false), None, "{incident:#}");
    }
    println!("timer_late, machine_gap: {named:?}");
    assert!(named.iter().all(|n| *n > 0), "{named:?}: {report:#}");
    guests.nothing_is_left();
}
