//! A cluster that answers.

use crate::config::{OWN_ACCOUNT, config};
use crate::error::PodError;
use crate::explain::{Asked, refused};
use k8s_openapi::api::core::v1::Pod as PodObject;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use std::time::Duration;
use tailbound_model::PodSpec;

/// An API server answers within milliseconds.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);

/// A cluster, a namespace in it, and the rights of a user.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// Address of its API server, and by what it was found; for messages.
    pub(crate) at: String,
    /// It was found by the account of the pod that this process runs in.
    inside: bool,
    /// Its version, as `v1.34.4`.
    pub version: String,
}

/// What the cluster mounts into a pod beside its account.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

impl Cluster {
    /// Finds the cluster, and asks it whether pods may be seen there. Takes 10 s at most.
    ///
    /// # Errors
    /// No kubeconfig, or one that cannot be used; no such context; an API server that does not answer, has another
    /// certificate, or does not let this user in.
    pub async fn reach(spec: &PodSpec) -> Result<Cluster, PodError> {
        let mut cluster = Cluster::find(spec).await?;
        let failed = format!("the cluster at {} cannot be used", cluster.at);
        let version = cluster.ask(cluster.asked("get", "version"), &failed, cluster.client.apiserver_version());
        cluster.version = version.await?.git_version;
        let one = ListParams::default().limit(1);
        cluster.ask(cluster.asked("list", "pods"), &failed, cluster.pods().list(&one)).await?;
        Ok(cluster)
    }

    /// As [`Cluster::reach`], without asking anything: for what asks at once. It has no version.
    ///
    /// # Errors
    /// No kubeconfig, or one that cannot be used; no such context.
    pub async fn find(spec: &PodSpec) -> Result<Cluster, PodError> {
        let (mut config, from) = config(spec).await?;
        let inside = from == OWN_ACCOUNT;
        config.connect_timeout = Some(ANSWER);
        let at = format!("{} ({from})", config.cluster_url.to_string().trim_end_matches('/'));
        let namespace = spec.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let asked = Asked { verb: "get", resource: "version", namespace: &namespace };
        let failed = format!("the cluster at {at} cannot be used");
        let client = Client::try_from(config).map_err(|e| refused(e, &asked, &failed))?;
        Ok(Cluster { client, namespace, at, inside, version: String::new() })
    }

    /// The pod that this process runs in, by name and identity: what it makes goes with it. `None` = it runs elsewhere, or
    /// in another namespace, where it can own nothing.
    pub async fn own_pod(&self) -> Option<(String, String)> {
        let read = |file: &str| std::fs::read_to_string(file).map(|text| text.trim().to_owned()).ok();
        let here = self.inside && read(OWN_NAMESPACE)? == self.namespace;
        // In the network of its node a pod has the node's name.
        let name = read("/proc/sys/kernel/hostname").filter(|_| here)?;
        let found = self.ask(self.asked("get", "pods"), "", self.pods().get_opt(&name)).await.ok()??;
        Some((name, found.uid()?))
    }

    /// The namespace in which pods are made.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(crate) fn pods(&self) -> Api<PodObject> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn asked<'a>(&'a self, verb: &'a str, resource: &'a str) -> Asked<'a> {
        Asked { verb, resource, namespace: &self.namespace }
    }

    /// One request, with an end to waiting. `failed` is what could not be done.
    pub(crate) async fn ask<T>(
        &self,
        asked: Asked<'_>,
        failed: &str,
        answer: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, PodError> {
        match tokio::time::timeout(ANSWER, answer).await {
            Ok(answered) => answered.map_err(|e| refused(e, &asked, failed)),
            Err(_) => Err(PodError::new(
                format!("{failed}: its API server has not answered within {} s", ANSWER.as_secs()),
                "look whether it is up, and at routes and firewalls",
            )),
        }
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cluster at {}, namespace {}", self.at, self.namespace)
    }
}
