//! Tests of the driver `fastdds`, a shared object that uses Debian's Fast DDS: real studies over each of its
//! transports.

use std::process::{Command, Stdio};

use crate::support::fastdds::built;
use crate::support::{Bench, all_answered, exit_and_stderr, succeeded};
use serde_json::Value;
use tailbound_driver::{Kv, Session, Silent, conformance, load};

/// The driver `fastdds` with the given options, as a study writes it.
fn with(options: &str) -> String {
    format!("{{ fastdds: {{ {options} }} }}")
}

/// A study of the driver `fastdds`. The history is keep-all: with a history of 1 a delayed thread loses messages, which
/// the middleware may do and these tests do not examine.
fn study(driver: &str, receive: &str, place: &str, path: &str) -> String {
    format!(
        "study: fastdds\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 300, warm_up: 20, timeout: 2 s, receive: {receive} }} }}\n\
         rate: 500 Hz\ndriver: {driver}\nplace: {place}\npath: {path}\npayload: 8 KiB\n\
         qos: {{ history: keep-all }}\n"
    )
}

fn transport(bench: &Bench) -> Value {
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    serde_json::to_value(&record.manifest.trials[0].ends["ping"].transport).unwrap()
}

#[test]
fn every_transport_keeps_the_rules() {
    if built().is_none() {
        return;
    }
    for options in [
        "transport=udp",
        "transport=udp multicast=off publish_mode=async",
        "transport=shm",
        "transport=data-sharing",
        "transport=intra-process",
    ] {
        let mut one = Command::new(std::env::current_exe().unwrap());
        one.args(["--ignored", "--exact", "fastdds::one_transport_keeps_the_rules"])
            .env("TAILBOUND_TEST_OPTIONS", options);
        let output = one.output().unwrap();
        assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// Checks one transport of the driver in a separate process: the conformance suite watches standard output, to which
/// the test harness prints if a test takes long.
#[test]
#[ignore = "run by another test"]
fn one_transport_keeps_the_rules() {
    let options = std::env::var("TAILBOUND_TEST_OPTIONS").expect("options");
    let kv: Kv = options.split(' ').map(|option| option.split_once('=').unwrap()).collect();
    let report = conformance::run_with(&load(built().unwrap()).unwrap(), &kv, &mut |_| ());
    let failed: Vec<_> = report.failed().collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// Test: the driver `fastdds` is found by its name in a study.
#[test]
fn the_driver_is_found_and_checked() {
    if built().is_none() {
        return;
    }
    let bench = Bench::new();
    let output = bench.tailbound().args(["driver", "check", "fastdds"]).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(exit_and_stderr(&output).0, 0, "{out}{}", exit_and_stderr(&output).1);
    assert!(out.contains("keeps the rules") && !out.contains("FAIL"), "{out}");
}

#[test]
fn every_receive_mode_over_udp_and_shared_memory() {
    if built().is_none() {
        return;
    }
    let levels = ["udp", "shm", "data-sharing"].map(|t| with(&format!("transport: {t}"))).join(", ");
    for receive in ["listener", "block", "spin"] {
        let bench = Bench::new();
        let text = study("fastdds", receive, "process", "loopback");
        let text = text.replace("driver: fastdds", &format!("factors: {{ driver: [{levels}] }}"));
        succeeded(&bench.run(&text, &[]));
        let report = all_answered(&bench, receive);
        assert_eq!(report["conditions"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn inside_one_process() {
    if built().is_none() {
        return;
    }
    for receive in ["listener", "block", "spin"] {
        let bench = Bench::new();
        succeeded(&bench.run(&study(&with("transport: intra-process"), receive, "same-process", "loopback"), &[]));
        all_answered(&bench, receive);
        assert_eq!(transport(&bench)["intra_process"], "full");
    }
}

/// Test: ends in two processes do not match over a transport that works only inside one process.
#[test]
fn intra_process_is_never_something_else() {
    if built().is_none() {
        return;
    }
    let bench = Bench::new();
    succeeded(&bench.run(&study(&with("transport: intra-process"), "listener", "process", "loopback"), &[]));
    let report = bench.report();
    assert_eq!(report["conditions"][0]["counts"]["not_sent"].as_u64(), Some(300));
    assert!(report["findings"].to_string().contains("nothing seen"), "{}", report["findings"]);
}

#[test]
fn udp_between_namespaces() {
    if built().is_none() {
        return;
    }
    for options in ["transport: udp", "multicast: \"off\"", "publish_mode: async"] {
        let bench = Bench::new();
        succeeded(&bench.run(&study(&with(options), "listener", "netns", "veth"), &[]));
        all_answered(&bench, options);
        let transport = transport(&bench);
        assert_eq!(transport["intra_process"], "off");
        assert_eq!(transport["shared_memory"], false);
        let sockets = transport["sockets"].as_array().unwrap();
        assert!(sockets.iter().all(|s| s["address"] != "0.0.0.0"), "bound to the path's address: {sockets:?}");
    }
}

/// Test: shared memory sends no packet. The test uses a separate network namespace, so that no packets of other
/// programs are counted.
#[test]
fn shared_memory_sends_no_packets() {
    if built().is_none() {
        return;
    }
    for (transport, packets) in [("shm", false), ("data-sharing", false), ("udp", true)] {
        let bench = Bench::new();
        let file = bench.study(&study(&with(&format!("transport: {transport}")), "listener", "process", "loopback"));
        let tailbound = bench.tailbound();
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]).arg(tailbound.get_program());
        command.arg("run").arg(file).arg("--out").arg(bench.path("record")).current_dir(bench.dir.path());
        command.envs(tailbound.get_envs().filter_map(|(k, v)| Some((k, v?))));
        let output = command.output().expect("unshare of util-linux");
        if String::from_utf8_lossy(&output.stderr).contains("unshare failed") {
            println!("skipped: {}", exit_and_stderr(&output).1);
            return;
        }
        succeeded(&output);
        all_answered(&bench, transport);
        let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
        let sent = record.manifest.trials[0].ends["ping"].counters["interface.tx_packets"];
        println!("{transport}: {sent} packets on lo for 320 messages and their answers");
        assert!(if packets { sent >= 640 } else { sent == 0 }, "{transport}: {sent} packets");
    }
}

/// Test: threads to which Fast DDS gives no name get names and roles.
#[test]
fn threads_have_roles() {
    if built().is_none() {
        return;
    }
    let bench = Bench::new();
    let roles = "scheduling: { receive: { policy: batch, nice: 3 }, event: { policy: idle } }\n";
    succeeded(&bench.run(&(study("fastdds", "listener", "process", "loopback") + roles), &[]));
    let report = all_answered(&bench, "roles");
    let threads = report["threads"][0]["after"].as_array().unwrap();
    let of = |name: &str| threads.iter().find(|t| t["name"] == name).unwrap_or_else(|| panic!("{name} in {threads:?}"));
    for (name, role, policy) in
        [("fdds.recv", "receive", "batch nice 3"), ("fdds.event", "event", "idle"), ("fdds.meta", "discovery", "other")]
    {
        assert_eq!(of(name)["role"], role);
        assert!(of(name)["policy"].as_str().unwrap().starts_with(policy), "{}", of(name));
    }
}

#[test]
fn options_that_are_wrong_are_refused_by_name() {
    // Delivery inside the process is not tested here, because it is a setting of the whole process, which another test
    // changes.
    let Some(path) = built() else { return };
    let driver = load(path).unwrap();
    let open = |kv: &[(&str, &str)]| {
        let kv: Kv = kv.iter().copied().collect();
        Session::open(&driver, &kv, std::sync::Arc::new(Silent)).err().map(|e| e.to_string())
    };
    // A part of a DNS name cannot be that long, so no DNS server is asked.
    let no_name = "x".repeat(64);
    let refused: Vec<String> = [
        vec![("transport", "tcp")],
        vec![("domain", "231")],
        vec![("interface", "nowhere0")],
        vec![("address", "192.0.2.1")],
        vec![("peers", no_name.as_str())],
        vec![("multicast", "off")],
        vec![("transport", "shm"), ("discovery_server", "127.0.0.1:11811")],
        vec![("discovery_listen", "127.0.0.1:11811"), ("discovery_server", "127.0.0.1:11812")],
        vec![("transport", "shm"), ("shm_segment_size", "131071")],
        vec![("config", " ")],
        vec![("config", "<profiles/>")],
        vec![("config", "<dds is_default_profile")],
    ]
    .iter()
    .map(|kv| open(kv).unwrap_or_else(|| panic!("{kv:?} was accepted")))
    .collect();
    insta::assert_snapshot!(refused.join("\n"));
}

/// Test: a value that a driver option does not allow gives exit code 2 if a study contains it.
#[test]
fn a_wrong_value_in_a_study() {
    if built().is_none() {
        return;
    }
    let bench = Bench::new();
    let output = bench.run(&study(&with("transport: tcp"), "listener", "process", "loopback"), &[]);
    let (code, text) = exit_and_stderr(&output);
    insta::assert_snapshot!(format!("exit {code}\n{}", text.replace(bench.dir.path().to_str().unwrap(), "BENCH")));
}

/// Test: a configuration file of the user is used unchanged, and its settings are reported; the record has its text and
/// hash.
#[test]
fn a_configuration_of_ones_own() {
    if built().is_none() {
        return;
    }
    let bench = Bench::new();
    let xml = r#"<dds xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles"><profiles>
        <transport_descriptors><transport_descriptor><transport_id>own</transport_id><type>UDPv4</type>
          <maxMessageSize>4000</maxMessageSize><interfaceWhiteList><address>127.0.0.1</address></interfaceWhiteList>
        </transport_descriptor></transport_descriptors>
        <participant profile_name="p" is_default_profile="true"><rtps>
          <userTransports><transport_id>own</transport_id></userTransports>
          <useBuiltinTransports>false</useBuiltinTransports></rtps></participant>
        <data_writer profile_name="w" is_default_profile="true"><qos>
          <publishMode><kind>ASYNCHRONOUS</kind></publishMode><data_sharing><kind>OFF</kind></data_sharing></qos>
        </data_writer>
        <data_reader profile_name="r" is_default_profile="true"><qos>
          <reliability><kind>RELIABLE</kind></reliability><data_sharing><kind>OFF</kind></data_sharing></qos>
        </data_reader>
      </profiles></dds>"#;
    std::fs::write(bench.path("profiles.xml"), xml).unwrap();
    let text = study(&with("config: profiles.xml"), "listener", "process", "loopback");
    succeeded(&bench.run(&text, &[]));
    all_answered(&bench, "config");
    let told = transport(&bench);
    assert_eq!(told["transport"], "config");
    assert_eq!(told["transports"][0]["max_message_size"], 4000);
    assert_eq!(told["end_points"]["1"]["publish_mode"], "async");
    let record = tailbound_record::Record::open(&bench.path("record")).unwrap();
    let manifest = serde_json::to_string(&record.manifest).unwrap();
    assert!(manifest.contains("sha256") && manifest.contains("maxMessageSize"), "{manifest}");
}

/// Test: ends match through a discovery server of this driver and through the discovery server of Fast DDS; without a
/// server they do not match.
#[test]
fn a_discovery_server_brings_them_together() {
    struct Server(std::process::Child);
    impl Drop for Server {
        fn drop(&mut self) {
            // SIGINT ends the server in order: a killed server would leave its shared memory.
            // SAFETY: a process of this test that nobody has waited for.
            unsafe { libc::kill(self.0.id() as i32, libc::SIGINT) };
            let _ = self.0.wait();
        }
    }
    if built().is_none() {
        return;
    }
    let port = (20_000 + std::process::id() % 5_000).to_string();
    let started = |own: bool| match own {
        true => Bench::new()
            .tailbound()
            .args(["agent", "discovery", "--driver", "fastdds"])
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .spawn(),
        false => Command::new("fast-discovery-server")
            .args(["-i", "0", "-l", "127.0.0.1", "-p", &port])
            .stdout(Stdio::null())
            .spawn(),
    };
    let text = study(&with(&format!("discovery_server: \"127.0.0.1:{port}\"")), "listener", "process", "loopback");
    for own in [true, false] {
        let Ok(server) = started(own).map(Server) else {
            println!("skipped: no fast-discovery-server (fastdds-tools)");
            continue;
        };
        let bench = Bench::new();
        succeeded(&bench.run(&text, &[]));
        all_answered(&bench, "discovery server");
        let told = &bench.manifest()["trials"][0]["ends"]["ping"]["transport"]["discovery"];
        assert_eq!((&told["protocol"], &told["silent_servers"]), (&"client".into(), &serde_json::json!([])), "{told}");
        drop(server);
    }
    let bench = Bench::new();
    succeeded(&bench.run(&text, &[]));
    let findings = bench.report()["findings"].to_string();
    let silent = format!("the discovery server at udp:127.0.0.1:{port} has not answered");
    assert!(findings.contains("nothing seen") && findings.contains(&silent), "{findings}");
}

/// Test: an environment variable with which Fast DDS would make every participant a client of a discovery server is
/// refused.
#[test]
fn an_environment_that_rules_fast_dds_is_refused() {
    if built().is_none() {
        return;
    }
    let bench = Bench::new();
    let file = bench.study(&study("fastdds", "listener", "process", "loopback"));
    let mut command = bench.tailbound();
    command.arg("run").arg(file).arg("--out").arg(bench.path("record")).env("ROS_DISCOVERY_SERVER", "127.0.0.1:11811");
    let (code, text) = exit_and_stderr(&command.output().unwrap());
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("ROS_DISCOVERY_SERVER") && text.contains("unset it"), "{text}");
}

/// Test: an error names the package of a missing library. The shared object is the real driver, with one character of
/// the library's name changed, so that no machine has the library.
#[test]
fn a_missing_library_names_its_package() {
    let Some(path) = built() else { return };
    let bench = Bench::new();
    let mut bytes = std::fs::read(path).unwrap();
    let (name, other) = (b"libfastrtps.so.2.9\0", b"libfastrtps.so.0.9\0");
    let at = bytes.windows(name.len()).position(|w| w == name).expect("it needs the library");
    bytes[at..at + name.len()].copy_from_slice(other);
    std::fs::write(bench.path("libtailbound_driver_fastdds.so"), bytes).unwrap();
    let output = bench.tailbound().args(["driver", "check", "./libtailbound_driver_fastdds.so"]).output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    insta::assert_snapshot!(format!("exit {code}\n{}", text.replace(bench.dir.path().to_str().unwrap(), "BENCH")));
}
