//! What runs have left in a cluster: found by its labels, never by its name.

use crate::cluster::Cluster;
use crate::error::PodError;
use crate::object::{MANAGED_BY, TOKEN_LABEL};
use kube::ResourceExt;
use kube::api::ListParams;

/// A pod that Tailbound made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its name.
    pub name: String,
    /// Its identity: another pod of the same name has another.
    pub uid: String,
    /// Label by which its run would find it.
    pub token: String,
    /// It is being removed already.
    pub ending: bool,
    /// Where it was put.
    pub node: Option<String>,
}

impl Cluster {
    /// The pods in this namespace that Tailbound made: those of a token, or all.
    ///
    /// # Errors
    /// The API server does not answer, or refuses.
    pub async fn leftovers(&self, token: Option<&str>) -> Result<Vec<Leftover>, PodError> {
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

    /// Removes the pods of a token; those that were there.
    ///
    /// # Errors
    /// As with [`Cluster::leftovers`]; some may have been removed then.
    pub async fn remove_leftovers(&self, token: &str) -> Result<Vec<Leftover>, PodError> {
        let found = self.leftovers(Some(token)).await?;
        for left in &found {
            self.delete(&left.name, &left.uid).await?;
        }
        Ok(found)
    }
}
