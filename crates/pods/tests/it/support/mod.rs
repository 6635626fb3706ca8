//! A cluster for tests, with namespaces and accounts for each test.

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, Pod as PodObject, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tailbound_model::{PodSpec, Pull};
use tailbound_pods::{Cluster, PodRequest, Right};
use tokio::sync::{Mutex, MutexGuard};

/// Lock for the nodes of the cluster: each node has one CPU for pods, so tests run one at a time.
static NODES: Mutex<()> = Mutex::const_new(());

/// Name of an image that contains only busybox; `dev/cluster-test` copies it to the nodes.
pub const BUSYBOX: &str = "tailbound.invalid/busybox:1";

/// The administrator's kubeconfig, and a namespace that only one test uses.
pub struct Bench {
    pub file: String,
    pub client: Client,
    pub namespace: String,
    pub folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// Prepares a namespace for a test; if no cluster is running, prints a line and returns `None`.
pub async fn bench(name: &str) -> Option<Bench> {
    let Some(file) = std::env::var("TAILBOUND_TEST_KUBECONFIG").ok().filter(|f| !f.is_empty()) else {
        println!("skipped: TAILBOUND_TEST_KUBECONFIG names no cluster to try on");
        return None;
    };
    let read = Kubeconfig::read_from(&file).unwrap();
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let namespace = format!("test-{name}-{}", std::process::id());
    let bench = Bench { file, client, namespace, folder: tempfile::tempdir().unwrap(), _alone: NODES.lock().await };
    let namespaces: Api<Namespace> = Api::all(bench.client.clone());
    create(&namespaces, json!({ "metadata": { "name": bench.namespace } })).await;
    Some(bench)
}

pub async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
}

impl Bench {
    pub fn spec(&self) -> PodSpec {
        PodSpec {
            name: "ping".into(),
            kubeconfig: Some(self.file.clone()),
            namespace: Some(self.namespace.clone()),
            pull: Pull::Never,
            cpus: 1,
            memory_mib: 128,
            ..PodSpec::default()
        }
    }

    pub async fn cluster(&self) -> Cluster {
        Cluster::reach(&self.spec()).await.unwrap()
    }

    pub fn pods(&self) -> Api<PodObject> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Makes a busybox pod that runs a command, without the crate under test.
    pub async fn busybox(&self, name: &str, words: &[&str]) {
        let container = json!({ "name": "tailbound", "image": BUSYBOX, "imagePullPolicy": "Never", "command": words,
                                "resources": { "limits": { "cpu": "100m", "memory": "32Mi" } } });
        let spec = json!({ "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container],
                           "automountServiceAccountToken": false });
        create(&self.pods(), json!({ "metadata": { "name": name }, "spec": spec })).await;
    }

    /// Makes a kubeconfig of an account that has only these rights.
    pub async fn account(&self, name: &str, rights: &[Right]) -> PathBuf {
        let rules = |cluster_wide: bool| -> Vec<Value> {
            let some = rights.iter().filter(|r| r.cluster_wide == cluster_wide);
            some.map(|r| json!({ "apiGroups": [r.group], "resources": [r.resource], "verbs": r.verbs })).collect()
        };
        let named = json!({ "name": name });
        let own = format!("{}-{name}", self.namespace);
        let subject = json!([{ "kind": "ServiceAccount", "name": name, "namespace": self.namespace }]);
        let role =
            |kind: &str, name: &str| json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name });
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &self.namespace);
        let roles: Api<Role> = Api::namespaced(self.client.clone(), &self.namespace);
        let bindings: Api<RoleBinding> = Api::namespaced(self.client.clone(), &self.namespace);
        let cluster_roles: Api<ClusterRole> = Api::all(self.client.clone());
        let cluster_bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        create(&accounts, json!({ "metadata": named })).await;
        create(&roles, json!({ "metadata": named, "rules": rules(false) })).await;
        create(&bindings, json!({ "metadata": named, "roleRef": role("Role", name), "subjects": subject })).await;
        create(&cluster_roles, json!({ "metadata": { "name": own }, "rules": rules(true) })).await;
        let binding = json!({ "metadata": { "name": own }, "roleRef": role("ClusterRole", &own), "subjects": subject });
        create(&cluster_bindings, binding).await;
        let asked: TokenRequest = serde_json::from_value(json!({ "spec": { "audiences": [] } })).unwrap();
        let token = accounts.create_token_request(name, &PostParams::default(), &asked).await.unwrap();
        self.kubeconfig(name, |config| {
            let user = json!({ "token": token.status.unwrap().token });
            config.auth_infos[0].auth_info = Some(serde_json::from_value(user).unwrap());
        })
    }

    /// Writes the administrator's kubeconfig with a change to a new file.
    pub fn kubeconfig(&self, name: &str, change: impl FnOnce(&mut Kubeconfig)) -> PathBuf {
        let mut config = Kubeconfig::read_from(&self.file).unwrap();
        change(&mut config);
        let file = self.folder.path().join(name);
        // JSON is YAML.
        std::fs::write(&file, serde_json::to_string(&config).unwrap()).unwrap();
        file
    }

    /// Removes everything that the test made in the cluster.
    pub async fn leave(self) {
        let roles: Api<ClusterRole> = Api::all(self.client.clone());
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        for name in ["granted", "none", "no-exec"] {
            let own = format!("{}-{name}", self.namespace);
            let _ = roles.delete(&own, &DeleteParams::default()).await;
            let _ = bindings.delete(&own, &DeleteParams::default()).await;
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        // A test may have deleted its namespace already.
        let _ = namespaces.delete(&self.namespace, &DeleteParams::default()).await;
        // The remaining pods occupy the CPUs that the next test needs.
        while !self.pods().list(&ListParams::default()).await.unwrap().items.is_empty() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Replaces those parts of a cluster's message that differ from run to run.
    pub fn plain(&self, text: &str) -> String {
        // Each of the two nodes may have been chosen.
        let text = text.replace("node1", "NODE").replace("node2", "NODE");
        text.replace(&self.namespace, "NAMESPACE").replace(env!("CARGO_PKG_VERSION"), "RELEASE")
    }
}

pub fn request(name: &str) -> PodRequest {
    PodRequest { name: name.into(), token: format!("{name}-token"), deadline_s: 300, ..PodRequest::default() }
}
