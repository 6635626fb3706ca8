//! Facts that a cluster reports about a pod, its node and its network. If this user may not read a fact, the fact
//! contains the reason instead of a value.

use crate::cluster::Cluster;
use crate::pod::Pod;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, NodeSystemInfo};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::ListParams;
use kube::core::{Selector, SelectorExt};
use kube::{Api, ResourceExt};
use std::collections::BTreeMap;
use tailbound_model::{Fact, FactValue, Problem};

/// Annotations of nodes that identify pod networks: the prefix of the annotation's key, the name of the pod network,
/// and whether the annotation's value says how packets are carried.
const NETWORKS: &[(&str, &str, bool)] = &[
    ("flannel.alpha.coreos.com/backend-type", "Flannel", true),
    ("projectcalico.org/IPv4VXLANTunnelAddr", "Calico with VXLAN", false),
    ("projectcalico.org/IPv4IPIPTunnelAddr", "Calico with IPIP", false),
    ("projectcalico.org/", "Calico", false),
    ("io.cilium.", "Cilium", false),
    ("network.cilium.io/", "Cilium", false),
    ("k8s.ovn.org/", "OVN-Kubernetes", false),
    ("node.antrea.io/", "Antrea", false),
    ("kube-router.io/", "kube-router", false),
];
/// Parts of the names of programs that create pod networks; such a program runs on every node.
const PROGRAMS: &[&str] = &[
    "flannel",
    "calico-node",
    "canal",
    "cilium",
    "weave",
    "antrea",
    "kube-router",
    "ovnkube",
    "kube-ovn",
    "aws-node",
    "azure-cni",
    "kindnet",
    "multus",
    "netd",
    "macvlan",
    "ptp",
];

/// Answers of the cluster about facts that several pods share, so that each such fact is requested only once.
#[derive(Default)]
pub struct Asked {
    nodes: BTreeMap<String, Result<Node, Problem>>,
    networks: Option<Networks>,
}

/// Images of the programs that create pod networks, and the network policies of the namespace.
type Networks = (Result<String, Problem>, Result<Vec<NetworkPolicy>, Problem>);

impl Asked {
    async fn node(&mut self, cluster: &Cluster, name: &str) -> &Result<Node, Problem> {
        if !self.nodes.contains_key(name) {
            let nodes: Api<Node> = Api::all(cluster.client.clone());
            let node = cluster.ask(cluster.asked("get", "nodes"), "not known", nodes.get(name)).await;
            self.nodes.insert(name.to_owned(), node);
        }
        &self.nodes[name]
    }

    async fn of_networks(&mut self, cluster: &Cluster) -> &Networks {
        if self.networks.is_none() {
            let all = ListParams::default();
            let daemons: Api<DaemonSet> = Api::all(cluster.client.clone());
            let found = cluster.ask(cluster.asked("list", "daemonsets"), "not known", daemons.list(&all)).await;
            let programs = found.map(|list| programs(&list.items));
            let policies: Api<NetworkPolicy> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
            let found = cluster.ask(cluster.asked("list", "networkpolicies"), "not known", policies.list(&all)).await;
            self.networks = Some((programs, found.map(|list| list.items)));
        }
        self.networks.as_ref().expect("the facts about the pod networks were not requested")
    }
}

impl Pod {
    /// Reads facts about the pod from the cluster, with keys that begin with `cluster.`, `node.` and `pod.`. For all
    /// pods together, this takes two requests, and one more request for each node.
    pub async fn facts(&self, asked: &mut Asked) -> Vec<Fact> {
        let cluster = &self.cluster;
        let mut facts = Facts(Vec::new());
        facts.text("cluster.version", &cluster.version, "GET /version");
        let at = format!("GET /api/v1/namespaces/{}/pods/{}", cluster.namespace, self.name);
        facts.text("pod.name", &self.name, &at);
        facts.text("pod.node", &self.node, &at);
        facts.text("pod.qos", &self.qos, &at);
        facts.text("pod.image", &self.image, &at);
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        facts.text("pod.addresses", &addresses.join(" "), &at);

        facts.of_node(asked.node(cluster, &self.node).await, &format!("GET /api/v1/nodes/{}", self.node));
        let (programs, policies) = asked.of_networks(cluster).await;
        facts.add("cluster.network_programs", programs.clone(), "GET /apis/apps/v1/daemonsets");
        let selecting = policies.as_ref().map(|all| selecting(all, &self.labels)).map_err(Clone::clone);
        let at = format!("GET /apis/networking.k8s.io/v1/namespaces/{}/networkpolicies", cluster.namespace);
        facts.add("pod.network_policies", selecting, &at);
        facts.0.sort_by(|a, b| a.key.cmp(&b.key));
        facts.0
    }
}

/// Returns a sentence for the user if a network policy selects the pod but is not enforced. Flannel enforces no network
/// policies; the result is `None` for other pod networks, and if another program of the cluster enforces the policies.
pub fn unenforced(facts: &[Fact], host_network: bool) -> Option<String> {
    let text = |key: &str| match &facts.iter().find(|f| f.key == key)?.value {
        FactValue::Text(text) => Some(text.as_str()),
        _ => None,
    };
    let (policies, network) = (text("pod.network_policies")?, text("cluster.network")?);
    let enforcing = ["calico", "canal", "cilium", "kube-router", "antrea", "weave", "policy"];
    let another = text("cluster.network_programs")?;
    if policies == "none" || !network.starts_with("Flannel") || enforcing.iter().any(|p| another.contains(p)) {
        return None;
    }
    let pod = text("pod.name").unwrap_or_default();
    Some(match host_network {
        true => format!(
            "the network policy {policies} selects the pod {pod}, but does not apply to pods in the network of their node"
        ),
        false => format!(
            "the network policy {policies} selects the pod {pod}, but {network} enforces no policies: forbidden packets pass"
        ),
    })
}

struct Facts(Vec<Fact>);

impl Facts {
    fn text(&mut self, key: &str, value: &str, source: &str) {
        let value = match value {
            "" => FactValue::Unknown("the cluster does not report this fact".to_owned()),
            text => FactValue::Text(text.to_owned()),
        };
        self.0.push(Fact { key: key.to_owned(), value, source: source.to_owned() });
    }

    fn add(&mut self, key: &str, value: Result<String, Problem>, source: &str) {
        let value = value.map_or_else(|e| FactValue::Unknown(e.to_string()), FactValue::Text);
        self.0.push(Fact { key: key.to_owned(), value, source: source.to_owned() });
    }

    fn of_node(&mut self, node: &Result<Node, Problem>, source: &str) {
        let info = node.as_ref().map(|n| n.status.as_ref().and_then(|s| s.node_info.clone()).unwrap_or_default());
        type Field = fn(&NodeSystemInfo) -> &String;
        let fields: [(&str, Field); 4] = [
            ("node.kernel", |i| &i.kernel_version),
            ("node.os_image", |i| &i.os_image),
            ("node.container_runtime", |i| &i.container_runtime_version),
            ("node.kubelet", |i| &i.kubelet_version),
        ];
        for (key, of) in fields {
            self.add(key, info.clone().map(|info| of(&info).clone()).map_err(Clone::clone), source);
        }
        let spec = |n: &Node| n.spec.as_ref().and_then(|s| s.pod_cidr.clone()).unwrap_or_else(|| "none".to_owned());
        self.add("node.pod_cidr", node.as_ref().map(spec).map_err(Clone::clone), source);
        match node.as_ref().map(|n| network(n.annotations())) {
            Ok(None) => {
                let why = FactValue::Unknown("no annotation of the node names the pod network".to_owned());
                self.0.push(Fact { key: "cluster.network".into(), value: why, source: source.to_owned() });
            }
            Ok(Some(name)) => self.text("cluster.network", &name, source),
            Err(e) => self.add("cluster.network", Err(e.clone()), source),
        }
    }
}

/// Identifies the pod network by the annotations that its programs write to their nodes.
fn network(annotations: &BTreeMap<String, String>) -> Option<String> {
    NETWORKS.iter().find_map(|(front, name, how)| {
        let (_, value) = annotations.iter().find(|(key, _)| key.starts_with(front))?;
        Some(if *how { format!("{name} with {}", value.to_uppercase()) } else { (*name).to_owned() })
    })
}

/// Images of the programs that create pod networks; the tags of the images are the releases of the programs.
fn programs(daemons: &[DaemonSet]) -> String {
    let of_networks = daemons.iter().filter(|d| PROGRAMS.iter().any(|p| d.name_any().contains(p)));
    let mut images: Vec<String> = of_networks
        .filter_map(|d| d.spec.as_ref()?.template.spec.as_ref()?.containers.first()?.image.clone())
        .collect();
    images.sort();
    if images.is_empty() { "none as a DaemonSet".to_owned() } else { images.join(" ") }
}

/// Names of the network policies that select a pod with these labels.
fn selecting(policies: &[NetworkPolicy], labels: &BTreeMap<String, String>) -> String {
    let selects = |policy: &&NetworkPolicy| {
        let selector = policy.spec.as_ref().and_then(|s| s.pod_selector.clone()).unwrap_or_default();
        // A policy whose selector cannot be read is listed too.
        Selector::try_from(selector).map_or(true, |selector| selector.matches(labels))
    };
    let names: Vec<String> = policies.iter().filter(selects).map(|p| p.name_any()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn networks_are_known_by_annotations() {
        let named = |key: &str, value: &str| network(&labels(&[("kubernetes.io/arch", "amd64"), (key, value)]));
        assert_eq!(named("flannel.alpha.coreos.com/backend-type", "vxlan").as_deref(), Some("Flannel with VXLAN"));
        assert_eq!(named("projectcalico.org/IPv4VXLANTunnelAddr", "10.1.1.1").as_deref(), Some("Calico with VXLAN"));
        assert_eq!(named("projectcalico.org/IPv4Address", "10.1.1.1/24").as_deref(), Some("Calico"));
        assert_eq!(named("a", "flannel"), None);
    }

    #[test]
    fn policies_that_nobody_enforces_are_told() {
        let remark = |network: &str, programs: &str, policies: &str| {
            let mut facts = Facts(Vec::new());
            for (key, value) in [
                ("pod.name", "p"),
                ("cluster.network", network),
                ("cluster.network_programs", programs),
                ("pod.network_policies", policies),
            ] {
                facts.text(key, value, "here");
            }
            unenforced(&facts.0, false)
        };
        assert_eq!(
            remark("Flannel with VXLAN", "none as a DaemonSet", "nobody").as_deref(),
            Some(
                "the network policy nobody selects the pod p, but Flannel with VXLAN enforces no policies: forbidden \
                 packets pass"
            )
        );
        assert_eq!(remark("Flannel with VXLAN", "none as a DaemonSet", "none"), None);
        assert_eq!(remark("Flannel with VXLAN", "quay.io/calico/node:v3.28.0", "nobody"), None);
        assert_eq!(remark("Calico", "none as a DaemonSet", "nobody"), None);
    }

    #[test]
    fn policies_select_by_labels() {
        let policy = |name: &str, selector: serde_json::Value| -> NetworkPolicy {
            serde_json::from_value(json!({ "metadata": { "name": name }, "spec": { "podSelector": selector } }))
                .unwrap()
        };
        let policies = [
            policy("all", json!({})),
            policy("ping", json!({ "matchLabels": { "end": "ping" } })),
            policy(
                "not-ping",
                json!({ "matchExpressions": [{ "key": "end", "operator": "NotIn", "values": ["ping"] }] }),
            ),
        ];
        assert_eq!(selecting(&policies, &labels(&[("end", "ping")])), "all ping");
        assert_eq!(selecting(&policies, &labels(&[("end", "pong")])), "all not-ping");
        assert_eq!(selecting(&policies[1..2], &labels(&[])), "none");
    }
}
