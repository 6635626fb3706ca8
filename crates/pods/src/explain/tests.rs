//! Tests the explanations for pods as a real cluster reported them (Kubernetes 1.34.4), from the files in
//! tests/captured.

use super::*;
use k8s_openapi::api::core::v1::Pod as PodObject;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use serde_json::Value;
use std::time::Duration;

fn captured(text: &str) -> (PodObject, Vec<Event>) {
    let both: Value = serde_json::from_str(text).unwrap();
    let mut events: Vec<Event> = serde_json::from_value(both["events"].clone()).unwrap();
    events.sort_by_key(when);
    (serde_json::from_value(both["pod"].clone()).unwrap(), events)
}

macro_rules! captured {
    ($name:literal) => {
        captured(include_str!(concat!("../../tests/captured/", $name, ".json")))
    };
}

fn said(captured: (PodObject, Vec<Event>), seconds: u64) -> String {
    match starting(&captured.0, &captured.1, Duration::from_secs(seconds)) {
        Starting::Runs => "runs".to_owned(),
        Starting::Waits(what) => format!("waits: {what}"),
        Starting::Never(e) => e.to_string(),
    }
}

#[test]
fn pods_that_cannot_start_say_why_and_what_to_do() {
    let all = [
        said(captured!("runs"), 1),
        said(captured!("image-never"), 1),
        said(captured!("image-not-pulled"), 1),
        said(captured!("image-name"), 1),
        said(captured!("too-many-cpus"), 20),
        said(captured!("no-such-node"), 20),
        said(captured!("no-runtime"), 40),
        said(captured!("no-such-program"), 1),
        said(captured!("out-of-cpu"), 1),
    ];
    insta::assert_snapshot!(all.join("\n\n"));
}

/// Tests pods that may still start: a node becomes free when other pods end, and a network may still be starting.
#[test]
fn some_have_a_chance_yet() {
    let all = [said(captured!("too-many-cpus"), 1), said(captured!("no-runtime"), 1)];
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn pods_that_run_no_more_say_why() {
    let ended = |(pod, _): (PodObject, Vec<Event>)| ended(&pod).unwrap_or_else(|| "runs".to_owned());
    let all = [
        ended(captured!("runs")),
        ended(captured!("out-of-memory")),
        ended(captured!("time-over")),
        ended(captured!("exit-code")),
        ended(captured!("tainted")),
        deleted("ping", &captured!("tainted").1),
        deleted("ping", &captured!("runs").1),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn processes_that_do_not_start_say_why() {
    let ended = |message: &str| {
        let status = Status { status: Some("Failure".into()), message: Some(message.into()), ..Status::default() };
        exec_ended(Some(&status), "tailbound in the pod ping", "").unwrap_err().to_string()
    };
    let all = [
        ended(
            "Internal error occurred: Internal error occurred: error executing command in container: failed to exec in \
             container: failed to start exec \"d7ef\": OCI runtime exec failed: exec failed: unable to start container \
             process: exec: \"nothing\": executable file not found in $PATH: unknown",
        ),
        ended("Internal error occurred: unable to upgrade connection: container not found (\"tailbound\")"),
        ended(
            "Internal error occurred: error sending request: Post \"https://198.18.78.11:10250/exec/default/ping/tailbound?\
             command=cat&error=1&input=1&output=1\": dial tcp 198.18.78.11:10250: connect: connection refused",
        ),
        exec_ended(None, "tailbound in the pod ping", "it hurts\n").unwrap_err().to_string(),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn pods_that_are_not_admitted_say_why_and_what_to_do() {
    let asked = Asked { verb: "create", resource: "pods", namespace: "line" };
    let refused = |code: u16, message: &str| {
        let status = kube::core::Status::failure(message, "").with_code(code);
        not_made(kube::Error::Api(status.boxed()), &asked, "the pod ping cannot be made").to_string()
    };
    let all = [
        refused(403, "pods \"ping\" is forbidden: exceeded quota: q, requested: cpu=2, used: cpu=0, limited: cpu=1"),
        refused(
            403,
            "pods \"ping\" is forbidden: violates PodSecurity \"restricted:latest\": host namespaces (hostNetwork=true), \
             unrestricted capabilities (container \"tailbound\" must not include \"SYS_NICE\" in \
             securityContext.capabilities.add)",
        ),
        refused(
            403,
            "pods \"observer\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true, \
             hostPID=true)",
        ),
        refused(403, "pods \"ping\" is forbidden: [maximum cpu usage per Container is 1, but limit is 2]"),
        refused(400, "admission webhook \"images.example\" denied the request: localhost is not a registry"),
        refused(409, "pods \"ping\" already exists"),
    ];
    insta::assert_snapshot!(all.join("\n\n"));
}

/// Tests an eviction that the node has reported as an event, but has not yet written into the pod.
#[test]
fn an_eviction_is_known_by_what_its_node_tells() {
    let (pod, _) = captured!("exit-code");
    let event = |reason: &str| -> Event {
        let message = "The node was low on resource: memory. Threshold quantity: 24012692178, available: 17509272Ki. ";
        serde_json::from_value(serde_json::json!({
            "metadata": { "name": "e" }, "involvedObject": {}, "reason": reason, "message": message
        }))
        .unwrap()
    };
    let name = pod.metadata.name.clone().unwrap();
    let told = evicted(&pod, &[event("Killing"), event("Evicted")]).unwrap();
    assert!(told.starts_with(&format!("the pod {name} was evicted by node ")), "{told}");
    assert!(told.contains("low on resource: memory"), "{told}");
    assert_eq!(evicted(&pod, &[event("Killing")]), None);
    let mut written = pod;
    written.status.as_mut().unwrap().reason = Some("Evicted".into());
    assert_eq!(evicted(&written, &[event("Evicted")]), None, "the pod itself tells it");
}
