//! Tests of ends in network namespaces, with and without root; of paths that exist before the run; and of ends that
//! never find each other.

use crate::support::{Bench, exit_and_stderr, succeeded};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const DRIVERS: [&str; 2] = ["udp", "cyclonedds"];

fn study(place: &str, path: &str, driver: &str) -> String {
    format!(
        "study: places\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 300, warm_up: 10, timeout: 1 s }} }}\n\
         rate: 200 Hz\ndriver: {driver}\nplace: {place}\npath: {path}\npayload: 8 KiB\n"
    )
}

#[test]
fn veth_and_bridge_with_their_mtu() {
    for (path, mtu) in [("veth", 1500), ("{ veth: { mtu: 9000 } }", 9000), ("{ bridge: { mtu: 2000 } }", 2000)] {
        for driver in DRIVERS {
            let bench = Bench::new();
            succeeded(&bench.run(&study("netns", path, driver), &[]));
            let report = bench.report();
            assert!(report["conditions"][0]["counts"]["answered"].as_u64().unwrap() >= 250, "{path} {driver}");
            let text = report["path"].to_string();
            assert!(text.contains(&format!("\"mtu\":{mtu}")), "{path}: {text}");
            assert!(text.contains("\"max_datagram_ping_to_pong\":65507"), "{path}: {text}");
        }
    }
}

/// Test as the user nobody, inside a user namespace: all of `tailbound quick` runs over a veth pair.
#[test]
fn quick_without_root() {
    let bench = Bench::new();
    let binary = bench.path("tailbound");
    fs::copy(env!("CARGO_BIN_EXE_tailbound"), &binary).unwrap();
    for path in [bench.dir.path(), &binary] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"])
        .arg(&binary)
        .args(["quick", "--set", "measure.slots=300", "--set", "repeat=1", "--set", "payload=[64 B]"])
        .current_dir(bench.dir.path())
        .env("TAILBOUND_STATE_DIR", bench.path("state"))
        .env("NO_COLOR", "1")
        .output()
        .expect("setpriv of util-linux");
    let (code, text) = exit_and_stderr(&output);
    assert_eq!(code, 0, "{text}");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.contains("path veth") || text.contains("the run measures over loopback in place"), "{out}{text}");
    assert!(bench.path("latest/report.html").exists());
    if text.contains("the run measures over loopback in place") {
        println!("skipped: no user namespaces here, quick fell back to loopback and said so");
    }
}

/// Two named network namespaces: one veth pair joins them, or each has its own veth pair whose other interface is
/// connected to nothing.
struct Named([String; 2]);

impl Named {
    fn make(joined: bool) -> Named {
        let names = ["a", "b"].map(|side| format!("tbtest{}{side}", std::process::id()));
        let ip = |args: &str| {
            let status = Command::new("ip").args(args.split_whitespace()).status().expect("ip of iproute2");
            assert!(status.success(), "ip {args}");
        };
        let [a, b] = &names;
        ip(&format!("netns add {a}"));
        ip(&format!("netns add {b}"));
        if joined {
            ip(&format!("-n {a} link add x0 type veth peer name x0 netns {b}"));
        } else {
            ip(&format!("-n {a} link add x0 type veth peer name y0"));
            ip(&format!("-n {b} link add x0 type veth peer name y0"));
            ip(&format!("-n {a} link set y0 up"));
            ip(&format!("-n {b} link set y0 up"));
        }
        for (index, name) in names.iter().enumerate() {
            ip(&format!("-n {name} addr add 10.99.0.{}/24 dev x0", index + 1));
            ip(&format!("-n {name} link set x0 up"));
            ip(&format!("-n {name} link set lo up"));
        }
        // The kernel takes up to a second to report the carrier of a new veth pair.
        for name in &names {
            for _ in 0..100 {
                let output = Command::new("ip").args(["-n", name, "link", "show", "x0"]).output().unwrap();
                if String::from_utf8_lossy(&output.stdout).contains("state UP") {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        }
        Named(names)
    }

    fn study(&self, driver: &str) -> String {
        let [a, b] = &self.0;
        study("netns", "{ existing: { ping: { interface: x0 }, pong: { interface: x0 } } }", driver).replace(
            "place: netns",
            &format!(
                "ends: {{ ping: {{ place: {{ existing-netns: {a} }} }}, pong: {{ place: {{ existing-netns: {b} }} }} }}"
            ),
        )
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

#[test]
fn existing_namespaces_are_used_and_never_changed() {
    let named = Named::make(true);
    let show = || {
        let text = |name: &String| {
            let output = Command::new("ip").args(["-n", name, "addr", "show"]).output().unwrap();
            // The lifetime of an address counts down, and a new IPv6 address is tentative for a second.
            String::from_utf8_lossy(&output.stdout)
                .replace(" tentative", "")
                .lines()
                .filter(|l| !l.contains("valid_lft"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        named.0.iter().map(text).collect::<Vec<_>>()
    };
    let before = show();
    for driver in DRIVERS {
        let bench = Bench::new();
        succeeded(&bench.run(&named.study(driver), &[]));
        assert!(bench.report()["conditions"][0]["counts"]["answered"].as_u64().unwrap() >= 250, "{driver}");
    }
    assert_eq!(show(), before);
}

/// Test: if the system under test does not work, this is a result and not a failure of Tailbound. The record is valid,
/// every slot is counted, and the report names the reason.
#[test]
fn ends_that_never_meet_are_a_finding() {
    let named = Named::make(false);
    for driver in DRIVERS {
        let bench = Bench::new();
        let output = bench.run(&named.study(driver), &[]);
        let (code, text) = exit_and_stderr(&output);
        assert_eq!(code, 0, "{driver}: {text}");
        let report = bench.report();
        assert_eq!(report["conditions"][0]["counts"]["not_sent"].as_u64(), Some(300), "{driver}");
        let findings = report["findings"].to_string();
        assert!(findings.contains("never met its peer") && findings.contains("nothing seen"), "{driver}: {findings}");
    }
}
