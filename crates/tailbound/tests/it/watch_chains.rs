//! Tests of what `tailbound watch` makes of captures: chains of topics, files of other programs, lines of JSON, a limit of its CPU time, and
//! times beside those that the kernel's trace points record.

use crate::support::host::cannot;
use crate::support::rcl::real;
use crate::support::ros2::study;
use crate::support::{Bench, exit_and_stderr, fastdds};
use crate::watch::{SENT, in_namespace, in_namespace_of, two_processes, watched, writers};
use serde_json::Value;
use std::collections::BTreeMap;
use tailbound_model::{HopPlace, NO_TIME, RecordedBy, Switches};

/// A number of the document, which must be there.
fn number(of: &Value) -> i64 {
    of.as_i64().unwrap_or_else(|| panic!("{of}"))
}

/// Test: the answer of the pong is an effect of the message of the ping; the age of each answer is what the times of both ends say.
fn an_answer_is_the_effect_of_its_message(driver: &str) {
    let bench = Bench::new();
    bench.study(&two_processes(driver).replace("8 KiB", "64 B").replace("500 Hz", "100 Hz"));
    // The names of topics are new in each run, so that packets are captured into a file, which is read twice.
    let script = "tcpdump -i any -B 32768 -U -w all.pcap udp 2>tcpdump.err & D=$!; until grep -q 'listening' tcpdump.err; do sleep 0.05; done; \
        \"$T\" run study.yaml --out record >/dev/null; sleep 1; kill -INT $D; wait $D || true; \
        \"$T\" watch --read all.pcap --format json >names.json; \
        set -- $(grep -o '\"topic\": \"[^\"]*\"' names.json | cut -d'\"' -f4 | sort -u); \
        \"$T\" watch --read all.pcap --format json --chain \"$1,$2\" >watched.json";
    let found = watched(&bench, &in_namespace(&bench, script));
    let chain = &found["chain"];
    let [written, hop] = &chain["hops"].as_array().unwrap()[..] else { panic!("{found:#}") };
    assert!(
        hop["from"].as_str().unwrap().contains("ping") && hop["to"].as_str().unwrap().contains("pong"),
        "{chain:#}"
    );
    assert_eq!((&written["samples"], &hop["by_time"]), (&SENT.into(), &SENT.into()), "{chain:#}");
    assert_eq!((&hop["without_cause"], &chain["without_effect"]), (&0.into(), &0.into()), "{chain:#}");
    // The age begins in the call that sends, and ends when the answer is on the wire: after the pong began to answer, and before the ping
    // received the answer.
    let (mut least, mut most) = (Vec::new(), Vec::new());
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    record
        .slots(0, &mut |batch| {
            for i in (0..batch.len()).filter(|i| batch.receive_ns[*i] != NO_TIME) {
                least.push(batch.echo_begin_ns[i] - batch.send_end_ns[i]);
                most.push(batch.receive_ns[i] - batch.send_begin_ns[i]);
            }
        })
        .unwrap();
    least.sort_unstable();
    most.sort_unstable();
    let median = number(&chain["age"]["p50_ns"]);
    // Buckets are up to 0.8 % wide.
    let range = least[least.len() / 2]..=most[most.len() / 2] + most[most.len() / 2] / 100;
    assert!(range.contains(&median), "{median} is not within {range:?}: {chain:#}");
    let worst = number(&chain["age"]["max_ns"]);
    assert!(worst >= *least.last().unwrap() && worst <= *most.last().unwrap(), "{worst}: {chain:#}");
    let text = in_namespace(&bench, "\"$T\" watch --for 200ms --chain /a,/b");
    assert!(String::from_utf8_lossy(&text.stdout).contains("chain /a -> /b:"), "{text:?}");
}

#[test]
fn chains_of_cyclonedds_have_their_ages() {
    if !cannot() {
        an_answer_is_the_effect_of_its_message("cyclonedds");
    }
}

#[test]
fn chains_of_fastdds_have_their_ages() {
    if !cannot() && fastdds::built().is_some() {
        an_answer_is_the_effect_of_its_message("{ fastdds: { transport: udp } }");
    }
}

/// Test: a capture of tcpdump gives the same samples as one of Tailbound at the same time, and a study can be made of it.
#[test]
fn a_capture_of_tcpdump_is_read() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    bench.study(&two_processes("cyclonedds"));
    let script = "tcpdump -i any -B 32768 -U -w all.pcap udp 2>tcpdump.err & D=$!; until grep -q 'listening' tcpdump.err; do sleep 0.05; done; \
        watching; \"$T\" run study.yaml --out record >/dev/null; stop; sleep 1; kill -INT $D; wait $D || true; \
        \"$T\" watch --read all.pcap --format json --save-study new.yaml --samples read.csv >read.json 2>read.err; \
        \"$T\" validate new.yaml >/dev/null";
    let found = watched(&bench, &in_namespace(&bench, script));
    let read: Value = serde_json::from_str(&std::fs::read_to_string(bench.path("read.json")).unwrap()).unwrap();
    assert_eq!(read["place"], "the file all.pcap");
    let of = |report: &Value| -> BTreeMap<String, (u64, Value, bool, i64)> {
        let all = writers(report).into_iter().map(|(topic, writer)| {
            let late = number(&writer["lateness"]["range"]["p50_ns"]);
            let samples = writer["samples"].as_u64().unwrap();
            let here = writer["is_here"].as_bool().unwrap();
            (topic["topic"].as_str().unwrap().to_owned(), (samples, writer["bytes"].clone(), here, late))
        });
        all.collect()
    };
    let (ours, theirs) = (of(&found), of(&read));
    assert_eq!((ours.len(), theirs.len()), (2, 2), "{found:#} {read:#}");
    for (topic, (samples, bytes, here, late_ns)) in &ours {
        let (read_samples, read_bytes, read_here, read_late_ns) = &theirs[topic];
        assert_eq!((samples, bytes, here), (read_samples, read_bytes, read_here), "{topic}: {read:#}");
        assert_eq!(*samples, SENT, "{topic}");
        // Two stamps of the kernel for one packet; tcpdump writes microseconds.
        assert!((late_ns - read_late_ns).abs() < 20_000 + late_ns / 10, "{topic}: {late_ns} and {read_late_ns} ns");
    }
    let rows = std::fs::read_to_string(bench.path("read.csv")).unwrap().lines().count() as u64;
    assert_eq!(rows, 1 + 2 * SENT);
    // Wrong files.
    std::fs::write(bench.path("none.pcap"), "no capture").unwrap();
    let refused = |file: &str| {
        let (code, text) = exit_and_stderr(&bench.tailbound().args(["watch", "--read", file]).output().unwrap());
        format!("watch --read {file}\nexit {code}\n{text}")
    };
    let chain = exit_and_stderr(&bench.tailbound().args(["watch", "--chain", "/a"]).output().unwrap());
    insta::assert_snapshot!(format!(
        "{}\n{}\nwatch --chain /a\nexit {}\n{}",
        refused("none.pcap"),
        refused("gone.pcap"),
        chain.0,
        chain.1
    ));
}

/// Test: with --live --format json there is a line of JSON each second, with growing numbers, and the last one is the end.
#[test]
fn lines_of_json_are_printed_meanwhile() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    bench.study(&two_processes("cyclonedds").replace("slots: 300", "slots: 1500"));
    let script = "\"$T\" watch --for 100s --live --format json >lines 2>err & W=$!; until grep -q '^watching' err; do sleep 0.05; done; \
        \"$T\" run study.yaml --out record >/dev/null; sleep 0.3; kill -INT $W; wait $W";
    let output = in_namespace(&bench, script);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(bench.path("lines")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let samples =
        |report: &Value| writers(report).iter().map(|(_, writer)| writer["samples"].as_u64().unwrap()).sum::<u64>();
    let all: Vec<u64> = lines.iter().map(samples).collect();
    assert!(all.len() >= 4 && all.is_sorted(), "{all:?}");
    assert!(all.iter().any(|n| (1..1520 * 2).contains(n)) && *all.last().unwrap() == 1520 * 2, "{all:?}");
}

/// Test: with a limit that cannot be kept, topics are no longer read, and the report says which and since when.
#[test]
fn a_limit_of_cpu_time_leaves_topics_out() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    let text = two_processes("cyclonedds").replace("slots: 300", "slots: 20000").replace("500 Hz", "4 kHz");
    bench.study(&text.replace("8 KiB", "64 B").replace("timeout: 2 s", "timeout: 200 ms"));
    let found = watched(
        &bench,
        &in_namespace(&bench, "watching --cpu 1%; \"$T\" run study.yaml --out record >/dev/null; stop"),
    );
    let warnings = found["warnings"].to_string();
    assert!(warnings.contains("--cpu 1%: no longer read, so that their figures end there: "), "{warnings}");
    let read: Vec<u64> = writers(&found).iter().map(|(_, writer)| writer["samples"].as_u64().unwrap()).collect();
    assert!(read.iter().all(|samples| *samples < 20_020), "{read:?}");
}

/// Test with the real ROS 2: --ask finds the names of its nodes, and to which writers they belong.
#[test]
fn asking_finds_the_nodes_of_ros() {
    let Some(ros) = real() else { return };
    if cannot() {
        return;
    }
    let bench = Bench::new();
    let text =
        study("{ rclcpp: { node: talker } }", "listener", "process", "loopback").replace("slots: 300", "slots: 4000");
    bench.study(&format!("{text}domain: 18\n"));
    let script = "\"$T\" run study.yaml --out record >/dev/null 2>run.err & R=$!; \
        until grep -q 'measuring begins' record/logs/controller.log; do kill -0 $R; sleep 0.05; done; sleep 1; \
        watching --ask --domain 18; sleep 3; stop; wait $R";
    let script = format!("export TAILBOUND_LOG=debug; {script}");
    let found = watched(&bench, &in_namespace_of(&bench, &script, Some(&ros)));
    let named: Vec<(String, Option<String>)> = writers(&found)
        .iter()
        .filter_map(|(topic, writer)| {
            let name = topic["ros_topic"].as_str().filter(|name| name.contains("tailbound"))?;
            Some((name.to_owned(), writer["node"].as_str().map(str::to_owned)))
        })
        .collect();
    assert_eq!(named.len(), 2, "{found:#}");
    assert!(named.iter().all(|(_, node)| node.as_deref() == Some("/talker")), "{named:?}");
}

/// Test: the capture stamp of a sample is the time at which the kernel gave its packet to the device, as the trace point
/// `net_dev_start_xmit` records it for the same message. The ways of late messages and of 40 others are recorded of each trial, so that
/// trials of 45 messages have nearly all of them.
fn stamps_are_those_of_the_trace_point(driver: &str) {
    const TRIALS: usize = 8;
    let bench = Bench::new();
    let text = study(driver, "listener", "process", "loopback").replace("8 KiB", "64 B");
    let text = text.replace("slots: 300, warm_up: 20", "slots: 45, warm_up: 0");
    bench.study(&format!("{text}attribution: packets\nquiet: off\nrepeat: {TRIALS}\n"));
    let offset = || tailbound_host::realtime_ns() - tailbound_host::monotonic_ns();
    let before_ns = offset();
    let script = "watching --samples samples.csv; \"$T\" run study.yaml --out record >/dev/null; stop";
    let found = watched(&bench, &in_namespace(&bench, script));
    // The clocks drift against each other while the test runs.
    let drift_ns = (offset() - before_ns).abs();
    // A short trial can end without a recording.
    let recording = |trial: usize| -> Option<Switches> {
        let file = std::fs::read(bench.path(&format!("record/switches/{trial}-ping.json"))).ok()?;
        Some(serde_json::from_slice(&file).unwrap())
    };
    let by_bpf = |seen: &Switches| seen.recorder.as_ref().is_some_and(|recorder| recorder.by == RecordedBy::Bpf);
    let recordings: Vec<Option<Switches>> = (0..TRIALS).map(recording).collect();
    let recorded = recordings.iter().flatten().count();
    assert!(recorded > 1, "{recorded} trials were recorded: {found:#}");
    if !recordings.iter().flatten().all(by_bpf) {
        println!("skipped: BPF cannot be used here");
        return;
    }
    // Samples by the identity of their writer: when each was captured, monotonic.
    let mut captured: BTreeMap<String, BTreeMap<u64, i64>> = BTreeMap::new();
    for line in std::fs::read_to_string(bench.path("samples.csv")).unwrap().lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        // Samples are numbered from 1, slots from 0.
        let (slot, at_ns) = (cells[1].parse::<u64>().unwrap() - 1, cells[3].parse::<i64>().unwrap() - before_ns);
        captured.entry(cells[0].to_owned()).or_default().insert(slot, at_ns);
    }
    let is_ping = |topic: &Value| topic["topic"].as_str().unwrap().contains("ping");
    let pings = writers(&found).into_iter().filter(|(topic, _)| is_ping(topic));
    let mut trials: Vec<BTreeMap<u64, i64>> =
        pings.map(|(_, writer)| captured[writer["guid"].as_str().unwrap()].clone()).collect();
    trials.sort_by_key(|samples| samples.values().next().copied());
    assert_eq!(trials.len(), TRIALS, "{found:#}");
    let mut apart: Vec<i64> = Vec::new();
    for (trial, samples) in trials.iter().enumerate() {
        let Some(recorded) = &recordings[trial] else { continue };
        let packets = recorded.packets.as_ref().expect("the ways of packets");
        let mut sent: BTreeMap<u64, i64> = BTreeMap::new();
        for hop in packets.hops.iter().filter(|hop| hop.at == HopPlace::Transmitted && hop.seq >> 48 == 0) {
            sent.entry(hop.seq).or_insert(hop.at_ns);
        }
        apart.extend(sent.iter().filter_map(|(slot, at_ns)| Some((samples.get(slot)? - at_ns).abs())));
    }
    apart.sort_unstable();
    let (all, within) = (apart.len(), apart.iter().filter(|ns| **ns <= 20_000 + drift_ns).count());
    println!(
        "{driver}: {all} of {} messages, {within} within 20 us, median {} ns, at most {} ns apart; drift of the clocks {drift_ns} ns",
        45 * TRIALS,
        apart[all / 2],
        apart[all - 1]
    );
    assert!(all >= 35 * recorded, "{all} of {recorded} trials");
    // The printed width holds for all; readings of two clocks are not at one instant.
    let printed_ns = found["left_within"]["max_ns"].as_i64().unwrap();
    println!("printed: each packet left within {printed_ns} ns");
    assert!(apart[all - 1] <= printed_ns + drift_ns + 1_000, "{printed_ns}: {apart:?}");
    // The virtual machine of the tests can take a CPU away between the two.
    assert!(within * 100 >= all * 97, "{apart:?}");
}

#[test]
fn stamps_of_cyclonedds_are_those_of_the_trace_point() {
    if !cannot() {
        stamps_are_those_of_the_trace_point("cyclonedds");
    }
}

#[test]
fn stamps_of_fastdds_are_those_of_the_trace_point() {
    if !cannot() && fastdds::built().is_some() {
        stamps_are_those_of_the_trace_point("{ fastdds: { transport: udp } }");
    }
}

/// Test: two recorded captures of one system are shown again, and side by side; the page needs no other file.
/// Checks budgets of the capture `one`, which has the topic `topic`, and of a record of a study.
fn budgets_of_captures_are_judged(bench: &Bench, topic: &str) {
    let judged = |dir: &str, limits: &str| {
        std::fs::write(bench.path("budget.yaml"), format!("budget: wire\nlimits:\n{limits}")).unwrap();
        let mut command = bench.tailbound();
        let output = command.args(["budget", dir, "budget.yaml", "--junit", "wire.xml"]).output().unwrap();
        let (code, text) = exit_and_stderr(&output);
        (code, String::from_utf8_lossy(&output.stdout).into_owned() + &text)
    };
    let (code, text) = judged("one", "  - on_wire: { max: 10 s, lost: none, samples/s: 1 }\n");
    assert!(code == 0 && text.contains("6 limits hold") && text.contains(topic), "{code}: {text}");
    let (code, text) =
        judged("one", &format!("  - where: {{ topic: {topic} }}\n    on_wire: {{ max: 1 ns, samples/s: 100000 }}\n"));
    assert!(code == 5 && text.contains("2 are broken"), "{code}: {text}");
    let junit = std::fs::read_to_string(bench.path("wire.xml")).unwrap();
    assert!(junit.contains("failures=\"2\"") && junit.contains("on_wire max"), "{junit}");
    // Without enough samples nothing is decided.
    let (code, text) = judged("one", "  - on_wire: { p99.99: 10 s }\n");
    assert!(code == 7 && text.contains("p99.99 needs"), "{code}: {text}");
    let (code, text) = judged("one", "  - where: { topic: /none }\n    on_wire: { p50: 1 ms }\n");
    assert!(code == 2 && text.contains("no samples of the topic `/none`") && text.contains(topic), "{code}: {text}");
    let wrong = [
        judged("one", "  - round_trip: { p99: 1 ms }\n"),
        judged("one", "  - where: { driver: udp }\n    on_wire: { p99: 1 ms }\n"),
        judged("record", "  - on_wire: { p99: 1 ms }\n"),
        judged("one", "  - on_wire: { mean: 1 ms }\n"),
        judged("one", "  - on_wire: { samples/s: none }\n"),
    ];
    let wrong: Vec<String> = wrong.into_iter().map(|(code, text)| format!("exit {code}\n{text}")).collect();
    insta::assert_snapshot!("budgets_that_do_not_fit_captures", wrong.join("\n"));
}

#[test]
fn recorded_captures_are_shown_and_compared() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    // The names of topics are new in each run, so that one run is captured twice.
    bench.study(&two_processes("cyclonedds").replace("slots: 300", "slots: 1000"));
    let script = "\"$T\" watch --for 100s --out one >/dev/null 2>one.err & A=$!; \"$T\" watch --for 100s --out two >/dev/null 2>two.err & B=$!; \
        for f in one two; do until grep -q '^watching' $f.err; do sleep 0.05; done; done; \
        \"$T\" run study.yaml --out record >/dev/null; sleep 0.3; kill -INT $A $B; wait $A; wait $B";
    let output = in_namespace(&bench, script);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = |args: &[&str]| {
        let output = bench.tailbound().args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", exit_and_stderr(&output).1);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let one: Value = serde_json::from_str(&shown(&["report", "one", "--format", "json"])).unwrap();
    assert_eq!(one, serde_json::from_slice::<Value>(&std::fs::read(bench.path("one/watch.json")).unwrap()).unwrap());
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(shown(&["report", "one"])).contains("2 topics on the wire"));
    let page = std::fs::read_to_string(bench.path("one/report.html")).unwrap();
    assert_eq!(page, shown(&["report", "one", "--format", "html"]));
    assert!(page.contains("tailbound_ping") && !page.contains("http:") && !page.contains("https:"), "{page}");
    let compared: Value = serde_json::from_str(&shown(&["compare", "one", "two", "--format", "json"])).unwrap();
    let topics = compared["topics"].as_array().unwrap();
    assert_eq!(topics.len(), 2, "{compared:#}");
    for topic in topics {
        assert_eq!(topic["samples"], serde_json::json!([1020, 1020]), "{topic:#}");
        let late = &topic["lateness"][0];
        // Two stamps of the same packets.
        let ratio = late["ratio"].as_f64().unwrap();
        assert!((0.8..1.25).contains(&ratio) && late["within"].is_array(), "{topic:#}");
    }
    assert!(words(shown(&["compare", "one", "two"])).contains("so that it is no verdict"));
    // Directories with several captures: equal ones do not differ, and three of a side are too few.
    for (side, count) in [("before", 6), ("after", 6), ("few", 3)] {
        for n in 0..count {
            let of = if n % 2 == 0 { "one" } else { "two" };
            let into = bench.path(&format!("{side}/{n}"));
            std::fs::create_dir_all(&into).unwrap();
            for file in ["watch.json", "samples.csv"] {
                std::fs::copy(bench.path(of).join(file), into.join(file)).unwrap();
            }
        }
    }
    let several = words(shown(&["compare", "before", "after", "--margin", "50%"]));
    assert!(several.contains("A: 6 captures") && several.contains("equal within the margin"), "{several}");
    let few = words(shown(&["compare", "before", "few"]));
    assert!(few.contains("B: 3 captures") && few.contains(" more each") && !few.contains("slower"), "{few}");
    budgets_of_captures_are_judged(&bench, topics[0]["topic"].as_str().unwrap());
    let listed: Value = serde_json::from_str(&shown(&["ls", ".", "--format", "json"])).unwrap();
    let captures = listed["records"].as_array().unwrap().iter().filter(|line| line["study"] == "watch");
    let statuses: Vec<&Value> = captures.map(|line| &line["status"]).collect();
    assert_eq!(statuses, ["capture", "capture"], "{listed:#}");
    std::fs::write(bench.path("two/samples.csv"), "writer,number,source_ns,captured_ns\nthis is none\n").unwrap();
    let refused = |args: &[&str]| {
        let (code, text) = exit_and_stderr(&bench.tailbound().args(args).output().unwrap());
        format!("{}\nexit {code}\n{text}", args.join(" "))
    };
    let all = [
        refused(&["compare", "one", "two"]),
        refused(&["compare", "one", "record"]),
        refused(&["report", "one", "--format", "csv"]),
        refused(&["compare", "one", "two", "--format", "md"]),
        refused(&["compare", "one", "two", "--margin", "5%"]),
        refused(&["report", "one", "--budget", "limits.yaml"]),
        refused(&["report", "one", "--open"]),
        refused(&["watch", "--out", "one", "--for", "1s"]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}
