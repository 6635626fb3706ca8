//! Tests of other programs in place of a driver: most of the programs are scripts that fail in some way; some tool
//! files are refused.

use crate::support::host::signal;
use crate::support::processes::descendants;
use crate::support::{Bench, exit_and_stderr, ping_pong, succeeded};
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

/// Runs a study with a tool whose two programs are shell scripts.
fn scripted(bench: &Bench, keys: &str, ping: &str, pong: &str) -> Output {
    for (name, text) in [("ping.sh", ping), ("pong.sh", pong)] {
        let path = bench.path(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let tool = format!(
        "tool: mine\nabout: a script\nevidence: tried\nmeasures: ping-pong\n{keys}\
         ping: {{ command: [./ping.sh, '{{seconds}}', '{{rate_hz}}', '{{payload}}', '{{peer}}', '{{domain}}'] }}\n\
         pong: {{ command: [./pong.sh, '{{address}}'], ready: '^listening' }}\n\
         definition: {{ latency: round-trip, window: whole-run }}\n\
         figures: [{{ is: latency, statistic: p50, unit: us, at: {{ line: 'median ([0-9.]+)' }} }}]\n"
    );
    std::fs::write(bench.path("mine.yaml"), tool).unwrap();
    bench.run(&ping_pong("./mine.yaml", ""), &[])
}

const LISTENS: &str = "echo listening on $1\nexec sleep 60";

/// Checks that the only trial of a record is invalid, and returns the reason.
fn reason(output: &Output, bench: &Bench) -> String {
    let (code, text) = exit_and_stderr(output);
    assert_eq!(code, 6, "{text}");
    let report = bench.report();
    assert_eq!(report["trials"][0]["status"], "invalid");
    let warning =
        report["warnings"].as_array().unwrap().iter().find(|w| w["code"] == "tool_failed").expect("a warning");
    let text = warning["text"].as_str().unwrap().to_owned();
    let finding =
        report["findings"].as_array().unwrap().iter().find(|f| f["code"] == "trial_invalid").expect("a finding");
    assert!(finding["text"].as_str().unwrap().contains(&text), "{finding}");
    assert_eq!(bench.manifest()["trials"][0]["finding"], text.as_str());
    text
}

/// Replaces the times in a text, because these times differ in each run.
fn timeless(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let is_unit = |w: &str| ["us", "ms", "s"].contains(&w.trim_end_matches([';', ',', '.']));
    let is_time = |i: usize| words[i].contains('.') && words.get(i + 1).is_some_and(|w| is_unit(w));
    let unit = |i: usize| words[i].trim_start_matches(char::is_alphabetic);
    let shown = (0..words.len()).filter(|i| *i == 0 || !is_time(i - 1));
    shown
        .map(|i| if is_time(i) { format!("TIME{}", unit(i + 1)) } else { words[i].into() })
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_tool_of_ones_own_by_its_path() {
    let bench = Bench::new();
    let output = scripted(&bench, "", "echo median 12.5\nsleep $1\necho $@ >&2", LISTENS);
    succeeded(&output);
    let report = bench.report();
    assert_eq!(report["tools"][0]["figures"][0]["values"][0], 12500.0);
    assert_eq!(report["tools"][0]["commands"]["ping"], "./ping.sh 1 500 64 127.0.0.1 77");
    assert_eq!(
        std::fs::read_to_string(bench.path("record/logs/0-ping.log")).unwrap(),
        "median 12.5\n1 500 64 127.0.0.1 77\n"
    );
    // The text of the tool file is part of the plan.
    assert!(
        bench.manifest()["plan"]["conditions"][0]["spec"]["driver"]["tool"]["text"]
            .as_str()
            .unwrap()
            .contains("tool: mine")
    );
}

#[test]
fn failures_of_a_tool_are_reported() {
    let cases: [(&str, &str, &str); 8] = [
        ("exits early", "echo cannot connect; exit 3", LISTENS),
        ("ends too early", "echo median 1.0", LISTENS),
        ("prints nothing", "sleep $1", LISTENS),
        ("prints something else", "sleep $1; echo average 12.5; echo bye", LISTENS),
        ("prints no number", "sleep $1; echo median 1.2.3", LISTENS),
        ("prints two", "sleep $1; echo median 1; echo median 2", LISTENS),
        ("writes too much", "head -c 3000000 /dev/zero; sleep $1; echo median 1", LISTENS),
        ("pong ends", "sleep $1; echo median 1", "echo address in use; exit 1"),
    ];
    let told: Vec<String> = std::thread::scope(|scope| {
        let run = |(name, ping, pong): (&'static str, &'static str, &'static str)| {
            scope.spawn(move || {
                let bench = Bench::new();
                let output = scripted(&bench, "", ping, pong);
                format!("{name}: {}", timeless(&reason(&output, &bench)))
            })
        };
        cases.map(run).map(|t| t.join().unwrap()).into()
    });
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_tool_that_hangs_is_killed_with_its_children() {
    let bench = Bench::new();
    let output = scripted(&bench, "", "trap '' TERM\nsleep 987 &\nsleep 987", LISTENS);
    assert_eq!(reason(&output, &bench), "the tool mine, ping: the program had not ended after 11 s, and was killed");
    assert_eq!(sleepers("987"), 0);
}

#[test]
fn a_pong_that_is_never_ready_is_reported() {
    let bench = Bench::new();
    let output = scripted(&bench, "", "echo median 1", "echo starting\nexec sleep 60");
    assert_eq!(
        reason(&output, &bench),
        "the tool mine, pong: the program printed no line that matches `^listening` within 10 s; it last wrote: \
         starting"
    );
}

/// A tool whose end that answers is ready when it listens, for which it needs 0.3 s: the other end connects to it at once.
#[test]
fn an_end_that_listens_is_ready() {
    let bench = Bench::new();
    let run = |pong: &str| {
        let tool = format!(
            "tool: mine\nabout: a script\nevidence: tried\nmeasures: ping-pong\n\
             ping: {{ command: [python3, -c, 'import socket, sys, time; socket.create_connection((\"127.0.0.1\", int(sys.argv[1]))); \
             time.sleep(1); print(\"median\", sys.argv[2], sys.argv[3])', '{{port}}', '{{base_s}}', '{{offset_s}}', '{{rate_hz}}'] }}\n\
             pong: {{ command: [python3, -c, 'import socket, sys, time; {pong}; time.sleep(60)', '{{port}}'], \
             ready_when_listening: true }}\ndefinition: {{ latency: round-trip, window: whole-run }}\n\
             figures: [{{ is: latency, statistic: p50, unit: s, at: {{ line: 'median [0-9.]+ ([0-9.]+)' }} }}]\n"
        );
        std::fs::write(bench.path("mine.yaml"), tool).unwrap();
        bench.run(&ping_pong("./mine.yaml", "stream: { offset: 1500 us }"), &[])
    };
    let listens = "time.sleep(0.3); s = socket.socket(); s.bind((\"\", int(sys.argv[1]))); s.listen(1)";
    succeeded(&run(listens));
    // The offset of the stream, which the script printed.
    assert_eq!(bench.report()["tools"][0]["figures"][0]["values"][0], 1_500_000.0);
    bench.remove_record();
    let never = reason(&run(&listens.replace("; s.listen(1)", "")), &bench);
    let port = never.split_whitespace().find(|word| word.parse::<u16>().is_ok()).unwrap();
    assert_eq!(
        never,
        format!("the tool mine, pong: the program did not listen at the TCP port {port} within 10 s; it wrote nothing")
    );
}

fn sleepers(seconds: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let is = |e: &std::fs::DirEntry| {
        std::fs::read(e.path().join("cmdline")).is_ok_and(|c| c == format!("sleep\0{seconds}\0").as_bytes())
    };
    all.filter(is).count()
}

#[test]
fn an_interrupted_run_leaves_no_process() {
    let bench = Bench::new();
    let first = scripted(&bench, "", "echo median 1; sleep $1", LISTENS);
    succeeded(&first);
    std::fs::write(bench.path("ping.sh"), "#!/bin/sh\ntrap '' INT TERM\nsleep 654 &\nsleep 654\n").unwrap();
    let mut command = bench.tailbound();
    command.arg("run").arg(bench.path("study.yaml")).arg("--out").arg(bench.path("second"));
    let run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut all = Vec::new();
    // Two agents, the answering program, and the asking program with its two child processes.
    while all.len() < 6 {
        assert!(Instant::now() < deadline, "{all:?}");
        std::thread::sleep(Duration::from_millis(20));
        all = if sleepers("654") == 2 { descendants(run.id() as i32) } else { Vec::new() };
    }
    signal(&run, libc::SIGINT);
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6));
    assert_eq!(sleepers("654"), 0);
    // Process 1 collects orphaned processes, after a time that the test does not know.
    let gone = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    assert!(all.iter().all(gone), "{all:?}");
    crate::support::host::no_journal(&bench);
}

/// Runs `run --dry-run` for a study, and returns its exit code and messages.
fn refusal(bench: &Bench, driver: &str, settings: &[&str]) -> String {
    let path = bench.study(&ping_pong(driver, ""));
    let mut command = bench.tailbound();
    command.arg("run").arg(path).arg("--dry-run");
    for setting in settings {
        command.args(["--set", setting]);
    }
    let (code, text) = exit_and_stderr(&command.output().unwrap());
    let text = text.replace(&*bench.path("").to_string_lossy(), "DIR/");
    // The rest of the list depends on the drivers that this build has made; errors.rs has the list without them.
    let text = match text.split_once("did you mean `sockperf`?") {
        Some((before, _)) => format!("{before}did you mean `sockperf`?\n"),
        None => text,
    };
    format!("{driver} {}\nexit {code}\n{text}", settings.join(" "))
}

#[test]
fn what_a_tool_cannot_do_is_refused() {
    let bench = Bench::new();
    let all = [
        refusal(&bench, "sockperf", &["measure=throughput"]),
        refusal(&bench, "iperf3", &[]),
        refusal(&bench, "iperf3", &["measure={fan-out: {duration: 1 s}}"]),
        refusal(&bench, "iperf3", &["measure={throughput: {subscribers: 2}}", "rate=max"]),
        refusal(&bench, "iperf3", &["measure={throughput: {pack: 4}}", "rate=max"]),
        refusal(&bench, "sockperf", &["measure.receive=spin"]),
        refusal(&bench, "sockperf", &["measure.hand_off=thread"]),
        refusal(&bench, "sockperf", &["measure={ping-pong: {slots: 100}}", "rate=max"]),
        refusal(&bench, "cyclictest", &["rate=max"]),
        refusal(&bench, "sockperf", &["payload=1 MB"]),
        refusal(&bench, "sockperf", &["stream={ offset: 1 ms }"]),
        refusal(
            &bench,
            "{ isochron: { priority: 3 } }",
            &["stream={ launch: { lead: 1 ms } }", "path=veth", "place=netns"],
        ),
        refusal(&bench, "rti-perftest", &[]),
        refusal(&bench, "{ sockperf: { mps: 5 } }", &[]),
        refusal(&bench, "sockperf", &["qos={reliability: best-effort}"]),
        refusal(&bench, "sockperf", &["place=same-process"]),
        refusal(&bench, "sockperf", &["collect=live"]),
        refusal(&bench, "sockperf", &["ends.pong.driver=udp"]),
        refusal(&bench, "sockperf", &["scheduling={middleware: {policy: fifo, priority: 5}}"]),
        refusal(&bench, "sockperf\nload: [{ run: { topic: { payload: 64 B, rate: 10 Hz } } }]", &[]),
        refusal(&bench, "sockpref", &[]),
        refusal(&bench, "./nowhere.yaml", &[]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn unusable_tool_files_are_reported_before_anything_is_made() {
    let bench = Bench::new();
    let file = |command: &str, line: &str| {
        let text = format!(
            "tool: mine\nabout: a\npackage: mine-tools\nevidence: tried\nmeasures: ping-pong\n\
             ping: {{ command: [{command}, '{{rate_hz}}'] }}\ndefinition: {{ latency: round-trip, window: whole-run }}\n\
             figures: [{{ is: latency, statistic: p50, unit: us, at: {{ line: '{line}' }} }}]\n"
        );
        std::fs::write(bench.path("mine.yaml"), text).unwrap();
        refusal(&bench, "mine.yaml", &[])
    };
    let mut all = vec![file("no-such-program", "(.*)"), file("'true'", "no group"), file("'true', '{sizes}'", "(.*)")];
    std::fs::write(bench.path("mine.yaml"), "tool: [").unwrap();
    all.push(refusal(&bench, "mine.yaml", &[]));
    insta::assert_snapshot!(all.join("\n"));
    assert!(!bench.path("record").exists());
}

#[test]
fn loads_run_during_a_tool_and_a_dry_run_shows_its_commands() {
    let bench = Bench::new();
    succeeded(&scripted(&bench, "", "echo median 12.5; sleep $1", LISTENS));
    let text = ping_pong("./mine.yaml", "load: [{ run: cpu, at: pong }]");
    bench.remove_record();
    succeeded(&bench.run(&text, &[]));
    let report = bench.report();
    let load = &report["loads"][0];
    assert_eq!((&load["run"], &load["at"]), (&"cpu".into(), &"pong".into()), "{load}");
    assert!(load["rounds"].as_u64().unwrap() > 0 && load["ran_ns"].as_i64().unwrap() > 900_000_000, "{load}");
    let path = bench.study(&text);
    let output = bench.tailbound().arg("run").arg(path).arg("--dry-run").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        printed.contains("  tool at pong: ./pong.sh ADDRESS\n  tool at ping: ./ping.sh 1 500 64 PEER 77\n"),
        "{printed}"
    );
}

#[test]
fn a_tool_is_no_side_of_a_comparison_and_decides_no_budget() {
    let bench = Bench::new();
    succeeded(&scripted(&bench, "", "echo median 12.5; sleep $1", LISTENS));
    bench.remove_record();
    let both = ping_pong("udp", "factors: { driver: [udp, ./mine.yaml] }").replace("driver: udp\n", "");
    succeeded(&bench.run(&both, &[]));
    let output = bench.tailbound().args(["compare", "record", "--factor", "driver"]).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("./mine.yaml is another program: Tailbound measured nothing of it"), "{text}");
    std::fs::write(bench.path("budget.yaml"), "budget: b\nlimits: [{ round_trip: { p50: 1 s } }]\n").unwrap();
    let output = bench.tailbound().args(["budget", "record", "budget.yaml"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &exit_and_stderr(&output).1;
    assert_eq!(output.status.code(), Some(7), "{printed}");
    // The figure has the same definition, but its number of messages is unknown.
    let report = bench.report();
    let pair = &report["side_by_side"][0];
    assert_eq!(pair["names"].to_string(), r#"["mine","udp"]"#);
    assert_eq!(pair["same"].as_array().unwrap().len(), 0, "{pair}");
}
