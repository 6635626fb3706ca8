//! Processes of pods on this node, found without the API of the cluster: by the control group in which the kubelet puts them, and by the
//! name of their host, which is the name of the pod.

use crate::namespace::{namespace_of, process_ids};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Where a pod finds the name of its Kubernetes namespace, if it has the token of a service account: `/var/run` is often a link to
/// `/run`, which would be followed from the root directory of this process.
const NAMESPACE: [&str; 2] =
    ["run/secrets/kubernetes.io/serviceaccount/namespace", "var/run/secrets/kubernetes.io/serviceaccount/namespace"];
/// Most bytes of a file of a pod that are read.
const MOST_BYTES: u64 = 4096;

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
    let of_node = namespace_of(Path::new("/proc/1"));
    // A pod has one network namespace and several processes.
    let mut found: BTreeMap<u64, PodProcess> = BTreeMap::new();
    for pid in process_ids() {
        let process = Path::new("/proc").join(pid.to_string());
        let is_of_pod = fs::read_to_string(process.join("cgroup")).is_ok_and(|text| text.contains("kubepods"));
        let text = |path: &str| small_file(&process.join("root").join(path));
        if !is_of_pod || text("etc/hostname").as_deref() != Some(name) {
            continue;
        }
        let Some(space) = namespace_of(&process) else { continue };
        if Some(space) == of_node {
            continue;
        }
        let pod = found.entry(space).or_insert(PodProcess { pid, namespace: None });
        pod.namespace = pod.namespace.take().or_else(|| NAMESPACE.into_iter().find_map(text));
    }
    found.into_values().collect()
}

/// The text of a small regular file. Other people write the files of a pod: a pipe is not waited for, and a link is not followed.
fn small_file(path: &Path) -> Option<String> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned())
}
