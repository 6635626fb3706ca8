//! Tests of ends in pods that find each other by a discovery server, on a real cluster; run by `dev/pods-test`.

use crate::support::cluster::Cluster;
use crate::support::host::{no_journal, signal};
use crate::support::{Bench, exit_and_stderr, succeeded};
use std::time::{Duration, Instant};

fn study(duration: &str, rest: &str) -> String {
    format!(
        "study: discovery\nquestion: q\nmeasure: {{ ping-pong: {{ duration: {duration} }} }}\nrate: 500 Hz\npayload: 64 B\n\
         place: {{ pod: {{ node: other, pull: never, capabilities: [IPC_LOCK] }} }}\ndriver: fastdds\n{rest}\n"
    )
}

/// Objects in the cluster that runs created and that are not being deleted, as `KIND/NAME`, without pods that have
/// ended.
fn made(cluster: &Cluster) -> Vec<String> {
    let ours = ["-l", "app.kubernetes.io/managed-by=tailbound", "-o", "name"];
    let services = cluster.command(&[["kubectl", "get", "deployments,services"].as_slice(), &ours].concat());
    services.lines().map(str::to_owned).chain(cluster.pods()).collect()
}

fn nothing_within(cluster: &Cluster, limit: Duration) {
    let deadline = Instant::now() + limit;
    while !made(cluster).is_empty() {
        assert!(Instant::now() < deadline, "{:?} are still there", made(cluster));
        std::thread::sleep(Duration::from_millis(500));
    }
    no_journal(&cluster.bench);
}

/// A firewall rule (nftables) on both nodes that discards UDP datagrams to a port; the rule is removed when this value
/// is dropped.
struct CutPath<'a>(&'a Cluster);

impl<'a> CutPath<'a> {
    fn to_port(cluster: &'a Cluster, port: u16) -> CutPath<'a> {
        let cut = CutPath(cluster);
        for node in ["node1", "node2"] {
            let rules = format!(
                "add table ip cut; add chain ip cut forward {{ type filter hook prerouting priority -300; }}; \
                 add rule ip cut forward udp dport {port} drop"
            );
            cluster.command(&["exec", node, "nft", &rules]);
        }
        cut
    }
}

impl Drop for CutPath<'_> {
    fn drop(&mut self) {
        for node in ["node1", "node2"] {
            let _ = self.0.dev(&["exec", node, "nft", "delete", "table", "ip", "cut"]);
        }
    }
}

#[test]
fn pods_find_each_other_by_each_method_and_the_record_names_it() {
    let Some(cluster) = Cluster::new() else { return };
    // Flannel carries no multicast between nodes.
    let factors = "factors: { discovery: [auto, peers, server] }";
    succeeded(&cluster.run(&study("1 s", factors)).output().unwrap());
    let (report, manifest) = (cluster.bench.report(), cluster.bench.manifest());
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    for trial in manifest["trials"].as_array().unwrap() {
        let planned = manifest["plan"]["trials"][trial["id"].as_u64().unwrap() as usize]["condition"].as_u64().unwrap();
        let asked = &manifest["plan"]["conditions"][planned as usize]["levels"]["discovery"];
        let (found, ping) = (&trial["path"]["discovery"], &trial["ends"]["ping"]["transport"]["discovery"]);
        let nobody = serde_json::json!([]);
        match asked.as_str().unwrap() {
            "server" => {
                assert_eq!(found["by"], "server", "{found}");
                let address = found["server"].as_str().unwrap();
                assert_eq!(ping["protocol"], "client", "{ping}");
                assert_eq!(ping["servers"], serde_json::json!([format!("udp:{address}")]));
                assert_eq!((&ping["silent_servers"], &ping["asked"]), (&nobody, &nobody), "{ping}");
            }
            other => {
                assert_eq!(found["by"], "peers", "{found}");
                let why = if other == "auto" {
                    "the path check has shown that multicast is lost"
                } else {
                    "the study says so"
                };
                assert_eq!(found["why"], why);
                assert_eq!((&ping["protocol"], &ping["servers"]), (&"simple".into(), &nobody), "{ping}");
                assert_eq!(ping["asked"].as_array().unwrap().len(), 1, "{ping}");
            }
        }
    }
    for condition in report["conditions"].as_array().unwrap() {
        assert_eq!(condition["counts"]["answered"], 500);
    }
    nothing_within(&cluster, Duration::from_secs(10));
}

/// Test: a driver without a discovery server is refused before any request is sent to the cluster.
#[test]
fn a_driver_that_has_no_discovery_server_is_refused() {
    let bench = Bench::new();
    let text = study("1 s", "discovery: server").replace("driver: fastdds", "driver: cyclonedds");
    let output =
        bench.to_run(bench.tailbound(), "record", &text).env("KUBECONFIG", "/nowhere/config").output().unwrap();
    let (code, printed) = exit_and_stderr(&output);
    assert_eq!(code, 2, "{printed}");
    assert!(printed.contains("driver cyclonedds cannot do `discovery: server`: it has no option"), "{printed}");
    assert!(!bench.path("record").exists());
}

/// Test: if the discovery server is deleted before the ends match, a finding says so. The network path to the server is
/// cut first, so that the ends cannot match before the server is deleted.
#[test]
fn a_server_that_is_gone_before_the_ends_met_is_named() {
    let Some(cluster) = Cluster::new() else { return };
    let cut = CutPath::to_port(&cluster, 11811);
    let child = cluster.in_first_trial(&study("1 s", "discovery: server"));
    let server = made(&cluster).into_iter().find(|name| name.starts_with("deployment")).unwrap();
    cluster.command(&["kubectl", "delete", &server, "--wait=false"]);
    let output = child.wait_with_output().unwrap();
    drop(cut);
    assert_eq!(output.status.code(), Some(0), "{}", cluster.stderr());
    let finding = cluster.bench.manifest()["trials"][0]["finding"].as_str().unwrap_or_default().to_owned();
    let name = server.split('/').nth(1).unwrap();
    assert!(finding.contains(":11811 has not answered"), "{finding}");
    // The record has the diagnostics logs of the agents in the pods, and of the processes that carry their streams.
    for (name, line) in [("agent-pong.log", "agent begins"), ("pod.log", "stream begins pod=")] {
        assert!(cluster.bench.log(name).contains(line), "{name}: {}", cluster.bench.log(name));
    }
    assert!(finding.ends_with(&format!(": the Deployment {name} was deleted")), "{finding}");
    nothing_within(&cluster, Duration::from_secs(10));
}

#[test]
fn a_server_of_a_killed_controller_is_cleaned_up() {
    let Some(cluster) = Cluster::new() else { return };
    let mut child = cluster.measuring(&study("60 s", "discovery: server"));
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    let left = made(&cluster);
    assert_eq!(left.len(), 2 + 3, "Deployment, Service and three pods: {left:?}");
    let output = cluster.tailbound().args(["lab", "cleanup"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &exit_and_stderr(&output).1;
    assert!(output.status.success() && printed.contains("deleted deployment tailbound-"), "{printed}");
    nothing_within(&cluster, Duration::from_secs(10));
}
