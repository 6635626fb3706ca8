//! The pod that observes its node: it runs in the network and process namespaces of the node, without capabilities.

use k8s_openapi::api::core::v1::Pod as PodObject;
use serde_json::json;

/// Memory of the observer pod, enough for two observations in a trial.
const MEMORY: &str = "64Mi";

/// Changes a pod object into an observer pod: a pod that observes the cluster node on which it runs.
pub(crate) fn observer(object: &mut PodObject) {
    let Some(spec) = &mut object.spec else { return };
    (spec.host_network, spec.host_pid) = (Some(true), Some(true));
    // The observer requests no CPU, because the ends may have all CPUs of the node.
    let resources = json!({ "requests": { "cpu": "0", "memory": MEMORY }, "limits": { "memory": MEMORY } });
    for container in &mut spec.containers {
        container.resources = serde_json::from_value(resources.clone()).ok();
    }
}

#[cfg(test)]
mod tests {
    use crate::object::{PodRequest, pod};
    use tailbound_model::PodSpec;

    #[test]
    fn an_observer_has_the_namespaces_of_its_node_and_no_cpus() {
        let spec = PodSpec { name: "observer".into(), cpus: 1, memory_mib: 512, ..PodSpec::default() };
        let object = pod(&spec, &PodRequest { observer: true, ..PodRequest::default() }).spec.unwrap();
        assert_eq!((object.host_network, object.host_pid), (Some(true), Some(true)));
        let container = serde_json::to_value(&object.containers[0]).unwrap();
        assert_eq!(container["resources"]["limits"], serde_json::json!({ "memory": "64Mi" }));
        assert_eq!(container["securityContext"]["capabilities"], serde_json::json!({ "drop": ["ALL"], "add": [] }));
    }
}
