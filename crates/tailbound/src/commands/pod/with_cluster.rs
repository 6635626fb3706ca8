//! The commands where the Kubernetes client is part of the build.

use crate::cli::PodSub;
use crate::exit::{Failure, Outcome};
use crate::say::out;
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::io;
use std::time::Duration;
use tailbound_model::{ExitCode, PodMade, PodOrder, PodSpec, PodTold};
use tailbound_pods::{Asked, Cluster, Pod, PodError, PodRequest, RUN_LABEL, unenforced};

mod service;

/// Whatever becomes of the run, no pod lives longer.
const DEADLINE_S: u32 = 24 * 3600;
/// How long a stream may be cut, as when the API server is started anew: shorter than the lease of what runs there.
const PATIENCE: Duration = Duration::from_secs(25);
/// What joins a stream to the agent that is held in the pod.
const RELAY: [&str; 3] = ["tailbound", "agent", "relay"];

pub(super) fn answer(command: &PodSub) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(ExitCode::Unexpected, format!("cannot begin: {e}")))?;
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
    // A thread may still wait for standard input.
    runtime.shutdown_background();
    outcome
}

fn given<T: DeserializeOwned>() -> Result<T, Failure> {
    serde_json::from_reader(io::stdin().lock())
        .map_err(|e| Failure::new(ExitCode::BadInput, format!("what came on standard input is not an order: {e}")))
}

fn failed(e: PodError) -> Failure {
    let mend = if e.mend.is_empty() { String::new() } else { format!("\n  what to do: {}", e.mend) };
    Failure::new(ExitCode::MachineNotFit, format!("{}{mend}", e.what))
}

async fn make() -> Outcome {
    let order: PodOrder = given()?;
    let told = match Cluster::reach(&order.spec).await {
        Err(e) => PodTold::OutOfReach(e.what, e.mend),
        Ok(cluster) => match made(&cluster, order).await {
            Ok(made) => PodTold::Made(made),
            Err(e) => PodTold::Failed(e.what, e.mend),
        },
    };
    out!("{}\n", serde_json::to_string(&told).unwrap_or_default());
    Ok(ExitCode::Done)
}

async fn made(cluster: &Cluster, order: PodOrder) -> Result<Vec<PodMade>, PodError> {
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
    let (mut all, mut asked) = (Vec::new(), Asked::default());
    for pod in cluster.start_all(&order.spec, &requests).await? {
        all.push(told(cluster, pod, &order.spec, &mut asked).await?);
    }
    Ok(all)
}

async fn told(cluster: &Cluster, pod: Pod, spec: &PodSpec, asked: &mut Asked) -> Result<PodMade, PodError> {
    let Some(address) = pod.addresses.first().copied() else {
        let text = format!("the pod {} runs on {} and has no address", pod.name, pod.node);
        return Err(PodError { what: text, mend: "look at the network plugin of that node".into() });
    };
    let facts = pod.facts(asked).await;
    let remarks = unenforced(&facts, spec.host_network).into_iter().collect();
    let namespace = cluster.namespace().to_owned();
    Ok(PodMade { namespace, node: pod.node, address, facts, remarks, name: pod.name })
}

async fn delete(token: &str) -> Outcome {
    let spec: PodSpec = given()?;
    let cluster = Cluster::find(&spec).await.map_err(failed)?;
    for left in cluster.remove_leftovers(token).await.map_err(failed)? {
        out!("pod {}\n", left.name);
    }
    Ok(ExitCode::Done)
}

async fn stream(spec: &str, namespace: &str, name: &str, words: &[String]) -> Outcome {
    let spec: PodSpec = serde_json::from_str(spec)
        .map_err(|e| Failure::new(ExitCode::BadInput, format!("--spec is not that of a pod: {e}")))?;
    let cluster = Cluster::find(&PodSpec { namespace: Some(namespace.to_owned()), ..spec }).await.map_err(failed)?;
    let pod = cluster.pod(name).await.map_err(failed)?;
    // Unique among all streams to this pod.
    let session = format!("{}-{}", std::process::id(), tailbound_host::monotonic_ns());
    let relay = RELAY.map(str::to_owned);
    let (tell, told) = tokio::sync::oneshot::channel();
    let (tell, opened) = (Cell::new(Some(tell)), Cell::new(false));
    let open = async || {
        // It was cut. A pod that has ended is not waited for.
        if opened.replace(true)
            && let Ok(Some(why)) = pod.ended().await
            && let Some(tell) = tell.take()
        {
            let _ = tell.send(why);
            return std::future::pending().await;
        }
        pod.exec(&relay).await
    };
    let join = tailbound_stream::join(&session, words, open, tokio::io::stdin(), tokio::io::stdout(), PATIENCE);
    let lost = tokio::select! {
        joined = join => match joined {
            Ok(_) => return Ok(ExitCode::Done),
            Err(e) => e.to_string(),
        },
        Ok(why) = told => return Err(Failure::new(ExitCode::RunFailed, why)),
    };
    // What the cluster knows of it is more than that nothing came; if it does not answer, that is all.
    let gone = pod.gone().await.ok().flatten().map_or_else(String::new, |why| format!("; {why}"));
    Err(Failure::new(ExitCode::RunFailed, format!("{lost}{gone}")))
}
