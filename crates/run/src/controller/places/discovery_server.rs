//! The discovery server of a lab, which runs in the Kubernetes cluster of the lab's pods.

use super::pod::ask;
use crate::controller::RunError;
use crate::controller::context::RunContext;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use tailbound_host::ask_own_program;
use tailbound_host::journal::EntryId;
use tailbound_model::*;

/// Creates an object (a discovery server or a DNS name) in the cluster with `tailbound pod WORD`. Returns the answer of
/// the cluster, and the journal entry that removes the object.
///
/// # Errors
/// The cluster cannot be reached or refuses the order.
pub(super) fn make<T: DeserializeOwned>(
    what: &str,
    (word, order): (&str, &impl Serialize),
    undo: Undo,
    context: &RunContext,
) -> Result<(T, EntryId), RunError> {
    let failed = |text: String| RunError::new(ExitCode::RunFailed, format!("{what}: {text}"), "");
    let entry = context.journal.before(undo).map_err(|e| failed(e.to_string()))?;
    match ask(word, order, context).map_err(|e| failed(e.to_string()))? {
        ClusterAnswer::Made(made) => Ok((made, entry)),
        ClusterAnswer::OutOfReach(problem) | ClusterAnswer::Failed(problem) => {
            // The cluster may have created a part of the object.
            let _ = context.journal.undo(entry);
            Err(RunError::of(ExitCode::MachineNotFit, problem.context(what)))
        }
    }
}

/// A running discovery server, through which the ends of a lab find each other.
pub(in crate::controller) struct Server {
    pub(super) order: ServerOrder,
    /// Address of the Service of the discovery server. The address stays the same if the pod of the server is replaced.
    pub address: SocketAddr,
    entry: EntryId,
}

impl Server {
    /// Creates a discovery server in the cluster and waits until the server is ready.
    ///
    /// # Errors
    /// The cluster refuses the server, or the server does not become ready.
    pub(super) fn make(order: ServerOrder, context: &RunContext) -> Result<Server, RunError> {
        let undo = Undo::DeleteService { cluster: Box::new(order.spec.clone()), token: order.token.clone() };
        let (address, entry) = make("discovery server", ("serve", &order), undo, context)?;
        Ok(Server { order, address, entry })
    }

    /// Name of the driver that this discovery server belongs to.
    pub fn driver(&self) -> &str {
        &self.order.driver
    }

    /// Reason why the discovery server does not run, as the cluster reports it; `None` = no reason is known.
    pub fn failure(&self) -> Option<String> {
        let output = ask_own_program(&["pod", "unserved"], &serde_json::to_vec(&self.order).ok()?).ok()?;
        let text = if output.status.success() { output.stdout } else { output.stderr };
        Some(String::from_utf8_lossy(&text).trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Removes the discovery server from the cluster. Returns the reason if it could not be removed.
    pub(super) fn leave(&self, context: &RunContext) -> Option<String> {
        let left = context.journal.undo(self.entry).err()?;
        Some(format!("the discovery server with the label {} is still in its cluster: {left}", self.order.token))
    }
}
