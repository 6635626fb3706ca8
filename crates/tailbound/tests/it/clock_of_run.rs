//! Tests of the key `clock` with a real ptp4l of linuxptp, between two network namespaces, with software time stamps. It adjusts no
//! clock (`free_running`).

use crate::support::Bench;
use crate::support::host::{is_root, no_journal};
use crate::support::ssh::TwoHosts;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Two ptp4l that are joined by a veth pair; then two runs: one whose bound cannot be held, and one in whose first trial ptp4l is
/// killed. Standard error of the runs is in the files `1` and `2`.
const SCRIPT: &str = r#"
set -eu
unshare --net sleep 300 & other=$!
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
ip link set lo up
ip link add ptp0 type veth peer name ptp1
ip link set ptp1 netns $other
ip link set ptp0 up; nsenter --net=/proc/$other/ns/net ip link set ptp1 up
options="-2 -S --free_running 1 --logSyncInterval -3 --logAnnounceInterval -1 --logMinDelayReqInterval -3"
nsenter --net=/proc/$other/ns/net "$PTP4L" $options -i ptp1 --uds_address master >master.log 2>&1 & master=$!
"$PTP4L" $options -s -i ptp0 --uds_address "$PWD/ptp4l" >ptp4l.log 2>&1 & slave=$!
trap 'kill $master $other $slave 2>/dev/null || true; wait' EXIT
for _ in $(seq 100); do [ ! -S ptp4l ] || break; sleep 0.1; done
"$TAILBOUND" run study.yaml --out never --set "clock.by.socket=$PWD/ptp4l" --set 'clock.within=1 ns' --set 'clock.timeout=4 s' 2>1 && exit 9 || echo "$?" >code
"$TAILBOUND" run study.yaml --out record --set "clock.by.socket=$PWD/ptp4l" 2>2 & run=$!
until grep -q 'trial 1/1' 2; do kill -0 $run || exit 8; sleep 0.2; done
sleep 4
kill -9 $slave
wait $run
"$TAILBOUND" report record --format json >report.json
"$TAILBOUND" report record >report.txt
"#;

const STUDY: &str = "study: clocked\nquestion: Is the clock in step?\nmeasure: { ping-pong: { duration: 9 s } }\ndriver: udp\n\
                     path: loopback\nrate: 100 Hz\nattribution: off\nquiet: off\n\
                     clock: { by: { ptp4l: {} }, within: 200 ms, for: 2 s, timeout: 60 s }\n";

fn ptp4l() -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clocks/usr/sbin/ptp4l");
    if !is_root() || !file.is_file() {
        println!("skipped: needs root, and linuxptp in target/clocks (dev/setup test)");
        return None;
    }
    Some(file.canonicalize().unwrap())
}

fn text(bench: &Bench, file: &str) -> String {
    std::fs::read_to_string(bench.path(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

#[test]
fn a_ptp4l_that_ends_is_a_bad_window_of_a_valid_trial() {
    let Some(ptp4l) = ptp4l() else { return };
    let bench = Bench::new();
    std::fs::write(bench.path("study.yaml"), STUDY).unwrap();
    let own = bench.tailbound();
    let mut command = Command::new("unshare");
    command.args(["--net", "bash", "-c", SCRIPT]).current_dir(bench.path("."));
    for (key, value) in own.get_envs() {
        value.map(|value| command.env(key, value));
    }
    let output = command.env("TAILBOUND", own.get_program()).env("PTP4L", ptp4l).output().unwrap();
    let said = || format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let logs =
        || ["1", "2", "ptp4l.log"].map(|file| std::fs::read_to_string(bench.path(file)).unwrap_or_default()).join("\n");
    assert!(output.status.success(), "{}\n{}", said(), logs());

    assert_eq!(text(&bench, "code").trim(), "3", "{}", text(&bench, "1"));
    let never = text(&bench, "1").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        never.contains("the clock was not within 1 ns of its master for 2 s, in the 4 s for which the run waited"),
        "{never}"
    );
    assert!(never.contains("port 1 ") && never.contains("UNCALIBRATED"), "{never}");

    let history = std::fs::read_dir(bench.path("record/clocks")).unwrap().next().unwrap().unwrap().path();
    let history: Value = serde_json::from_slice(&std::fs::read(history).unwrap()).unwrap();
    let offsets = history["offsets"].as_array().unwrap();
    assert!(offsets.len() >= 5 && offsets.iter().any(|offset| offset[2].is_i64()), "{history}");
    assert_eq!(history["masters"][0]["steps_removed"], 1);
    assert_eq!(history["masters"][0]["grandmaster"].as_str().unwrap().split('.').count(), 3, "{}", history["masters"]);
    let clock = serde_json::json!([{ "port": 1, "interface": "ptp0", "is_hardware": false }]);
    assert_eq!(history["port_clocks"], clock, "by PORT_PROPERTIES_NP of this ptp4l");
    assert!(history["readings"][0]["readings"].as_array().unwrap().len() >= 3, "{}", history["readings"]);

    let report: Value = serde_json::from_str(&text(&bench, "report.json")).unwrap();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    assert_eq!(report["trials"][0]["status"], "valid");
    let found = &report["clock_history"][0];
    let silent =
        found["windows"].as_array().unwrap().iter().rfind(|window| window["kind"] == "silent").expect("a window");
    assert!(silent["why"].as_str().unwrap().contains("ptp4l cannot be asked at its socket"), "{silent}");
    assert_eq!(silent["to_ns"], found["to_ns"], "ptp4l was not started again");
    let number = |part: &str, of: &str| found["messages"][part][of].as_u64().unwrap();
    assert_eq!(number("all", "messages"), 900);
    assert_eq!(number("inside", "messages") + number("outside", "messages"), 900);
    assert!(number("inside", "messages") > 0 && number("outside", "messages") > 0, "{found}");
    let warning =
        report["warnings"].as_array().unwrap().iter().find(|w| w["code"] == "clock_not_in_step").expect("a warning");
    assert_eq!(warning["severity"], "warning");
    let shown = text(&bench, "report.txt").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("Not known to be in step from") && shown.contains("ptp4l cannot be asked"), "{shown}");
    let page = text(&bench, "record/report.html");
    assert!(
        page.contains("<section id=\"clock\">") && page.contains("url(#hatch-clock-0)"),
        "the strip has no hatched time"
    );
    println!("{}", shown.split("Clock of").nth(1).unwrap_or_default());
}

/// A third host with a ptp4l that is the master of both hosts of the run, which have one ptp4l each. Each host has its own directory
/// `clock`. First a run while the second host has no ptp4l, then a run in which its ptp4l is killed. The file `killed` has the time
/// of this in seconds after the boot.
const TWO_HOSTS_SCRIPT: &str = r#"
set -eu
mkdir clock there
unshare --net sleep 300 & third=$!
until [ "$(readlink /proc/$third/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
join() {
  ip -n "$1" link add ptp0 type veth peer name "$2" netns $third
  ip -n "$1" link set ptp0 up; nsenter --net=/proc/$third/ns/net ip link set "$2" up
}
join "$A" m0; join "$B" m1
options="-2 -S --free_running 1 --logSyncInterval -3 --logAnnounceInterval -1 --logMinDelayReqInterval -3"
nsenter --net=/proc/$third/ns/net "$PTP4L" $options -i m0 -i m1 --priority1 1 --uds_address "$PWD/master" >master.log 2>&1 & master=$!
nsenter "--net=/run/netns/$A" "$PTP4L" $options -s -i ptp0 --uds_address "$PWD/clock/ptp4l" >here.log 2>&1 & here=$!
there=
trap 'kill $master $third $here $there 2>/dev/null || true; wait' EXIT
for _ in $(seq 100); do [ ! -S clock/ptp4l ] || break; sleep 0.1; done
"$TAILBOUND" run study.yaml --out none --set 'clock.timeout=20 s' 2>1 && exit 9 || echo "$?" >code
nsenter "--net=/run/netns/$B" "$PTP4L" $options -s -i ptp0 --uds_address "$PWD/there/ptp4l" >there.log 2>&1 & there=$!
for _ in $(seq 100); do [ ! -S there/ptp4l ] || break; sleep 0.1; done
"$TAILBOUND" run study.yaml --out record 2>2 & run=$!
until grep -q 'trial 1/1' 2; do kill -0 $run || exit 8; sleep 0.2; done
sleep 4
cut -d ' ' -f 1 /proc/uptime >killed
kill -9 $there
wait $run
"$TAILBOUND" report record --format json >report.json
"$TAILBOUND" report record >report.txt
"#;

#[test]
fn the_clock_of_another_host_is_watched_by_its_own_time_service() {
    let Some(ptp4l) = ptp4l() else { return };
    let hosts = TwoHosts::new(1_000);
    let bench = &hosts.bench;
    let (folder, program) = (bench.path("."), bench.path("inside"));
    // The second host has its own directory of sockets.
    let inside = format!(
        "#!/bin/sh\nexec unshare --mount sh -c 'mount --bind \"{0}/there\" \"{0}/clock\" && exec \"$@\"' sh {1} \"$@\"\n",
        folder.display(),
        env!("CARGO_BIN_EXE_tailbound")
    );
    std::fs::write(&program, inside).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let study = format!(
        "study: clocked\nquestion: Are both clocks in step?\nmeasure: {{ ping-pong: {{ duration: 9 s }} }}\ndriver: udp\n\
         rate: 100 Hz\nattribution: off\nquiet: off\n\
         ends: {{ pong: {{ place: {{ ssh: {{ host: guest-1, program: {} }} }} }} }}\n\
         path: {{ existing: {{ ping: {{ interface: x0 }}, pong: {{ interface: x0 }} }} }}\n\
         clock: {{ by: {{ ptp4l: {{ socket: {}/clock/ptp4l }} }}, within: 200 ms, for: 2 s, timeout: 60 s }}\n",
        program.display(),
        folder.display()
    );
    std::fs::write(bench.path("study.yaml"), study).unwrap();
    let own = hosts.tailbound();
    let tailbound = bench.path("tailbound");
    let words: Vec<&str> =
        std::iter::once(own.get_program()).chain(own.get_args()).map(|w| w.to_str().unwrap()).collect();
    std::fs::write(&tailbound, format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "))).unwrap();
    std::fs::set_permissions(&tailbound, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", TWO_HOSTS_SCRIPT]).current_dir(&folder);
    for (key, value) in own.get_envs() {
        value.map(|value| command.env(key, value));
    }
    command.env("A", &hosts.names[0]).env("B", &hosts.names[1]);
    let output = command.env("TAILBOUND", &tailbound).env("PTP4L", ptp4l).output().unwrap();
    let read = |file: &str| std::fs::read_to_string(bench.path(file)).unwrap_or_default();
    let logs = || ["1", "2", "here.log", "there.log", "master.log"].map(read).join("\n");
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), logs());

    assert_eq!(text(bench, "code").trim(), "3", "{}", text(bench, "1"));
    let none = text(bench, "1").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(none.contains("host guest-1: ptp4l cannot be asked at its socket"), "{none}");

    let report: Value = serde_json::from_str(&text(bench, "report.json")).unwrap();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let found = report["clock_history"].as_array().unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    let there = found.iter().find(|of| of["host"] == "guest-1").expect("a history of the other host");
    let here = found.iter().find(|of| of["host"] != "guest-1").expect("a history of this host");
    assert_eq!(here["grandmaster"], there["grandmaster"]);
    assert!(here.get("clock_width_ns").is_none() && here["windows"] == serde_json::json!([]), "{here}");
    let number = |of: &Value, part: &str| of["messages"][part]["messages"].as_u64().unwrap();
    assert_eq!((number(here, "all"), number(here, "inside"), number(there, "all")), (900, 0, 900));
    assert!(number(there, "inside") > 0 && number(there, "outside") > 0, "{there}");
    // The clock of the other host is ahead by 1,000 s; its times are shown in the clock of the messages.
    let width_ns = there["clock_width_ns"].as_i64().unwrap();
    // Limit: the width is the shortest round trip of 900 messages.
    assert!((1..5_000_000).contains(&width_ns), "{width_ns}");
    let silent =
        there["windows"].as_array().unwrap().iter().rfind(|window| window["kind"] == "silent").expect("a window");
    let killed_ns = (text(bench, "killed").trim().parse::<f64>().unwrap() * 1e9) as i64;
    let begin_ns = silent["from_ns"].as_i64().unwrap();
    // Limit: the last answer came at most 2 s before ptp4l was killed, and no answer came after it.
    assert!((killed_ns - 2_000_000_000..killed_ns + 100_000_000).contains(&begin_ns), "{killed_ns}: {silent}");
    let shown = text(bench, "report.txt").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        shown.contains("Clock of guest-1") && shown.contains("Its times are converted into the clock of the ping"),
        "{shown}"
    );
    hosts.empty_within(Duration::from_secs(10));
    no_journal(bench);
    let left: Vec<_> =
        std::fs::read_dir(std::env::temp_dir()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    let manifest = bench.manifest();
    let run = manifest["run_id"].as_str().unwrap();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains(run)), "{left:?}");
}
