//! Tests of guests on networks that existed before the run: on a bridge with the network card as a port, and over the
//! card itself. The other end is on a host behind the card, which ssh reaches over the same card at the same time.

use crate::support::exit_and_stderr;
use crate::support::guests::{KERNEL, SNAPSHOTS};
use crate::support::host::{no_journal, signal};
use crate::support::output_of;
use crate::support::ssh::TwoHosts;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Two hosts that a cable connects; guests run on the first host.
struct Network {
    hosts: TwoHosts,
}

impl Network {
    fn new() -> Network {
        Network { hosts: TwoHosts::new(1_000) }
    }

    fn ip(&self, line: &str) {
        let output = Command::new("ip").args(["-n", &self.hosts.names[0]]).args(line.split(' ')).output().unwrap();
        assert!(output.status.success(), "ip {line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Adds the network card to a new bridge as a port; the bridge gets the card's address.
    fn bridge(&self) {
        for line in [
            "link add br0 mtu 1400 type bridge forward_delay 0",
            "address del 10.97.0.1/24 dev x0",
            "link set x0 mtu 1400",
            "link set x0 master br0",
            "address add 10.97.0.1/24 dev br0",
            "link set br0 up",
        ] {
            self.ip(line);
        }
        // The state of the bridge follows the state of its ports within a second.
        let until = Instant::now() + Duration::from_secs(10);
        while !self.state().contains(": br0: <BROADCAST,MULTICAST,UP,LOWER_UP>") {
            assert!(Instant::now() < until, "{}", self.state());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// State of the network as text: interfaces, the bridges to which they belong, hardware addresses, and IPv4
    /// addresses.
    fn state(&self) -> String {
        let show = |words: &[&str]| output_of("ip", &[&["-n", &self.hosts.names[0], "-o"], words].concat());
        format!("{}\n{}", show(&["link", "show"]), show(&["-4", "address", "show"]))
    }

    fn tailbound(&self) -> Command {
        let mut command = self.hosts.tailbound();
        let scratch = self.hosts.bench.path("scratch");
        fs::create_dir_all(&scratch).unwrap();
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests")).env("TMPDIR", scratch);
        command.env(SNAPSHOTS, "1");
        command
    }

    fn run(&self, study: &str) -> Command {
        self.hosts.bench.to_run(self.tailbound(), "record", study)
    }

    /// Checks that a run has left nothing behind, except in the namespaces of the test.
    fn nothing_is_left(&self) {
        let left: Vec<_> =
            fs::read_dir(self.hosts.bench.path("scratch")).unwrap().flatten().map(|e| e.path()).collect();
        assert!(left.is_empty(), "{left:?}");
        no_journal(&self.hosts.bench);
    }
}

/// A study with the ping end in a guest and the pong end at the place `pong`. `ping` and `path_of_pong` are the keys of
/// the existing path at the ping end and at the pong end.
fn study(measure: &str, ping: &str, pong: &str, path_of_pong: &str) -> String {
    format!(
        "study: networks\nquestion: q\nmeasure: {{ ping-pong: {{ {measure} }} }}\nrate: 200 Hz\ndriver: udp\nends:\n  ping: \
         {{ place: {{ vm: {{ kernel: {{ package: {KERNEL} }}, accelerator: emulated, vcpus: 1 }} }} }}\n  pong: {{ place: \
         {pong} }}\npath: {{ existing: {{ ping: {{ {ping} }}, pong: {{ {path_of_pong} }} }} }}\n"
    )
}

fn there() -> String {
    format!("{{ ssh: {{ host: guest-1, program: {} }} }}", env!("CARGO_BIN_EXE_tailbound"))
}

const SHORT: &str = "slots: 200, warm_up: 20, timeout: 5 s";

/// Runs a study, and checks that every message was answered and that legs are ranges between two clocks. Returns the
/// part of the record about the path at the guest's end.
fn delivered(network: &Network, study: &str) -> serde_json::Value {
    let (code, text) = exit_and_stderr(&network.run(study).output().unwrap());
    assert_eq!(code, 0, "{text}");
    let report = network.hosts.bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let condition = &report["conditions"][0];
    let counts = &condition["counts"];
    assert_eq!((&counts["answered"], &counts["lost"]), (&200.into(), &0.into()), "{condition}");
    assert!(condition["out"].is_null() && condition["out_range"]["low"].is_object(), "{condition}");
    let manifest = network.hosts.bench.manifest();
    network.hosts.bench.remove_record();
    network.nothing_is_left();
    manifest["trials"][0]["path"]["ends"][0].clone()
}

#[test]
fn a_guest_on_a_bridge_of_the_user_reaches_another_host_and_this_one() {
    let network = Network::new();
    network.bridge();
    let before = network.state();
    let guest = "interface: br0, address: 10.97.0.5/24";
    let end = delivered(&network, &study(SHORT, guest, &there(), "interface: x0"));
    assert_eq!((&end["address"], &end["mtu"]), (&"10.97.0.5".into(), &1400.into()), "{end}");
    let attached = &end["attached"];
    assert_eq!((&attached["kind"], &attached["to"]), (&"bridge".into(), &"br0".into()), "{attached}");
    assert!(attached["by"].as_str().unwrap().starts_with("tb"), "{attached}");
    let ports = attached["interfaces"].as_array().unwrap();
    assert_eq!(ports.len(), 1, "{attached}");
    assert_eq!((&ports[0]["name"], &ports[0]["driver"]), (&"x0".into(), &"veth".into()), "{attached}");
    assert_eq!(network.state(), before);
    delivered(&network, &study(SHORT, guest, "process", "interface: br0"));
    assert_eq!(network.state(), before);

    // If the controller is killed, QEMU still has the tap; the clean-up ends QEMU.
    let mut child =
        network.hosts.bench.measuring(network.run(&study("duration: 60 s", guest, &there(), "interface: x0")));
    let port =
        network.state().lines().find(|line| line.contains("master br0") && line.contains(": tb")).map(str::to_owned);
    let port = port.unwrap_or_else(|| panic!("no port of the guest: {}", network.state()));
    assert!(port.contains("link/ether fe:ff:ff:"), "{port}");
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    let output = network.tailbound().args(["lab", "cleanup"]).output().unwrap();
    let cleaned = String::from_utf8_lossy(&output.stdout).into_owned() + &exit_and_stderr(&output).1;
    assert!(output.status.success() && cleaned.contains("QEMU of guest ping"), "{cleaned}");
    assert_eq!(network.state(), before);
    network.nothing_is_left();
}

#[test]
fn a_guest_over_a_card_that_the_host_goes_on_using_reaches_another_host() {
    let network = Network::new();
    let before = network.state();
    let end = delivered(&network, &study(SHORT, "interface: x0, address: 10.97.0.5/24", &there(), "interface: x0"));
    assert_eq!((&end["address"], &end["mtu"]), (&"10.97.0.5".into(), &1500.into()), "{end}");
    assert_eq!((&end["attached"]["kind"], &end["attached"]["to"]), (&"macvtap".into(), &"x0".into()), "{end}");
    assert_eq!(end["attached"]["interfaces"][0]["name"], "x0", "{end}");
    assert_eq!(network.state(), before);
}

#[test]
fn networks_that_no_guest_can_use_are_refused_before_a_guest_starts() {
    let network = Network::new();
    let before = network.state();
    let mut all = String::new();
    let mut refused = |what: &str, ping: &str, pong: &str, side: &str| {
        let (code, text) = exit_and_stderr(&network.run(&study(SHORT, ping, pong, side)).output().unwrap());
        assert_eq!(code, 3, "{what}: {text}");
        network.hosts.bench.remove_record();
        let text = text.replace(&network.hosts.bench.path("").display().to_string(), "DIR/");
        all += &format!("# {what}\n{}\n", text.trim_end());
    };
    refused("unknown interface", "interface: x1, address: 10.97.0.5/24", &there(), "interface: x0");
    refused("an address of this host", "interface: x0, address: 10.97.0.1/24", &there(), "interface: x0");
    refused("over the interface of the other end", "interface: x0, address: 10.97.0.5/24", "process", "interface: x0");
    refused("no such card", "device: \"00ff:00:00.0\", address: 10.97.0.5/24", &there(), "interface: x0");
    // The list of network cards depends on this machine.
    let shown = all.split("the network cards are ").enumerate().map(|(n, part)| match n {
        0 => part.to_owned(),
        _ => format!("the network cards are CARDS\n{}", part.split_once('\n').map_or("", |(_, rest)| rest)),
    });
    let shown = shown.collect::<String>().replace("there is no network card on PCI", "the network cards are CARDS");
    insta::assert_snapshot!(shown.trim_end());
    assert_eq!(network.state(), before);
    no_journal(&network.hosts.bench);
}
