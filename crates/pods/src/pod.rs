//! A pod that was started.

use crate::cluster::Cluster;
use crate::error::PodError;
use crate::explain::{self, absent};
use k8s_openapi::api::core::v1::{ContainerStatus, Event, Node, Pod as PodObject};
use kube::api::{DeleteParams, ListParams, LogParams, Preconditions};
use kube::{Api, ResourceExt};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A pod, as it was when it ran.
#[derive(Debug, Clone)]
pub struct Pod {
    pub(crate) cluster: Cluster,
    /// Its name.
    pub name: String,
    /// Its identity: another pod of the same name has another.
    pub uid: String,
    /// Where it was put.
    pub node: String,
    /// Its addresses; those of the node with the host network.
    pub addresses: Vec<IpAddr>,
    /// The image, by its digest where the runtime tells it.
    pub image: String,
    /// All its labels.
    pub labels: BTreeMap<String, String>,
    /// Class of service: `Guaranteed`, `Burstable`, `BestEffort`.
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

    /// Why it runs no more: evicted, out of memory, deleted, its time over. Nothing as long as it runs.
    ///
    /// # Errors
    /// The API server does not answer, or refuses.
    pub async fn ended(&self) -> Result<Option<String>, PodError> {
        let failed = format!("what has become of the pod {} cannot be told", self.name);
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

    /// As [`Pod::ended`], and that nothing is heard of its node, where it may run on.
    ///
    /// # Errors
    /// The API server does not answer, or refuses.
    pub async fn gone(&self) -> Result<Option<String>, PodError> {
        if let Some(why) = self.ended().await? {
            return Ok(Some(why));
        }
        let nodes: Api<Node> = Api::all(self.cluster.client.clone());
        let failed = format!("what has become of node {} cannot be told", self.node);
        let node = self.cluster.ask(self.cluster.asked("get", "nodes"), &failed, nodes.get_opt(&self.node)).await?;
        Ok(explain::node_lost(&self.name, &self.node, node.as_ref()))
    }

    /// Has it removed: the cluster ends it within seconds.
    ///
    /// # Errors
    /// The API server does not answer, or refuses. That it is gone already is none.
    pub async fn delete(&self) -> Result<(), PodError> {
        self.cluster.delete(&self.name, &self.uid).await
    }
}

impl Cluster {
    /// The pod of this name, if it is there.
    ///
    /// # Errors
    /// The API server does not answer, or refuses; there is no such pod.
    pub async fn pod(&self, name: &str) -> Result<Pod, PodError> {
        let failed = format!("the pod {name} cannot be reached");
        match self.ask(self.asked("get", "pods"), &failed, self.pods().get_opt(name)).await? {
            Some(object) => Ok(Pod::of(self, &object)),
            None => Err(PodError::new(
                format!("there is no pod {name} in namespace {}", self.namespace),
                "it was removed, or is in another namespace",
            )),
        }
    }

    pub(crate) async fn delete(&self, name: &str, uid: &str) -> Result<(), PodError> {
        let only = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
        let params = DeleteParams { preconditions: Some(only), ..DeleteParams::default() };
        let failed = format!("the pod {name} cannot be removed");
        let pods = self.pods();
        let removed = async {
            match pods.delete(name, &params).await {
                // Somebody was faster; or what has the name now is not ours.
                Err(e) if absent(&e) => Ok(()),
                other => other.map(drop),
            }
        };
        self.ask(self.asked("delete", "pods"), &failed, removed).await
    }

    /// What the cluster has told of an object. They are a help in messages only: none where they may not be seen.
    pub(crate) async fn events(&self, uid: &str) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let of_it = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
        let mut found =
            self.ask(self.asked("list", "events"), "", events.list(&of_it)).await.map(|l| l.items).unwrap_or_default();
        found.sort_by_key(explain::when);
        found
    }

    /// The same of all pods of the namespace, in one request.
    pub(crate) async fn events_of_pods(&self) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let of_pods = ListParams::default().fields("involvedObject.kind=Pod");
        let found = self.ask(self.asked("list", "events"), "", events.list(&of_pods)).await;
        let mut found = found.map(|l| l.items).unwrap_or_default();
        found.sort_by_key(explain::when);
        found
    }

    /// The last line that the process wrote, in brackets. As with events: nothing where it may not be seen.
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
            words => format!(" (its last words: {words})"),
        }
    }
}
