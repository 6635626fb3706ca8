//! Tests with pods of a real cluster of two nodes. The nodes have the image of this release (`tailbound image`) and the
//! image of `dev/cluster-test`.

use crate::support::{bench, create, request};
use k8s_openapi::api::core::v1::{Namespace, Pod as PodObject};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use std::time::Duration;
use tailbound_model::{FactValue, NodeChoice, PodSpec};
use tailbound_pods::{Cluster, Pod, RIGHTS, Right, ServiceRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

/// Runs a program in the pod and returns its output, or the error.
async fn run(pod: &Pod, command: &[&str]) -> Result<String, String> {
    let (mut output, _input) = pod.exec(&words(command)).await.map_err(|e| e.to_string())?;
    let mut text = String::new();
    output.read_to_string(&mut text).await.map(|_| text).map_err(|e| e.to_string())
}

/// Makes the request for a discovery server that a driver runs.
fn serves(name: &str, driver: &str, owner: &Pod) -> ServiceRequest {
    let (name, owner) = (name.to_owned(), owner.name.clone());
    let args = words(&["agent", "discovery", "--driver", driver, "--listen", "0.0.0.0:11811"]);
    ServiceRequest { token: name.clone(), name, owner, args, port: 11811 }
}

/// Tests a service with only the rights that `tailbound k8s manifest` prints; the service runs the image of this release.
#[tokio::test]
async fn a_service_is_made_watched_and_removed_by_the_rights_that_are_granted() {
    let Some(bench) = bench("serves").await else { return };
    let account = bench.account("granted", RIGHTS).await.display().to_string();
    let spec = PodSpec { kubeconfig: Some(account), ..bench.spec() };
    let cluster = Cluster::reach(&spec).await.unwrap();
    let owner = cluster.start(&spec, &request("one")).await.unwrap();
    let address = cluster.serve(&spec, &serves("server", "fastdds", &owner)).await.unwrap();
    assert_eq!(address.port(), 11811);
    assert_eq!(cluster.unserved("server", "server").await, Ok(None));
    let gone = cluster.remove_services("server").await.unwrap();
    assert_eq!(gone, ["deployment server", "service server"]);
    let why = cluster.unserved("server", "server").await.unwrap().unwrap();
    assert_eq!(why, "the Deployment server was deleted");
    assert_eq!(cluster.remove_services("server").await, Ok(Vec::new()));

    // A process that ends immediately is reported with its last output, long before the time limit.
    let error = cluster.serve(&spec, &serves("ends", "nowhere", &owner)).await.unwrap_err().to_string();
    assert!(error.contains("nowhere") && error.contains("its last output"), "{error}");
    // Objects that belong to a pod are removed with the pod.
    owner.delete().await.unwrap();
    while cluster.unserved("ends", "ends").await.unwrap().is_none_or(|why| why != "the Deployment ends was deleted") {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    bench.leave().await;
}

/// Tests two pods with only the rights that `tailbound k8s manifest` prints.
#[tokio::test]
async fn two_pods_of_two_nodes_by_the_rights_that_are_granted() {
    let Some(bench) = bench("two").await else { return };
    let account = bench.account("granted", RIGHTS).await.display().to_string();
    let spec = PodSpec { kubeconfig: Some(account), capabilities: words(&["SYS_NICE"]), ..bench.spec() };
    let cluster = Cluster::reach(&spec).await.unwrap();
    let one = cluster.start(&spec, &request("one")).await.unwrap();
    let other = PodSpec { node: Some(NodeChoice::Other), ..spec.clone() };
    let away = tailbound_pods::PodRequest { avoid: Some(one.node.clone()), ..request("two") };
    let two = cluster.start(&other, &away).await.unwrap();
    assert_ne!(one.node, two.node);
    for pod in [&one, &two] {
        assert_eq!(pod.qos, "Guaranteed");
        assert_eq!(pod.addresses.len(), 1, "{pod:?}");
        let version = run(pod, &["tailbound", "--version"]).await.unwrap();
        assert_eq!(version.trim(), concat!("tailbound ", env!("CARGO_PKG_VERSION"), " (built from a checkout)"));
        assert_eq!(pod.ended().await, Ok(None));
    }
    let facts = one.facts(&mut tailbound_pods::Asked::default()).await;
    let text = |key: &str| match &facts.iter().find(|f| f.key == key).unwrap().value {
        FactValue::Text(text) => text.clone(),
        other => panic!("{key}: {other:?}"),
    };
    assert_eq!(text("cluster.version"), cluster.version);
    assert_eq!(text("pod.node"), one.node);
    assert_eq!(text("pod.network_policies"), "none");
    assert_eq!(text("node.kernel"), std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim());

    let refused = run(&one, &["tailbound", "no-such-command"]).await.unwrap_err();
    assert!(refused.starts_with("tailbound in the pod one has ended with exit code 2"), "{refused}");
    let absent = run(&one, &["cat"]).await.unwrap_err();
    assert!(
        absent.contains("cat in the pod one cannot be started: exec: \"cat\": executable file not found"),
        "{absent}"
    );

    // Pods are found by their label only: a pod whose name resembles the names of our pods, but without the label, is
    // not found.
    bench.busybox("one-more", &["/bin/busybox", "sleep", "600"]).await;
    let mut left = cluster.leftovers(None).await.unwrap();
    left.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(left.iter().map(|l| l.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    let removed = cluster.remove_leftovers("two-token").await.unwrap();
    assert_eq!(removed.iter().map(|l| (&l.name, &l.uid)).collect::<Vec<_>>(), [(&two.name, &two.uid)]);
    one.delete().await.unwrap();
    while !cluster.leftovers(None).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(two.ended().await, Ok(Some("the pod two was deleted".to_owned())));
    let late = one.exec(&words(&["tailbound"])).await.map(drop).unwrap_err();
    assert_eq!(late.to_string(), "tailbound cannot be started in the pod one: the pod does not exist any more");
    one.delete().await.unwrap();
    assert!(bench.pods().get_opt("one-more").await.unwrap().is_some());
    bench.leave().await;
}

/// Waits until the named pod runs or has ended, and returns the pod.
async fn begun(bench: &crate::support::Bench, name: &str) -> Pod {
    let cluster = bench.cluster().await;
    loop {
        let pod = bench.pods().get(name).await.unwrap();
        if pod.status.and_then(|s| s.phase).is_some_and(|phase| phase != "Pending") {
            return cluster.pod(name).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn bytes_pass_both_directions_and_the_end_is_reported() {
    let Some(bench) = bench("octets").await else { return };
    bench.busybox("echo", &["/bin/busybox", "sleep", "600"]).await;
    let pod = begun(&bench, "echo").await;
    let (mut output, mut input) = pod.exec(&words(&["/bin/busybox", "cat"])).await.unwrap();
    // A byte sequence whose period differs from every block size of the connection.
    let sent: Vec<u8> = (0..8_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let all = sent.clone();
    let writer = tokio::spawn(async move {
        input.write_all(&all).await.unwrap();
        input.shutdown().await.unwrap();
    });
    let mut received = Vec::new();
    output.read_to_end(&mut received).await.unwrap();
    writer.await.unwrap();
    assert!(received == sent, "{} of {} bytes were returned, or the bytes differ", received.len(), sent.len());

    let hurt = run(&pod, &["/bin/busybox", "sh", "-c", "echo first; echo it hurts >&2; exit 3"]).await.unwrap_err();
    assert_eq!(hurt, "/bin/busybox in the pod echo has ended with exit code 3: it hurts");
    // A process whose output nobody reads ends when the streams are closed.
    drop(pod.exec(&words(&["/bin/busybox", "cat"])).await.unwrap());
    bench.leave().await;
}

#[tokio::test]
async fn pods_that_end_say_why() {
    let Some(bench) = bench("ends").await else { return };
    bench.busybox("hungry", &["/bin/busybox", "sh", "-c", "x=a; while true; do x=$x$x; done"]).await;
    bench.busybox("fails", &["/bin/busybox", "sh", "-c", "echo no more; exit 4"]).await;
    let mut texts = Vec::new();
    for name in ["hungry", "fails"] {
        let pod = begun(&bench, name).await;
        texts.push(loop {
            if let Some(why) = pod.ended().await.unwrap() {
                break why;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        });
    }
    insta::assert_snapshot!(texts.join("\n"));
    bench.leave().await;
}

/// Returns the error of `start`, after checking that no pod is left behind.
async fn not_started(bench: &crate::support::Bench, name: &str, change: impl FnOnce(&mut PodSpec)) -> String {
    let mut spec = bench.spec();
    change(&mut spec);
    let failed = bench.cluster().await.start(&spec, &request(name)).await.unwrap_err();
    while bench.pods().get_opt(name).await.unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bench.plain(&failed.to_string())
}

#[tokio::test]
async fn pods_that_cannot_run_say_why_and_are_removed() {
    let Some(bench) = bench("cannot").await else { return };
    let mut texts = vec![not_started(&bench, "image", |s| s.image = Some("localhost/absent:1".into())).await];
    texts.push(not_started(&bench, "large", |s| s.cpus = 500).await);
    texts.push(not_started(&bench, "account", |s| s.service_account = Some("nobody".into())).await);
    texts.push(not_started(&bench, "class", |s| s.runtime_class = Some("nothing".into())).await);
    texts.push(not_started(&bench, "label", |s| drop(s.labels.insert("a b".into(), "c".into()))).await);
    // The entry point of this image is another program, which ends immediately.
    texts.push(not_started(&bench, "entry", |s| s.image = Some(crate::support::BUSYBOX.into())).await);
    insta::assert_snapshot!(texts.join("\n\n"));
    bench.leave().await;
}

#[tokio::test]
async fn refusals_name_the_right_that_is_missing() {
    let Some(bench) = bench("rights").await else { return };
    let reach = |kubeconfig: std::path::PathBuf| {
        let kubeconfig = Some(kubeconfig.display().to_string());
        let spec = PodSpec { kubeconfig, ..bench.spec() };
        async move { Cluster::reach(&spec).await }
    };
    let mut texts = vec![reach(bench.account("none", &[]).await).await.unwrap_err().to_string()];
    let some: Vec<Right> =
        RIGHTS.iter().copied().filter(|r| r.resource == "pods" || r.resource == "pods/log").collect();
    let cluster = reach(bench.account("no-exec", &some).await).await.unwrap();
    let pod = cluster.start(&bench.spec(), &request("one")).await.unwrap();
    texts.push(pod.exec(&words(&["tailbound"])).await.map(drop).unwrap_err().to_string());
    texts.push(cluster.serve(&bench.spec(), &serves("server", "fastdds", &pod)).await.unwrap_err().to_string());
    let facts = pod.facts(&mut tailbound_pods::Asked::default()).await;
    let FactValue::Unknown(why) = &facts.iter().find(|f| f.key == "node.kernel").unwrap().value else { panic!() };
    texts.push(why.clone());

    let wrong = bench.kubeconfig("wrong", |config| {
        config.auth_infos[0].auth_info = Some(serde_json::from_value(json!({ "token": "wrong" })).unwrap());
    });
    texts.push(reach(wrong).await.unwrap_err().to_string());
    let stranger = bench.kubeconfig("stranger", |config| {
        // A certificate that the cluster's authority did not sign.
        let user = config.auth_infos[0].auth_info.as_ref().unwrap();
        let (certificate, cluster) = (user.client_certificate_data.clone(), &mut config.clusters[0].cluster);
        cluster.as_mut().unwrap().certificate_authority_data = certificate;
    });
    texts.push(reach(stranger).await.unwrap_err().to_string());
    let server = texts[0].split(' ').find(|w| w.starts_with("https://")).unwrap().to_owned();
    let folder = bench.folder.path().display().to_string();
    let text = bench.plain(&texts.join("\n\n")).replace(&server, "SERVER").replace(&folder, "FOLDER");
    insta::assert_snapshot!(text);
    bench.leave().await;
}

#[tokio::test]
async fn namespaces_that_are_not_there_or_go_away_are_named() {
    let Some(bench) = bench("going").await else { return };
    let nowhere = PodSpec { namespace: Some("nowhere-at-all".into()), ..bench.spec() };
    let refused = Cluster::reach(&nowhere).await.unwrap().start(&nowhere, &request("one")).await.unwrap_err();
    let mut texts = vec![refused.to_string()];
    // The finalizer of this pod keeps the namespace from being removed while the test runs.
    let kept = json!({ "metadata": { "name": "kept", "finalizers": ["tailbound.test/kept"] },
        "spec": { "containers": [{ "name": "it", "image": crate::support::BUSYBOX, "imagePullPolicy": "Never" }] } });
    let kept: PodObject = create(&bench.pods(), kept).await;
    let namespaces: Api<Namespace> = Api::all(bench.client.clone());
    let pod = bench.cluster().await.start(&bench.spec(), &request("here")).await.unwrap();
    namespaces.delete(&bench.namespace, &DeleteParams::default()).await.unwrap();
    texts.push(bench.cluster().await.start(&bench.spec(), &request("two")).await.unwrap_err().to_string());
    texts.push(loop {
        match pod.ended().await.unwrap() {
            Some(why) if why.contains("deleted") => break why,
            _ => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    });
    let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    bench.pods().patch(&kept.name_any(), &PatchParams::default(), &free).await.unwrap();
    insta::assert_snapshot!(bench.plain(&texts.join("\n\n")));
    bench.leave().await;
}
