//! Tests of ends in many pods of a real cluster of two nodes, with one pod for each end; run by `dev/pods-test`.

use crate::support::cluster::Cluster;
use crate::support::host::no_journal;
use crate::support::succeeded;
use std::collections::BTreeMap;
use std::time::Duration;

fn study(measure: &str, rest: &str) -> String {
    format!(
        "study: many\nquestion: q\nmeasure: {{ throughput: {{ {measure}, spread: pods }} }}\nrate: 200 Hz\npayload: 64 B\n\
         place: {{ pod: {{ node: spread, cpus: 0, memory: 96 MiB, pull: never }} }}\n{rest}\n"
    )
}

#[test]
fn publishers_and_subscribers_are_spread_over_the_nodes() {
    let Some(cluster) = Cluster::new() else { return };
    let text = study("duration: 2 s, publishers: 2, subscribers: 4", "driver: udp");
    succeeded(&cluster.run(&text).output().unwrap());
    let (report, manifest) = (cluster.bench.report(), cluster.bench.manifest());
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let flow = &report["conditions"][0]["flow"];
    assert_eq!((flow["publishers"].as_u64(), flow["subscribers"].as_u64()), (Some(2), Some(4)));
    assert_eq!((flow["sent"].as_u64(), flow["lost"].as_u64()), (Some(800), Some(0)), "{flow}");
    // Each end is in a pod of its own, and the ends of each side are spread evenly over the two nodes.
    let ends = manifest["trials"][0]["ends"].as_object().unwrap();
    let hosts: BTreeMap<&str, &str> =
        ends.iter().map(|(end, of)| (of["host"].as_str().unwrap(), end.as_str())).collect();
    assert_eq!(hosts.len(), 6, "{hosts:?}");
    let on = |side: &str, node: &str| {
        hosts.iter().filter(|(host, end)| end.starts_with(side) && host.ends_with(&format!(" on {node}"))).count()
    };
    let spread = ["ping", "pong"].map(|side| ["node1", "node2"].map(|node| on(side, node)));
    assert_eq!(spread, [[1, 1], [2, 2]], "{hosts:?}");
    // The path check has tested every end.
    assert_eq!(manifest["trials"][0]["path"]["ends"].as_array().unwrap().len(), 6);
    cluster.empty_within(Duration::from_secs(10));
    no_journal(&cluster.bench);
}

/// Test: pods that the next condition does not need are deleted before it is measured; the other pods are kept.
#[test]
fn conditions_have_the_pods_that_they_want() {
    let Some(cluster) = Cluster::new() else { return };
    let text = study("duration: 1 s", "driver: udp\nfactors: { measure.subscribers: [1, 3] }");
    succeeded(&cluster.run(&text).output().unwrap());
    let (report, manifest) = (cluster.bench.report(), cluster.bench.manifest());
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    for condition in report["conditions"].as_array().unwrap() {
        assert_eq!(condition["flow"]["lost"], 0, "{condition}");
    }
    let ends = |trial: usize| manifest["trials"][trial]["ends"].as_object().unwrap().len();
    let mut of_trials = [ends(0), ends(1)];
    of_trials.sort_unstable();
    assert_eq!(of_trials, [2, 4]);
    cluster.empty_within(Duration::from_secs(10));
    no_journal(&cluster.bench);
}
