//! Tests of the driver `rcl`, with the real ROS 2 of this machine and with a stand-in, whose variants have the faults that a real
//! one can have.

use crate::support::host::is_root;
use crate::support::rcl::{Ros, forget, real, stand_in};
use crate::support::ros2::{study, transport};
use crate::support::{Bench, all_answered, exit_and_stderr, succeeded};
use std::process::Output;

/// Why listeners hand messages over, beside a reliable publisher.
const WAITS: &str = "a reliable publisher of the session may wait for acknowledgements";

/// Runs a study with this ROS 2 sourced, and with further variables.
fn run(bench: &Bench, ros: Option<&Ros>, study: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = bench.to_run(bench.tailbound(), "record", study);
    match ros {
        Some(ros) => ros.source(&mut command),
        None => forget(&mut command),
    }
    command.envs(variables.iter().copied()).output().unwrap()
}

/// Test: the driver passes the conformance suite with this ROS 2, in all receive modes.
fn conforms(ros: &Ros) {
    let bench = Bench::new();
    let mut command = bench.tailbound();
    ros.source(command.args(["driver", "check", "rcl"]));
    let output = command.output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(exit_and_stderr(&output).0, 0, "{out}{}", exit_and_stderr(&output).1);
    assert!(out.contains("keeps the rules") && !out.contains("FAIL"), "{out}");
    let not_run: Vec<_> = out.lines().filter_map(|l| l.strip_prefix("n/a")?.split_whitespace().next()).collect();
    assert_eq!(not_run, Vec::<&str>::new(), "{out}");
}

#[test]
fn it_keeps_the_rules_with_a_stand_in() {
    stand_in(&[]).iter().for_each(conforms);
}

/// Test: the driver keeps the rules with the sizes that the structures have in the headers of Humble.
#[test]
fn it_keeps_the_rules_with_the_sizes_of_humble() {
    stand_in(&["-DHUMBLE"]).iter().for_each(conforms);
}

/// Test: with a middleware that holds a lock during its callback, the driver hands messages over to a thread of its own, and
/// keeps the rules. Without the hand-over, the checks of receive mode listener would hang.
#[test]
fn it_hands_over_where_the_middleware_locks() {
    for (definitions, qos, words) in [
        (&[][..], "reliability: best-effort", "taken inside the callback"),
        (&[][..], "history: keep-all", WAITS),
        (&["-DLOCKS"], "reliability: best-effort", "holds a lock"),
    ] {
        let Some(ros) = stand_in(definitions) else { return };
        conforms(&ros);
        let bench = Bench::new();
        let study = study("rcl", "listener", "same-process", "loopback");
        let study = study.replace("history: keep-all", qos);
        succeeded(&run(&bench, Some(&ros), &study, &[]));
        all_answered(&bench, words);
        let facts = transport(&bench);
        assert!(facts["listener"].as_str().unwrap().contains(words), "{facts}");
    }
}

/// The error of a study of `rcl`, with the directories of the test by name.
fn refused(ros: Option<&Ros>, variables: &[(&str, &str)]) -> String {
    let bench = Bench::new();
    let output = run(&bench, ros, &study("rcl", "block", "same-process", "loopback"), variables);
    let (code, mut text) = exit_and_stderr(&output);
    text = text.replace(bench.dir.path().to_str().unwrap(), "BENCH");
    if let Some(ros) = ros {
        text = text.replace(ros.prefix().to_str().unwrap(), "ROS");
    }
    format!("exit {code}\n{text}")
}

#[test]
fn a_ros_that_cannot_be_used_is_named_with_a_remedy() {
    let mut all = vec![("nothing is sourced", refused(None, &[]))];
    for (what, definitions) in [
        ("no middleware", "-DNO_RMW"),
        ("a longer message info", "-DWIDE_INFO"),
        ("a longer publisher", "-DWIDE_HANDLE"),
        ("another profile", "-DOTHER_PROFILE"),
    ] {
        let Some(ros) = stand_in(&[definitions]) else { return };
        all.push((what, refused(Some(&ros), &[])));
    }
    let ros = stand_in(&[]).unwrap();
    std::fs::remove_file(ros.library("libstd_msgs__rosidl_typesupport_c.so")).unwrap();
    all.push(("no type support", refused(Some(&ros), &[])));
    let (one, other) = (stand_in(&[]).unwrap(), stand_in(&[]).unwrap());
    other.state_version("5.3.9");
    let both = std::env::join_paths([one.prefix(), other.prefix()]).unwrap();
    let both = refused(Some(&one), &[("AMENT_PREFIX_PATH", both.to_str().unwrap())]);
    all.push(("two distributions", both.replace(other.prefix().to_str().unwrap(), "OTHER")));
    let text: Vec<String> = all.into_iter().map(|(what, text)| format!("== {what}\n{text}")).collect();
    insta::assert_snapshot!(text.join("\n"));
}

/// Test: a run in which no message can be taken any more is not to be trusted, and says why.
#[test]
fn takes_that_fail_make_a_trial_invalid() {
    let Some(ros) = stand_in(&["-DFAIL_TAKES"]) else { return };
    let said = refused(Some(&ros), &[]);
    assert!(said.starts_with("exit 6\n") && said.contains("calls to take a message failed"), "{said}");
    assert!(said.contains("the driver's last error: TB_EIO"), "{said}");
}

/// Test: a middleware without callbacks has the other two receive modes.
#[test]
fn without_callbacks_there_is_no_listener() {
    let Some(ros) = stand_in(&["-DNO_CALLBACKS"]) else { return };
    let bench = Bench::new();
    let run = |receive| run(&bench, Some(&ros), &study("rcl", receive, "same-process", "loopback"), &[]);
    let (code, text) = exit_and_stderr(&run("listener"));
    assert!(code == 2 && text.contains("this middleware has no callback for new messages"), "{text}");
    bench.remove_record();
    succeeded(&run("spin"));
    all_answered(&bench, "spin");
}

/// Test: variables that contradict the study are refused with the reason. The stand-in has the name of the middleware whose
/// network the driver can set.
#[test]
fn variables_that_contradict_the_study_are_refused() {
    let Some(ros) = stand_in(&["-DRMW=\"rmw_cyclonedds_cpp\""]) else { return };
    let own = refused(Some(&ros), &[("CYCLONEDDS_URI", "<CycloneDDS/>")]);
    let bench = Bench::new();
    std::fs::write(bench.path("cyclone.xml"), "<CycloneDDS/>").unwrap();
    let config = study("{ rcl: { config: cyclone.xml } }", "block", "same-process", "loopback");
    let other = stand_in(&[]).unwrap();
    let (code, text) = exit_and_stderr(&run(&bench, Some(&other), &config, &[]));
    let text = text.replace(bench.dir.path().to_str().unwrap(), "BENCH");
    let rmw = study("{ rcl: { rmw: rmw_other_cpp } }", "block", "same-process", "loopback");
    let (code_of_rmw, of_rmw) = exit_and_stderr(&run(&bench, Some(&other), &rmw, &[]));
    let of_rmw = of_rmw.replace(bench.dir.path().to_str().unwrap(), "BENCH");
    insta::assert_snapshot!(format!("{own}\nexit {code}\n{text}\nexit {code_of_rmw}\n{of_rmw}"));
}

/// Test: without ROS 2, the conditions of `rcl` are not possible, and the others are measured.
#[test]
fn without_ros_the_other_drivers_are_measured() {
    let bench = Bench::new();
    let text = study("X", "block", "same-process", "loopback").replace("driver: X\n", "");
    let text = text.replace("qos: { history: keep-all }\n", "");
    let output = run(&bench, None, &format!("{text}factors: {{ driver: [null, rcl] }}\n"), &[]);
    succeeded(&output);
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    let reasons: Vec<_> = record.manifest.plan.conditions.iter().map(|c| c.not_possible.clone()).collect();
    assert_eq!(reasons[0], None);
    assert!(reasons[1].as_ref().unwrap().contains("ROS 2 is not sourced"), "{reasons:?}");
}

#[test]
fn it_keeps_the_rules_with_the_real_ros() {
    real().iter().for_each(conforms);
}

/// Test with the real ROS 2: nothing is lost, in every receive mode, inside one process and between two, and the record names
/// ROS 2, its middleware and their libraries.
#[test]
fn the_real_ros_loses_nothing() {
    let Some(ros) = real() else { return };
    const KEEP_ALL: &str = "history: keep-all";
    for (receive, place, qos, listener) in [
        ("block", "process", KEEP_ALL, None),
        ("spin", "process", KEEP_ALL, None),
        ("listener", "process", KEEP_ALL, Some(WAITS)),
        ("listener", "same-process", KEEP_ALL, Some(WAITS)),
        ("listener", "process", "history: { keep-last: 300 }", Some(WAITS)),
        ("listener", "process", "reliability: best-effort, history: keep-all", Some("taken inside the callback")),
    ] {
        let bench = Bench::new();
        let text = study("rcl", receive, place, "loopback").replace(KEEP_ALL, qos);
        succeeded(&run(&bench, Some(&ros), &text, &[]));
        all_answered(&bench, receive);
        let facts = transport(&bench);
        let library = facts["rmw_library"].as_str().unwrap();
        assert!(library.starts_with(ros.library("").to_str().unwrap()), "{facts}");
        assert!(facts["library"].as_str().unwrap().contains("rcl "), "{facts}");
        match (facts["listener"].as_str(), listener) {
            (None, None) => {}
            (Some(found), Some(wanted)) => assert!(found.contains(wanted), "{facts}"),
            (found, wanted) => panic!("{found:?} instead of {wanted:?}"),
        }
    }
}

/// Test between network namespaces: the packets pass the interface of the path.
#[test]
fn the_real_ros_uses_the_interface_of_the_path() {
    if !is_root() {
        println!("skipped: network namespaces need root");
        return;
    }
    let Some(ros) = real() else { return };
    let bench = Bench::new();
    succeeded(&run(&bench, Some(&ros), &study("rcl", "block", "netns", "veth"), &[]));
    all_answered(&bench, "veth");
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    let sent = record.manifest.trials[0].ends["ping"].counters["interface.tx_packets"];
    assert!(sent >= 320 * 6, "8 KiB are six packets: {sent}");
}

/// Test: a program with another DDS implementation sees the node of each end, as `ros2 node list` does.
#[cfg(feature = "system-tests")]
#[test]
fn the_nodes_are_in_the_graph() {
    let Some(ros) = real() else { return };
    let bench = Bench::new();
    let text =
        study("{ rcl: { node: measured } }", "block", "process", "loopback").replace("slots: 300", "slots: 2500");
    let mut command = bench.to_run(bench.tailbound(), "record", &format!("{text}domain: 142\n"));
    ros.source(&mut command);
    assert_eq!(crate::support::ros2::participants_of(command, "measured", "142"), 2);
}

/// Test: variables that restrict ROS 2 to this host are refused where the path has another address than loopback.
#[test]
fn a_restriction_to_this_host_is_refused_on_another_path() {
    if !is_root() {
        println!("skipped: network namespaces need root");
        return;
    }
    // With the middleware whose network the driver can set, and with another one.
    for definitions in [&["-DRMW=\"rmw_cyclonedds_cpp\""][..], &[]] {
        let Some(ros) = stand_in(definitions) else { return };
        for (name, value, words) in [
            ("ROS_LOCALHOST_ONLY", "1", "in the environment restricts ROS 2 to this host"),
            ("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST", "in the environment restricts ROS 2 to this host"),
            ("ROS_STATIC_PEERS", "192.0.2.7;192.0.2.8", "in the environment makes ROS 2 look for 192.0.2.7"),
        ] {
            let bench = Bench::new();
            let output = run(&bench, Some(&ros), &study("rcl", "block", "netns", "veth"), &[(name, value)]);
            let (code, text) = exit_and_stderr(&output);
            assert!(code == 2 && text.contains(&format!("{name}={value} {words}")), "exit {code}: {text}");
        }
    }
}
