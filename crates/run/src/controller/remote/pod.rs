//! Pods of a Kubernetes cluster.
//!
//! This program in a process of its own speaks with the cluster (`tailbound pod`), as `ssh` does with a host: it makes
//! the pod, and each stream to an agent there is a process that carries it and takes it up again when it was cut.

use super::host::{Help, Host, Way};
use super::not_fit;
use crate::controller::RunError;
use std::io;
use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;
use tailbound_host::journal::{EntryId, Journal};
use tailbound_host::{ask_own_program, own_program};
use tailbound_model::*;

/// A stream that is cut goes on, or ends: an API server that is started anew cuts all of them.
const PATIENCE: Duration = Duration::from_secs(30);

struct Pod {
    spec: PodSpec,
    made: PodMade,
    entry: EntryId,
}

/// Makes a pod and waits until it runs. `token` is a label of it and of nothing else.
///
/// # Errors
/// It does not come to run: what the cluster says, and what to do.
pub(super) fn reach(
    spec: &PodSpec,
    (run_id, journal): (&str, &Journal),
    (token, other_node): (String, Option<String>),
) -> Result<Host, RunError> {
    let failed = |text: String| RunError::new(ExitCode::RunFailed, format!("{spec}: {text}"), "");
    let undo = Undo::DeletePod { cluster: Box::new(spec.clone()), token: token.clone() };
    let entry = journal.before(undo).map_err(|e| failed(e.to_string()))?;
    let order = PodOrder { spec: spec.clone(), token, other_node };
    let made = match make(&order) {
        Ok(PodTold::Made(made)) => made,
        Ok(PodTold::OutOfReach(text, mend)) => {
            journal.done(entry).map_err(|e| failed(e.to_string()))?;
            return Err(not_fit(format!("{spec}: {text}"), mend));
        }
        Ok(PodTold::Failed(text, mend)) => {
            // What was made of it until then.
            let _ = journal.undo(entry);
            return Err(not_fit(format!("{spec}: {text}"), mend));
        }
        Err(e) => return Err(failed(e.to_string())),
    };
    let network = if spec.host_network { " (host network)" } else { "" };
    let called = format!("pod {}", spec.name);
    let named = format!("{called} on {}{network}", made.node);
    let (facts, remarks) = (made.facts.clone(), made.remarks.clone());
    let node = made.node.clone();
    let way = Box::new(Pod { spec: spec.clone(), made, entry });
    let help = Help {
        program: "",
        by_hand: "`kubectl logs` and `kubectl describe pod` may tell why",
        other_release: "name an `image` of this release: `tailbound image` makes one",
    };
    let place = PlaceSpec::Pod(Box::new(spec.clone()));
    let mut host = Host::over(way, (&place, called, named), (run_id, journal), &help)?;
    host.facts.facts.extend(facts);
    host.facts.facts.sort_by(|a, b| a.key.cmp(&b.key));
    (host.node, host.remarks) = (Some(node), remarks);
    Ok(host)
}

fn make(order: &PodOrder) -> io::Result<PodTold> {
    let output = ask_own_program(&["pod", "make"], &serde_json::to_vec(order)?)?;
    serde_json::from_slice(&output.stdout)
        .map_err(|_| io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

impl Way for Pod {
    fn program(&self) -> Command {
        let Ok(mut command) = own_program() else { return Command::new("false") };
        let spec = serde_json::to_string(&self.spec).unwrap_or_default();
        command.args(["pod", "stream", "--spec", &spec, "--namespace", &self.made.namespace]);
        command.args(["--name", &self.made.name, "--"]);
        command
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn address(&self) -> Option<IpAddr> {
        Some(self.made.address)
    }

    fn leave(self: Box<Self>, journal: &Journal) -> Option<String> {
        let left = journal.undo(self.entry).err()?;
        Some(format!("{} is still in namespace {}: {left}", self.made.name, self.made.namespace))
    }
}
