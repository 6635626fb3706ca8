//! Interface of all places with a connection: starting processes at the place, asking about its state, and closing the
//! connection.

use crate::controller::RunError;
use crate::controller::agent_protocol::SILENCE;
use crate::controller::context::RunContext;
use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;
use tailbound_guest::Look;
use tailbound_lab::netns::NetNs;
use tailbound_model::{GuestThread, Problem};

/// A place with a connection: how processes are started at the place, and what is known about the place.
pub(super) trait Place: Send + Sync {
    /// Command on this machine that starts Tailbound at the place and carries its standard streams. The caller adds the
    /// arguments of Tailbound.
    fn command(&self) -> Command;

    /// Command that starts the host agent of the place, which answers questions about the place.
    fn host_agent_command(&self, run_id: &str) -> Command {
        let mut command = self.command();
        command.args(["agent", "--run-token", run_id]);
        command
    }

    /// Checks the place after its host agent has started and before the agent is asked a question.
    ///
    /// # Errors
    /// The place is not as the study asks.
    fn check_started(&self) -> Result<(), RunError> {
        Ok(())
    }

    /// Silence after which an agent at the place counts as lost.
    fn patience(&self) -> Duration {
        SILENCE
    }

    /// IP address of the place, if Tailbound or the provider of the place assigned an address.
    fn address(&self) -> Option<IpAddr> {
        None
    }

    /// Network namespace of the place, if this is a namespace of this host.
    fn netns(&self) -> Option<NetNs> {
        None
    }

    /// Lists the properties of the place that are no longer as the study asks, as sentences.
    fn differences(&self) -> Vec<String> {
        Vec::new()
    }

    /// Text that says how the place ended or why it is stopped; `None` = it runs, or this is not known.
    fn ended(&self) -> Option<String> {
        None
    }

    /// Reads what the hypervisor reports about the guest, or the reason why the hypervisor does not answer. `None` =
    /// the place is not a guest, or the guest has ended.
    fn look(&self) -> Option<Result<Look, Problem>> {
        None
    }

    /// Threads on this host that run the guest; none if the place is not a guest of this host.
    fn threads_outside(&self) -> Vec<GuestThread> {
        Vec::new()
    }

    /// Closes the connection to the place, and removes all that Tailbound created for the place. Returns a sentence
    /// about things that could not be removed.
    fn leave(self: Box<Self>, context: &RunContext) -> Option<String>;
}
