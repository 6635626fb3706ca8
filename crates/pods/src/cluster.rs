//! Connection to a Kubernetes cluster.

use crate::config::{OWN_ACCOUNT, config};
use crate::explain::{Asked, refused};
use k8s_openapi::api::core::v1::Pod as PodObject;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use std::time::Duration;
use tailbound_model::{PodSpec, Problem};

/// Time limit for an answer of the cluster; an API server normally answers within milliseconds.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);

/// Connection to a Kubernetes cluster, with a namespace in the cluster and the rights of a user.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// Address of the API server and the source of this address, for messages.
    pub(crate) at: String,
    /// Whether the cluster was found through the account of the pod in which this process runs.
    inside: bool,
    /// Version of the cluster's Kubernetes, such as `v1.34.4`.
    pub version: String,
}

/// Path of the file with the namespace, which the cluster mounts into a pod together with the pod's account.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

impl Cluster {
    /// Finds the cluster of a study and checks that this user may list the pods of the namespace. Each of the two
    /// requests to the API server takes at most 10 s.
    ///
    /// # Errors
    /// There is no kubeconfig, or it cannot be used; the context does not exist; the API server does not answer, has
    /// another certificate, or rejects this user.
    pub async fn reach(spec: &PodSpec) -> Result<Cluster, Problem> {
        let mut cluster = Cluster::find(spec).await?;
        let failed = format!("the cluster at {} cannot be used", cluster.at);
        let version = cluster.ask(cluster.asked("get", "version"), &failed, cluster.client.apiserver_version());
        cluster.version = version.await?.git_version;
        let one = ListParams::default().limit(1);
        cluster.ask(cluster.asked("list", "pods"), &failed, cluster.pods().list(&one)).await?;
        Ok(cluster)
    }

    /// Finds the cluster of a study without sending a request, for callers that send a request immediately. The version
    /// of Kubernetes is not known then: its text is empty.
    ///
    /// # Errors
    /// There is no kubeconfig, or it cannot be used; the context does not exist.
    pub async fn find(spec: &PodSpec) -> Result<Cluster, Problem> {
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

    /// Name and identity of the pod in which this process runs, so that this pod can own the objects that the process
    /// creates. `None` if the process does not run in a pod, or if the pod is in another namespace, where it cannot own
    /// the objects.
    pub async fn own_pod(&self) -> Option<(String, String)> {
        let read = |file: &str| std::fs::read_to_string(file).map(|text| text.trim().to_owned()).ok();
        let here = self.inside && read(OWN_NAMESPACE)? == self.namespace;
        // A pod in the network of its node has the node's host name.
        let name = read("/proc/sys/kernel/hostname").filter(|_| here)?;
        let found = self.ask(self.asked("get", "pods"), "", self.pods().get_opt(&name)).await.ok()??;
        Some((name, found.uid()?))
    }

    /// The namespace of the cluster in which pods are created.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(crate) fn pods(&self) -> Api<PodObject> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn asked<'a>(&'a self, verb: &'a str, resource: &'a str) -> Asked<'a> {
        Asked { verb, resource, namespace: &self.namespace }
    }

    /// Sends one request to the API server, with a time limit. `failed` describes the failed operation for an error
    /// message.
    pub(crate) async fn ask<T>(
        &self,
        asked: Asked<'_>,
        failed: &str,
        answer: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Problem> {
        match tokio::time::timeout(ANSWER, answer).await {
            Ok(answered) => answered.map_err(|e| refused(e, &asked, failed)),
            Err(_) => Err(Problem::new(
                "cluster_unreachable",
                format!("{failed}: its API server has not answered within {} s", ANSWER.as_secs()),
                "check whether the API server runs, and check routes and firewalls",
            )),
        }
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cluster at {}, namespace {}", self.at, self.namespace)
    }
}
