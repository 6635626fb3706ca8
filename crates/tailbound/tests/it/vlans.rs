//! Tests of VLANs on paths: between guests, which make the VLAN interfaces themselves, and between network namespaces
//! inside a guest, because the kernel of this host may lack VLANs. The guests are emulated, with Debian's real-time
//! kernel, which `dev/setup vm` downloads.

use crate::support::guests::{Guests, KERNEL, study};
use crate::support::{exit_and_stderr, tags};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;
use tailbound_lab::netns::{NetNs, run_in};

/// A VLAN that gives frames from sockets of priority 7 the highest priority of a frame.
const VLAN: &str = "{ id: 10, egress: { 7: 7 } }";

/// Checks the path of a trial: each end has the requested VLAN, its interface is the VLAN interface, and datagrams of
/// every size pass.
fn is_on_the_vlan(path: &Value, interface: impl Fn(&str) -> bool) {
    for end in path["ends"].as_array().unwrap() {
        assert_eq!((&end["vlan"]["id"], &end["vlan"]["egress"]["7"]), (&10.into(), &7.into()), "{path}");
        assert!(interface(end["interface"].as_str().unwrap()), "{path}");
    }
    assert_eq!(path["max_datagram_ping_to_pong"], 65_507, "{path}");
    assert_eq!((&path["max_datagram_pong_to_ping"], &path["fragments_pass"]), (&65_507.into(), &true.into()), "{path}");
    assert_eq!(path["multicast_passes"], true, "{path}");
}

/// Test: a VLAN over paths between guests carries every message. Frames with a tag are four bytes longer, so the test
/// also uses the largest MTU of each path.
#[test]
fn a_vlan_over_paths_of_guests_carries_every_message() {
    let guests = Guests::new();
    let paths = "[bridge, xdp, open-vswitch, { open-vswitch: { ports: af-xdp-native, mtu: 3494 } }]";
    let rest =
        format!("vlan: {VLAN}\nfactors: {{ path: {paths}, driver: [{{ udp: {{ priority: 7 }} }}, cyclonedds] }}");
    let text = study("slots: 100, warm_up: 20, timeout: 5 s", "", &rest);
    let report = guests.valid(&text);
    let conditions = report["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 8);
    for condition in conditions {
        let counts = &condition["counts"];
        assert_eq!((&counts["answered"], &counts["lost"]), (&100.into(), &0.into()), "{condition}");
    }
    let manifest = guests.bench.manifest();
    let trials = manifest["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 8);
    for trial in trials {
        is_on_the_vlan(&trial["path"], |name| name.ends_with(".10"));
        assert_eq!(trial["proof"]["found"], "packets", "{}", trial["proof"]);
    }
    assert_eq!(report["path"][0]["ends"][0]["vlan"], "10 egress 7:7");
    guests.nothing_is_left();
}

/// Test, observed where the host passes frames to and from a guest: all frames have the tag, and frames of messages and
/// answers have the priority that the VLAN maps to their socket.
#[test]
fn frames_of_messages_have_the_tag_and_the_priority_of_their_socket() {
    for (driver, pcp) in [("{ udp: { priority: 7 } }", 7), ("udp", 0)] {
        let guests = Guests::new();
        let rest = format!("driver: {driver}\npath: bridge\nvlan: {VLAN}");
        let child = guests.bench.measuring(guests.run(&study("duration: 5 s, timeout: 5 s", "", &rest)));
        let seen = at_the_tap_of_ping(child.id());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", guests.bench.stderr());
        let counts = &guests.bench.report()["conditions"][0]["counts"];
        assert_eq!((&counts["answered"], &counts["lost"]), (&1000.into(), &0.into()), "{counts}");
        let is_tagged = |frame: &tags::Frame| frame.tag.map(|tag| tag.0) == Some(0x8100) && frame.vlan() == Some(10);
        assert!(seen.iter().all(is_tagged), "{seen:?}");
        // All messages and answers have one size, and no other datagram size is sent as often.
        let mut sizes: BTreeMap<usize, Vec<tags::Frame>> = BTreeMap::new();
        seen.iter().for_each(|f| sizes.entry(f.udp_payload.unwrap_or(0)).or_default().push(*f));
        let messages = sizes.into_values().max_by_key(Vec::len).unwrap_or_default();
        assert!(messages.len() > 50 && messages[0].udp_payload.is_some(), "{messages:?}");
        assert!(messages.iter().all(|frame| frame.pcp() == Some(pcp)), "{messages:?}");
        guests.nothing_is_left();
    }
}

/// Captures frames for three seconds in the network namespace that the controller has made.
fn at_the_tap_of_ping(controller: u32) -> Vec<tags::Frame> {
    let fds = fs::read_dir(format!("/proc/{controller}/fd")).unwrap().flatten().map(|entry| entry.path());
    let is_netns =
        |path: &std::path::PathBuf| fs::read_link(path).is_ok_and(|l| l.to_string_lossy().starts_with("net:"));
    let under = NetNs::open(fds.into_iter().find(is_netns).expect("a namespace").to_str().unwrap()).unwrap();
    let seen = run_in(&under, || {
        let names = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        let tap = names.lines().filter_map(|line| line.trim().split(':').next()).find(|name| name.ends_with("-q0"));
        tags::watch(tap.expect("the tap of the ping"), Duration::from_secs(3)).unwrap()
    });
    seen.unwrap().join().unwrap()
}

/// Test inside a guest whose kernel has 802.1Q: a VLAN between network namespaces carries every message.
#[test]
fn a_vlan_between_network_namespaces_carries_every_message() {
    let guests = Guests::new();
    let mut command = guests.tailbound();
    command.args(["guest", "run", "--kernel", KERNEL, "--accelerator", "emulated", "--vcpus", "2", "--out", "record"]);
    let text = format!(
        "study: vlans\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 100, timeout: 5 s }} }}\nrate: 200 Hz\n\
         driver: {{ udp: {{ priority: 7 }} }}\nplace: netns\n\
         factors: {{ path: [veth, {{ bridge: {{ mtu: 9000 }} }}], vlan: [off, {VLAN}] }}\n"
    );
    command.arg(guests.bench.study(&text));
    let (code, text) = exit_and_stderr(&command.output().unwrap());
    assert_eq!(code, 0, "{text}");
    let report = guests.bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let conditions = report["conditions"].as_array().unwrap();
    let levels = |c: &Value| (c["levels"]["path"].clone(), c["levels"]["vlan"].clone());
    let all: Vec<_> = conditions.iter().map(levels).collect();
    let pair = |path: &str, vlan: &str| (path.into(), vlan.into());
    let vlan = "10 egress 7:7";
    let wanted = [("veth", "off"), ("veth", vlan), ("bridge mtu 9000", "off"), ("bridge mtu 9000", vlan)];
    assert_eq!(all, wanted.map(|(path, vlan)| pair(path, vlan)));
    let manifest = guests.bench.manifest();
    for condition in conditions {
        let counts = &condition["counts"];
        assert_eq!((&counts["answered"], &counts["lost"]), (&100.into(), &0.into()), "{condition}");
        let trial = &manifest["trials"][condition["trial_ids"][0].as_u64().unwrap() as usize];
        if condition["levels"]["vlan"] == "off" {
            let vlans = trial["path"]["ends"].as_array().unwrap().iter().map(|end| &end["vlan"]);
            assert!(vlans.into_iter().all(Value::is_null), "{}", trial["path"]);
            continue;
        }
        is_on_the_vlan(&trial["path"], |name| name.contains("-v"));
        // The interface below carries the same packets, with their tag, and no others.
        let space = &trial["proof"]["spaces"][0];
        let on = space["path"][0].as_str().unwrap();
        let below = on.replace("-v", "-p");
        let sent = |name: &str| space["data"]["interfaces"][name]["tx_packets"].as_i64().unwrap();
        assert!(sent(on) >= 100 && sent(on) == sent(&below), "{space}");
    }
    guests.nothing_is_left();
}

/// Test: if the kernel of this host has no VLANs, the run and the dry run report this before any change to the host. If
/// both ends are guests, the kernel of this host is not checked.
#[test]
fn a_host_without_vlans_is_reported() {
    let guests = Guests::new();
    let text = format!(
        "study: vlans\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 10 }} }}\nrate: 200 Hz\ndriver: udp\npath: veth\n\
         vlan: {VLAN}\n"
    );
    let output = guests.run(&text).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    guests.nothing_is_left();
    if code == 0 {
        println!("skipped: this kernel has 802.1Q");
        return;
    }
    let release = crate::support::output_of("uname", &["-r"]);
    let text = text.replace(release.trim(), "RELEASE").replace(guests.bench.dir.path().to_str().unwrap(), "BENCH");
    insta::assert_snapshot!(format!("exit {code}\n{text}"));
    assert!(!guests.bench.path("record").exists());
}
