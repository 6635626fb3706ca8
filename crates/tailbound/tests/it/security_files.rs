//! Tests of studies with the user's own certificates, and of the messages about what is wrong with them.

use crate::support::security::{Authority, built};
use crate::support::{Bench, exit_and_stderr, fastdds, succeeded};
use std::fs;
use std::path::Path;
use std::process::Command;

fn study(driver: &str, security: &str) -> String {
    format!(
        "study: security\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 100, warm_up: 10, timeout: 2 s }} }}\n\
         rate: 200 Hz\npayload: 64 B\ndriver: {driver}\nplace: process\npath: loopback\nqos: {{ history: keep-all }}\n\
         security: {security}\n"
    )
}

const FILES: &str = "{ governance: encrypt, files: keys }";

/// A test directory with identities of one authority for both ends.
fn bench() -> (Bench, Authority) {
    let bench = Bench::new();
    let authority = Authority::new(bench.path("authority"));
    for end in ["ping", "pong"] {
        authority.identity(&bench.path("keys").join(end), &format!("/C=NL/O=test & co/CN={end}"), 30);
    }
    (bench, authority)
}

/// A driver with DDS Security; `None`, and a printed line, if there is none.
fn driver() -> &'static str {
    built();
    "cyclonedds"
}

/// Exit code and message of a run with own certificates that fails, without what differs from run to run.
fn refused(bench: &Bench, driver: &str, security: &str) -> String {
    let text = study(driver, security);
    // A tool also refuses QoS.
    let text = if driver == "sockperf" { text.replace("qos: { history: keep-all }\n", "") } else { text };
    message(bench, bench.to_run(bench.tailbound(), "record", &text))
}

fn message(bench: &Bench, mut command: Command) -> String {
    let (code, text) = exit_and_stderr(&command.output().unwrap());
    let here = bench.dir.path().to_str().unwrap();
    let text = text.replace(here, "DIR");
    let text = match text.split_once("valid until ") {
        Some((before, after)) => {
            format!("{before}valid until DATE{}", &after[after.find('\n').unwrap_or(after.len())..])
        }
        None => text,
    };
    assert!(!Path::new(&bench.path("record")).exists(), "a run that measured nothing leaves nothing");
    format!("exit {code}\n{text}")
}

#[test]
fn own_certificates_are_used() {
    let mut drivers = vec![driver()];
    drivers.extend(fastdds::built().map(|_| "fastdds"));
    for driver in drivers {
        let (bench, _) = bench();
        succeeded(&bench.run(&study(driver, FILES), &[]));
        let report = bench.report();
        assert_eq!(report["status"], "valid", "{}", report["warnings"]);
        assert_eq!(report["conditions"][0]["counts"]["answered"], 100, "{driver}: {}", report["findings"]);
        let facts = &report["path"][0]["security"];
        assert!(facts["certificates"].as_str().unwrap().ends_with("/keys"), "{facts}");
    }
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let (bench, _) = bench();
    let other = Authority::new(bench.path("other"));
    other.identity(&bench.path("keys/pong"), "/CN=pong", 30);
    insta::assert_snapshot!(refused(&bench, driver(), FILES));
}

#[test]
fn an_expired_certificate_is_refused() {
    let (bench, authority) = bench();
    authority.identity(&bench.path("keys/pong"), "/CN=pong", -1);
    insta::assert_snapshot!(refused(&bench, driver(), FILES));
}

#[test]
fn a_key_that_cannot_be_read_is_refused() {
    let (bench, _) = bench();
    let key = bench.path("keys/ping/key.pem");
    fs::write(&key, "no key\n").unwrap();
    insta::assert_snapshot!("not_a_key", refused(&bench, driver(), FILES));
    fs::remove_file(&key).unwrap();
    insta::assert_snapshot!("key_missing", refused(&bench, driver(), FILES));
    fs::copy(bench.path("keys/pong/key.pem"), &key).unwrap();
    insta::assert_snapshot!("key_of_another", refused(&bench, driver(), FILES));
    let encrypt = ["pkey", "-in", "keys/pong/key.pem", "-aes256", "-passout", "pass:x", "-out", "keys/ping/key.pem"];
    assert!(Command::new("openssl").args(encrypt).current_dir(bench.dir.path()).status().unwrap().success());
    insta::assert_snapshot!("key_with_passphrase", refused(&bench, driver(), FILES));
}

#[test]
fn a_certificate_that_is_none_is_refused() {
    let (bench, _) = bench();
    fs::write(bench.path("keys/pong/cert.pem"), "no certificate\n").unwrap();
    insta::assert_snapshot!(refused(&bench, driver(), FILES));
}

#[test]
fn without_openssl_the_message_says_what_to_install() {
    let bench = Bench::new();
    let mut command = bench.to_run(bench.tailbound(), "record", &study(driver(), "{ governance: encrypt }"));
    command.env("PATH", bench.path("nothing"));
    insta::assert_snapshot!(message(&bench, command));
}

#[test]
fn drivers_and_settings_without_security_are_refused() {
    driver();
    let bench = Bench::new();
    fs::write(bench.path("own.xml"), "<CycloneDDS/>").unwrap();
    let mut all = String::new();
    for driver in
        ["udp", "sockperf", "{ cyclonedds: { config: own.xml } }", "{ cyclonedds: { governance: \"file:g\" } }"]
    {
        all.push_str(&format!("{driver}\n{}\n", refused(&bench, driver, "{ governance: encrypt }")));
    }
    if fastdds::built().is_some() {
        for option in ["transport: data-sharing", "transport: intra-process", "discovery_server: \"127.0.0.1:11811\""] {
            let driver = format!("{{ fastdds: {{ {option} }} }}");
            all.push_str(&format!("{driver}\n{}\n", refused(&bench, &driver, "{ governance: encrypt }")));
        }
    }
    insta::assert_snapshot!(all);
}
