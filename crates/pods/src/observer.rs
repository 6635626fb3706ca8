//! The pod that looks at its node: in the network and process namespaces of the node, without a capability.

use k8s_openapi::api::core::v1::Pod as PodObject;
use serde_json::json;

/// Enough to look twice in a trial.
const MEMORY: &str = "64Mi";

/// Makes an observer of a pod.
pub(crate) fn observer(object: &mut PodObject) {
    let Some(spec) = &mut object.spec else { return };
    (spec.host_network, spec.host_pid) = (Some(true), Some(true));
    // No CPU is asked for: those that measure may have taken all that the node gives away.
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
