//! Tests of DDS Security: what is on the wire with each governance, what the record says, and ends that do not match.

use crate::support::processes::{measuring, wait_for_measuring};
use crate::support::security::{Authority, built, keeps_keys_to_itself};
use crate::support::{Bench, exit_and_stderr, fastdds, succeeded, tags};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;
use tailbound_lab::netns::{NetNs, run_in};

/// A study between two network namespaces. Each message has the payload 0, 1, 2 and so on.
fn study(driver: &str, rest: &str) -> String {
    format!(
        "study: security\nquestion: q\nmeasure: {{ ping-pong: {{ duration: 2 s, warm_up: 20, timeout: 2 s }} }}\n\
         rate: 200 Hz\npayload: 64 B\ndriver: {driver}\nplace: netns\npath: veth\nqos: {{ history: keep-all }}\n{rest}\n"
    )
}

/// Submessages of RTPS that DDS Security adds (OMG DDS Security 1.1, table 30).
const OF_SECURITY: [u8; 5] = [0x30, 0x31, 0x32, SRTPS_PREFIX, SRTPS_POSTFIX];
const SRTPS_PREFIX: u8 = 0x33;
const SRTPS_POSTFIX: u8 = 0x34;

/// An RTPS message that was captured.
struct Seen {
    /// Whether the payload of a message of the study is in it, readable.
    readable: bool,
    /// Kinds of its submessages.
    kinds: BTreeSet<u8>,
}

/// Parses an Ethernet frame with a UDP datagram; `None` if the datagram is no RTPS message.
fn rtps(frame: &[u8]) -> Option<Seen> {
    let ip = frame.get(14..).filter(|_| frame[12..14] == [8, 0])?;
    let message = ip.get(usize::from(ip[0] & 15) * 4 + 8..).filter(|_| ip[9] == 17)?;
    let mut rest = message.get(20..).filter(|_| message.starts_with(b"RTPS"))?;
    let payload: Vec<u8> = (0..64).collect();
    let mut seen = Seen { readable: message.windows(64).any(|part| part == payload), kinds: BTreeSet::new() };
    while let [kind, flags, low, high, ..] = *rest {
        seen.kinds.insert(kind);
        let length = if flags & 1 == 1 { u16::from_le_bytes([low, high]) } else { u16::from_be_bytes([low, high]) };
        rest = rest.get(4 + usize::from(length)..).filter(|_| length > 0).unwrap_or_default();
    }
    Some(seen)
}

/// Runs a study, and captures the RTPS messages at the interface of the ping for one second while messages are sent.
fn captured(bench: &Bench, text: &str) -> Vec<Seen> {
    let child = bench.measuring(bench.to_run(bench.tailbound(), "record", text));
    wait_for_measuring(child.id() as i32, "ping");
    let ping = measuring(child.id() as i32, "ping").expect("the ping measures");
    let space = NetNs::open(&format!("/proc/{ping}/ns/net")).unwrap();
    let frames = run_in(&space, || {
        let names = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        let mut names = names.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()));
        tags::bytes(names.find(|name| *name != "lo").expect("an interface"), Duration::from_secs(1)).unwrap()
    });
    let frames = frames.unwrap().join().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}: {}", bench.stderr());
    frames.iter().filter_map(|frame| rtps(frame)).collect()
}

/// Checks on the wire what each governance protects, and that all messages are answered and the record is valid.
fn protects(driver: &str, reported: impl Fn(&str, &Value)) {
    // Whether a payload can be read, and whether messages are protected as a whole.
    for (security, readable, whole) in [
        ("off", true, false),
        ("{ governance: none }", true, false),
        ("{ governance: sign }", true, true),
        ("{ governance: encrypt }", false, true),
        ("{ governance: encrypt-data }", false, false),
        ("{ governance: encrypt-all }", false, true),
        ("{ governance: ros2 }", false, true),
    ] {
        let bench = Bench::new();
        let seen = captured(&bench, &study(driver, &format!("security: {security}")));
        let what = format!("{driver}, {security}");
        assert!(seen.len() > 100, "{what}: {} messages", seen.len());
        let payloads: Vec<&Seen> = seen.iter().filter(|one| one.readable).collect();
        let signed = |one: &Seen| one.kinds.contains(&SRTPS_PREFIX) && one.kinds.contains(&SRTPS_POSTFIX);
        if readable {
            assert!(payloads.len() > 100, "{what}: {} readable payloads", payloads.len());
            assert!(payloads.iter().all(|one| signed(one) == whole), "{what}");
        } else {
            assert!(payloads.is_empty(), "{what}: {} readable payloads", payloads.len());
        }
        assert_eq!(seen.iter().filter(|one| signed(one)).count() > 100, whole, "{what}");
        if security == "off" {
            assert!(seen.iter().all(|one| one.kinds.is_disjoint(&OF_SECURITY.into())), "{what}");
        }
        let report = bench.report();
        assert_eq!(report["status"], "valid", "{what}: {}", report["warnings"]);
        let counts = &report["conditions"][0]["counts"];
        assert_eq!((&counts["answered"], &counts["lost"]), (&400.into(), &0.into()), "{what}: {counts}");
        reported(security, &report["path"][0]["security"]);
        keeps_keys_to_itself(&[bench.dir.path()]);
    }
}

#[test]
fn fast_dds_protects_what_the_governance_says() {
    if fastdds::built().is_none() {
        return;
    }
    protects("fastdds", |security, facts| {
        if security == "off" {
            assert!(facts.is_null(), "{facts}");
            return;
        }
        let protections = facts["protections"].as_str().unwrap();
        let expected = format!("{protections} (announced by the matched participant)");
        let parts = |text: &str| -> BTreeSet<String> {
            text.split(" (").next().unwrap().split(", ").map(str::to_owned).collect()
        };
        for end in ["ping", "pong"] {
            assert_eq!(parts(facts["in_force"][end].as_str().unwrap()), parts(&expected), "{facts}");
        }
        assert_eq!(facts["certificates"], "made for the run");
    });
}

#[test]
fn cyclone_dds_protects_what_the_governance_says() {
    built();
    protects("cyclonedds", |security, facts| {
        if security == "off" {
            assert!(facts.is_null(), "{facts}");
            return;
        }
        for end in ["ping", "pong"] {
            let reported = facts["in_force"][end].as_str().unwrap();
            for plug_in in ["dds_security_auth", "dds_security_ac", "dds_security_crypto"] {
                assert!(reported.contains(plug_in), "{facts}");
            }
        }
    });
}

/// Test: over shared memory, too, payload is encrypted: the segments of the participants are searched for it.
#[test]
fn shared_memory_contains_no_payload_that_is_encrypted() {
    if fastdds::built().is_none() {
        return;
    }
    for (security, readable) in [("off", true), ("{ governance: sign }", true), ("{ governance: encrypt }", false)] {
        let bench = Bench::new();
        let text = study("{ fastdds: { transport: shm } }", &format!("security: {security}"));
        // Segments of participants of other programs in the same domain would be mapped too.
        let domain = format!("path: loopback\ndomain: {}", 90 + std::process::id() % 100);
        let text = text.replace("netns", "process").replace("path: veth", &domain);
        let child = bench.measuring(bench.to_run(bench.tailbound(), "record", &text));
        let ping = measuring(child.id() as i32, "ping").expect("the ping measures");
        let maps = fs::read_to_string(format!("/proc/{ping}/maps")).unwrap();
        let files = maps.lines().filter_map(|line| line.split_whitespace().last());
        let files: BTreeSet<&str> = files.filter(|file| file.starts_with("/dev/shm/fastrtps_")).collect();
        let payload: Vec<u8> = (0..64).collect();
        // Files of ports can be removed meanwhile.
        let has_payload = |file: &&str| fs::read(file).unwrap_or_default().windows(64).any(|part| part == payload);
        assert!(files.len() > 1, "{maps}");
        assert_eq!(files.iter().any(has_payload), readable, "{security}");
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0), "{}", bench.stderr());
        let report = bench.report();
        assert_eq!(report["status"], "valid", "{security}: {}", report["warnings"]);
        assert_eq!(report["conditions"][0]["counts"]["answered"], 400, "{security}: {}", report["findings"]);
    }
}

/// Test: two vendors with the same governance understand each other if it protects whole RTPS messages or none.
#[test]
fn two_vendors_understand_each_other() {
    built();
    if fastdds::built().is_none() {
        return;
    }
    let bench = Bench::new();
    let rest = "ends: { pong: { driver: fastdds } }\n\
                factors: { security.governance: [none, sign, encrypt] }";
    succeeded(&bench.run(&study("cyclonedds", rest), &[]));
    let report = bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let conditions = report["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 3);
    for condition in conditions {
        let counts = &condition["counts"];
        assert_eq!(counts["answered"], 400, "{}: {counts} {}", condition["levels"], report["findings"]);
    }
    let levels: Vec<&str> = conditions.iter().map(|c| c["levels"]["security.governance"].as_str().unwrap()).collect();
    assert_eq!(levels, ["none", "sign", "encrypt"]);
}

/// Test: each end of a flow, and a load with a participant of its own, have an identity.
#[test]
fn every_end_and_every_load_has_an_identity() {
    built();
    let drivers = if fastdds::built().is_some() { "[cyclonedds, fastdds]" } else { "[cyclonedds]" };
    let load = "load: [{ run: { topic: { rate: 100 Hz, payload: 64 B } }, at: ping }]\n";
    for (measure, rest, ends) in
        [("fan-out: { subscribers: 2, duration: 1 s", "", 3), ("ping-pong: { duration: 1 s", load, 2)]
    {
        let bench = Bench::new();
        let text = format!(
            "study: security\nquestion: q\nmeasure: {{ {measure} }} }}\nrate: 200 Hz\npayload: 64 B\nplace: netns\n\
             path: veth\nsecurity: {{ governance: encrypt }}\n{rest}factors: {{ driver: {drivers} }}\n"
        );
        succeeded(&bench.run(&text, &[]));
        let report = bench.report();
        assert_eq!(report["status"], "valid", "{}", report["warnings"]);
        for trial in bench.manifest()["trials"].as_array().unwrap() {
            assert!(trial["finding"].is_null(), "{trial}");
            assert_eq!(trial["path"]["security"]["in_force"].as_object().unwrap().len(), ends, "{trial}");
        }
    }
}

/// A governance document that protects nothing, in which all participants must have DDS Security.
const GOVERNANCE: &str = "<?xml version=\"1.0\"?><dds><domain_access_rules><domain_rule>\
    <domains><id_range><min>0</min><max>230</max></id_range></domains>\
    <allow_unauthenticated_participants>false</allow_unauthenticated_participants>\
    <enable_join_access_control>true</enable_join_access_control>\
    <discovery_protection_kind>NONE</discovery_protection_kind>\
    <liveliness_protection_kind>NONE</liveliness_protection_kind>\
    <rtps_protection_kind>NONE</rtps_protection_kind><topic_access_rules><topic_rule>\
    <topic_expression>*</topic_expression><enable_discovery_protection>false</enable_discovery_protection>\
    <enable_liveliness_protection>false</enable_liveliness_protection>\
    <enable_read_access_control>false</enable_read_access_control>\
    <enable_write_access_control>false</enable_write_access_control>\
    <metadata_protection_kind>NONE</metadata_protection_kind><data_protection_kind>NONE</data_protection_kind>\
    </topic_rule></topic_access_rules></domain_rule></domain_access_rules></dds>\n";

/// Permissions of the subject `CN=ping`.
const PERMISSIONS: &str = "<?xml version=\"1.0\"?><dds><permissions><grant name=\"g\">\
    <subject_name>CN=ping</subject_name><validity><not_before>2020-01-01T00:00:00</not_before>\
    <not_after>2099-01-01T00:00:00</not_after></validity><allow_rule>\
    <domains><id_range><min>0</min><max>230</max></id_range></domains>\
    <publish><topics><topic>*</topic></topics></publish><subscribe><topics><topic>*</topic></topics></subscribe>\
    </allow_rule><default>DENY</default></grant></permissions></dds>\n";

/// Test: if only one end has DDS Security (by options of its driver), the finding names this as a likely reason.
#[test]
fn a_secured_and_a_plain_end_do_not_match() {
    built();
    for (secured, plain) in [("cyclonedds-security", "cyclonedds"), ("fastdds", "fastdds")] {
        if secured == "fastdds" && fastdds::built().is_none() {
            continue;
        }
        let bench = Bench::new();
        let authority = Authority::new(bench.path("authority"));
        authority.identity(&bench.path("ping"), "/CN=ping", 30);
        let (governance, permissions) =
            (authority.signed("governance.p7s", GOVERNANCE), authority.signed("permissions.p7s", PERMISSIONS));
        let file = |name: &str| bench.path("ping").join(name).to_str().unwrap().to_owned();
        let options = format!(
            "identity_ca: \"file://{}\", identity_certificate: \"file://{}\", private_key: \"file://{}\", \
             permissions_ca: \"file://{}\", governance: \"file://{governance}\", permissions: \"file://{permissions}\"",
            file("identity_ca.cert.pem"),
            file("cert.pem"),
            file("key.pem"),
            authority.file("ca.cert.pem")
        );
        let ends = |pong: &str| {
            format!("ends: {{ ping: {{ driver: {{ {secured}: {{ {options} }} }} }}, pong: {{ driver: {pong} }} }}")
        };
        let output = bench.run(&study(secured, &ends(plain)), &[]);
        let (code, text) = exit_and_stderr(&output);
        assert_eq!(code, 0, "{text}");
        let findings = bench.report()["findings"].to_string();
        assert!(findings.contains("never met its peer"), "{findings}");
        let reason = "a likely reason: ping has DDS Security and pong has none, and such participants do not find each \
                      other";
        assert!(findings.contains(reason), "{findings}");
        // The same files at both ends match.
        bench.remove_record();
        let both = format!("{{ {secured}: {{ {options} }} }}");
        succeeded(&bench.run(&study(secured, &ends(&both)), &[]));
        let counts = bench.report()["conditions"][0]["counts"].clone();
        assert_eq!(counts["answered"], 400, "{counts}");
    }
}
