//! Places that are pods of a Kubernetes cluster.
//!
//! A separate process, `tailbound pod`, speaks with the cluster and creates the pod. Each stream to an agent in a pod
//! is carried by such a process, which resumes the stream if it was cut.

use super::host::{Candidate, Help, Host};
use super::kind::{Lifetime, PlaceKind, Reach};
use super::place::Place;
use super::wanted;
use crate::controller::RunError;
use crate::controller::context::RunContext;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tailbound_host::journal::EntryId;
use tailbound_host::{ask_program, own_program};
use tailbound_model::*;

/// Silence after which an agent in a pod counts as lost. The time is long, because a restart of the API server cuts all
/// streams, which then resume.
const PATIENCE: Duration = Duration::from_secs(30);

/// Pods that are created together and removed together.
struct Batch {
    entry: EntryId,
}

struct Pod {
    spec: PodSpec,
    made: PodMade,
    batch: Arc<Batch>,
    /// Path, in the record, of the log of the processes `tailbound pod` that pass on control streams to the pod.
    log: PathBuf,
}

/// Path, in the record, of the diagnostics log of all processes `tailbound pod` of a run.
fn log_file(context: &RunContext) -> PathBuf {
    context.logs.join("pod.log")
}

impl PlaceKind for PodSpec {
    fn reach(&self, reach: Reach<'_>) -> Result<Vec<Host>, RunError> {
        let Reach { hosts, lab, end, context, .. } = reach;
        let order = PodOrder {
            spec: self.clone(),
            count: wanted(lab, lab.place(end)),
            other_node: hosts.of_end(lab, 0).and_then(|host| host.node.clone()),
            token: hosts.next_token(context),
            run: context.run_id.clone(),
            observer: false,
        };
        let mut pods = start(order, context)?;
        for pod in &mut pods {
            pod.observer = hosts.observer(self, pod, context)?;
        }
        Ok(pods)
    }

    fn lifetime(&self) -> Lifetime {
        Lifetime::Lab
    }
}

/// Creates an observer pod, which observes a cluster node in the namespaces of this node. `spec` specifies the
/// measuring pod on that node.
///
/// # Errors
/// The cluster refuses the observer, or the observer does not become ready.
pub(super) fn observe(spec: &PodSpec, context: &RunContext, (token, node): (String, &str)) -> Result<Host, RunError> {
    let spec = PodSpec {
        name: "observer".into(),
        node: Some(NodeChoice::Name(node.to_owned())),
        // The observer does not have the special properties of the measuring pod.
        capabilities: Vec::new(),
        annotations: Default::default(),
        runtime_class: None,
        host_network: true,
        observe: false,
        ..spec.clone()
    };
    let run = context.run_id.clone();
    let order = PodOrder { spec, count: 1, token, run, other_node: None, observer: true };
    Ok(start(order, context)?.swap_remove(0))
}

/// Creates pods, waits until they run, and starts their host agents.
///
/// # Errors
/// The cluster refuses a pod, or a pod does not become ready.
fn start(order: PodOrder, context: &RunContext) -> Result<Vec<Host>, RunError> {
    let (spec, count, token) = (&order.spec, order.count, &order.token);
    let failed = |text: String| RunError::new(ExitCode::RunFailed, format!("{spec}: {text}"), "");
    let undo = Undo::DeletePod { cluster: Box::new(spec.clone()), token: token.clone() };
    let entry = context.journal.before(undo).map_err(|e| failed(e.to_string()))?;
    let made: Vec<PodMade> = match ask("make", &order, context) {
        Ok(ClusterAnswer::Made(made)) => made,
        Ok(ClusterAnswer::OutOfReach(problem)) => {
            context.journal.done(entry).map_err(|e| failed(e.to_string()))?;
            return Err(RunError::of(ExitCode::MachineNotFit, problem.context(spec)));
        }
        Ok(ClusterAnswer::Failed(problem)) => {
            // The cluster may have created a part of the pods.
            let _ = context.journal.undo(entry);
            return Err(RunError::of(ExitCode::MachineNotFit, problem.context(spec)));
        }
        Err(e) => return Err(failed(e.to_string())),
    };
    let network = if spec.host_network { " (host network)" } else { "" };
    let batch = Arc::new(Batch { entry });
    let candidate = |(number, made): (usize, &PodMade)| {
        let number = if count > 1 { format!("-{}", number + 1) } else { String::new() };
        let called = format!("pod {}{number}", spec.name);
        let named = format!("{called} on {}{network}", made.node);
        let pod = Pod { spec: spec.clone(), made: made.clone(), batch: batch.clone(), log: log_file(context) };
        let place = PlaceSpec::Pod(Box::new(spec.clone()));
        Candidate { reached: Box::new(pod) as Box<dyn Place>, place, called, named }
    };
    let all = made.iter().enumerate().map(candidate).collect();
    drop(batch);
    let help = Help {
        program: "",
        by_hand: "`kubectl logs` and `kubectl describe pod` may show the reason",
        other_release: "name an `image` of this release: `tailbound image` makes such an image",
    };
    let mut hosts = Host::start_all(all, context, &help)?;
    for (host, made) in hosts.iter_mut().zip(made) {
        host.facts.facts.extend(made.facts);
        host.facts.facts.sort_by(|a, b| a.key.cmp(&b.key));
        (host.node, host.pod, host.remarks) = (Some(made.node), Some(made.name), made.remarks);
    }
    Ok(hosts)
}

/// Runs `tailbound pod WORD` with an order in JSON on standard input, and returns the answer.
pub(super) fn ask<T: DeserializeOwned>(
    word: &str,
    order: &impl Serialize,
    context: &RunContext,
) -> io::Result<ClusterAnswer<T>> {
    let mut command = own_program()?;
    command.env(crate::log::FILE_VARIABLE, log_file(context));
    let output = ask_program(command, &["pod", word], &serde_json::to_vec(order)?)?;
    serde_json::from_slice(&output.stdout)
        .map_err(|_| io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

impl Place for Pod {
    fn command(&self) -> Command {
        let Ok(mut command) = own_program() else { return Command::new("false") };
        let spec = serde_json::to_string(&self.spec).unwrap_or_default();
        command.args(["pod", "stream", "--spec", &spec, "--namespace", &self.made.namespace]);
        command.args(["--name", &self.made.name, "--"]).env(crate::log::FILE_VARIABLE, &self.log);
        command
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn address(&self) -> Option<IpAddr> {
        Some(self.made.address)
    }

    fn leave(self: Box<Self>, context: &RunContext) -> Option<String> {
        // The last pod that is left removes all pods of the batch.
        let batch = Arc::into_inner(self.batch)?;
        let left = context.journal.undo(batch.entry).err()?;
        let (name, namespace) = (self.made.name, self.made.namespace);
        Some(format!("pod {name} and the objects created with it are still in namespace {namespace}: {left}"))
    }
}
