//! Tests of neighbours: guests without an end that run beside a measured guest. QEMU emulates the guests, so that the tests
//! need no KVM; their kernel is Debian's real-time kernel, which `dev/setup vm` downloads.

use crate::support::exit_and_stderr;
use crate::support::guests::{Guests, study};
use crate::support::host::signal;
use serde_json::Value;

/// A study with the ping on this host, and with the pong in a guest that has these further keys.
fn pong_in_guest(measure: &str, guest: &str, rest: &str) -> String {
    study(measure, guest, rest).replace("place:", "ends:\n  ping: { place: netns }\n  pong:\n    place:")
}

/// Names of the guests of a trial, and whether they are neighbours.
fn seen(trial: &Value) -> Vec<(&str, bool)> {
    let guests = trial["guests"].as_array().unwrap().iter();
    guests.map(|guest| (guest["guest"].as_str().unwrap(), guest["neighbour"] == true)).collect()
}

/// Test: the number of neighbours as a factor. The neighbours are different guests on the same bridge; each sends a bulk
/// stream to the ping's side, which receives the streams of both, and each works on its CPU.
#[test]
fn neighbours_run_and_send_beside_a_measured_guest() {
    const EACH_S: u64 = 3;
    let guests = Guests::new();
    let load = "load:\n  - { run: { udp-stream: { flows: 2, rate: 100 Hz } }, at: pong-neighbours }\n  \
                - { run: syscall, at: pong-neighbours }";
    let rest = format!("driver: udp\npath: bridge\nfactors: {{ ends.pong.place.vm.neighbours: [1, 2] }}\n{load}");
    let report = guests.valid(&pong_in_guest(&format!("duration: {EACH_S} s, timeout: 5 s"), "", &rest));
    let manifest = guests.bench.manifest();
    for (number, condition) in report["conditions"].as_array().unwrap().iter().enumerate() {
        let neighbours = number + 1;
        assert_eq!(condition["levels"]["ends.pong.place.vm.neighbours"], neighbours.to_string());
        let id = condition["trial_ids"][0].as_u64().unwrap();
        let trial = &report["trials"][id as usize];
        let names: Vec<String> = (1..=neighbours).map(|n| format!("pong.neighbour-{n}")).collect();
        let expected: Vec<(&str, bool)> =
            std::iter::once(("pong", false)).chain(names.iter().map(|name| (name.as_str(), true))).collect();
        assert_eq!(seen(trial), expected);
        let loads: Vec<&Value> = report["loads"].as_array().unwrap().iter().filter(|l| l["trial"] == id).collect();
        let count = |load: &Value, key: &str| load[key].as_u64().unwrap_or_else(|| panic!("{key} of {load}"));
        let mut sent = 0;
        for name in &names {
            let own: Vec<&&Value> = loads.iter().filter(|l| l["at"] == name.as_str()).collect();
            assert_eq!(own.len(), 2, "{loads:?}");
            let sender = own.iter().find(|l| l["part"] == "sends").expect("a stream of the neighbour");
            // Two flows of 100 Hz; a guest that is late catches up, and the stream has no time for more.
            let most = count(sender, "ran_ns") * 200 / 1_000_000_000 + 2;
            assert!((100..=most).contains(&count(sender, "messages")), "{sender}");
            sent += count(sender, "messages");
            let worker = own.iter().find(|l| l["part"].is_null()).expect("the other load of the neighbour");
            assert!(count(worker, "rounds") > 0 && count(worker, "ran_ns") >= EACH_S * 1_000_000_000, "{worker}");
        }
        let sink: Vec<&&Value> = loads.iter().filter(|l| l["part"] == "receives").collect();
        assert!(sink.len() == 1 && sink[0]["at"] == "ping", "{loads:?}");
        let (came, missing) = (count(sink[0], "messages"), count(sink[0], "missing"));
        assert!(came > sent / 2 && came <= sent && came + missing <= sent, "{came}, {missing} missing, of {sent}");
    }
    // Each trial has loads of the neighbours in the record, named by their guests.
    let of_neighbours = manifest["trials"].as_array().unwrap().iter().map(|t| t["neighbour_loads"].as_array().unwrap());
    assert_eq!(of_neighbours.map(Vec::len).sum::<usize>(), 6);
    // The reason names the measured guest once for all conditions, and not the neighbours.
    assert_eq!(manifest["functional_only"], "the virtual CPUs of guest pong are emulated");
    guests.nothing_is_left();
}

/// Test: a neighbour that is killed while the messages are sent makes the trial invalid, and the next trial has a new one.
/// After a kill of the controller, the clean-up ends the neighbours too.
#[test]
fn a_neighbour_that_ends_makes_the_trial_invalid_and_nothing_is_left() {
    let guests = Guests::that_boot();
    let text = pong_in_guest("duration: 5 s, timeout: 5 s", ", neighbours: 1", "driver: udp\npath: bridge\nrepeat: 2");
    let child = guests.measuring(&text);
    // SAFETY: a process that this test has started.
    unsafe { libc::kill(guests.of_end("pong.neighbour-1"), libc::SIGKILL) };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", guests.bench.stderr());
    let manifest = guests.bench.manifest();
    let states: Vec<&Value> = manifest["trials"].as_array().unwrap().iter().map(|trial| &trial["status"]).collect();
    assert_eq!(states, ["invalid", "valid"], "{}", manifest["warnings"]);
    let warning = manifest["warnings"].as_array().unwrap().iter().find(|w| w["code"] == "neighbour_ended").unwrap();
    let words = "a guest beside the measured one did not run until the last message: guest pong.neighbour-1: QEMU has ended \
                 (signal: 9 (SIGKILL))";
    assert!(warning["text"].as_str().unwrap().starts_with(words) && warning["trial"] == 0, "{warning}");
    assert_eq!(seen(&manifest["trials"][0]), [("pong", false)]);
    assert_eq!(seen(&manifest["trials"][1]), [("pong", false), ("pong.neighbour-1", true)]);
    guests.nothing_is_left();
    guests.bench.remove_record();

    let mut child = guests.measuring(&text);
    assert_eq!(guests.processes("qemu-system").len(), 2);
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    let output = guests.tailbound().args(["lab", "cleanup"]).output().unwrap();
    let cleaned = String::from_utf8_lossy(&output.stdout).into_owned() + &exit_and_stderr(&output).1;
    assert!(output.status.success() && cleaned.contains("QEMU of guest pong.neighbour-1"), "{cleaned}");
    guests.nothing_is_left();
}

/// Test: the dry run has the number of neighbours of each condition, and each neighbour with its connection to the path.
#[test]
fn a_dry_run_lists_the_neighbours() {
    let guests = Guests::new();
    let rest = "driver: udp\npath: bridge\nfactors: { ends.pong.place.vm.neighbours: [0, 2] }";
    let output = guests.run(&pong_in_guest("slots: 10", "", rest)).arg("--dry-run").output().unwrap();
    assert!(output.status.success(), "{}", exit_and_stderr(&output).1);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for words in [
        "ends.pong.place.vm.neighbours 0",
        "ends.pong.place.vm.neighbours 2",
        "guest pong (1 vCPU, 512 MiB, 2 neighbours): start the guest",
        "guest pong.neighbour-2 (1 vCPU, 512 MiB): the same, before the messages are sent; no end runs in it",
        "ip link set tbRUN-q3 master tbRUN-b",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert!(!text.contains("pong.neighbour-3") && !text.contains("tbRUN-q4"), "{text}");
}
