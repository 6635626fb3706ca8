//! Tests of the key `clock` with a real ptp4l of linuxptp, between two network namespaces, with software time stamps. It adjusts no
//! clock (`free_running`).

use crate::support::Bench;
use crate::support::host::is_root;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

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
