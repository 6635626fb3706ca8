//! A cluster that answers.

use crate::config::config;
use crate::error::PodError;
use crate::explain::{Asked, refused};
use k8s_openapi::api::core::v1::Pod as PodObject;
use kube::api::ListParams;
use kube::{Api, Client};
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
    /// Its version, as `v1.34.4`.
    pub version: String,
}

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
        config.connect_timeout = Some(ANSWER);
        let at = format!("{} ({from})", config.cluster_url.to_string().trim_end_matches('/'));
        let namespace = spec.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let asked = Asked { verb: "get", resource: "version", namespace: &namespace };
        let failed = format!("the cluster at {at} cannot be used");
        let client = Client::try_from(config).map_err(|e| refused(e, &asked, &failed))?;
        Ok(Cluster { client, namespace, at, version: String::new() })
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
