//! Tests of ends in pods of a real cluster of two nodes, with Flannel as its network; run by `dev/pods-test`.

use crate::support::cluster::Cluster;
use crate::support::host::{no_journal, signal};
use crate::support::security::all_secured;
use crate::support::studies::{built_in, published};
use crate::support::{exit_and_stderr, output_of, succeeded};
use crate::tune_export::{exported, receipt};
use std::time::Duration;
use tailbound_record::{Record, TrialStatus};

fn study(measure: &str, place: &str, rest: &str) -> String {
    format!(
        "study: pods\nquestion: q\nmeasure: {{ {measure} }}\nrate: 500 Hz\npayload: 64 B\n\
         place: {{ pod: {{ node: other, pull: never, capabilities: [IPC_LOCK]{place} }} }}\n{rest}\n"
    )
}

fn ping_pong(duration: &str, rest: &str) -> String {
    study(&format!("ping-pong: {{ duration: {duration} }}"), "", rest)
}

/// Gives the cluster an image of this name with Debian's programs `nice`, `sleep` and `cat`, and their libraries.
fn load_coreutils(cluster: &Cluster, name: &str) {
    let programs = ["/usr/bin/nice", "/usr/bin/sleep", "/usr/bin/cat"];
    let listed = output_of("ldd", &programs);
    let libraries = listed.split_whitespace().filter(|word| word.starts_with("/lib"));
    let mut files: Vec<&str> = libraries.chain(programs).map(|file| file.trim_end_matches(':')).collect();
    files.sort_unstable();
    files.dedup();
    let archive = cluster.bench.path("image.tar").display().to_string();
    let maker = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dev/cluster.d/image.py");
    let mut make = std::process::Command::new(maker);
    make.args([&archive, name, "/usr/bin/sleep"]).args(files.iter().map(|file| format!("{file}={file}")));
    succeeded(&make.output().unwrap());
    cluster.command(&["load", &archive]);
}

/// Test: the API server and the kubelet accept what `tune export` prints, and the program runs with it.
#[test]
fn a_pod_with_the_lines_of_tune_runs_as_they_say() {
    const IMAGE: &str = "tailbound.invalid/coreutils:1";
    let Some(cluster) = Cluster::new() else { return };
    load_coreutils(&cluster, IMAGE);
    let bench = &cluster.bench;
    // A real-time policy needs run time in the control group, which pods have on few kernels.
    let kept = [
        "host.sysctl.net.ipv4.tcp_rmem=4096 131071 6291455",
        "ends.pong.scheduling={ policy: other, nice: -7 }",
        "middleware.memory=locked",
    ];
    receipt(bench, "receipt.json", &kept);
    let lines = exported(bench, &["receipt.json", "--format", "kubernetes"]);
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{ name: exported }}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  \
         - {{ name: program, image: '{IMAGE}', imagePullPolicy: Never, args: ['600'], env: [{{ name: PATH, value: /usr/bin }}] }}\n"
    );
    std::fs::write(bench.path("pod.yaml"), pod).unwrap();
    std::fs::write(bench.path("lines.yaml"), lines.replace("\"program\"]", "\"sleep\"]")).unwrap();
    let [pod, patch] = ["pod.yaml", "lines.yaml"].map(|name| bench.path(name).display().to_string());
    let merged = cluster.command(&["kubectl", "patch", "--local", "-o", "yaml", "-f", &pod, "--patch-file", &patch]);
    std::fs::write(bench.path("pod.yaml"), merged).unwrap();
    cluster.command(&["kubectl", "apply", "-f", &pod]);
    cluster.command(&["kubectl", "wait", "--for=condition=Ready", "pod/exported", "--timeout=30s"]);
    let files = ["/proc/sys/net/ipv4/tcp_rmem", "/proc/1/stat", "/proc/1/status"];
    let read = |file| cluster.command(&["kubectl", "exec", "exported", "--", "cat", file]);
    let [memory, stat, status] = files.map(read);
    cluster.command(&["kubectl", "delete", "pod", "exported", "--wait=true"]);
    assert_eq!(memory.trim(), "4096\t131071\t6291455");
    // Field 19 of proc_pid_stat(5); the name of the program is `(sleep)`.
    assert_eq!(stat.split(' ').nth(18), Some("-7"), "{stat}");
    let rights = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    let rights = u64::from_str_radix(rights.trim(), 16).unwrap();
    // CAP_IPC_LOCK and CAP_SYS_NICE (linux/capability.h).
    assert_eq!(rights & (1 << 14 | 1 << 23), 1 << 14 | 1 << 23, "{status}");
}

#[test]
fn both_networks_are_measured_with_real_middleware() {
    let Some(cluster) = Cluster::new() else { return };
    let factors = "factors: { place.network: [host, pod], driver: [cyclonedds, fastdds] }";
    succeeded(&cluster.run(&ping_pong("2 s", factors)).output().unwrap());
    let (report, manifest) = (cluster.bench.report(), cluster.bench.manifest());
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let record = Record::open(&cluster.bench.path("record")).unwrap();
    for condition in report["conditions"].as_array().unwrap() {
        // The document's figure is the order statistic of the rows.
        let mut round_trips = Vec::new();
        record
            .slots(condition["trial_ids"][0].as_u64().unwrap() as usize, &mut |batch| {
                let sent = (0..batch.len()).filter(|i| !batch.warm_up[*i]);
                round_trips.extend(sent.map(|i| batch.receive_ns[i] - batch.send_begin_ns[i]));
            })
            .unwrap();
        assert_eq!(round_trips.len(), 1_000, "{condition}");
        round_trips.sort_unstable();
        let quantiles = condition["round_trip"]["quantiles"].as_array().unwrap();
        let median = quantiles.iter().find(|q| q["q"] == 0.5).unwrap()["value_ns"].as_i64().unwrap();
        assert_eq!(median, round_trips[499]);
    }
    for trial in manifest["trials"].as_array().unwrap() {
        let (ping, pong) = (&trial["ends"]["ping"], &trial["ends"]["pong"]);
        let hosts = [ping["host"].as_str().unwrap(), pong["host"].as_str().unwrap()];
        let node = |host: &str| host.split(" on ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        assert_ne!(node(hosts[0]), node(hosts[1]), "{hosts:?}");
        // Nodes of one machine have one clock, and legs are exact.
        assert_eq!(ping["clock"], pong["clock"]);
        // During a trial the control stream carries one heartbeat per second and nothing else.
        let control = ping["control_octets"].as_i64().unwrap();
        assert!((1..400).contains(&control), "{control} octets in 2 s");
        // VXLAN adds 50 bytes to each packet, so the MTU is smaller by 50 bytes.
        let by_host_network = hosts[0].ends_with("(host network)");
        let mtu = if by_host_network { 1500 } else { 1450 };
        assert_eq!(trial["path"]["ends"][0]["mtu"], mtu, "{}", trial["path"]);
    }
    assert_eq!(manifest["hosts"].as_object().unwrap().len(), 4 + 1, "two nodes, two networks, and this host");
    cluster.empty_within(Duration::from_secs(5));
    no_journal(&cluster.bench);
}

/// Test: the files of DDS Security reach ends in pods, with each vendor.
#[test]
fn ends_in_pods_have_identities() {
    let Some(cluster) = Cluster::new() else { return };
    let rest = "security: { governance: encrypt }\nfactors: { driver: [cyclonedds, fastdds] }";
    succeeded(&cluster.run(&ping_pong("1 s", rest)).output().unwrap());
    all_secured(&cluster.bench, "encrypt");
}

#[test]
fn throughput_is_counted_to_the_message() {
    let Some(cluster) = Cluster::new() else { return };
    let text = study(
        "throughput: { duration: 2 s, subscribers: 2, unacked_limit: 20 }",
        ", cpus: 1",
        "qos: { reliability: reliable, history: keep-all }\n\
         factors: { place.network: [host, pod], driver: [cyclonedds, fastdds] }",
    );
    succeeded(&cluster.run(&text.replace("rate: 500 Hz", "rate: max")).output().unwrap());
    let report = cluster.bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    assert_eq!(report["conditions"].as_array().unwrap().len(), 4);
    for condition in report["conditions"].as_array().unwrap() {
        let flow = &condition["flow"];
        assert!(flow["sent"].as_i64().unwrap() > 100, "{flow}");
        assert_eq!(flow["lost"], 0, "{flow}");
    }
}

/// Test: `watch --pod` captures in the network namespace of a pod on this node, by its name, with and without its namespace.
#[test]
fn what_a_pod_sends_is_watched() {
    let Some(cluster) = Cluster::new() else { return };
    let child = cluster.measuring(&ping_pong("12 s", "driver: cyclonedds"));
    let names = cluster.pods();
    let pong = names.iter().find(|name| name.ends_with("-pong")).unwrap_or_else(|| panic!("{names:?}"));
    for pod in [pong.clone(), format!("default/{pong}")] {
        let output =
            cluster.tailbound().args(["watch", "--pod", &pod, "--for", "2s", "--format", "json"]).output().unwrap();
        succeeded(&output);
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["place"], format!("all interfaces of pod {pod}"));
        let topics = found["topics"].as_array().unwrap().iter();
        let writers = topics.flat_map(|topic| topic["writers"].as_array().unwrap());
        let sent: Vec<u64> = writers.filter(|w| w["is_here"] == true).map(|w| w["samples"].as_u64().unwrap()).collect();
        assert!(sent.iter().any(|samples| (800..=1100).contains(samples)), "{found:#}");
    }
    assert!(child.wait_with_output().unwrap().status.success(), "{}", cluster.stderr());
    let absent = cluster.tailbound().args(["watch", "--pod", "absent", "--for", "1s"]).output().unwrap();
    let (code, text) = exit_and_stderr(&absent);
    assert!(
        code == 2 && text.contains("no pod `absent` with a network of its own runs on this node"),
        "{code}: {text}"
    );
}

/// Test of the four built-in studies of pod networks, with the smallest payload and short windows: batches of 8,192 B with at most 20
/// messages not acknowledged, latency, and two subscribers by unicast and by multicast, which this pod network does not carry. Each
/// published number whose conditions could be measured has a figure of ours beside it.
#[test]
fn the_published_studies_of_pod_networks_have_their_figures() {
    let Some(cluster) = Cluster::new() else { return };
    for (study, filled) in [
        ("kubernetes-networks", "all, 64 B to 63,000 B"),
        ("kubernetes-latency", "small messages"),
        ("kubernetes-subscribers", "host network"),
        ("kubernetes-subscribers-latency", "host network"),
    ] {
        cluster.bench.remove_record();
        let short = ["measure.duration=500ms", "payload=[64 B]", "repeat=1", "place.cpus=0"];
        let driver = match study.starts_with("kubernetes-subscribers") {
            true => None,
            false => Some("driver=[{ cyclonedds: { max_message_size: 8192 } }]"),
        };
        let settings: Vec<&str> = short.into_iter().chain(driver).collect();
        let report = built_in(&cluster.bench, cluster.tailbound(), study, &settings);
        let table = report["published"][0]["name"].as_str().unwrap();
        let cells = published(&report, table, filled);
        assert!(cells.iter().all(|cell| cell["here"].is_array()), "{study}: {cells:?} {}", report["findings"]);
    }
}

#[test]
fn an_api_server_and_a_kubelet_that_are_started_anew_cost_nothing() {
    let Some(cluster) = Cluster::new() else { return };
    let child = cluster.measuring(&ping_pong("16 s", "driver: udp"));
    for program in ["control/apiserver", "node2/kubelet"] {
        cluster.command(&["stop", program]);
        cluster.command(&["start", program]);
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", cluster.stderr());
    let record = Record::open(&cluster.bench.path("record")).unwrap();
    assert_eq!(record.manifest.trials[0].status, TrialStatus::Valid);
    let mut rows = 0;
    record.slots(0, &mut |batch| rows += (0..batch.len()).filter(|i| !batch.warm_up[*i]).count()).unwrap();
    assert_eq!(rows, 8_000);
    cluster.empty_within(Duration::from_secs(10));
    no_journal(&cluster.bench);
}

#[test]
fn a_pod_that_is_deleted_costs_its_trial_and_is_named() {
    let Some(cluster) = Cluster::new() else { return };
    let child = cluster.measuring(&ping_pong("8 s", "driver: udp"));
    let pong = cluster.pods().into_iter().find(|name| name.ends_with("-pong")).unwrap();
    cluster.command(&["kubectl", "delete", "pod", &pong, "--now", "--wait=false"]);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", cluster.stderr());
    let record = Record::open(&cluster.bench.path("record")).unwrap();
    assert_eq!(record.manifest.trials[0].status, TrialStatus::Invalid);
    let log = std::fs::read_to_string(cluster.bench.path("record/logs/agent-pong.log")).unwrap();
    assert!(log.contains(&format!("the pod {pong} was deleted")), "{log}");
    cluster.empty_within(Duration::from_secs(10));
    no_journal(&cluster.bench);
}

/// Test: a kubelet that requires more free memory than there is evicts a pod; the trial is invalid, and the log names
/// the pod.
#[test]
fn a_pod_that_its_kubelet_evicts_costs_its_trial_and_is_named() {
    let Some(cluster) = Cluster::new() else { return };
    let child = cluster.measuring(&ping_pong("40 s", "driver: udp"));
    let pong = cluster.pods().into_iter().find(|name| name.ends_with("-pong")).unwrap();
    let node = cluster.command(&["kubectl", "get", "pod", &pong, "-o", "jsonpath={.spec.nodeName}"]);
    cluster.free_memory(&node, "95%");
    let output = child.wait_with_output().unwrap();
    cluster.free_memory(&node, "100Mi");
    assert_eq!(output.status.code(), Some(6), "{}", cluster.stderr());
    let record = Record::open(&cluster.bench.path("record")).unwrap();
    assert_eq!(record.manifest.trials[0].status, TrialStatus::Invalid);
    let log = std::fs::read_to_string(cluster.bench.path("record/logs/agent-pong.log")).unwrap();
    let told = format!("the pod {pong} was evicted by node {node}: The node was low on resource: memory");
    assert!(log.contains(&told), "{log}");
    no_journal(&cluster.bench);
    // Waits until the node accepts pods again.
    cluster.command(&[
        "kubectl",
        "wait",
        &format!("node/{node}"),
        "--for=condition=MemoryPressure=False",
        "--timeout=60s",
    ]);
    cluster.empty_within(Duration::from_secs(10));
}

#[test]
fn a_controller_that_is_killed_leaves_nothing() {
    let Some(cluster) = Cluster::new() else { return };
    let killed = || {
        let observed = study("ping-pong: { duration: 60 s }", ", observe: on", "driver: udp");
        let mut child = cluster.measuring(&observed);
        signal(&child, libc::SIGKILL);
        child.wait().unwrap();
        let left = cluster.pods();
        assert_eq!(left.len(), 4, "two ends, and an observer of each node: {left:?}");
        cluster.bench.remove_record();
        left
    };
    let left = killed();
    let output = cluster.tailbound().args(["lab", "cleanup"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &exit_and_stderr(&output).1;
    assert!(output.status.success() && left.iter().all(|pod| printed.contains(pod)), "{printed}");
    cluster.empty_within(Duration::from_secs(10));
    no_journal(&cluster.bench);
    // If nobody cleans up, the agents in the pods end when they have received nothing for 30 s.
    killed();
    cluster.empty_within(Duration::from_secs(50));
    succeeded(&cluster.tailbound().args(["lab", "cleanup"]).output().unwrap());
}

#[test]
fn a_path_that_is_cut_is_reported_before_a_driver_starts() {
    let Some(cluster) = Cluster::new() else { return };
    let nft = |words: &[&str]| cluster.command(&[&["exec", "node1", "nft"], words].concat());
    nft(&["add", "table", "ip", "cut"]);
    nft(&["add", "chain", "ip", "cut", "forward", "{ type filter hook forward priority -300; }"]);
    nft(&["add", "rule", "ip", "cut", "forward", "meta", "l4proto", "udp", "drop"]);
    let output = cluster.run(&ping_pong("1 s", "driver: udp")).output().unwrap();
    nft(&["delete", "table", "ip", "cut"]);
    let text = exit_and_stderr(&output).1;
    let (cut, trial) = (text.find("no datagram arrives from ping ("), text.find("trial 1/1"));
    assert!(cut.is_some() && cut < trial, "{text}");
    cluster.empty_within(Duration::from_secs(10));
}

#[test]
fn a_network_policy_that_nobody_enforces_is_reported() {
    let Some(cluster) = Cluster::new() else { return };
    let policy = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: nobody}, \
                  spec: {podSelector: {}, policyTypes: [Ingress]}}";
    let file = cluster.bench.path("policy.yaml");
    std::fs::write(&file, policy).unwrap();
    cluster.command(&["kubectl", "apply", "-f", file.to_str().unwrap()]);
    let output = cluster.run(&ping_pong("1 s", "driver: udp")).output().unwrap();
    cluster.command(&["kubectl", "delete", "networkpolicy", "nobody"]);
    succeeded(&output);
    let text = exit_and_stderr(&output).1;
    assert!(text.contains("the network policy nobody selects the pod tailbound-"), "{text}");
    assert!(text.contains("but Flannel with VXLAN enforces no policies: forbidden packets pass"), "{text}");
    assert!(text.contains("all of 500 answered"), "{text}");
}

#[test]
fn impossible_studies_are_refused_with_a_remedy() {
    let Some(cluster) = Cluster::new() else { return };
    let mut all = String::new();
    let mut refused = |what: &str, place: &str, kubeconfig: Option<&str>| {
        let mut command = cluster.run(&study("ping-pong: { duration: 1 s }", place, "driver: udp"));
        if let Some(file) = kubeconfig {
            command.env("KUBECONFIG", file);
        }
        let (code, text) = exit_and_stderr(&command.output().unwrap());
        assert_eq!(code, 3, "{what}: {text}");
        no_journal(&cluster.bench);
        cluster.bench.remove_record();
        // Names with the run's id differ in each run.
        let text: Vec<String> =
            text.split(' ').map(|w| if w.starts_with("tailbound-") { "POD".into() } else { w.into() }).collect();
        // Either node may be chosen.
        let text = text.join(" ").replace("node node1 ", "node NODE ").replace("node node2 ", "node NODE ");
        all += &format!("# {what}\n{}\n", text.trim_end());
    };
    refused("no kubeconfig", "", Some("/nowhere/config"));
    refused("no such context", ", context: elsewhere", None);
    refused("an image that no node has", ", image: localhost/nothing:1", None);
    refused("more CPUs than a node has", ", cpus: 4000", None);
    refused("no such namespace", ", namespace: nowhere", None);
    insta::assert_snapshot!(all);
}
