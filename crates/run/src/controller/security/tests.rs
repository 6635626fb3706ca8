//! Tests of the files of DDS Security that a run makes, and of the comparison with what drivers report.

use super::{Security, differences, documents, openssl};
use serde_json::json;
use std::path::Path;
use tailbound_model::*;
use tailbound_wire::{EndReady, Role};

fn plan(rest: &str) -> Plan {
    let text = format!("study: s\nquestion: q\ndriver: fastdds\n{rest}");
    tailbound_study::load_str("s.yaml", &text, Path::new(""), &[]).unwrap_or_else(|e| panic!("{e}"))
}

/// Test, with the program `openssl`: each end has its own certificate and key, proved by the authority of the run, and
/// all ends have the same signed documents.
#[test]
fn each_end_has_its_own_identity() {
    let plan = plan(
        "measure: { fan-out: { subscribers: 2 } }\n\
         factors: { security: [off, { governance: sign }, { governance: encrypt }] }\n",
    );
    let security = Security::make(&plan).unwrap_or_else(|e| panic!("{e}"));
    let of = |condition: usize, role: Role| security.of(&plan.conditions[condition].spec, role);
    assert!(of(0, Role::Ping).is_none());
    let ends = [Role::Ping, Role::Pong, Role::Further(2)].map(|role| (role, of(1, role).expect("files")));
    for (role, files) in &ends {
        assert_eq!(openssl::refusal(&files.identity_ca, &files.identity_certificate), Ok(None));
        assert_eq!(openssl::subject(&files.identity_certificate), Ok(format!("CN={}", role.word())));
        let public = openssl::public_of_certificate(&files.identity_certificate).unwrap();
        assert!(public.is_some());
        assert_eq!(openssl::public_of_key(&files.private_key), Ok(public));
        assert_eq!((&files.governance, &files.permissions), (&ends[0].1.governance, &ends[0].1.permissions));
        let lines = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n");
        let document = documents::governance(Governance::Sign);
        assert!(lines(&files.governance).contains(document.trim_end()), "{}", files.governance);
    }
    assert_ne!(ends[0].1.private_key, ends[1].1.private_key);
    let encrypted = of(2, Role::Ping).unwrap();
    assert_ne!(encrypted.governance, ends[0].1.governance);
    assert_eq!(encrypted.private_key, ends[0].1.private_key);
}

/// Test: a driver that reports no security or another protection makes the trial invalid.
#[test]
fn another_protection_than_asked_is_found() {
    let plan = plan("measure: { ping-pong: { slots: 10 } }\nsecurity: { governance: sign }\n");
    let spec = &plan.conditions[0].spec;
    let warned = |transport: serde_json::Value| {
        let end = EndReady { name: "ping".into(), transport: Some(transport), ..EndReady::default() };
        differences(spec, &end).map(|warning| {
            assert_eq!((warning.severity, warning.problem.code.as_str()), (Severity::Invalid, "security_not_as_asked"));
            warning.problem.what
        })
    };
    assert_eq!(warned(json!({"security": {"plugins": "a"}})), None);
    assert_eq!(warned(json!({"security": {"in_force": {"rtps": "SIGN", "data": "NONE"}}})), None);
    let found = [
        warned(json!({"security": null})),
        warned(json!({"security": {"in_force": {"rtps": "NONE", "data": "NONE"}}})),
        warned(json!({"security": {"in_force": {"rtps": "SIGN", "data": "ENCRYPT"}}})),
    ];
    insta::assert_snapshot!(found.map(|text| text.expect("a difference")).join("\n"));
}
