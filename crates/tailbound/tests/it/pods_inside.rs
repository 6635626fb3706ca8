//! Test of a run whose controller is in the same cluster as its ends; run by `dev/pods-test`.

use crate::support::cluster::Cluster;
use serde_json::Value;
use std::time::{Duration, Instant};

/// The namespace, account and roles that `tailbound k8s manifest` prints, without its example Job; the run has no other
/// rights.
fn rights(cluster: &Cluster) -> String {
    let output = cluster.tailbound().args(["k8s", "manifest", "--namespace", "inside"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let example = |object: &&str| ["kind: Job", "kind: ConfigMap"].iter().any(|kind| object.contains(kind));
    text.split("---\n").filter(|object| !example(object)).collect::<Vec<_>>().join("---\n")
}

const CONTROLLER: &str = r#"---
apiVersion: v1
kind: ConfigMap
metadata: { name: study, namespace: inside }
data:
  study.yaml: |
    study: inside
    question: q
    measure: { ping-pong: { duration: 60 s } }
    rate: 100 Hz
    driver: udp
    place: { pod: { node: other, pull: never, cpus: 0, memory: 96 MiB } }
---
apiVersion: v1
kind: Pod
metadata: { name: controller, namespace: inside }
spec:
  serviceAccountName: tailbound
  restartPolicy: Never
  containers:
    - name: tailbound
      image: IMAGE
      imagePullPolicy: Never
      args: [run, /study/study.yaml, --out, /tmp/record]
      env: [{ name: TAILBOUND_STATE_DIR, value: /tmp/state }]
      volumeMounts: [{ name: study, mountPath: /study }, { name: tmp, mountPath: /tmp }]
  volumes:
    - { name: study, configMap: { name: study } }
    - { name: tmp, emptyDir: {} }
"#;

/// Test: if the pod of the controller is deleted, the cluster deletes the pods that the controller made, without a
/// cleanup.
#[test]
fn pods_of_a_run_inside_the_cluster_go_with_its_own_pod() {
    let Some(cluster) = Cluster::new() else { return };
    let image = concat!("localhost/tailbound:", env!("CARGO_PKG_VERSION"));
    let file = cluster.bench.path("objects.yaml");
    std::fs::write(&file, rights(&cluster) + &CONTROLLER.replace("IMAGE", image)).unwrap();
    cluster.command(&["kubectl", "apply", "-f", file.to_str().unwrap()]);
    let ours = || {
        let text = cluster.command(&[
            "kubectl",
            "-n",
            "inside",
            "get",
            "pods",
            "-o",
            "json",
            "-l",
            "app.kubernetes.io/managed-by=tailbound",
        ]);
        serde_json::from_str::<Value>(&text).unwrap()["items"].as_array().unwrap().clone()
    };
    let log = || cluster.command(&["kubectl", "-n", "inside", "logs", "controller"]);
    let until = |limit: u64, what: &str, done: &dyn Fn() -> bool| {
        let deadline = Instant::now() + Duration::from_secs(limit);
        while !done() {
            assert!(Instant::now() < deadline, "{what}: {}", log());
            std::thread::sleep(Duration::from_millis(500));
        }
    };
    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    until(60, "two pods did not come to run", &|| ours().iter().filter(|p| running(p)).count() == 2);
    let uid =
        cluster.command(&["kubectl", "-n", "inside", "get", "pod", "controller", "-o", "jsonpath={.metadata.uid}"]);
    for pod in ours() {
        assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], uid.as_str(), "{pod}");
    }
    cluster.command(&["kubectl", "-n", "inside", "delete", "pod", "controller", "--force", "--grace-period=0"]);
    // The lease would end the agents after 30 s; the cluster deletes their pods earlier.
    until(20, "they are still there", &|| ours().is_empty());
    cluster.command(&["kubectl", "delete", "namespace", "inside", "--wait=false"]);
}
