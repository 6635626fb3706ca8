//! Tests of ends in pods that find each other by a DNS name, on a real cluster with a DNS server; run by
//! `dev/pods-test`.

use crate::support::cluster::Cluster;
use crate::support::host::{no_journal, signal};
use crate::support::{exit_and_stderr, succeeded};
use std::time::Duration;

fn study(duration: &str, rest: &str) -> String {
    format!(
        "study: names\nquestion: q\nmeasure: {{ ping-pong: {{ duration: {duration} }} }}\nrate: 200 Hz\npayload: 64 B\n\
         discovery: dns\nplace: {{ pod: {{ node: other, pull: never, capabilities: [IPC_LOCK] }} }}\n{rest}\n"
    )
}

fn services(cluster: &Cluster) -> String {
    cluster.command(&["kubectl", "get", "services", "-l", "app.kubernetes.io/managed-by=tailbound", "-o", "name"])
}

#[test]
fn drivers_find_each_other_by_the_name_of_a_headless_service() {
    let Some(cluster) = Cluster::new() else { return };
    let factors = "factors: { place.network: [pod, host], driver: [cyclonedds, fastdds, udp] }";
    succeeded(&cluster.run(&study("2 s", factors)).output().unwrap());
    let (report, manifest) = (cluster.bench.report(), cluster.bench.manifest());
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let trials = manifest["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 6);
    for trial in trials {
        let discovery = &trial["path"]["discovery"];
        assert_eq!(discovery["by"], "dns", "{discovery}");
        let name = discovery["name"].as_str().unwrap();
        assert!(name.starts_with("tailbound-") && name.ends_with(".default.svc"), "{name}");
    }
    let page =
        String::from_utf8(cluster.tailbound().args(["report", "record", "--format", "html"]).output().unwrap().stdout);
    assert!(page.unwrap().contains("discovery was by dns, by the name tailbound-"), "the page does not tell");
    assert_eq!(services(&cluster), "");
    cluster.empty_within(Duration::from_secs(5));
    no_journal(&cluster.bench);
}

#[test]
fn a_name_that_a_killed_controller_left_is_cleaned_up() {
    let Some(cluster) = Cluster::new() else { return };
    let mut child = cluster.measuring(&study("60 s", "driver: cyclonedds"));
    let made = services(&cluster);
    assert_eq!(made.lines().count(), 1, "{made}");
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    let output = cluster.tailbound().args(["lab", "cleanup"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &exit_and_stderr(&output).1;
    let name = made.trim().trim_start_matches("service/");
    assert!(output.status.success() && printed.contains(name), "{printed}");
    assert_eq!(services(&cluster), "");
    cluster.empty_within(Duration::from_secs(10));
    no_journal(&cluster.bench);
}
