//! Tests of ends on another host: Debian's ssh server in a network namespace, whose processes have another monotonic
//! clock.

use crate::support::host::{no_journal, signal};
use crate::support::processes::wait_for_measuring;
use crate::support::security::{all_secured, built, keeps_keys_to_itself};
use crate::support::ssh::TwoHosts;
use crate::support::{exit_and_stderr, fastdds, succeeded};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tailbound_model::{CpuList, NO_TIME};
use tailbound_record::{Record, TrialStatus};

const AHEAD_S: u32 = 1_000;

/// A study whose place on the other host names an installed Tailbound, because copying a debug build of 400 MB each
/// time would take long.
fn installed(keys: &str, rest: &str) -> String {
    let program = env!("CARGO_BIN_EXE_tailbound");
    study(&format!("host: guest-1, program: {program}{keys}"), rest)
}

fn study(place: &str, rest: &str) -> String {
    format!(
        "study: two-hosts\nquestion: q\nmeasure: {{ ping-pong: {{ duration: 2 s }} }}\nrate: 500 Hz\npayload: 64 B\n\
         ends: {{ pong: {{ place: {{ ssh: {{ {place} }} }} }} }}\n\
         path: {{ existing: {{ ping: {{ interface: x0 }}, pong: {{ interface: x0 }} }} }}\n{rest}\n"
    )
}

fn refused(hosts: &TwoHosts, study: &str) -> String {
    let (code, text) = exit_and_stderr(&hosts.run(study).output().unwrap());
    assert_eq!(code, 3, "{text}");
    no_journal(&hosts.bench);
    hosts.bench.remove_record();
    text.replace(&hosts.bench.path("").display().to_string(), "DIR/")
}

/// Checks for every trial that the printed ranges enclose the exact legs, which the test knows from the offset of the
/// clocks that it made.
fn legs_hold_the_truth(hosts: &TwoHosts) {
    let report = hosts.bench.report();
    let record = Record::open(&hosts.bench.path("record")).unwrap();
    let ahead_ns = i64::from(AHEAD_S) * 1_000_000_000;
    for condition in report["conditions"].as_array().unwrap() {
        let trial = condition["trial_ids"][0].as_u64().unwrap() as usize;
        let (mut out, mut back) = (Vec::new(), Vec::new());
        record
            .slots(trial, &mut |batch| {
                for i in (0..batch.len()).filter(|i| batch.receive_ns[*i] != NO_TIME && !batch.warm_up[*i]) {
                    out.push(batch.echo_in_ns[i] - ahead_ns - batch.send_begin_ns[i]);
                    back.push(batch.receive_ns[i] - (batch.echo_end_ns[i] - ahead_ns));
                }
            })
            .unwrap();
        for (name, mut exact) in [("out_range", out), ("back_range", back)] {
            exact.sort_unstable();
            let range = &condition[name];
            let of = |side: &str, q: f64| {
                let quantiles = range[side]["quantiles"].as_array().unwrap_or_else(|| panic!("{range}"));
                quantiles.iter().find(|x| x["q"] == q).unwrap()["value_ns"].as_i64().unwrap()
            };
            for q in [0.5, 0.9, 0.99] {
                let truth = exact[(q * exact.len() as f64).ceil() as usize - 1];
                let (least, most) = (of("low", q), of("high", q));
                assert!(least <= truth && truth <= most, "{name} p{q}: {truth} is not within {least} to {most}");
                // Limit: the range is as wide as the round trip of the fastest of 1000 messages.
                assert!(most - least < 1_000_000, "{name}: {least} to {most} tells nothing");
            }
        }
        assert!(condition.get("out").is_none(), "a leg between two clocks as one figure");
    }
}

/// Test: `tailbound ping` finds the address of the host by the name that ssh knows, and the own address by the route.
fn a_ping_finds_the_addresses(hosts: &TwoHosts) {
    let mut command = hosts.tailbound();
    command.args(["ping", "--to", "guest-1", "--for", "1s", "--out", "record"]);
    succeeded(&command.output().unwrap());
    let manifest = hosts.bench.manifest();
    assert_eq!(manifest["trials"][0]["ends"]["pong"]["host"], "guest-1");
    let source = manifest["plan"]["source"].as_str().unwrap();
    assert!(source.contains("ping: { address: 10.97.0.1 }, pong: { address: 10.97.0.2 }"), "{source}");
}

#[test]
fn a_host_gets_the_bundle_once_and_its_clock_is_bounded() {
    let hosts = TwoHosts::new(AHEAD_S);
    let text = study("host: guest-1", "factors: { driver: [udp, cyclonedds] }");
    succeeded(&hosts.run(&text).output().unwrap());
    let report = hosts.bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    legs_hold_the_truth(&hosts);
    let manifest = hosts.bench.manifest();
    let ends = &manifest["trials"][0]["ends"];
    assert_ne!(ends["ping"]["clock"], ends["pong"]["clock"]);
    assert_eq!(ends["pong"]["host"], "guest-1");
    assert_eq!(manifest["hosts"].as_object().unwrap().len(), 2);
    // Counters of the other host, and the bytes that its agent sent to the controller during the trial.
    assert!(ends["pong"]["counters"]["interface.rx_packets"].as_i64().unwrap() >= 1000, "{ends}");
    let control = ends["pong"]["control_octets"].as_i64().unwrap();
    assert!((1..400).contains(&control), "{control} octets in 2 s");
    assert_eq!(manifest["trials"][0]["path"]["max_datagram_ping_to_pong"], 65_507);
    hosts.empty_within(Duration::from_secs(5));
    no_journal(&hosts.bench);
    // A second run finds the program there. Then the run removes the program, because the study asks for it.
    let cache = hosts.bench.path("cache/tailbound");
    let bundles = || std::fs::read_dir(&cache).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
    let made = |at: &std::path::Path| std::fs::metadata(at.join("bundle.json")).unwrap().modified().unwrap();
    let before = bundles();
    assert_eq!(before.len(), 1, "{before:?}");
    let when = made(&before[0]);
    hosts.bench.remove_record();
    let text = study("host: guest-1", "driver: udp");
    succeeded(&hosts.run(&text).output().unwrap());
    assert_eq!((bundles(), made(&before[0])), (before.clone(), when));
    hosts.bench.remove_record();
    a_ping_finds_the_addresses(&hosts);
    hosts.bench.remove_record();
    succeeded(&hosts.run(&study("host: guest-1, bundle: remove", "driver: udp")).output().unwrap());
    assert!(bundles().is_empty(), "{:?}", bundles());
}

/// Test: the files of DDS Security reach an end on another host, with each vendor, and are on no disk there.
#[test]
fn ends_on_two_hosts_have_identities() {
    built();
    let hosts = TwoHosts::new(AHEAD_S);
    let drivers = if fastdds::built().is_some() { "[cyclonedds, fastdds]" } else { "[cyclonedds]" };
    let rest = format!("security: {{ governance: encrypt }}\nfactors: {{ driver: {drivers} }}");
    succeeded(&hosts.run(&study("host: guest-1", &rest)).output().unwrap());
    all_secured(&hosts.bench, "encrypt");
    // The directory of the test itself has the keys of ssh, and the cache of the host has the programs.
    keeps_keys_to_itself(&[&hosts.bench.path("record"), &hosts.bench.path("state")]);
}

#[test]
fn unreachable_hosts_are_reported_with_the_reason() {
    let hosts = TwoHosts::new(0);
    let mut told = String::new();
    let mut tell = |what: &str, text: &str| told += &format!("# {what}\n{}\n", text.trim_end());
    hosts.knows("other");
    tell("another host key than the known one", &refused(&hosts, &installed("", "driver: udp")));
    std::fs::write(hosts.bench.path("known"), "").unwrap();
    tell("a host key that is not known", &refused(&hosts, &installed("", "driver: udp")));
    hosts.knows("host");
    std::fs::write(hosts.bench.path("authorized"), "").unwrap();
    tell("a key that is not let in", &refused(&hosts, &installed("", "driver: udp")));
    std::fs::copy(hosts.bench.path("user.pub"), hosts.bench.path("authorized")).unwrap();
    tell("a closed port", &refused(&hosts, &study("host: closed", "driver: udp")));
    tell("no such program", &refused(&hosts, &study("host: guest-1, program: /nowhere/tailbound", "driver: udp")));
    tell(
        "no such interface",
        &refused(&hosts, &installed("", "driver: udp").replace("pong: { interface: x0 }", "pong: { interface: x1 }")),
    );
    let pinned = installed("", "driver: udp").replace("} } }\npath", "}, cpus: 4000 } }\npath");
    tell("a CPU that it does not have", &refused(&hosts, &pinned));
    hosts.empty_within(Duration::from_secs(5));
    let allowed = CpuList(tailbound_host::allowed_cpus().into_iter().collect());
    let all = told.replace(env!("CARGO_BIN_EXE_tailbound"), "/BIN/tailbound");
    let all = all.replace(&format!("the host has the CPUs {allowed}:"), "the host has the CPUs CPUS:");
    insta::assert_snapshot!(all);
}

#[test]
fn a_full_disk_on_the_other_host_is_reported_and_nothing_is_left() {
    let hosts = TwoHosts::new(0);
    let small = hosts.bench.path("small");
    std::fs::create_dir(&small).unwrap();
    let mount = |args: &[&str]| assert!(Command::new(args[0]).args(&args[1..]).arg(&small).status().unwrap().success());
    mount(&["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs"]);
    let text = refused(&hosts, &study(&format!("host: guest-1, directory: {}", small.display()), "driver: udp"));
    let left = std::fs::read_dir(&small).unwrap().count();
    mount(&["umount"]);
    assert!(text.contains("host guest-1: there is no space for the bundle in DIR/small"), "{text}");
    assert!(text.contains("name a `directory` on another file system"), "{text}");
    assert_eq!(left, 0);
}

#[test]
fn another_release_there_is_refused() {
    let hosts = TwoHosts::new(0);
    // This release, changed so that it names another version.
    let (program, release) = (env!("CARGO_BIN_EXE_tailbound"), env!("CARGO_PKG_VERSION").replace('.', "\\."));
    assert_eq!(env!("CARGO_PKG_VERSION").len(), "9.9.9".len(), "its messages say how long they are");
    let filter = format!("while (sysread STDIN, $_, 65536) {{ s/{release}/9.9.9/g; syswrite STDOUT, $_ }}");
    let other = hosts.bench.path("other-release");
    std::fs::write(&other, format!("#!/bin/sh\n'{program}' \"$@\" | perl -e '{filter}'\n")).unwrap();
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let text = refused(&hosts, &study(&format!("host: guest-1, program: {}", other.display()), "driver: udp"));
    assert!(text.contains("host guest-1 has Tailbound 9.9.9, this is 0.1.0"), "{text}");
    assert!(text.contains("leave `program` out: Tailbound then copies itself"), "{text}");
    hosts.empty_within(Duration::from_secs(5));
}

fn begun(hosts: &TwoHosts, study: &str) -> std::process::Child {
    let mut command = hosts.run(study);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_measuring(child.id() as i32, "ping");
    std::thread::sleep(Duration::from_millis(500));
    child
}

#[test]
fn a_connection_that_is_cut_in_mid_run_costs_that_trial() {
    let hosts = TwoHosts::new(0);
    let text = installed("", "driver: udp").replace("duration: 2 s", "duration: 8 s, timeout: 200 ms");
    let child = begun(&hosts, &text);
    assert!(!hosts.processes_there().is_empty());
    let ip = ["-n", &hosts.names[1], "link", "set", "x0", "down"];
    assert!(Command::new("ip").args(ip).status().unwrap().success());
    let cut = Instant::now();
    let output: Output = child.wait_with_output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    assert_eq!(code, 6, "{text}");
    let record = Record::open(&hosts.bench.path("record")).unwrap();
    assert_eq!(record.manifest.trials[0].status, TrialStatus::Invalid);
    let lost = record.manifest.warnings.iter().find(|w| w.problem.code == "agent_lost").expect("a warning");
    assert!(lost.problem.what.starts_with("agent pong was lost in mid-trial: "), "{}", lost.problem.what);
    // The samples of this host are in the record.
    let mut rows = 0;
    record.slots(0, &mut |batch| rows += batch.len()).unwrap();
    assert!(rows > 1000, "{rows} rows");
    // Nobody informs the agent on the other host: it ends when its lease is over.
    hosts.empty_within(Duration::from_secs(45).saturating_sub(cut.elapsed()).max(Duration::from_secs(5)));
    no_journal(&hosts.bench);
}

#[test]
fn a_host_that_was_lost_is_reached_anew() {
    let hosts = TwoHosts::new(0);
    let child = begun(&hosts, &installed("", "driver: udp\nrepeat: 2"));
    let link = |word: &str| {
        let ip = ["-n", &hosts.names[1], "link", "set", "x0", word];
        assert!(Command::new("ip").args(ip).status().unwrap().success());
    };
    link("down");
    std::thread::sleep(Duration::from_secs(12));
    link("up");
    let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
    assert_eq!(code, 6, "{text}");
    let record = Record::open(&hosts.bench.path("record")).unwrap();
    let status = |trial: usize| record.manifest.trials[trial].status;
    assert_eq!((status(0), status(1)), (TrialStatus::Invalid, TrialStatus::Valid), "{text}");
    hosts.empty_within(Duration::from_secs(45));
    no_journal(&hosts.bench);
}

#[test]
fn a_controller_that_is_killed_leaves_nothing_there() {
    let hosts = TwoHosts::new(0);
    let text = installed("", "driver: udp").replace("duration: 2 s", "duration: 60 s");
    let mut child = begun(&hosts, &text);
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    hosts.empty_within(Duration::from_secs(10));
    let mut cleanup = hosts.tailbound();
    succeeded(&cleanup.args(["lab", "cleanup"]).output().unwrap());
    no_journal(&hosts.bench);
    let state: Vec<_> = std::fs::read_dir(hosts.bench.path("state")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(state, ["journal"], "the control socket went with its connection");
}

#[test]
fn both_ends_on_the_other_host_share_its_clock() {
    let hosts = TwoHosts::new(AHEAD_S);
    let program = env!("CARGO_BIN_EXE_tailbound");
    let place = format!("place: {{ ssh: {{ host: guest-1, program: {program} }} }}");
    let text = installed("", "driver: udp");
    let (head, _) = text.split_once("ends:").unwrap();
    succeeded(&hosts.run(&format!("{head}driver: udp\n{place}\n")).output().unwrap());
    let report = hosts.bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let condition = &report["conditions"][0];
    assert_eq!(condition["levels"]["path"], "loopback");
    assert!(condition["out"]["quantiles"][0]["value_ns"].as_i64().unwrap() > 0, "exact legs: {condition}");
}

#[test]
fn a_tool_is_not_run_on_another_host() {
    let bench = crate::support::Bench::new();
    let (code, text) = exit_and_stderr(&bench.run(&study("host: guest-1", "driver: sockperf"), &[]));
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("a tool needs ends that the controller itself starts, but an end has the"), "{text}");
    assert!(text.contains("place ssh guest-1"), "{text}");
    assert!(text.contains("name a driver, or places that are neither another host nor a container"), "{text}");
}

/// Value of the sysctl net.ipv4.ip_default_ttl on one of the two hosts.
fn ttl(hosts: &TwoHosts, host: usize) -> String {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{}", hosts.names[host]));
    let output = command.args(["cat", "/proc/sys/net/ipv4/ip_default_ttl"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn settings_are_made_on_both_hosts_and_restored() {
    let hosts = TwoHosts::new(0);
    let set = "host: { sysctl: { net.ipv4.ip_default_ttl: 70 } }\ndriver: udp";
    let mut child = begun(&hosts, &installed("", set));
    assert_eq!([ttl(&hosts, 0), ttl(&hosts, 1)], ["70", "70"]);
    assert!(child.wait().unwrap().success());
    assert_eq!([ttl(&hosts, 0), ttl(&hosts, 1)], ["64", "64"]);
    let report = hosts.bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let settings = &hosts.bench.manifest()["host_settings"][0]["settings"];
    assert_eq!(settings.as_array().unwrap().len(), 2, "{settings}");
    assert_eq!((&settings[1]["at"], &settings[1]["before"]), (&"host guest-1".into(), &"64".into()), "{settings}");
    assert!(settings[1]["put_back"].as_str().unwrap().contains("restored to `64`"), "{settings}");

    // Another program changes the value on the other host.
    hosts.bench.remove_record();
    let child = begun(&hosts, &installed("", set));
    hosts.shell("echo 33 > /proc/sys/net/ipv4/ip_default_ttl");
    let (code, text) = exit_and_stderr(&child.wait_with_output().unwrap());
    assert_eq!((code, ttl(&hosts, 1).as_str()), (6, "33"), "{text}");
    let manifest = hosts.bench.manifest().to_string();
    assert!(manifest.contains("host guest-1: host.sysctl.net.ipv4.ip_default_ttl: "), "{manifest}");
    hosts.shell("echo 64 > /proc/sys/net/ipv4/ip_default_ttl");

    // After a kill of the controller, the agent on the other host restores the value.
    hosts.bench.remove_record();
    let mut child = begun(&hosts, &installed("", set).replace("duration: 2 s", "duration: 60 s"));
    assert_eq!(ttl(&hosts, 1), "70");
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    hosts.empty_within(Duration::from_secs(10));
    assert_eq!(ttl(&hosts, 1), "64");
    succeeded(&hosts.tailbound().args(["lab", "cleanup"]).output().unwrap());
    assert_eq!(ttl(&hosts, 0), "64");

    // A knob that the other host lacks is reported before anything is measured, and this host is unchanged.
    let none = "host: { sysctl: { net.ipv4.conf.x0.no_such: 1, net.ipv4.ip_default_ttl: 70 } }\ndriver: udp";
    hosts.bench.remove_record();
    let text = refused(&hosts, &installed("", none));
    assert!(text.contains("net.ipv4.conf.x0.no_such"), "{text}");
    assert_eq!([ttl(&hosts, 0), ttl(&hosts, 1)], ["64", "64"]);
}
