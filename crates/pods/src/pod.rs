//! A running pod of a Kubernetes cluster.

use crate::cluster::Cluster;
use crate::explain::{self, absent};
use k8s_openapi::api::core::v1::{ContainerStatus, Event, Node, Pod as PodObject};
use kube::api::{DeleteParams, ListParams, LogParams, Preconditions};
use kube::{Api, ResourceExt};
use std::collections::BTreeMap;
use std::net::IpAddr;
use tailbound_model::Problem;

/// A running pod, with the properties that it had when it was started.
#[derive(Debug, Clone)]
pub struct Pod {
    pub(crate) cluster: Cluster,
    /// Name of the running pod.
    pub name: String,
    /// Identity (UID) of the running pod: another pod with the same name has another identity.
    pub uid: String,
    /// Name of the running pod's node.
    pub node: String,
    /// Addresses of the running pod; with the host network, these are the addresses of the node.
    pub addresses: Vec<IpAddr>,
    /// Image of the running pod, named by its digest if the container runtime reports the digest.
    pub image: String,
    /// All labels of the running pod.
    pub labels: BTreeMap<String, String>,
    /// QoS class of the running pod: `Guaranteed`, `Burstable` or `BestEffort`.
    pub qos: String,
}

impl Pod {
    pub(crate) fn of(cluster: &Cluster, object: &PodObject) -> Pod {
        let status = object.status.clone().unwrap_or_default();
        let container = status.container_statuses.iter().flatten().next();
        Pod {
            cluster: cluster.clone(),
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
            node: object.spec.as_ref().and_then(|s| s.node_name.clone()).unwrap_or_default(),
            addresses: status.pod_ips.iter().flatten().filter_map(|ip| ip.ip.parse().ok()).collect(),
            image: container.map(|c| c.image_id.clone()).unwrap_or_default(),
            labels: object.labels().clone(),
            qos: status.qos_class.unwrap_or_default(),
        }
    }

    /// Explains why the pod no longer runs: evicted, out of memory, deleted, past its deadline. `None` while the pod
    /// runs.
    ///
    /// # Errors
    /// The API server does not answer, or refuses.
    pub async fn ended(&self) -> Result<Option<String>, Problem> {
        let failed = format!("the state of the pod {} cannot be read", self.name);
        let asked = self.cluster.asked("get", "pods");
        let object = self.cluster.ask(asked, &failed, self.cluster.pods().get_opt(&self.name)).await?;
        let Some(object) = object.filter(|o| o.uid().as_ref() == Some(&self.uid)) else {
            return Ok(Some(explain::deleted(&self.name, &self.cluster.events(&self.uid).await)));
        };
        let Some(why) = explain::ended(&object) else { return Ok(None) };
        if let Some(why) = explain::evicted(&object, &self.cluster.events(&self.uid).await) {
            return Ok(Some(why));
        }
        Ok(Some(why + &self.cluster.last_words(&object).await))
    }

    /// Explains why the pod no longer runs, like [`Pod::ended`], or reports that its node no longer responds, in which
    /// case the pod may still run.
    ///
    /// # Errors
    /// The API server does not answer, or refuses.
    pub async fn gone(&self) -> Result<Option<String>, Problem> {
        if let Some(why) = self.ended().await? {
            return Ok(Some(why));
        }
        let nodes: Api<Node> = Api::all(self.cluster.client.clone());
        let failed = format!("the state of node {} cannot be read", self.node);
        let node = self.cluster.ask(self.cluster.asked("get", "nodes"), &failed, nodes.get_opt(&self.node)).await?;
        Ok(explain::node_lost(&self.name, &self.node, node.as_ref()))
    }

    /// Deletes the pod: the cluster ends the pod within seconds.
    ///
    /// # Errors
    /// The API server does not answer, or refuses. It is not an error if the pod no longer exists.
    pub async fn delete(&self) -> Result<(), Problem> {
        self.cluster.delete(&self.name, &self.uid).await
    }
}

impl Cluster {
    /// Finds the pod with this name.
    ///
    /// # Errors
    /// The API server does not answer, or refuses; there is no such pod.
    pub async fn pod(&self, name: &str) -> Result<Pod, Problem> {
        let failed = format!("the pod {name} cannot be reached");
        match self.ask(self.asked("get", "pods"), &failed, self.pods().get_opt(name)).await? {
            Some(object) => Ok(Pod::of(self, &object)),
            None => Err(Problem::new(
                "pod_missing",
                format!("there is no pod {name} in namespace {}", self.namespace),
                "the pod was removed, or is in another namespace",
            )),
        }
    }

    pub(crate) async fn delete(&self, name: &str, uid: &str) -> Result<(), Problem> {
        let only = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
        let params = DeleteParams { preconditions: Some(only), ..DeleteParams::default() };
        let failed = format!("the pod {name} cannot be removed");
        let pods = self.pods();
        let removed = async {
            match pods.delete(name, &params).await {
                // Another program has removed the pod, or another pod has the name now.
                Err(e) if absent(&e) => Ok(()),
                other => other.map(drop),
            }
        };
        self.ask(self.asked("delete", "pods"), &failed, removed).await
    }

    /// Reads the events that the cluster reports about an object. Events are only used in messages: the list is empty
    /// if the events cannot be read.
    pub(crate) async fn events(&self, uid: &str) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let of_it = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
        let mut found =
            self.ask(self.asked("list", "events"), "", events.list(&of_it)).await.map(|l| l.items).unwrap_or_default();
        found.sort_by_key(explain::when);
        found
    }

    /// Reads the events of all pods of the namespace, in one request.
    pub(crate) async fn events_of_pods(&self) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let of_pods = ListParams::default().fields("involvedObject.kind=Pod");
        let found = self.ask(self.asked("list", "events"), "", events.list(&of_pods)).await;
        let mut found = found.map(|l| l.items).unwrap_or_default();
        found.sort_by_key(explain::when);
        found
    }

    /// Returns the last line that the process of a pod wrote, in brackets; empty if the line cannot be read.
    pub(crate) async fn last_words(&self, pod: &PodObject) -> String {
        let statuses = pod.status.as_ref().and_then(|s| s.container_statuses.as_ref());
        let ended = |s: &ContainerStatus| s.state.as_ref().is_some_and(|s| s.terminated.is_some());
        if !statuses.into_iter().flatten().any(ended) {
            return String::new();
        }
        let (pods, last) = (self.pods(), LogParams { tail_lines: Some(1), ..LogParams::default() });
        let logs = self.ask(self.asked("get", "pods/log"), "", pods.logs(&pod.name_any(), &last)).await;
        match logs.unwrap_or_default().trim() {
            "" => String::new(),
            words => format!(" (its last output: {words})"),
        }
    }
}
