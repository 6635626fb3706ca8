//! Tests of `tailbound watch` against real middleware, in network namespaces of their own.

use crate::support::host::cannot;
use crate::support::rcl::{Ros, real};
use crate::support::ros2::study;
use crate::support::{Bench, exit_and_stderr, fastdds, rclcpp, ros2};
use serde_json::Value;
use std::process::{Command, Output};

/// Messages of a study of [`study`]: slots and warm-up.
pub const SENT: u64 = 320;

/// Runs a script of the shell in a network namespace and a mount namespace of its own, in the directory of the test. `$T` is the program, and `watching`
/// starts a capture that ends with `stop`.
pub fn in_namespace(bench: &Bench, script: &str) -> Output {
    in_namespace_of(bench, script, None)
}

/// The same with this ROS 2 sourced.
pub fn in_namespace_of(bench: &Bench, script: &str, ros: Option<&Ros>) -> Output {
    let begin = "set -e; ip link set lo up; \
        watching() { \"$T\" watch --for 100s --format json \"$@\" >watched.json 2>watched.err & W=$!; \
            until grep -q '^watching' watched.err; do kill -0 $W; sleep 0.05; done; }; \
        stop() { sleep 0.3; kill -INT $W; wait $W; }; ";
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-c", &format!("{begin}{script}")]).current_dir(bench.dir.path());
    command
        .env("T", env!("CARGO_BIN_EXE_tailbound"))
        .env("TAILBOUND_STATE_DIR", bench.path("state"))
        .env("NO_COLOR", "1");
    if let Some(ros) = ros {
        ros.source(&mut command);
        command.env("TAILBOUND_DRIVER_PATH", rclcpp::built(ros));
    }
    command.output().expect("unshare of util-linux")
}

/// What the capture of a script found; the script must have succeeded.
pub fn watched(bench: &Bench, output: &Output) -> Value {
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap_or_default();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stderr), read("watched.err"));
    serde_json::from_str(&read("watched.json")).unwrap()
}

/// The writers of all topics with samples of a study, with the names of the topics.
pub fn writers(found: &Value) -> Vec<(&Value, &Value)> {
    let topics = found["topics"].as_array().unwrap().iter();
    let all = topics.flat_map(|topic| topic["writers"].as_array().unwrap().iter().map(move |writer| (topic, writer)));
    all.filter(|(_, writer)| writer["samples"].as_u64().unwrap() > 0).collect()
}

/// A study of two processes over the loopback interface, with 320 round trips of 8 KiB.
pub fn two_processes(driver: &str) -> String {
    study(driver, "listener", "process", "loopback")
}

/// Test: both topics are seen with their names, policies, exactly the messages that were sent, and their lateness.
fn both_topics_are_seen(driver: &str, vendor: &str) {
    let bench = Bench::new();
    bench.study(&two_processes(driver));
    let found = watched(&bench, &in_namespace(&bench, "watching; \"$T\" run study.yaml --out record >/dev/null; stop"));
    let writers = writers(&found);
    assert_eq!(writers.len(), 2, "{found:#}");
    for (topic, writer) in writers {
        assert!(topic["topic"].is_string() && topic["type_name"].as_str().unwrap().contains("Sample"), "{topic:#}");
        assert_eq!((writer["vendor"].as_str(), writer["samples"].as_u64()), (Some(vendor), Some(SENT)), "{writer:#}");
        // A number of 8 bytes, the length of the sequence, and its bytes.
        assert_eq!(writer["bytes"], serde_json::json!([8204, 8204]), "{writer:#}");
        assert_eq!((&writer["is_here"], &writer["without_time"]), (&true.into(), &0.into()), "{writer:#}");
        let late = &writer["lateness"];
        assert_eq!((&late["is_above_fastest"], &late["range"]["count"]), (&false.into(), &SENT.into()), "{writer:#}");
        assert!(late["range"]["min_ns"].as_i64().unwrap() > 0, "the packet leaves after the write began: {writer:#}");
        assert_eq!(writer["qos"]["reliability"], "reliable", "{writer:#}");
        for what in ["lost", "given_up", "numbers_not_seen", "unfinished", "replayed", "first_not_seen"] {
            assert_eq!(writer["protocol"][what], 0, "{what}: {writer:#}");
        }
    }
    assert_eq!((&found["not_copied"], &found["unread"]["malformed"]), (&0.into(), &0.into()), "{found:#}");
    assert!(found["copies"].as_u64() >= found["packets"].as_u64(), "each packet is sent and received: {found:#}");
}

#[test]
fn topics_of_cyclonedds_are_seen() {
    if !cannot() {
        both_topics_are_seen("cyclonedds", "Cyclone DDS");
    }
}

#[test]
fn topics_of_fastdds_are_seen() {
    if !cannot() {
        fastdds::built();
        both_topics_are_seen("{ fastdds: { transport: udp } }", "Fast DDS");
    }
}

/// Test: talkers of ROS 2 are seen by their names in ROS 2, with exactly the messages that were sent.
fn talkers_are_seen(driver: &str, vendor: &str, ros: Option<&Ros>) {
    let bench = Bench::new();
    // The driver `ros2` has no listeners.
    let receive = if driver == "ros2" { "block" } else { "listener" };
    bench.study(&study(driver, receive, "process", "loopback"));
    let script = "watching; \"$T\" run study.yaml --out record >/dev/null; stop";
    let found = watched(&bench, &in_namespace_of(&bench, script, ros));
    let own =
        |(topic, _): &(&Value, &Value)| topic["ros_topic"].as_str().is_some_and(|name| name.contains("tailbound"));
    let writers: Vec<(&Value, &Value)> = writers(&found).into_iter().filter(own).collect();
    assert_eq!(writers.len(), 2, "{found:#}");
    for (topic, writer) in writers {
        assert!(topic["type_name"].as_str().unwrap().contains("::msg::dds_::"), "{topic:#}");
        let samples = writer["samples"].as_u64().unwrap();
        let protocol = |what: &str| writer["protocol"][what].as_u64().unwrap();
        // A talker that was held up sends several samples in one packet; those behind the copied bytes are numbers that were not seen.
        let all = samples + protocol("first_not_seen") + protocol("numbers_not_seen");
        // So can be the last ones, which then are no numbers between others.
        let behind = found["unread"]["behind_copied"].as_u64().unwrap();
        assert!(all == SENT || (SENT - 10..SENT).contains(&all) && behind > 0, "{all} of {SENT}: {writer:#}");
        assert_eq!(writer["vendor"].as_str(), Some(vendor), "{writer:#}");
        // On a busy machine, RustDDS has put up to a third of its samples behind others in one packet.
        assert!(samples > SENT * 9 / 10 || behind > 0 && samples > SENT / 3, "{samples}: {writer:#}");
        // A program that gives no time has no lateness, and no other number takes its place.
        let late = writer["lateness"]["range"]["count"].as_u64().unwrap_or(0);
        assert_eq!(late + writer["without_time"].as_u64().unwrap(), samples, "{writer:#}");
        assert_eq!(writer["protocol"]["lost"], 0, "{writer:#}");
    }
}

#[test]
fn talkers_of_ros2_client_are_seen() {
    if !cannot() {
        ros2::built();
        talkers_are_seen("ros2", "RustDDS", None);
    }
}

#[test]
fn talkers_of_rcl_are_seen() {
    if let Some(ros) = real().filter(|_| !cannot()) {
        talkers_are_seen("rcl", "Cyclone DDS", Some(&ros));
    }
}

#[test]
fn talkers_of_rclcpp_are_seen() {
    if let Some(ros) = real().filter(|_| !cannot()) {
        talkers_are_seen("{ rclcpp: { executor: single } }", "Cyclone DDS", Some(&ros));
    }
}

/// Test: the time that a sample carries lies within the call that sent it, and the sample was captured after it was written.
fn source_timestamps_are_those_of_the_calls(driver: &str, slots: usize, ros: Option<&Ros>) {
    let bench = Bench::new();
    let rate = if slots > 10_000 { "rate: 2 kHz" } else { "rate: 500 Hz" };
    let study = two_processes(driver).replace("slots: 300", &format!("slots: {slots}")).replace("rate: 500 Hz", rate);
    // The driver `ros2` has no listeners.
    let study = study.replace("listener", if driver == "ros2" { "block" } else { "listener" });
    bench.study(&study.replace("8 KiB", if slots > 10_000 { "256 B" } else { "8 KiB" }));
    let offset = || tailbound_host::realtime_ns() - tailbound_host::monotonic_ns();
    let before_ns = offset();
    let script = "watching --samples samples.csv; \"$T\" run study.yaml --out record >/dev/null; stop";
    let found = watched(&bench, &in_namespace_of(&bench, script, ros));
    let after_ns = offset();
    // The clocks drift while the test runs, and two readings are not at one instant.
    let width_ns = (after_ns - before_ns).abs() + 20_000;
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    let mut calls = Vec::new();
    record
        .slots(0, &mut |batch| calls.extend(batch.send_begin_ns.iter().copied().zip(batch.send_end_ns.iter().copied())))
        .unwrap();
    calls.sort_unstable();
    let text = std::fs::read_to_string(bench.path("samples.csv")).unwrap();
    let topic = |part: &str| {
        let of =
            writers(&found).into_iter().find(|(topic, _)| topic["topic"].as_str().unwrap().contains(part)).unwrap();
        of.1["guid"].as_str().unwrap().to_owned()
    };
    let ping = topic("ping");
    let rows: Vec<[i64; 3]> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.strip_prefix(&format!("{ping},")))
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect::<Vec<i64>>().try_into().unwrap())
        .collect();
    // A writer that was held up sends several samples in one packet; those behind the copied bytes are not seen.
    let behind = found["unread"]["behind_copied"].as_u64().unwrap() as usize;
    assert_eq!(calls.len(), slots + 20);
    assert!(rows.len() == calls.len() || behind > 0 && rows.len() > calls.len() / 3, "{}, {behind}", rows.len());
    println!("{} source timestamps, each within {width_ns} ns of its call", rows.len());
    for [number, source_ns, captured_ns] in rows {
        let (begin_ns, end_ns) = calls[number as usize - 1];
        let source_ns = source_ns - before_ns;
        let range = begin_ns - width_ns..=end_ns + width_ns;
        assert!(
            range.contains(&source_ns),
            "sample {number}: written at {source_ns}, called at {begin_ns} to {end_ns}"
        );
        assert!(captured_ns - before_ns >= source_ns, "sample {number}");
    }
}

#[test]
fn times_of_cyclonedds_are_those_of_the_calls() {
    if !cannot() {
        source_timestamps_are_those_of_the_calls("cyclonedds", 3000, None);
    }
}

#[test]
fn times_of_fastdds_are_those_of_the_calls() {
    if !cannot() {
        fastdds::built();
        source_timestamps_are_those_of_the_calls("{ fastdds: { transport: udp } }", 3000, None);
    }
}

#[test]
fn times_of_rclcpp_are_those_of_the_calls() {
    if let Some(ros) = real().filter(|_| !cannot()) {
        source_timestamps_are_those_of_the_calls("{ rclcpp: { executor: single } }", 3000, Some(&ros));
    }
}

#[test]
fn times_of_ros2_client_are_those_of_the_calls() {
    if !cannot() {
        ros2::built();
        source_timestamps_are_those_of_the_calls("ros2", 3000, None);
    }
}

/// Test: 100,000 samples of each writer.
#[test]
fn long_times_of_a_hundred_thousand_calls() {
    if !cannot() {
        fastdds::built();
        source_timestamps_are_those_of_the_calls("cyclonedds", 100_000, None);
        source_timestamps_are_those_of_the_calls("{ fastdds: { transport: udp } }", 100_000, None);
        ros2::built();
        source_timestamps_are_those_of_the_calls("ros2", 100_000, None);
        if let Some(ros) = real() {
            source_timestamps_are_those_of_the_calls("{ rclcpp: { executor: single } }", 100_000, Some(&ros));
        }
    }
}

/// Test: Cyclone DDS does not send some of its packets. Each sample is seen once, or is sent again without its first transmission,
/// and none is lost.
#[test]
fn planted_losses_are_seen_as_retransmissions() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    // In thousandths.
    let lossy = "<CycloneDDS><Domain Id='any'><General><AllowMulticast>false</AllowMulticast></General><Discovery>\
        <ParticipantIndex>auto</ParticipantIndex><Peers><Peer Address='127.0.0.1'/></Peers></Discovery>\
        <Internal><Test><XmitLossiness>30</XmitLossiness></Test></Internal></Domain></CycloneDDS>";
    bench.study(&two_processes("{ cyclonedds: { config: lossy.xml } }").replace("8 KiB", "64 B"));
    std::fs::write(bench.path("lossy.xml"), lossy).unwrap();
    let found = watched(&bench, &in_namespace(&bench, "watching; \"$T\" run study.yaml --out record >/dev/null; stop"));
    let writers = writers(&found);
    assert_eq!(writers.len(), 2, "{found:#}");
    // What the ends sent: the pong answers only what it received in time.
    let mut sent = [0, 0];
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    let count = |times: &[i64]| times.iter().filter(|time| **time != tailbound_model::NO_TIME).count() as u64;
    record
        .slots(0, &mut |batch| {
            sent[0] += count(&batch.send_begin_ns);
            sent[1] += count(&batch.echo_begin_ns);
        })
        .unwrap();
    let mut unseen = 0;
    for (topic, writer) in writers {
        let protocol = |what: &str| writer["protocol"][what].as_u64().unwrap();
        let end = usize::from(topic["topic"].as_str().unwrap().contains("pong"));
        let (samples, first_not_seen) = (writer["samples"].as_u64().unwrap(), protocol("first_not_seen"));
        println!(
            "{samples} samples, {first_not_seen} without their first transmission, {} requested",
            protocol("requested")
        );
        // The run ends when all answers are there or have timed out: the last repetition may be among the packets that Cyclone drops.
        let (found, not_seen) = (samples + first_not_seen, protocol("numbers_not_seen"));
        // On a busy machine, ends met or parted while some of their samples were in packets that Cyclone dropped: at most 5 of 320 were so.
        assert!(
            (sent[end] - 10..=sent[end]).contains(&found) && found + not_seen <= sent[end],
            "{} sent: {writer:#}",
            sent[end]
        );
        assert_eq!(protocol("lost"), 0, "{writer:#}");
        assert!(protocol("requested") >= first_not_seen, "{writer:#}");
        unseen += first_not_seen;
    }
    assert!(unseen > 0, "{found:#}");
}

/// Test: writers that were announced before the capture have no names, and --ask finds them.
#[test]
fn asking_finds_what_was_announced_before() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    bench.study(&format!("{}domain: 17\n", two_processes("cyclonedds").replace("slots: 300", "slots: 6000")));
    let script = "\"$T\" run study.yaml --out record >/dev/null 2>run.err & R=$!; \
        until grep -q 'measuring begins' record/logs/controller.log; do kill -0 $R; sleep 0.05; done; sleep 2; \
        watching; sleep 2; stop; mv watched.json silent.json; \
        watching --ask --domain 17; sleep 4; stop; wait $R";
    let script = format!("export TAILBOUND_LOG=debug; {script}");
    let asked = watched(&bench, &in_namespace(&bench, &script));
    let silent: Value = serde_json::from_str(&std::fs::read_to_string(bench.path("silent.json")).unwrap()).unwrap();
    let named = |found: &Value| writers(found).iter().map(|(topic, _)| topic["topic"].is_string()).collect::<Vec<_>>();
    assert_eq!((named(&silent), named(&asked)), (vec![false, false], vec![true, true]), "{silent:#} {asked:#}");
    let warned =
        |found: &Value| found["warnings"].as_array().unwrap().iter().any(|w| w.as_str().unwrap().contains("--ask"));
    assert!(warned(&silent) && !warned(&asked), "{silent:#} {asked:#}");
    let printed = std::fs::read_to_string(bench.path("watched.err")).unwrap();
    assert!(printed.contains("joins the DDS domain 17"), "{printed}");
}

/// Test: an interface that is removed ends the capture, and what was seen is shown.
#[test]
fn an_interface_that_goes_ends_the_capture() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    let script = "ip link add gone type veth peer name far; ip link set gone up; watching --interface gone; ip link del gone; wait $W";
    let found = watched(&bench, &in_namespace(&bench, script));
    let warnings = found["warnings"].to_string();
    assert!(warnings.contains("the capture ended early") && warnings.contains("removed"), "{warnings}");
}

/// Test: what a capture costs the programs is measured by pairs, and printed with its interval.
#[test]
fn the_cost_of_a_capture_is_measured() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    bench.study(&two_processes("cyclonedds").replace("slots: 300", "slots: 7000"));
    let script = "export TAILBOUND_LOG=debug; \"$T\" run study.yaml --out record >/dev/null 2>run.err & R=$!; \
        until grep -q 'measuring begins' record/logs/controller.log; do kill -0 $R; sleep 0.05; done; \
        \"$T\" watch --cost --for 200ms --out seen >watched.txt; cp seen/watch.json watched.json; wait $R";
    let found = watched(&bench, &in_namespace(&bench, script));
    let cost = &found["cost"];
    let [without, added, low, high] =
        [&cost["without"], &cost["added"], &cost["within"][0], &cost["within"][1]].map(|share| share.as_f64().unwrap());
    println!("{without} of a CPU, {added} more ({low} to {high})");
    assert_eq!(cost["pairs"], 10, "{cost:#}");
    // The ends take some of a CPU, and the capture far less than that.
    assert!(without > 0.001 && low <= added && added <= high && added.abs() < without, "{cost:#}");
    let text = std::fs::read_to_string(bench.path("watched.txt")).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("without a capture, and") && text.contains("98 % interval of 10 pairs"), "{text}");
}

/// Rate and size of each writer, the smallest sample first.
fn flows(found: &Value) -> Vec<(f64, u64)> {
    let flow = |(_, writer): (&Value, &Value)| (writer["rate_hz"].as_f64(), writer["bytes"][1].as_u64());
    let mut all: Vec<(f64, u64)> =
        writers(found).into_iter().map(flow).filter_map(|(rate, bytes)| Some((rate?, bytes?))).collect();
    all.sort_by_key(|(_, bytes)| *bytes);
    all
}

/// Test: the study of a capture sends topics of the same rates and sizes as the programs that were watched.
fn a_saved_study_sends_what_was_seen(driver: &str, vendor: &str) {
    let bench = Bench::new();
    bench.study(&format!(
        "measure: {{ fan-out: {{ duration: 4 s, subscribers: 2 }} }}\npayload: 1000 B\nrate: 97 Hz\ndriver: {driver}\nplace: process\n\
         path: loopback\nqos: {{ reliability: best-effort }}\nends: {{ pong: {{ cpus: any }} }}\n\
         load:\n  - {{ run: {{ topic: {{ payload: 5000 B, rate: 131 Hz, jitter: 3 ms, qos: {{ reliability: reliable }} }} }} }}\n"
    ));
    // The name of the topic is new in each run, so that packets are captured into a file, which is read twice.
    let script = "tcpdump -i any -B 32768 -U -w all.pcap udp 2>tcpdump.err & D=$!; until grep -q 'listening' tcpdump.err; do sleep 0.05; done; \
        \"$T\" run study.yaml --out record >/dev/null; sleep 1; kill -INT $D; wait $D || true; \
        \"$T\" watch --read all.pcap --format json >first.json; \
        \"$T\" watch --read all.pcap --save-study saved.yaml --topic \"$(grep -o 'tailbound_ping[^\"]*' first.json | head -1)\" >/dev/null; \
        watching; \"$T\" run saved.yaml --set measure.duration=4s --out again >/dev/null; stop";
    let again = watched(&bench, &in_namespace(&bench, script));
    let first: Value = serde_json::from_str(&std::fs::read_to_string(bench.path("first.json")).unwrap()).unwrap();
    let saved = std::fs::read_to_string(bench.path("saved.yaml")).unwrap();
    // The load has its own policies and its jitter: how much longer than a period 99 % of its intervals are at most.
    let of_load = |found: &Value| {
        let all = writers(found);
        let (_, load) = all.iter().find(|(_, writer)| writer["bytes"][1] == 5012).unwrap();
        let beyond_ns = load["interval"]["p99_ns"].as_f64().unwrap() - 1e9 / load["rate_hz"].as_f64().unwrap();
        (load["qos"]["reliability"].clone(), beyond_ns)
    };
    let (seen, sent) = (of_load(&first), of_load(&again));
    assert_eq!((&seen.0, &sent.0), (&"reliable".into(), &"reliable".into()), "{saved}");
    // 99 % of the differences of two even draws from 0 to 3 ms are at most 2.58 ms; a busy machine adds to it.
    let jitter_us: f64 =
        saved.split_once("jitter: ").and_then(|(_, rest)| rest.split_once(" us")?.0.parse().ok()).unwrap();
    assert!(seen.1 > 2_200_000.0 && jitter_us > 2_500.0, "{} ns: {saved}", seen.1);
    assert!(sent.1 > jitter_us * 859.0 * 0.8, "{} ns, then {} ns: {saved}", seen.1, sent.1);
    let (first, again) = (flows(&first), flows(&again));
    println!("{saved}{first:?} {again:?}");
    assert!(first.len() == 2 && first[0].1 == 1012 && first[1].1 == 5012, "{first:?}");
    assert_eq!(again.len(), 2, "{again:?}");
    for ((rate, bytes), (rate_again, bytes_again)) in first.into_iter().zip(again) {
        assert_eq!(bytes, bytes_again, "{saved}");
        assert!((rate / rate_again - 1.0).abs() < 0.02, "{rate} Hz, then {rate_again} Hz: {saved}");
    }
    assert!(saved.contains("subscribers: 2") && saved.contains("reliability: best-effort"), "{saved}");
    assert!(saved.contains(vendor), "{saved}");
}

#[test]
fn a_saved_study_of_cyclonedds_sends_what_was_seen() {
    if !cannot() {
        a_saved_study_sends_what_was_seen("cyclonedds", "driver: cyclonedds");
    }
}

#[test]
fn a_saved_study_of_fastdds_sends_what_was_seen() {
    if !cannot() {
        fastdds::built();
        a_saved_study_sends_what_was_seen("{ fastdds: { transport: udp } }", "driver: fastdds");
    }
}

/// Test: on a terminal, the screen shows the topics while they are sent, keys change it, and the terminal is as before afterwards.
#[test]
fn a_terminal_shows_topics_meanwhile() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    bench.study(&two_processes("cyclonedds").replace("slots: 300", "slots: 1500"));
    // The keys: Enter opens a topic, Esc closes it, q ends the capture.
    let script = "\"$T\" run study.yaml --out record >/dev/null 2>run.err & R=$!; \
        (sleep 3; printf '\\r'; sleep 2; printf '\\033'; sleep 2; printf q) | \
        script --quiet --return --command \"stty rows 30 cols 150; \\\"$T\\\" watch --live --for 60s\" typed; wait $R; \
        \"$T\" watch --live --for 1s </dev/null >none 2>none.err || echo $? >code";
    let output = in_namespace(&bench, &format!("export TERM=xterm; {script}"));
    let typed = String::from_utf8_lossy(&std::fs::read(bench.path("typed")).unwrap_or_default()).into_owned();
    assert!(output.status.success(), "{}{typed}", String::from_utf8_lossy(&output.stderr));
    let (enter, leave) = ("\u{1b}[?1049h", "\u{1b}[?1049l");
    let (before, rest) = typed.split_once(enter).expect("the screen was entered");
    let (screen, after) = rest.split_once(leave).expect("the screen was left");
    assert!(before.contains("watching all interfaces"), "{before}");
    assert!(
        screen.contains("late max") && screen.contains("policies") && screen.contains("samples by second"),
        "{screen}"
    );
    // The report as without --live, after less than the time of --for.
    let words = after.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("participants of DDS") && words.contains("late p50"), "{after}");
    let refused = std::fs::read_to_string(bench.path("none.err")).unwrap();
    assert!(refused.contains("--live needs a terminal"), "{refused}");
    assert_eq!(std::fs::read_to_string(bench.path("code")).unwrap().trim(), "2");
}

/// Test: a file that cannot be written ends the capture, and what was seen is shown.
#[test]
fn a_file_that_cannot_be_written_does_not_lose_what_was_seen() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    let script = "mkdir gone; \"$T\" watch --for 300ms --metrics gone/m.prom --format json >watched.json 2>watched.err & W=$!; \
        until grep -q '^watching' watched.err; do sleep 0.05; done; rmdir gone; wait $W || echo $? >code";
    let found = watched(&bench, &in_namespace(&bench, script));
    assert_eq!(found["packets"], 0, "{found:#}");
    let printed = std::fs::read_to_string(bench.path("watched.err")).unwrap();
    assert!(printed.contains("gone/m.prom: cannot write the metrics"), "{printed}");
    assert_eq!(std::fs::read_to_string(bench.path("code")).unwrap().trim(), "4");
}

/// Test: what is wrong and what to do, for each wrong input.
#[test]
fn wrong_input_is_refused() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    std::fs::write(bench.path("file"), "").unwrap();
    let refused = |args: &[&str]| {
        let output = bench.tailbound().arg("watch").args(args).output().unwrap();
        let (code, text) = exit_and_stderr(&output);
        format!("watch {}\nexit {code}\n{text}", args.join(" "))
    };
    let mut all = vec![
        refused(&["--interface", "nosuch0"]),
        refused(&["--netns", "nosuch"]),
        refused(&["--netns", "./file"]),
        refused(&["--domain", "3"]),
        refused(&["--ask", "--domain", "900", "--for", "1s"]),
        refused(&["--for", "soon"]),
        refused(&["--samples", "file", "--for", "1s"]),
        refused(&["--save-study", "file", "--for", "1s"]),
        refused(&["--save-study", "new.yaml", "--for", "200ms", "--interface", "lo"]),
        refused(&["--topic", "/scan"]),
    ];
    let mut command = Command::new("setpriv");
    command.args(["--inh-caps", "-net_raw", "--bounding-set", "-net_raw", env!("CARGO_BIN_EXE_tailbound"), "watch"]);
    let (code, text) = exit_and_stderr(&command.env("NO_COLOR", "1").output().unwrap());
    all.push(format!("without CAP_NET_RAW\nexit {code}\n{text}"));
    insta::assert_snapshot!(all.join("\n"));
}

/// Test: a domain in which nobody speaks.
#[test]
fn nothing_is_seen_where_nobody_speaks() {
    if cannot() {
        return;
    }
    let bench = Bench::new();
    let output = in_namespace(&bench, "\"$T\" watch --for 200ms");
    let text = String::from_utf8_lossy(&output.stdout);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.status.success() && words.contains("0 topics on the wire; "), "{text}{:?}", output.stderr);
}
