//! Processes of pods on this node, found without the API of the cluster: by the control group in which the kubelet puts them, and by the
//! name of their host, which is the name of the pod.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Where a pod finds the name of its Kubernetes namespace, if it has the token of a service account.
const NAMESPACE: &str = "var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// A pod that runs on this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodProcess {
    /// Process id of one of its processes.
    pub pid: i32,
    /// Its Kubernetes namespace; `None` = its files do not say so.
    pub namespace: Option<String>,
}

/// The running pods of this name on this node: those with a network namespace of their own. Only root sees the files of others.
pub fn pods_named(name: &str) -> Vec<PodProcess> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // A pod has one network namespace and several processes.
    let mut found: BTreeMap<u64, PodProcess> = BTreeMap::new();
    for pid in pids {
        let process = Path::new("/proc").join(pid.to_string());
        let is_of_pod = fs::read_to_string(process.join("cgroup")).is_ok_and(|text| text.contains("kubepods"));
        let text =
            |path: &str| fs::read_to_string(process.join("root").join(path)).ok().map(|text| text.trim().to_owned());
        if !is_of_pod || text("etc/hostname").as_deref() != Some(name) {
            continue;
        }
        let Ok(space) = fs::metadata(process.join("ns/net")) else { continue };
        let pod = found.entry(space.ino()).or_insert(PodProcess { pid, namespace: None });
        pod.namespace = pod.namespace.take().or_else(|| text(NAMESPACE));
    }
    found.into_values().collect()
}
