//! Tests of the part of a report about the nodes of a cluster, whose data observer pods collect, with a real cluster
//! that has Flannel as its network; run by `dev/pods-test`.

use crate::support::cluster::Cluster;
use crate::support::host::no_journal;
use crate::support::succeeded;
use std::time::Duration;

fn study(place: &str) -> String {
    format!(
        "study: nodes\nquestion: q\nmeasure: {{ ping-pong: {{ duration: 2 s }} }}\nrate: 500 Hz\npayload: 64 B\n\
         driver: udp\nplace: {{ pod: {{ node: other, pull: never, capabilities: [IPC_LOCK]{place} }} }}\n"
    )
}

#[test]
fn the_node_is_seen_from_the_pod_to_the_wire() {
    let Some(cluster) = Cluster::new() else { return };
    let output = cluster.run(&study(", observe: on")).output().unwrap();
    succeeded(&output);
    let (manifest, report) = (cluster.bench.manifest(), cluster.bench.report());
    let trial = &manifest["trials"][0];
    let nodes = trial["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 2, "{nodes:?}");
    for node in nodes {
        let way = &node["ways"][0];
        let hops = way["hops"].as_array().unwrap();
        let kinds: Vec<&str> = hops.iter().map(|h| h["kind"].as_str().unwrap()).collect();
        // The nodes of this cluster are themselves connected by veth pairs.
        assert_eq!(kinds, ["veth", "veth", "bridge", "vxlan", "veth"], "{way}");
        let names: Vec<&str> = hops.iter().map(|h| h["name"].as_str().unwrap()).collect();
        assert_eq!((names[0], &names[2..]), ("eth0", ["cni0", "flannel.1", "eth0"].as_slice()));
        assert_eq!((&hops[3]["tunnel"]["id"], &hops[3]["tunnel"]["port"]), (&1.into(), &8472.into()));
        assert_eq!((&hops[0]["mtu"], &hops[4]["mtu"]), (&1450.into(), &1500.into()));
        // The pod's end of the veth pair names the index of the node's end.
        assert_eq!(hops[0]["below"], hops[1]["index"]);

        // The CPUs are those of the control group that the agent in the pod has read.
        let end = &trial["ends"][way["end"].as_str().unwrap()];
        let host = report["facts"].as_array().unwrap().iter().find(|h| h["host"] == end["host"]).unwrap();
        let fact = host["facts"].as_array().unwrap().iter().find(|f| f["key"] == "cgroup.cpuset").unwrap();
        assert_eq!(way["cpus"], fact["value"], "{fact}");
        assert_ne!(way["cpus"], way["cpus_of_others"]);

        let cost = &node["cost"];
        assert!(cost["span_ns"].as_i64().unwrap() >= 2_000_000_000, "{cost}");
        let took = |name: &str| {
            let programs = cost["programs"].as_array().unwrap();
            programs.iter().find(|p| p["program"] == name).unwrap()["cpu_ns"].as_i64().unwrap()
        };
        assert!(took("kubelet") > 0 && took("containerd") > 0 && took("shim") > 0, "{cost}");
        // The flow's bytes on the interface of the pod also passed the interface of the node, encapsulated.
        let pod = trial["proof"]["spaces"].as_array().unwrap().iter().find(|s| s["ends"][0] == way["end"]).unwrap();
        let flow = pod["data"]["interfaces"]["eth0"]["tx_bytes"].as_i64().unwrap();
        let node_sent = cost["interfaces"]["eth0"]["tx_bytes"].as_i64().unwrap();
        assert!(flow > 1_000 * 64 && node_sent >= flow, "{node_sent} of the node, {flow} of the pod");
    }
    let text = report["nodes"][0]["ways"][0]["text"].as_str().unwrap();
    assert!(text.contains("- cni0 (bridge) - flannel.1 (vxlan 1, UDP 8472) - eth0 (veth, MTU 1500); CPU "), "{text}");
    assert!(text.ends_with(" for itself: the CPU manager is static"), "{text}");
    cluster.empty_within(Duration::from_secs(5));
    no_journal(&cluster.bench);
}
