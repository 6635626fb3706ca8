//! Tests of guests that are paused by QMP while the ends measure: their clocks stop, and the trial reports the pause.

use crate::support::guests::{Guests, study};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Connection to the QMP socket of a guest; Tailbound leaves this socket to users.
struct Monitor(BufReader<UnixStream>);

impl Monitor {
    fn of(guests: &Guests, end: &str) -> Monitor {
        let scratch = std::fs::read_dir(guests.bench.path("scratch")).unwrap().flatten();
        let of_run = |path: PathBuf| path.join(format!("guest-{end}/monitor.sock"));
        let socket = scratch.map(|e| of_run(e.path())).find(|path| path.exists()).expect("a monitor");
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut monitor = Monitor(BufReader::new(stream));
        monitor.hear();
        monitor.say("qmp_capabilities");
        monitor
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn say(&mut self, word: &str) {
        writeln!(self.0.get_mut(), "{{\"execute\": \"{word}\"}}").unwrap();
        // Events may arrive before the answer.
        while self.hear().get("return").is_none() {}
    }

    /// Pauses the guest for 300 ms.
    fn pause(&mut self) {
        self.say("stop");
        std::thread::sleep(Duration::from_millis(300));
        self.say("cont");
    }
}

/// A study with the pong in a guest and the ping on this host.
fn pong_in_guest(measure: &str, rest: &str) -> String {
    study(measure, "", rest).replace("place:", "ends:\n  ping: { place: netns }\n  pong:\n    place:")
}

fn warnings<'a>(manifest: &'a Value, code: &str) -> Vec<&'a Value> {
    manifest["warnings"].as_array().unwrap().iter().filter(|w| w["code"] == code).collect()
}

/// Test with the pong end in a guest and the ping end on this host: the guest is paused for 300 ms in the second of
/// three trials.
#[test]
fn a_trial_in_which_a_guest_was_paused_is_invalid_and_its_late_messages_are_there() {
    let guests = Guests::that_boot();
    let text = pong_in_guest("duration: 5 s, timeout: 5 s", "driver: udp\npath: bridge\nrepeat: 3");
    let child = guests.measuring(&text);
    let mut monitor = Monitor::of(&guests, "pong");
    guests.bench.wait_for_event("measuring begins", 2);
    std::thread::sleep(Duration::from_millis(500));
    monitor.pause();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", guests.bench.stderr());
    let manifest = guests.bench.manifest();
    let trials = manifest["trials"].as_array().unwrap();
    let order: Vec<usize> =
        manifest["plan"]["trials"].as_array().unwrap().iter().map(|t| t["id"].as_u64().unwrap() as usize).collect();
    let states: Vec<&str> = order.iter().map(|id| trials[*id]["status"].as_str().unwrap()).collect();
    assert_eq!(states, ["valid", "invalid", "valid"], "{}", manifest["warnings"]);
    let told = warnings(&manifest, "guest_paused");
    assert_eq!((told.len(), told[0]["trial"].as_u64()), (1, Some(order[1] as u64)), "{told:?}");
    let text = told[0]["text"].as_str().unwrap();
    assert!(text.starts_with("guest pong was paused by QMP for ") && !text.contains("still is"), "{text}");
    let seen = &trials[order[1]]["guests"][0];
    let paused_ns = seen["paused_ns"].as_i64().unwrap();
    assert!(paused_ns >= 300_000_000 && seen["not_counted"] == "not counted: emulated", "{seen}");
    assert!(trials[order[0]]["guests"][0]["paused_ns"] == 0, "{}", trials[order[0]]);

    // The ping end uses the clock of this host, which did not stop: every message has its whole delay.
    let record = tailbound_record::Record::open(&guests.bench.path("record")).unwrap();
    let (mut worst, mut missing) = (0, 0);
    record
        .slots(order[1], &mut |batch| {
            for i in 0..batch.len() {
                match batch.receive_ns[i] == tailbound_model::NO_TIME {
                    true => missing += 1,
                    false => worst = worst.max(batch.receive_ns[i] - batch.intended_ns[i]),
                }
            }
        })
        .unwrap();
    // The first message in the pause waited for nearly the whole pause: two slots are 10 ms.
    assert!(missing == 0 && worst >= paused_ns - 10_000_000, "{worst} ns of {paused_ns}, {missing} missing");
    guests.nothing_is_left();
}

/// Test with the pong end in a guest: the ledger of the incident of a pause of 300 ms names the hypervisor for 70 to 130 % of it.
#[test]
fn a_pause_is_the_cause_of_its_late_messages() {
    let guests = Guests::new();
    let text = pong_in_guest("duration: 4 s, timeout: 5 s", "driver: udp\npath: bridge\nattribution: machine");
    let child = guests.measuring(&text);
    let mut monitor = Monitor::of(&guests, "pong");
    guests.bench.wait_for_event("measuring begins", 1);
    std::thread::sleep(Duration::from_millis(1500));
    monitor.pause();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(6), "{}", guests.bench.stderr());
    let seen = &guests.bench.manifest()["trials"][0]["guests"][0];
    let pauses: Vec<(i64, i64)> = serde_json::from_value(seen["pauses"].clone()).unwrap();
    let [(begin, end)] = pauses[..] else { panic!("{seen}") };
    let report = guests.bench.report();
    let incidents = report["conditions"][0]["incidents"].as_array().unwrap();
    let overlaps = |i: &&Value| i["begin_ns"].as_i64().unwrap() < end && begin < i["end_ns"].as_i64().unwrap();
    let worst = incidents.iter().filter(overlaps).max_by_key(|i| i["excess_ns"].as_i64());
    let incident = worst.expect("an incident of the pause");
    let is_pause = |entry: &&Value| {
        entry["cause"] == "stopped" && entry["end"] == "pong" && entry["by"]["name"] == "the hypervisor of guest pong"
    };
    let entries = incident["ledger"].as_array().into_iter().flatten().filter(is_pause);
    let ns: i64 = entries.map(|entry| entry["ns_low"].as_i64().unwrap()).sum();
    // Limit: as for all planted faults.
    assert!(((end - begin) * 7..=(end - begin) * 13).contains(&(ns * 10)), "{ns} of {} ns: {incident:#}", end - begin);
}

/// Runs a trial with both ends in guests, and pauses the guest of an end for 300 ms. Returns the trial of the manifest, and the worst
/// incident.
fn paused_between_two_guests(end: &str) -> (Value, Value) {
    let guests = Guests::new();
    let child =
        guests.measuring(&study("duration: 4 s, timeout: 5 s", "", "driver: udp\npath: bridge\nattribution: machine"));
    let mut monitor = Monitor::of(&guests, end);
    guests.bench.wait_for_event("measuring begins", 1);
    std::thread::sleep(Duration::from_millis(1500));
    monitor.pause();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(6), "{}", guests.bench.stderr());
    let report = guests.bench.report();
    let worst = report["conditions"][0]["incidents"].as_array().unwrap().iter().max_by_key(|i| i["excess_ns"].as_i64());
    (guests.bench.manifest()["trials"][0].clone(), worst.expect("an incident").clone())
}

/// Entries of the ledger of an incident that name the hypervisor of a guest.
fn of_hypervisor(incident: &Value) -> Vec<&Value> {
    let names = |entry: &&Value| entry["by"]["name"].as_str().is_some_and(|name| name.starts_with("the hypervisor"));
    incident["ledger"].as_array().into_iter().flatten().filter(names).collect()
}

/// Test with both ends in guests: the pause is known by the clock of the host, and is converted to the clock of the ping.
#[test]
fn a_pause_is_the_cause_of_its_late_messages_between_two_guests() {
    let (trial, incident) = paused_between_two_guests("pong");
    let paused = trial["guests"].as_array().unwrap().iter().find(|guest| guest["guest"] == "pong").expect("the guest");
    let paused_ns = paused["paused_ns"].as_i64().unwrap();
    let not_followed = "the guest of the pong was paused, and its clock may have stood still meanwhile";
    assert!(paused_ns >= 300_000_000, "{paused}");
    assert_eq!(incident["other_clock"]["not_followed"], not_followed, "{incident:#}");
    assert!(incident["host_clock_width_ns"].as_i64().is_some_and(|ns| ns > 0), "{incident:#}");
    let entries = of_hypervisor(&incident);
    assert!(entries.iter().all(|e| e["cause"] == "stopped" && e["evidence"] == "inferred"), "{incident:#}");
    assert!(entries.iter().all(|e| e["by"]["name"] == "the hypervisor of guest pong"), "{incident:#}");
    let ns: i64 = entries.iter().map(|entry| entry["ns_low"].as_i64().unwrap()).sum();
    // Limit: as for all planted faults.
    assert!((paused_ns * 7..=paused_ns * 13).contains(&(ns * 10)), "{ns} of {paused_ns} ns: {incident:#}");
}

/// Test with both ends in guests: while the guest of the ping is paused, its clock stands still, so that no message is late by this
/// clock. What the host recorded cannot be converted to such a clock, and nothing is said of it.
#[test]
fn a_pause_of_the_guest_of_the_ping_is_no_cause_and_its_clock_is_not_used() {
    let (trial, incident) = paused_between_two_guests("ping");
    let paused = trial["guests"].as_array().unwrap().iter().find(|guest| guest["guest"] == "ping").expect("the guest");
    assert!(paused["paused_ns"].as_i64().unwrap() >= 300_000_000, "{paused}");
    assert!(of_hypervisor(&incident).is_empty() && incident["host_clock_width_ns"].is_null(), "{incident:#}");
    let not_followed = "the guest of the ping was paused, and its clock may have stood still meanwhile";
    assert_eq!(incident["other_clock"]["not_followed"], not_followed, "{incident:#}");
}

/// Test of a guest that stays paused: the trial ends, and the error names the pause.
#[test]
fn a_guest_that_stays_paused_is_reported_as_paused() {
    let guests = Guests::that_boot();
    let text = pong_in_guest("duration: 6 s, timeout: 2 s", "driver: udp\npath: bridge");
    let child = guests.measuring(&text);
    Monitor::of(&guests, "pong").say("stop");
    let output = child.wait_with_output().unwrap();
    let printed = guests.bench.stderr();
    assert_eq!(output.status.code(), Some(6), "{printed}");
    let told = "guest pong: the guest is paused: its QEMU has received the command `stop` and no `cont`";
    assert!(printed.contains("agent pong was lost in mid-trial") && printed.contains(told), "{printed}");
    let manifest = guests.bench.manifest();
    let paused = warnings(&manifest, "guest_paused");
    assert!(paused[0]["text"].as_str().unwrap().contains(", and still is"), "{paused:?}");
    guests.nothing_is_left();
}
