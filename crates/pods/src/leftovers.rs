//! Objects that earlier runs have left in a cluster. The objects are found by their labels, never by their names.

use crate::cluster::Cluster;
use crate::object::{MANAGED_BY, TOKEN_LABEL};
use kube::ResourceExt;
use kube::api::ListParams;
use tailbound_model::Problem;

/// A pod that a run of Tailbound created and that still exists in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Name of the pod that still exists.
    pub name: String,
    /// Identity (UID) of the pod that was left behind: another pod with the same name has another identity.
    pub uid: String,
    /// Token in a label of the pod, by which the run that created the pod finds the pod.
    pub token: String,
    /// Whether the pod that still exists is being removed already.
    pub ending: bool,
    /// Name of the node of the pod that still exists, if the pod has a node.
    pub node: Option<String>,
}

impl Cluster {
    /// Finds the pods in this namespace that Tailbound created: only the pods that have `token` in a label, or all pods
    /// if `token` is `None`.
    ///
    /// # Errors
    /// The API server does not answer, or refuses.
    pub async fn leftovers(&self, token: Option<&str>) -> Result<Vec<Leftover>, Problem> {
        let token = token.map_or_else(String::new, |token| format!(",{TOKEN_LABEL}={token}"));
        let ours = ListParams::default().labels(&format!("{MANAGED_BY}=tailbound{token}"));
        let failed = format!("pods that runs have left in namespace {} cannot be found", self.namespace);
        let found = self.ask(self.asked("list", "pods"), &failed, self.pods().list(&ours)).await?;
        let found = found.into_iter().map(|pod| Leftover {
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
            token: pod.labels().get(TOKEN_LABEL).cloned().unwrap_or_default(),
            ending: pod.metadata.deletion_timestamp.is_some(),
            node: pod.spec.and_then(|s| s.node_name),
        });
        Ok(found.collect())
    }

    /// Removes the pods that have this token in a label, and returns the pods that existed.
    ///
    /// # Errors
    /// The errors of [`Cluster::leftovers`]; some pods may have been removed.
    pub async fn remove_leftovers(&self, token: &str) -> Result<Vec<Leftover>, Problem> {
        let found = self.leftovers(Some(token)).await?;
        for left in &found {
            self.delete(&left.name, &left.uid).await?;
        }
        Ok(found)
    }
}
