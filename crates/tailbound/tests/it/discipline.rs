//! Tests of the state of the clock that chrony and linuxptp report. In these tests the two programs do not adjust the
//! clock.

use crate::support::Bench;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Script that starts chrony and linuxptp in separate namespaces, waits until they answer, and prints the facts that
/// Tailbound reads.
const SCRIPT: &str = r#"
set -eu
mount -t tmpfs tmpfs /run
ip link set lo up
ip link add ptp0 type veth peer name ptp1
ip link set ptp0 up; ip link set ptp1 up
printf '%s\n' 'local stratum 8' 'port 0' 'pidfile /run/chronyd.pid' >/run/chrony.conf
chronyd -x -d -u root -f /run/chrony.conf >/run/chrony.log 2>&1 &
ptp4l -i ptp0 -S --free_running 1 >/run/ptp4l.log 2>&1 &
trap 'kill %1 %2; wait' EXIT
answers() { chronyc -c -n tracking >/dev/null 2>&1 && pmc -u -b 0 'GET TIME_STATUS_NP' | grep -q gmIdentity; }
for _ in $(seq 100); do ! answers || break; sleep 0.1; done
answers || { cat /run/chrony.log /run/ptp4l.log >&2; exit 1; }
"$TAILBOUND" doctor --json || [ $? -le 3 ]
"#;

/// Directory into which `dev/setup test` unpacks chrony and linuxptp. If they were installed, they would replace the
/// machine's own programs.
fn programs() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clocks/usr");
    // SAFETY: geteuid has no argument and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root || !root.join("sbin/ptp4l").is_file() {
        println!("skipped: needs root, and chrony and linuxptp in target/clocks (dev/setup test)");
        return None;
    }
    Some(root)
}

fn facts(path: &str) -> Vec<Value> {
    let bench = Bench::new();
    let program = bench.tailbound().get_program().to_owned();
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--propagation", "private", "bash", "-c", SCRIPT]);
    let output = command.env("TAILBOUND", program).env("PATH", path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let document: Value = serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    document["facts"]["facts"].as_array().unwrap().clone()
}

#[test]
fn offsets_that_chrony_and_linuxptp_tell_are_facts() {
    let Some(programs) = programs() else { return };
    let own = std::env::var("PATH").unwrap();
    let facts = facts(&format!("{}:{}:{own}", programs.join("sbin").display(), programs.join("bin").display()));
    let fact = |key: &str| {
        facts.iter().find(|f| f["key"] == key).unwrap_or_else(|| panic!("{key}: {facts:#?}"))["value"].clone()
    };
    // chrony has no time source, so its own clock is its reference.
    assert_eq!(fact("clock.chrony.offset_ns")["number"], 0, "{}", fact("clock.chrony.offset_ns"));
    assert_eq!(fact("clock.chrony.leap")["text"], "Normal");
    // ptp4l is its own master.
    assert_eq!(fact("clock.ptp.master_offset_ns")["number"], 0);
    assert_eq!(fact("clock.ptp.grandmaster_present")["flag"], false);
    let identity = fact("clock.ptp.grandmaster")["text"].as_str().unwrap().to_owned();
    assert_eq!(identity.split('.').count(), 3, "{identity}");
}
