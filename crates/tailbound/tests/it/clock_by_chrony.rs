//! Tests of the key `clock` with real chronyd of Debian, in network namespaces of their own. They set no clock (option `-x`), and all
//! of them read one CLOCK_REALTIME, so that the true offset is known: it is 0.

use crate::support::Bench;
use crate::support::host::{is_root, no_journal};
use crate::support::ssh::TwoHosts;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A server that is its own reference, and a client with the socket at which chronyc asks; then two runs: one whose bound cannot be
/// held, and one in whose first trial the client is killed. Standard error of the runs is in the files `1` and `2`.
const SCRIPT: &str = r#"
set -eu
mount -t tmpfs tmpfs /run
unshare --net sleep 300 & other=$!
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
there() { nsenter --net=/proc/$other/ns/net "$@"; }
ip link set lo up
ip link add ntp0 type veth peer name ntp1
ip link set ntp1 netns $other
ip address add 10.98.0.2/24 dev ntp0; ip link set ntp0 up
there ip address add 10.98.0.1/24 dev ntp1; there ip link set ntp1 up
printf '%s\n' 'local stratum 10' 'allow 10.98.0.0/24' 'cmdport 0' 'bindcmdaddress /' "pidfile $PWD/server.pid" >server.conf
printf '%s\n' 'server 10.98.0.1 iburst minpoll 0 maxpoll 0' "pidfile $PWD/client.pid" >client.conf
nsenter --net=/proc/$other/ns/net chronyd -x -d -u root -f "$PWD/server.conf" >server.log 2>&1 & server=$!
chronyd -x -d -u root -f "$PWD/client.conf" >client.log 2>&1 & client=$!
trap 'kill $server $other $client 2>/dev/null || true; wait' EXIT
for _ in $(seq 100); do ! chronyc -c -n tracking >/dev/null 2>&1 || break; sleep 0.1; done
"$TAILBOUND" run study.yaml --out never --set 'clock.within=1 ns' --set 'clock.timeout=8 s' 2>1 && exit 9 || echo "$?" >code
"$TAILBOUND" run study.yaml --out record 2>2 & run=$!
until grep -q 'trial 1/1' 2; do kill -0 $run || exit 8; sleep 0.2; done
sleep 4
kill -9 $client
wait $run
"$TAILBOUND" report record --format json >report.json
"$TAILBOUND" report record >report.txt
"#;

const CLOCK: &str = "clock: { by: chrony, within: 200 ms, for: 2 s, timeout: 60 s }\n";

/// Directory into which `dev/setup test` unpacks chrony. If it was installed, its service would be started.
fn programs() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clocks/usr");
    if !is_root() || !root.join("sbin/chronyd").is_file() {
        println!("skipped: needs root, and chrony in target/clocks (dev/setup test)");
        return None;
    }
    Some(root.canonicalize().unwrap())
}

fn text(bench: &Bench, file: &str) -> String {
    std::fs::read_to_string(bench.path(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// The text with single spaces between its words.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Makes an executable file.
fn program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// The history of the clock of a host, from the record, if exactly one file has this end of its name.
fn history(bench: &Bench, record: &str, end: &str) -> Value {
    let files = std::fs::read_dir(bench.path(record).join("clocks")).unwrap();
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(end));
    assert_eq!(files.len(), 1, "{files:?}");
    serde_json::from_slice(&std::fs::read(&files[0]).unwrap()).unwrap()
}

/// Each offset has an error that chrony states, and as both clocks are one, the offset is no larger than this error.
fn errors_hold_the_truth(history: &Value) {
    let rows = |key: &str| history[key].as_array().unwrap_or_else(|| panic!("{key}: {history}")).clone();
    let (offsets, errors) = (rows("offsets"), rows("root_errors"));
    assert!(offsets.len() >= 3 && offsets.len() == errors.len(), "{history}");
    for (offset, error) in offsets.iter().zip(&errors) {
        let [at_ns, offset_ns] = [0, 1].map(|n| offset[n].as_i64().unwrap());
        let [same_ns, delay_ns, dispersion_ns, rate_ppb] = [0, 1, 2, 3].map(|n| error[n].as_i64().unwrap());
        assert!(at_ns == same_ns && delay_ns > 0 && dispersion_ns > 0 && rate_ppb > 0, "{offset} {error}");
        assert!(offset_ns.abs() <= dispersion_ns + (delay_ns + 1) / 2 + 2, "{offset} {error}");
    }
    println!("{} offsets, the last {} with {}", offsets.len(), offsets[offsets.len() - 1], errors[errors.len() - 1]);
}

#[test]
fn a_chronyd_that_ends_is_a_bad_window_of_a_valid_trial() {
    let Some(programs) = programs() else { return };
    let bench = Bench::new();
    let study = format!(
        "study: clocked\nquestion: Is the clock in step?\nmeasure: {{ ping-pong: {{ duration: 9 s }} }}\ndriver: udp\n\
         path: loopback\nrate: 100 Hz\nattribution: off\nquiet: off\n{CLOCK}"
    );
    std::fs::write(bench.path("study.yaml"), study).unwrap();
    let own = bench.tailbound();
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--propagation", "private", "bash", "-c", SCRIPT]).current_dir(bench.path("."));
    for (key, value) in own.get_envs() {
        value.map(|value| command.env(key, value));
    }
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{path}", programs.join("sbin").display(), programs.join("bin").display());
    let output = command.env("TAILBOUND", own.get_program()).env("PATH", path).output().unwrap();
    let read = |file: &str| std::fs::read_to_string(bench.path(file)).unwrap_or_default();
    let logs = || ["1", "2", "client.log", "server.log"].map(read).join("\n");
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), logs());

    assert_eq!(text(&bench, "code").trim(), "3", "{}", text(&bench, "1"));
    let never = words(&text(&bench, "1"));
    let says = "the clock was not within 1 ns of its master for 2 s, in the 8 s for which the run waited (chrony)";
    assert!(never.contains(says), "{never}");

    let history = history(&bench, "record", ".json");
    errors_hold_the_truth(&history);
    let master = &history["masters"][0];
    assert_eq!((&master["grandmaster"], &master["steps_removed"]), (&"10.98.0.1".into(), &11.into()), "{history}");

    let report: Value = serde_json::from_str(&text(&bench, "report.json")).unwrap();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let found = &report["clock_history"][0];
    let windows = found["windows"].as_array().unwrap();
    let silent = windows.iter().rfind(|window| window["kind"] == "silent").expect("a window");
    assert!(silent["why"].as_str().unwrap().starts_with("chrony cannot be asked: "), "{silent}");
    assert_eq!(silent["to_ns"], found["to_ns"], "chronyd was not started again");
    let number = |part: &str| found["messages"][part]["messages"].as_u64().unwrap();
    assert_eq!((number("all"), number("inside") + number("outside")), (900, 900));
    assert!(number("inside") > 0 && number("outside") > 0, "{found}");
    let stated_ns = found["stated_error_ns"].as_i64().expect("an error that chrony states");
    let farthest_ns = [0, 2].map(|n| found["offset_ns"][n].as_i64().unwrap().abs()).into_iter().max().unwrap();
    assert!(stated_ns > farthest_ns, "{found}");
    let shown = words(&text(&bench, "report.txt"));
    assert!(shown.contains("The largest error that chrony states is"), "{shown}");
    assert!(shown.contains("Not known to be in step from") && shown.contains("chrony cannot be asked"), "{shown}");
    println!("{}", shown.split("Clock of").nth(1).unwrap_or_default());
}

/// A third host whose chronyd is the server of both hosts of the run. In the second run, chronyd of the second host believes that the
/// clock of the server is 50 ms off.
const TWO_HOSTS_SCRIPT: &str = r#"
set -eu
unshare --net sleep 300 & third=$!
until [ "$(readlink /proc/$third/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
at_third() { nsenter --net=/proc/$third/ns/net "$@"; }
at_third ip link set lo up; at_third ip address add 10.98.0.1/32 dev lo
join() {
  ip -n "$1" link add ntp0 type veth peer name "m$2" netns $third
  ip -n "$1" address add "10.98.$2.2/24" dev ntp0; ip -n "$1" link set ntp0 up
  at_third ip address add "10.98.$2.1/24" dev "m$2"; at_third ip link set "m$2" up
  ip -n "$1" route add 10.98.0.1 via "10.98.$2.1"
}
join "$A" 1; join "$B" 2
printf '%s\n' 'local stratum 10' 'allow 10.98.0.0/16' 'cmdport 0' 'bindcmdaddress /' "pidfile $PWD/server.pid" >server.conf
nsenter --net=/proc/$third/ns/net chronyd -x -d -u root -f "$PWD/server.conf" >server.log 2>&1 & server=$!
client() {
  printf '%s\n' "server 10.98.0.1 iburst minpoll 0 maxpoll 0 $3" 'cmdport 0' "bindcmdaddress $PWD/$2/socket" "pidfile $PWD/$2.pid" >"$2.conf"
  exec nsenter "--net=/run/netns/$1" chronyd -x -d -u root -f "$PWD/$2.conf" >>"$2.log" 2>&1
}
answers() { for _ in $(seq 100); do ! chronyc -h "$PWD/$1/socket" -c -n tracking >/dev/null 2>&1 || return 0; sleep 0.1; done; }
client "$A" here "" & here=$!
client "$B" there "" & there=$!
trap 'kill $server $third $here $there 2>/dev/null || true; wait' EXIT
answers here; answers there
"$TAILBOUND" run study.yaml --out record 2>1
"$TAILBOUND" report record --format json >report.json
kill $there; wait $there || true
client "$B" there "offset 0.05" & there=$!
answers there
"$TAILBOUND" run study.yaml --out wrong 2>2
"$TAILBOUND" report wrong --format json >wrong.json
"#;

#[test]
fn two_clocks_with_one_server_are_compared_with_what_messages_prove() {
    let Some(programs) = programs() else { return };
    let hosts = TwoHosts::new(1_000);
    let bench = &hosts.bench;
    let folder = bench.path(".").canonicalize().unwrap();
    // Each host has a chronyc of its own, which asks the chronyd of this host.
    let path = format!("{}:{}", programs.join("bin").display(), std::env::var("PATH").unwrap());
    for (host, directory) in [("here", "bin"), ("there", "bin-there")] {
        std::fs::create_dir_all(bench.path(directory)).unwrap();
        let asked = folder.join(host).join("socket");
        let text =
            format!("#!/bin/sh\nexec {} -h {} \"$@\"\n", programs.join("bin/chronyc").display(), asked.display());
        program(&bench.path(directory).join("chronyc"), &text);
    }
    let inside = format!(
        "#!/bin/sh\nPATH={}:$PATH exec {} \"$@\"\n",
        folder.join("bin-there").display(),
        env!("CARGO_BIN_EXE_tailbound")
    );
    program(&bench.path("inside"), &inside);
    let study = format!(
        "study: clocked\nquestion: Are both clocks in step?\nmeasure: {{ ping-pong: {{ duration: 9 s }} }}\ndriver: udp\n\
         rate: 100 Hz\nattribution: off\nquiet: off\n\
         ends: {{ pong: {{ place: {{ ssh: {{ host: guest-1, program: {} }} }} }} }}\n\
         path: {{ existing: {{ ping: {{ interface: x0 }}, pong: {{ interface: x0 }} }} }}\n{CLOCK}",
        folder.join("inside").display()
    );
    std::fs::write(bench.path("study.yaml"), study).unwrap();
    let own = hosts.tailbound();
    let line: Vec<&str> =
        std::iter::once(own.get_program()).chain(own.get_args()).map(|w| w.to_str().unwrap()).collect();
    let tailbound = bench.path("tailbound");
    let own_path = format!("{}:{path}", folder.join("bin").display());
    program(&tailbound, &format!("#!/bin/sh\nPATH={own_path} exec {} \"$@\"\n", line.join(" ")));
    let mut command = Command::new("bash");
    command.args(["-c", TWO_HOSTS_SCRIPT]).current_dir(&folder);
    for (key, value) in own.get_envs() {
        value.map(|value| command.env(key, value));
    }
    command.env("A", &hosts.names[0]).env("B", &hosts.names[1]).env("TAILBOUND", &tailbound);
    let output = command.env("PATH", format!("{}:{path}", programs.join("sbin").display())).output().unwrap();
    let read = |file: &str| std::fs::read_to_string(bench.path(file)).unwrap_or_default();
    let logs = || ["1", "2", "here.log", "there.log", "server.log"].map(read).join("\n");
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), logs());

    let report = |file: &str| -> Value { serde_json::from_str(&text(bench, file)).unwrap() };
    let (right, wrong) = (report("report.json"), report("wrong.json"));
    let warning = |report: &Value, code: &str| {
        report["warnings"].as_array().unwrap().iter().find(|warning| warning["code"] == code).cloned()
    };
    for found in [&right, &wrong] {
        assert_eq!(found["status"], "valid", "{}", found["warnings"]);
        let histories = found["clock_history"].as_array().unwrap();
        assert_eq!(histories.len(), 2, "{histories:?}");
        for history in histories {
            assert_eq!(
                (&history["grandmaster"], &history["windows"]),
                (&"10.98.0.1".into(), &Value::Array(Vec::new()))
            );
        }
    }
    errors_hold_the_truth(&history(bench, "record", "guest-1.json"));
    assert_eq!(warning(&right, "clock_claim_wrong"), None);
    println!("{:?}", warning(&right, "clock_claim"));
    let finding = warning(&wrong, "clock_claim_wrong").unwrap_or_else(|| panic!("{}", wrong["warnings"]));
    assert_eq!(finding["severity"], "warning");
    let says = finding.to_string();
    println!("{says}");
    assert!(
        says.contains(
            "(chrony) report offsets, root delays and root dispersions of the server 10.98.0.1 (if both hosts mean one"
        ),
        "{says}"
    );
    assert!(says.contains("at least one of them is wrong by"), "{says}");
    hosts.empty_within(Duration::from_secs(10));
    no_journal(bench);
}
