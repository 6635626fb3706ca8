//! A process for all pods of a run: a Deployment that keeps one pod running, and a Service with a stable address.

use crate::cluster::Cluster;
use crate::explain::{absent, ended, not_made};
use crate::object::{self, MANAGED_BY, PodRequest, TOKEN_LABEL};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod as PodObject, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions, PropagationPolicy};
use kube::core::Resource;
use kube::{Api, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tailbound_model::{PodSpec, Problem};
use tokio::time::sleep;

/// Time limit until a requested Kubernetes Service is ready.
const LIMIT: Duration = Duration::from_secs(60);
/// Interval between two checks whether a requested Kubernetes Service is ready.
const LOOK: Duration = Duration::from_millis(500);

/// Properties of a Kubernetes Service that a run requests.
#[derive(Debug, Clone)]
pub struct ServiceRequest {
    /// Name of the requested Kubernetes Service and of its Deployment.
    pub name: String,
    /// Token in a label of the Service, the Deployment and their pod, by which these objects can be found.
    pub token: String,
    /// Name of the pod that owns the Service and the Deployment: if this pod is removed, the cluster removes them.
    pub owner: String,
    /// Arguments of Tailbound in the service's pod. The pod is ready as soon as the process accepts TCP connections on
    /// the number of the service's UDP port.
    pub args: Vec<String>,
    /// UDP port of the requested Kubernetes Service.
    pub port: u16,
}

/// Makes the Service and the Deployment that are sent to the API server. Image and pull policy are the same as for the
/// pods of the run.
fn objects(spec: &PodSpec, request: &ServiceRequest, owner_uid: &str) -> (Value, Value) {
    let spec = PodSpec {
        host_network: false,
        node: None,
        capabilities: Vec::new(),
        annotations: Default::default(),
        ..spec.clone()
    };
    let pod = PodRequest { name: request.name.clone(), token: request.token.clone(), ..PodRequest::default() };
    let mut pod = json!(object::pod(&spec, &pod));
    let body = &mut pod["spec"];
    // A Deployment requires this policy and has no deadline: a pod that ends is started again.
    body["restartPolicy"] = json!("Always");
    body["activeDeadlineSeconds"] = Value::Null;
    let container = &mut body["containers"][0];
    container["args"] = json!(request.args);
    // The pod requests no CPU, because the ends may have all CPUs. It works only during discovery, and uses the CPU
    // time that the node has left.
    container["resources"] = json!({ "requests": { "memory": "128Mi" }, "limits": { "memory": "128Mi" } });
    // After this probe has passed, no probe disturbs the process.
    container["startupProbe"] =
        json!({ "tcpSocket": { "port": request.port }, "periodSeconds": 1, "failureThreshold": LIMIT.as_secs() });
    let metadata = metadata(&request.name, &request.token, (&request.owner, owner_uid));
    let ours = json!({ TOKEN_LABEL: request.token });
    let port = json!({ "name": "udp", "protocol": "UDP", "port": request.port });
    let service = json!({
        "metadata": metadata,
        "spec": { "type": "ClusterIP", "ipFamilies": ["IPv4"], "selector": ours, "ports": [port] },
    });
    let deployment = json!({
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": ours },
            "template": { "metadata": { "labels": pod["metadata"]["labels"] }, "spec": pod["spec"] },
        },
    });
    (service, deployment)
}

/// Returns the metadata (name, labels, owner) of a Kubernetes object that is made for the pods of a run.
pub(crate) fn metadata(name: &str, token: &str, (owner, uid): (&str, &str)) -> Value {
    json!({
        "name": name,
        "labels": { MANAGED_BY: "tailbound", TOKEN_LABEL: token },
        "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": owner, "uid": uid }],
    })
}

impl Cluster {
    /// Creates a Service and its Deployment, waits at most 60 s until its pod is ready, and returns the address of the
    /// Service. If this fails, the objects are not removed.
    ///
    /// # Errors
    /// The API server refuses an object; the pod does not run, or its process does not listen.
    pub async fn serve(&self, spec: &PodSpec, request: &ServiceRequest) -> Result<SocketAddr, Problem> {
        let owner = self.pod(&request.owner).await?;
        let (service, deployment) = objects(spec, request, &owner.uid);
        let service: Service = self.create("services", service, &request.name).await?;
        let _: Deployment = self.create("deployments", deployment, &request.name).await?;
        let given = service.spec.and_then(|s| s.cluster_ip).and_then(|ip| ip.parse().ok());
        let Some(address) = given else {
            return Err(Problem::new(
                "service_not_made",
                format!("the Service {} has no address", request.name),
                "look at the range of addresses that the cluster has for Services",
            ));
        };
        let began = Instant::now();
        while !self.is_ready(&request.name).await? {
            for pod in self.behind(&request.token).await? {
                self.judge(&pod, began.elapsed()).await?;
            }
            if began.elapsed() > LIMIT {
                return Err(Problem::new(
                    "service_not_made",
                    format!("no pod behind the Service {} is ready after {} s", request.name, LIMIT.as_secs()),
                    format!("`kubectl -n {} describe deployment` and `kubectl logs` show why", self.namespace()),
                ));
            }
            sleep(LOOK).await;
        }
        Ok(SocketAddr::new(address, request.port))
    }

    /// Explains why a service does not work, as far as the cluster reports the reason; `None` if the service's pod is
    /// ready and was never restarted.
    ///
    /// # Errors
    /// The API server does not answer, or refuses.
    pub async fn unserved(&self, name: &str, token: &str) -> Result<Option<String>, Problem> {
        let failed = format!("the state of the Deployment {name} cannot be read");
        let deployments: Api<Deployment> = self.api();
        let found = self.ask(self.asked("get", "deployments"), &failed, deployments.get_opt(name)).await?;
        if found.is_none_or(|d| d.metadata.deletion_timestamp.is_some()) {
            return Ok(Some(format!("the Deployment {name} was deleted")));
        }
        let pods = self.behind(token).await?;
        if !self.is_ready(name).await? {
            let why = pods.iter().find_map(ended).map_or_else(String::new, |why| format!(": {why}"));
            return Ok(Some(format!("no pod of the Deployment {name} is ready{why}")));
        }
        let restarts = |pod: &PodObject| {
            let container = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
            (container.restart_count > 0).then_some(container.restart_count)
        };
        let anew = pods.iter().find_map(|pod| Some((pod.name_any(), restarts(pod)?)));
        Ok(anew.map(|(pod, times)| format!("the process in the pod {pod} was restarted {times} times")))
    }

    /// Removes the Services and Deployments that have the token of a run in a label, together with their pods. Returns
    /// the removed objects as `service NAME` or `deployment NAME`.
    ///
    /// # Errors
    /// The API server does not answer, or refuses; some objects may have been removed.
    pub async fn remove_services(&self, token: &str) -> Result<Vec<String>, Problem> {
        let mut gone = self.remove::<Deployment>("deployments", token).await?;
        gone.extend(self.remove::<Service>("services", token).await?);
        Ok(gone)
    }

    async fn remove<K: Object>(&self, kind: &str, token: &str) -> Result<Vec<String>, Problem> {
        let failed = format!("{kind} that runs have left in namespace {} cannot be removed", self.namespace());
        let api: Api<K> = self.api();
        let found = self.ask(self.asked("list", kind), &failed, api.list(&ours(token))).await?;
        let mut gone = Vec::new();
        for left in found.into_iter().filter(|o| o.meta().deletion_timestamp.is_none()) {
            let params = DeleteParams {
                preconditions: Some(Preconditions { uid: left.uid(), ..Preconditions::default() }),
                propagation_policy: Some(PropagationPolicy::Background),
                ..DeleteParams::default()
            };
            let name = left.name_any();
            let removed = async {
                match api.delete(&name, &params).await {
                    Err(e) if absent(&e) => Ok(()),
                    other => other.map(drop),
                }
            };
            self.ask(self.asked("delete", kind), &failed, removed).await?;
            gone.push(format!("{} {name}", kind.trim_end_matches('s')));
        }
        Ok(gone)
    }

    pub(crate) async fn create<K: Object>(&self, kind: &str, object: Value, name: &str) -> Result<K, Problem> {
        let failed = format!("the {} {} cannot be made", kind.trim_end_matches('s'), name);
        let (api, asked) = (self.api::<K>(), self.asked("create", kind));
        let object: K = serde_json::from_value(object)
            .map_err(|e| Problem::new("service_not_made", format!("{failed}: {e}"), "this is a fault of Tailbound"))?;
        let create = async { Ok(api.create(&PostParams::default(), &object).await) };
        self.ask(asked, &failed, create).await?.map_err(|e| not_made(e, &self.asked("create", kind), &failed))
    }

    async fn is_ready(&self, name: &str) -> Result<bool, Problem> {
        let failed = format!("the endpoints of the Service {name} cannot be read");
        let api: Api<EndpointSlice> = self.api();
        let of_it = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
        let slices = self.ask(self.asked("list", "endpointslices"), &failed, api.list(&of_it)).await?;
        let ready = |c: &k8s_openapi::api::discovery::v1::EndpointConditions| c.ready == Some(true);
        Ok(slices.items.iter().flat_map(|s| &s.endpoints).any(|e| e.conditions.as_ref().is_some_and(ready)))
    }

    async fn behind(&self, token: &str) -> Result<Vec<PodObject>, Problem> {
        let failed = format!("the pods of the Deployment with the token {token} cannot be read");
        Ok(self.ask(self.asked("list", "pods"), &failed, self.pods().list(&ours(token))).await?.items)
    }

    fn api<K: Object>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), self.namespace())
    }
}

fn ours(token: &str) -> ListParams {
    ListParams::default().labels(&format!("{MANAGED_BY}=tailbound,{TOKEN_LABEL}={token}"))
}

/// Kubernetes objects that the API server keeps in namespaces, for example pods.
pub(crate) trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Serialize + Debug
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Serialize + Debug
{
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discovery_server_as_it_is_asked_for() {
        let spec = PodSpec {
            name: "ping".into(),
            cpus: 2,
            memory_mib: 1024,
            host_network: true,
            capabilities: vec!["SYS_NICE".into()],
            labels: [("team".to_owned(), "motion".to_owned())].into(),
            ..PodSpec::default()
        };
        let request = ServiceRequest {
            name: "tailbound-1a2b3c4d-3-discovery".into(),
            token: "1a2b3c4d-3".into(),
            owner: "tailbound-1a2b3c4d-1-ping".into(),
            args: ["agent", "discovery"].map(str::to_owned).to_vec(),
            port: 11811,
        };
        let (service, deployment) = objects(&spec, &request, "0a1b");
        let text =
            |object: &Value| serde_saphyr::to_string(object).unwrap().replace(env!("CARGO_PKG_VERSION"), "RELEASE");
        let of_kinds = serde_json::from_value::<Service>(service.clone()).is_ok()
            && serde_json::from_value::<Deployment>(deployment.clone()).is_ok();
        assert!(of_kinds);
        insta::assert_snapshot!(format!("{}---\n{}", text(&service), text(&deployment)));
    }
}
