//! The command `tailbound pod` in a build with the Kubernetes client.

use crate::cli::PodSub;
use crate::failure::{CommandResult, Failure};
use crate::output::out;
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::io;
use std::time::Duration;
use tailbound_model::{ClusterAnswer, ExitCode, PodMade, PodOrder, PodSpec, Problem};
use tailbound_pods::{Asked, Cluster, Pod, PodRequest, RUN_LABEL, unenforced};

mod service;

/// Longest life of a pod in seconds: after this time the cluster ends the pod, even if the run was killed.
const DEADLINE_S: u32 = 24 * 3600;
/// Longest interruption of a stream to a pod, for example while the API server restarts. Shorter than the lease of the
/// holder of agents in the pod.
const PATIENCE: Duration = Duration::from_secs(25);
/// Command in the pod that connects a stream to the holder of agents.
const RELAY: [&str; 3] = ["tailbound", "agent", "relay"];

pub(super) fn answer(command: &PodSub) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::unexpected(format!("cannot start the runtime: {e}")))?;
    let outcome = runtime.block_on(async {
        match command {
            PodSub::Make => make().await,
            PodSub::Delete { token } => delete(token).await,
            PodSub::Serve => service::serve().await,
            PodSub::Name => service::name_pods().await,
            PodSub::Unserved => service::unserved().await,
            PodSub::Unserve { token } => service::unserve(token).await,
            PodSub::Stream { spec, namespace, name, words } => stream(spec, namespace, name, words).await,
        }
    });
    if let Err(failure) = &outcome {
        tracing::warn!(what = failure.what(), "a command for the Kubernetes cluster failed");
    }
    // A thread may still be blocked on standard input.
    runtime.shutdown_background();
    outcome
}

fn order<T: DeserializeOwned>() -> Result<T, Failure> {
    serde_json::from_reader(io::stdin().lock())
        .map_err(|e| Failure::bad_input(format!("standard input does not contain a valid order: {e}")))
}

fn failed(problem: Problem) -> Failure {
    Failure::of(ExitCode::MachineNotFit, problem)
}

async fn make() -> CommandResult {
    let order: PodOrder = order()?;
    let answer = match Cluster::reach(&order.spec).await {
        Err(e) => ClusterAnswer::OutOfReach(e),
        Ok(cluster) => match made(&cluster, order).await {
            Ok(made) => ClusterAnswer::Made(made),
            Err(e) => ClusterAnswer::Failed(e),
        },
    };
    out!("{}\n", serde_json::to_string(&answer).unwrap_or_default());
    Ok(ExitCode::Done)
}

async fn made(cluster: &Cluster, order: PodOrder) -> Result<Vec<PodMade>, Problem> {
    let (name, owner) = (format!("tailbound-{}-{}", order.token, order.spec.name), cluster.own_pod().await);
    let request = |number: usize| PodRequest {
        name: if order.count > 1 { format!("{name}-{number}") } else { name.clone() },
        labels: [(RUN_LABEL.to_owned(), order.run.clone())].into(),
        token: order.token.clone(),
        avoid: order.other_node.clone(),
        observer: order.observer,
        owner: owner.clone(),
        deadline_s: DEADLINE_S,
    };
    let requests: Vec<PodRequest> = (1..=order.count).map(request).collect();
    tracing::info!(name, count = order.count, namespace = cluster.namespace(), "pods are created");
    let (mut all, mut asked) = (Vec::new(), Asked::default());
    for pod in cluster.start_all(&order.spec, &requests).await? {
        all.push(pod_made(cluster, pod, &order.spec, &mut asked).await?);
    }
    Ok(all)
}

async fn pod_made(cluster: &Cluster, pod: Pod, spec: &PodSpec, asked: &mut Asked) -> Result<PodMade, Problem> {
    let Some(address) = pod.addresses.first().copied() else {
        let text = format!("the pod {} on node {} has no IP address", pod.name, pod.node);
        let remedy = format!("check the network plugin (CNI) of node {}", pod.node);
        return Err(Problem::new("pod_without_address", text, remedy));
    };
    tracing::info!(pod = pod.name, node = pod.node, %address, "pod is ready");
    let facts = pod.facts(asked).await;
    let remarks = unenforced(&facts, spec.host_network).into_iter().collect();
    let namespace = cluster.namespace().to_owned();
    Ok(PodMade { namespace, node: pod.node, address, facts, remarks, name: pod.name })
}

async fn delete(token: &str) -> CommandResult {
    let spec: PodSpec = order()?;
    let cluster = Cluster::find(&spec).await.map_err(failed)?;
    for left in cluster.remove_leftovers(token).await.map_err(failed)? {
        out!("pod {}\n", left.name);
    }
    Ok(ExitCode::Done)
}

async fn stream(spec: &str, namespace: &str, name: &str, words: &[String]) -> CommandResult {
    tracing::info!(pod = name, namespace, command = words.join(" "), "stream begins");
    let spec: PodSpec =
        serde_json::from_str(spec).map_err(|e| Failure::bad_input(format!("--spec does not describe a pod: {e}")))?;
    let cluster = Cluster::find(&PodSpec { namespace: Some(namespace.to_owned()), ..spec }).await.map_err(failed)?;
    let pod = cluster.pod(name).await.map_err(failed)?;
    // The name must be unique among all streams to this pod.
    let session = format!("{}-{}", std::process::id(), tailbound_host::monotonic_ns());
    let relay = RELAY.map(str::to_owned);
    let (ended_sender, ended) = tokio::sync::oneshot::channel();
    let (ended_sender, opened) = (Cell::new(Some(ended_sender)), Cell::new(false));
    let open = async || {
        // The stream was interrupted. If the pod has ended, reconnecting is useless.
        if opened.get() {
            tracing::warn!(pod = name, "the stream was interrupted");
        }
        if opened.replace(true)
            && let Ok(Some(why)) = pod.ended().await
            && let Some(sender) = ended_sender.take()
        {
            let _ = sender.send(why);
            return std::future::pending().await;
        }
        pod.exec(&relay).await
    };
    let join = tailbound_stream::join(&session, words, open, tokio::io::stdin(), tokio::io::stdout(), PATIENCE);
    let lost = tokio::select! {
        joined = join => match joined {
            Ok(ended) => {
                tracing::info!(pod = name, status = %ended.status, "the stream ends: its process in the pod ended");
                return Ok(ExitCode::Done);
            }
            Err(e) => e.to_string(),
        },
        Ok(why) = ended => return Err(Failure::run_failed(why)),
    };
    // The cluster may know why the stream was lost.
    let gone = pod.gone().await.ok().flatten().map_or_else(String::new, |why| format!("; {why}"));
    Err(Failure::run_failed(format!("{lost}{gone}")))
}
