//! Tests of the path check with real drivers in a network namespace without other senders: messages travel in packets,
//! through shared memory, or inside a process. Other tests have studies that request another path than the messages
//! take.

use crate::support::fastdds::built;
use crate::support::{Bench, exit_and_stderr, succeeded};
use serde_json::Value;
use std::process::{Command, Output};

fn study(driver: &str, place: &str, path: &str, rest: &str) -> String {
    let quiet = if rest.contains("quiet:") { "" } else { "quiet: auto\n" };
    format!(
        "study: proof\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 300, warm_up: 20, timeout: 2 s }} }}\n\
         rate: 500 Hz\ndriver: {driver}\nplace: {place}\npath: {path}\n{quiet}{rest}"
    )
}

/// Runs a study in a network namespace of its own; `None` (and a printed line) if no namespace can be made.
fn run_alone(bench: &Bench, study: &str) -> Option<Output> {
    let (file, tailbound) = (bench.study(study), bench.tailbound());
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]).arg(tailbound.get_program());
    command.arg("run").arg(file).arg("--out").arg(bench.path("record")).current_dir(bench.dir.path());
    command.envs(tailbound.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let output = command.output().expect("unshare of util-linux");
    if String::from_utf8_lossy(&output.stderr).contains("unshare failed") {
        println!("skipped: {}", exit_and_stderr(&output).1);
        return None;
    }
    Some(output)
}

/// Returns the part of the report about the path of the only condition, and the whole report.
fn proof(bench: &Bench) -> (Value, Value) {
    let report = bench.report();
    let proof = report["conditions"][0]["path_proof"].clone();
    assert!(proof.is_object(), "no proof: {}", report["conditions"][0]);
    (proof, report)
}

fn packets(proof: &Value) -> i64 {
    proof["interfaces"].as_array().unwrap().iter().map(|i| i["packets"].as_i64().unwrap()).sum()
}

/// Values of the key `key`, such as packets per message, for each interface of the path except lo. The interface lo is
/// left out because the kernel may send its own packets over it.
fn per_message(proof: &Value, key: &str) -> Vec<f64> {
    let all = proof["interfaces"].as_array().unwrap().iter();
    all.filter(|i| i["path"] == true).map(|i| i[key].as_f64().unwrap()).collect()
}

#[test]
fn shared_memory_is_recognised_by_its_segments_and_by_no_packet() {
    if built().is_none() {
        return;
    }
    for (transport, found, words) in [
        ("shm", "shared-memory", "shared memory: no packet"),
        ("data-sharing", "data-sharing", "data sharing: no packet"),
    ] {
        let bench = Bench::new();
        let driver = format!("{{ fastdds: {{ transport: {transport} }} }}");
        let Some(output) = run_alone(&bench, &study(&driver, "process", "loopback", "qos: { history: keep-all }\n"))
        else {
            return;
        };
        succeeded(&output);
        let (proof, report) = proof(&bench);
        assert_eq!((&proof["asked"], &proof["found"]), (&found.into(), &found.into()), "{proof}");
        assert_eq!(packets(&proof), 0, "{proof}");
        assert!(proof["text"].as_str().unwrap().starts_with(words), "{proof}");
        let segments = proof["shared_segments"].to_string();
        assert!(segments.contains("fastrtps_"), "{segments}");
        assert_eq!(segments.contains("fast_datasharing"), transport == "data-sharing", "{segments}");
        assert_eq!(proof["network_sockets"], 0);
        assert_eq!(report["status"], "valid");
    }
}

#[test]
fn delivery_inside_the_process_is_a_finding() {
    let mut drivers = vec!["{ cyclonedds: { instance: shared } }"];
    if built().is_some() {
        drivers.push("{ fastdds: { transport: intra-process } }");
    }
    for driver in drivers {
        let bench = Bench::new();
        let Some(output) = run_alone(&bench, &study(driver, "same-process", "loopback", "")) else { return };
        succeeded(&output);
        let (proof, report) = proof(&bench);
        assert_eq!(proof["found"], "inside-process", "{driver}: {proof}");
        let findings = report["findings"].as_array().unwrap();
        let finding = findings.iter().find(|f| f["code"] == "inside_process").unwrap_or_else(|| panic!("{findings:?}"));
        let text = finding["text"].as_str().unwrap();
        assert!(text.contains("delivered inside the process: no packet on any interface"), "{text}");
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(shown.replace("\n  ", " ").contains("delivered inside the process"), "{shown}");
    }
}

/// Test of one participant for both ends: Cyclone DDS always delivers inside the process; Fast DDS delivers inside the
/// process if its options request it.
#[test]
fn one_participant_of_both_ends_is_looked_into() {
    let mut drivers = vec![("cyclonedds", "inside-process")];
    if built().is_some() {
        drivers.extend([("{ fastdds: { transport: intra-process } }", "inside-process"), ("fastdds", "packets")]);
    }
    for (driver, found) in drivers {
        let bench = Bench::new();
        let rest = "arrangement: { processes: 1, participants: 1, executors: 1 }\nqos: { history: keep-all }\n";
        let text =
            study(driver, "same-process", "loopback", rest).replace("timeout: 2 s", "timeout: 2 s, receive: executor");
        let Some(output) = run_alone(&bench, &text) else { return };
        succeeded(&output);
        let (proof, report) = proof(&bench);
        assert_eq!(proof["found"], found, "{driver}: {proof}");
        let told = report["findings"].as_array().unwrap().iter().any(|f| f["code"] == "inside_process");
        assert_eq!(told, found == "inside-process", "{driver}");
        if found == "packets" {
            assert!((1.9..3.0).contains(&per_message(&proof, "packets_per_message")[0]), "{driver}: {proof}");
        }
    }
}

/// Test of two participants in one process: messages pass sockets, and the path check finds the packets.
#[test]
fn two_participants_of_one_process_may_send_packets() {
    let bench = Bench::new();
    let Some(output) = run_alone(&bench, &study("cyclonedds", "same-process", "loopback", "")) else { return };
    succeeded(&output);
    let (proof, _) = proof(&bench);
    assert_eq!(proof["found"], "packets", "{proof}");
    assert!((1.8..3.0).contains(&per_message(&proof, "packets_per_message")[0]), "{proof}");
}

#[test]
fn packets_and_fragments_of_each_message_are_counted() {
    // 8 KiB in Ethernet frames of 1500 bytes are six IP fragments, with 8 + 8 or about 100 bytes of headers.
    for (payload, fragments) in [("64 B", 0.0), ("8 KiB", 6.0)] {
        for driver in ["udp", "cyclonedds"] {
            let bench = Bench::new();
            succeeded(&bench.run(&study(driver, "netns", "veth", &format!("payload: {payload}\n")), &[]));
            let (proof, report) = proof(&bench);
            assert_eq!((&proof["asked"], &proof["found"]), (&"packets".into(), &"packets".into()), "{proof}");
            let ways = per_message(&proof, "packets_per_message");
            assert_eq!(ways.len(), 2, "one interface in each namespace: {proof}");
            let expected = if fragments > 0.0 { fragments } else { 1.0 };
            // A reliable writer may send acknowledgements and heartbeats in addition.
            assert!(ways.iter().all(|n| (expected - 0.1..expected + 1.0).contains(n)), "{driver} {payload}: {ways:?}");
            let found = per_message(&proof, "fragments_per_message");
            assert!(found.iter().all(|n| (n - fragments).abs() < 0.1), "{driver} {payload}: {found:?}");
            assert!(per_message(&proof, "multicast_per_message").iter().all(|n| *n < 0.05), "{proof}");
            assert!(proof["text"].as_str().unwrap().starts_with("unicast over veth: "), "{proof}");
            assert_eq!(report["status"], "valid");
        }
    }
}

/// Text of a configuration file that makes Fast DDS use another transport than the study requests.
fn profile(transport: &str) -> String {
    format!(
        r#"<dds xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles"><profiles>
        <transport_descriptors><transport_descriptor><transport_id>t</transport_id><type>{transport}</type>
        </transport_descriptor></transport_descriptors>
        <participant profile_name="p" is_default_profile="true"><rtps>
        <userTransports><transport_id>t</transport_id></userTransports>
        <useBuiltinTransports>false</useBuiltinTransports></rtps></participant>
        <data_writer profile_name="w" is_default_profile="true"><qos><data_sharing><kind>OFF</kind></data_sharing></qos>
        </data_writer>
        <data_reader profile_name="r" is_default_profile="true"><qos><data_sharing><kind>OFF</kind></data_sharing></qos>
        </data_reader></profiles></dds>"#
    )
}

#[test]
fn another_path_than_the_study_asks_for_makes_the_trial_invalid() {
    if built().is_none() {
        return;
    }
    for (asked, given, told_as) in [
        ("shm", "UDPv4", "the study asks for shared memory; there were "),
        (
            "data-sharing",
            "SHM",
            "the study asks for data sharing; the memory that both ends have mapped is for shared memory only",
        ),
        (
            "udp",
            "SHM",
            "the study asks for packets over lo; there were 0 packets on this path in 320 answered messages; both ends \
                        have mapped the same memory (shared memory)",
        ),
        (
            "intra-process",
            "SHM",
            "the study asks for delivery inside the process, although the ends are in two processes",
        ),
    ] {
        let bench = Bench::new();
        std::fs::write(bench.path("other.xml"), profile(given)).unwrap();
        let driver = format!("{{ fastdds: {{ transport: {asked}, config: other.xml }} }}");
        let Some(output) = run_alone(&bench, &study(&driver, "process", "loopback", "qos: { history: keep-all }\n"))
        else {
            return;
        };
        let (code, text) = exit_and_stderr(&output);
        assert_eq!(code, 6, "{asked} over {given}: {text}");
        let (proof, report) = proof(&bench);
        assert!(proof["contradiction"].is_string(), "{proof}");
        let warnings = report["warnings"].as_array().unwrap();
        let warning =
            warnings.iter().find(|w| w["code"] == "path_not_as_asked").unwrap_or_else(|| panic!("{warnings:?}"));
        assert_eq!(warning["severity"], "invalid");
        let text = warning["text"].as_str().unwrap();
        assert!(text.contains(told_as), "{asked} over {given}: {text}");
        assert_eq!(report["trials"][0]["status"], "invalid");
    }
}

/// Test with two interfaces of one namespace: the kernel delivers over lo, and not over the interfaces that the study
/// names, and the path check finds this.
#[test]
fn a_path_that_the_kernel_takes_short_cuts_around_is_found_out() {
    let bench = Bench::new();
    let (file, tailbound) = (
        bench.study(&study(
            "{ cyclonedds: { multicast: \"off\" } }",
            "process",
            "{ existing: { ping: { interface: x0 }, pong: { interface: x1 } } }",
            "",
        )),
        bench.tailbound(),
    );
    let setup = "ip link set lo up && ip link add x0 type veth peer name x1 && ip address add 10.9.0.1/24 dev x0 && \
                 ip address add 10.9.0.2/24 dev x1 && ip link set x0 up && ip link set x1 up && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", setup, "sh"]).arg(tailbound.get_program()).arg("run").arg(file);
    command.arg("--out").arg(bench.path("record")).current_dir(bench.dir.path());
    command.envs(tailbound.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let output = command.output().expect("unshare of util-linux");
    let (code, text) = exit_and_stderr(&output);
    if text.contains("unshare failed") {
        println!("skipped: {text}");
        return;
    }
    assert_eq!(code, 6, "{text}");
    let (proof, _) = proof(&bench);
    let contradiction = proof["contradiction"].as_str().unwrap();
    assert!(contradiction.starts_with("packets over x0 and x1; there were "), "{contradiction}");
    assert!(contradiction.contains("; the packets were on lo ("), "{contradiction}");
}

/// Test: the quiet interval is as long as the trial or as long as the study requests; with `quiet: off` there is none.
#[test]
fn the_quiet_interval_is_as_long_as_asked() {
    for (quiet, wanted_ms) in [("same", Some(640)), ("250 ms", Some(250)), ("off", None)] {
        let bench = Bench::new();
        succeeded(&bench.run(&study("udp", "netns", "veth", &format!("quiet: {quiet}\n")), &[]));
        let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
        let space = record.manifest.trials[0].proof.as_ref().unwrap().spaces[0].clone();
        let ms = space.quiet.map(|q| q.ns / 1_000_000);
        match (ms, wanted_ms) {
            // The interval never ends early; how late its end is seen depends on the machine.
            (Some(ms), Some(wanted)) => assert!(ms >= wanted, "{quiet}: {ms} ms"),
            (ms, wanted) => assert_eq!(ms, wanted, "{quiet}"),
        }
    }
}
