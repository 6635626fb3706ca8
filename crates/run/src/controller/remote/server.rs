//! The discovery server of a run, in the cluster of its pods.

use super::not_fit;
use super::pod::ask;
use crate::controller::RunError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use tailbound_host::ask_own_program;
use tailbound_host::journal::{EntryId, Journal};
use tailbound_model::*;

/// Has something made in the cluster, by a word of `tailbound pod`; what came of it, and the entry that undoes it.
pub(super) fn make<T: DeserializeOwned>(
    what: &str,
    (word, order): (&str, &impl Serialize),
    undo: Undo,
    journal: &Journal,
) -> Result<(T, EntryId), RunError> {
    let failed = |text: String| RunError::new(ExitCode::RunFailed, format!("{what}: {text}"), "");
    let entry = journal.before(undo).map_err(|e| failed(e.to_string()))?;
    match ask(word, order).map_err(|e| failed(e.to_string()))? {
        PodTold::Made(made) => Ok((made, entry)),
        PodTold::OutOfReach(text, mend) | PodTold::Failed(text, mend) => {
            // What was made of it until then.
            let _ = journal.undo(entry);
            Err(not_fit(format!("{what}: {text}"), mend))
        }
    }
}

/// One that serves.
pub(in crate::controller) struct Server {
    pub(super) order: ServerOrder,
    /// Where the ends ask: it stays the same whatever becomes of the pod behind it.
    pub address: SocketAddr,
    entry: EntryId,
}

impl Server {
    /// Makes it and waits until it is ready.
    ///
    /// # Errors
    /// The cluster refuses it, or it does not come to serve: what the cluster says, and what to do.
    pub(super) fn make(order: ServerOrder, journal: &Journal) -> Result<Server, RunError> {
        let undo = Undo::DeleteService { cluster: Box::new(order.spec.clone()), token: order.token.clone() };
        let (address, entry) = make("discovery server", ("serve", &order), undo, journal)?;
        Ok(Server { order, address, entry })
    }

    /// The driver by which it serves.
    pub fn driver(&self) -> &str {
        &self.order.driver
    }

    /// Why it does not serve, as far as the cluster tells.
    pub fn unserved(&self) -> Option<String> {
        let output = ask_own_program(&["pod", "unserved"], &serde_json::to_vec(&self.order).ok()?).ok()?;
        let said = if output.status.success() { output.stdout } else { output.stderr };
        Some(String::from_utf8_lossy(&said).trim().to_owned()).filter(|said| !said.is_empty())
    }

    /// Removes it; why it could not be removed.
    pub(super) fn leave(&self, journal: &Journal) -> Option<String> {
        let left = journal.undo(self.entry).err()?;
        Some(format!("the discovery server with the label {} is still in its cluster: {left}", self.order.token))
    }
}
