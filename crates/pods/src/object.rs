//! The pod object that is requested from the cluster: made of the study's description and the needs of every end.

use crate::observer::observer;
use k8s_openapi::api::core::v1::Pod as PodObject;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tailbound_model::{NodeChoice, PodSpec, Pull};

/// Label of every object that Tailbound creates in a cluster, with the value `tailbound`.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Name of the pod label with the token by which a run finds its pod.
pub const TOKEN_LABEL: &str = "tailbound/token";
/// Name of the pod label with the run id, which all pods of a run have.
pub const RUN_LABEL: &str = "tailbound/run";
/// Name of the field with the node's name. The label with the node's name may differ from this field, and does not
/// exist on every node.
const NODE_NAME: &str = "metadata.name";

/// Properties of a pod that a run requests in addition to the study's description of the pod.
#[derive(Debug, Clone, Default)]
pub struct PodRequest {
    /// Name of the requested pod.
    pub name: String,
    /// Token in a label of the requested pod, by which the pod can be found.
    pub token: String,
    /// Further labels of the requested pod, for example the run id ([`RUN_LABEL`]).
    pub labels: BTreeMap<String, String>,
    /// Node of the other end's pod, which [`NodeChoice::Other`] avoids.
    pub avoid: Option<String>,
    /// Whether the requested pod observes its node: the pod then uses the network and process namespaces of the node.
    pub observer: bool,
    /// Name and identity of the pod that owns the requested pod: if the owner is removed, the cluster removes the
    /// requested pod.
    pub owner: Option<(String, String)>,
    /// Time in s after which the cluster ends the requested pod in any case.
    pub deadline_s: u32,
}

/// Name of the image of this release, as `tailbound image` names it.
fn own_image() -> String {
    concat!("localhost/tailbound:", env!("CARGO_PKG_VERSION")).to_owned()
}

pub(crate) fn image(spec: &PodSpec) -> String {
    spec.image.clone().unwrap_or_else(own_image)
}

/// Makes the pod object that is sent to the API server.
pub(crate) fn pod(spec: &PodSpec, request: &PodRequest) -> PodObject {
    let mut labels = spec.labels.clone();
    labels.extend(request.labels.clone());
    labels.extend([(MANAGED_BY.to_owned(), "tailbound".to_owned()), (TOKEN_LABEL.to_owned(), request.token.clone())]);
    let memory = format!("{}Mi", spec.memory_mib);
    let amount = match spec.cpus {
        0 => json!({ "memory": memory }),
        cpus => json!({ "cpu": cpus.to_string(), "memory": memory }),
    };
    let mut security = json!({
        "allowPrivilegeEscalation": spec.capabilities.iter().any(|c| c == "SYS_ADMIN"),
        "capabilities": { "drop": ["ALL"], "add": spec.capabilities },
        "readOnlyRootFilesystem": true,
        "seccompProfile": { "type": "RuntimeDefault" },
    });
    if !spec.capabilities.is_empty() {
        // Capabilities take effect for root only.
        security["runAsUser"] = json!(0);
    }
    let mut body = json!({
        "restartPolicy": "Never",
        "activeDeadlineSeconds": request.deadline_s,
        "terminationGracePeriodSeconds": 2,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "containers": [{
            "name": "tailbound",
            "image": image(spec),
            "imagePullPolicy": match spec.pull {
                Pull::IfNotPresent => "IfNotPresent",
                Pull::Always => "Always",
                Pull::Never => "Never",
            },
            // The entry point of the image is the program.
            "args": ["agent", "hold"],
            "env": [{ "name": "TAILBOUND_STATE_DIR", "value": "/tmp/state" }],
            "resources": { "requests": amount, "limits": amount },
            "securityContext": security,
            "volumeMounts": [{ "name": "tmp", "mountPath": "/tmp" }],
        }],
        "volumes": [{ "name": "tmp", "emptyDir": { "medium": "Memory" } }],
    });
    if spec.host_network {
        body["hostNetwork"] = json!(true);
        body["dnsPolicy"] = json!("ClusterFirstWithHostNet");
    }
    if let Some(class) = &spec.runtime_class {
        body["runtimeClassName"] = json!(class);
    }
    if let Some(account) = &spec.service_account {
        body["serviceAccountName"] = json!(account);
    }
    match &spec.node {
        None => {}
        Some(NodeChoice::Name(name)) => body["affinity"] = named("In", name),
        Some(NodeChoice::Labels(labels)) => body["nodeSelector"] = json!(labels),
        Some(NodeChoice::Spread) => {
            body["topologySpreadConstraints"] = json!([{
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                // Nodes that do not accept the pods are not counted as nodes without pods.
                "nodeTaintsPolicy": "Honor",
                "labelSelector": { "matchLabels": { TOKEN_LABEL: request.token } },
            }]);
        }
        Some(NodeChoice::Other) => {
            if let Some(node) = &request.avoid {
                body["affinity"] = named("NotIn", node);
            }
        }
    }
    let mut metadata = Map::from_iter([("name".to_owned(), json!(request.name)), ("labels".to_owned(), json!(labels))]);
    if let Some((name, uid)) = &request.owner {
        let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid });
        metadata.insert("ownerReferences".to_owned(), json!([owner]));
    }
    if !spec.annotations.is_empty() {
        metadata.insert("annotations".to_owned(), json!(spec.annotations));
    }
    let mut object =
        serde_json::from_value(json!({ "metadata": metadata, "spec": body })).expect("the fields of a pod");
    if request.observer {
        observer(&mut object);
    }
    object
}

/// Chooses the node through the scheduler, so that the requests of the pod are checked too.
fn named(operator: &str, node: &str) -> Value {
    let field = json!({ "key": NODE_NAME, "operator": operator, "values": [node] });
    let terms = json!({ "nodeSelectorTerms": [{ "matchFields": [field] }] });
    json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(key: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(key.to_owned(), value.to_owned())])
    }

    fn request() -> PodRequest {
        PodRequest {
            name: "tailbound-1a2b3c4d-0".into(),
            token: "1a2b3c4d-0".into(),
            deadline_s: 86_400,
            ..Default::default()
        }
    }

    fn yaml(spec: &PodSpec, request: &PodRequest) -> String {
        serde_saphyr::to_string(&pod(spec, request)).unwrap().replace(env!("CARGO_PKG_VERSION"), "RELEASE")
    }

    #[test]
    fn a_pod_by_defaults() {
        let spec = PodSpec { name: "ping".into(), cpus: 2, memory_mib: 1024, ..PodSpec::default() };
        insta::assert_snapshot!(yaml(&spec, &request()));
    }

    #[test]
    fn a_pod_with_everything() {
        let spec = PodSpec {
            name: "ping".into(),
            node: Some(NodeChoice::Name("node1".into())),
            host_network: true,
            image: Some("registry.example/tailbound:1".into()),
            pull: Pull::Always,
            cpus: 1,
            memory_mib: 256,
            capabilities: vec!["SYS_NICE".into(), "IPC_LOCK".into()],
            runtime_class: Some("kata".into()),
            service_account: Some("measuring".into()),
            labels: labels("team", "motion"),
            annotations: labels("k8s.v1.cni.cncf.io/networks", "macvlan-1"),
            ..PodSpec::default()
        };
        let owner = Some(("tailbound-job".to_owned(), "0a1b".to_owned()));
        let request = PodRequest { labels: labels("tailbound/end", "ping"), owner, ..request() };
        insta::assert_snapshot!(yaml(&spec, &request));
    }

    #[test]
    fn a_pod_is_kept_away_from_a_node_and_led_to_others() {
        let mut spec = PodSpec { cpus: 1, memory_mib: 64, node: Some(NodeChoice::Other), ..PodSpec::default() };
        let away = pod(&spec, &PodRequest { avoid: Some("node1".into()), ..request() });
        insta::assert_snapshot!(serde_saphyr::to_string(&away.spec.unwrap().affinity).unwrap());
        spec.node = Some(NodeChoice::Labels(labels("line", "3")));
        let led = pod(&spec, &request()).spec.unwrap();
        assert_eq!((led.node_selector, led.affinity), (Some(labels("line", "3")), None));
    }

    #[test]
    fn many_pods_are_spread_and_need_no_cpu_each() {
        let spec = PodSpec { memory_mib: 64, node: Some(NodeChoice::Spread), ..PodSpec::default() };
        let body = pod(&spec, &request()).spec.unwrap();
        insta::assert_snapshot!(serde_saphyr::to_string(&body.topology_spread_constraints).unwrap());
        let resources = body.containers[0].resources.clone().unwrap();
        assert_eq!(serde_json::to_string(&resources.requests).unwrap(), r#"{"memory":"64Mi"}"#);
    }

    /// Tests that a label of the study does not replace a label by which the pod is found.
    #[test]
    fn labels_of_a_study_are_not_in_the_place_of_ours() {
        let spec = PodSpec { cpus: 1, memory_mib: 64, labels: labels(TOKEN_LABEL, "mine"), ..PodSpec::default() };
        assert_eq!(pod(&spec, &request()).metadata.labels.unwrap()[TOKEN_LABEL], "1a2b3c4d-0");
    }
}
