//! Pods of a Kubernetes cluster.
//!
//! This program in a process of its own speaks with the cluster (`tailbound pod`), as `ssh` does with a host: it makes
//! the pod, and each stream to an agent there is a process that carries it and takes it up again when it was cut.

use super::host::{Help, Host, Known, Way};
use super::not_fit;
use crate::controller::RunError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tailbound_host::journal::{EntryId, Journal};
use tailbound_host::{ask_own_program, own_program};
use tailbound_model::*;

/// A stream that is cut goes on, or ends: an API server that is started anew cuts all of them.
const PATIENCE: Duration = Duration::from_secs(30);

/// Pods that were made together, and are removed together.
struct Batch {
    entry: EntryId,
}

struct Pod {
    spec: PodSpec,
    made: PodMade,
    batch: Arc<Batch>,
}

/// Makes so many pods and waits until they run. `token` is a label of them and of nothing else.
///
/// # Errors
/// One does not come to run: what the cluster says, and what to do.
pub(super) fn reach(
    (spec, count): (&PodSpec, usize),
    (run_id, journal): (&str, &Journal),
    (token, other_node): (String, Option<String>),
) -> Result<Vec<Host>, RunError> {
    let run = run_id.to_owned();
    start(PodOrder { spec: spec.clone(), count, token, run, other_node, observer: false }, (run_id, journal))
}

/// Makes a pod that looks at the node of another one. It is reached as that one was.
///
/// # Errors
/// As with [`reach`]: the cluster may not want such a pod.
pub(super) fn observe(
    spec: &PodSpec,
    (run_id, journal): (&str, &Journal),
    (token, node): (String, &str),
) -> Result<Host, RunError> {
    let spec = PodSpec {
        name: "observer".into(),
        node: Some(NodeChoice::Name(node.to_owned())),
        // Whatever the one that measures has of its own, this one has not.
        capabilities: Vec::new(),
        annotations: Default::default(),
        runtime_class: None,
        host_network: true,
        observe: false,
        ..spec.clone()
    };
    let run = run_id.to_owned();
    let order = PodOrder { spec, count: 1, token, run, other_node: None, observer: true };
    Ok(start(order, (run_id, journal))?.swap_remove(0))
}

fn start(order: PodOrder, (run_id, journal): (&str, &Journal)) -> Result<Vec<Host>, RunError> {
    let (spec, count, token) = (&order.spec, order.count, &order.token);
    let failed = |text: String| RunError::new(ExitCode::RunFailed, format!("{spec}: {text}"), "");
    let undo = Undo::DeletePod { cluster: Box::new(spec.clone()), token: token.clone() };
    let entry = journal.before(undo).map_err(|e| failed(e.to_string()))?;
    let made: Vec<PodMade> = match ask("make", &order) {
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
    let batch = Arc::new(Batch { entry });
    let way = |(number, made): (usize, &PodMade)| {
        let number = if count > 1 { format!("-{}", number + 1) } else { String::new() };
        let called = format!("pod {}{number}", spec.name);
        let named = format!("{called} on {}{network}", made.node);
        let pod = Pod { spec: spec.clone(), made: made.clone(), batch: batch.clone() };
        let place = PlaceSpec::Pod(Box::new(spec.clone()));
        Known { way: Box::new(pod) as Box<dyn Way>, place, called, named }
    };
    let all = made.iter().enumerate().map(way).collect();
    drop(batch);
    let help = Help {
        program: "",
        by_hand: "`kubectl logs` and `kubectl describe pod` may tell why",
        other_release: "name an `image` of this release: `tailbound image` makes one",
    };
    let mut hosts = Host::over_all(all, (run_id, journal), &help)?;
    for (host, made) in hosts.iter_mut().zip(made) {
        host.facts.facts.extend(made.facts);
        host.facts.facts.sort_by(|a, b| a.key.cmp(&b.key));
        (host.node, host.pod, host.remarks) = (Some(made.node), Some(made.name), made.remarks);
    }
    Ok(hosts)
}

/// Has the process that speaks with the cluster do what a word says; what became of it.
pub(super) fn ask<T: DeserializeOwned>(word: &str, order: &impl Serialize) -> io::Result<PodTold<T>> {
    let output = ask_own_program(&["pod", word], &serde_json::to_vec(order)?)?;
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
        // All of them go with the last.
        let batch = Arc::into_inner(self.batch)?;
        let left = journal.undo(batch.entry).err()?;
        let (name, namespace) = (self.made.name, self.made.namespace);
        Some(format!("{name}, and what was made with it, is still in namespace {namespace}: {left}"))
    }
}
