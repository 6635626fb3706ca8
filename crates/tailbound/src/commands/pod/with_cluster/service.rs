//! Makes and deletes Kubernetes Services of a run: one for the discovery server, and one that names the pods.

use super::{DEADLINE_S, failed, order};
use crate::failure::CommandResult;
use crate::output::out;
use std::time::{Duration, SystemTime};
use tailbound_model::{ClusterAnswer, ExitCode, NameOrder, PodSpec, ServerOrder};
use tailbound_pods::{Cluster, NameRequest, ServiceRequest};

/// Default port of the discovery servers of Fast DDS.
const PORT: u16 = 11811;

fn name(order: &ServerOrder) -> String {
    format!("tailbound-{}-discovery", order.token)
}

pub(super) async fn serve() -> CommandResult {
    let order: ServerOrder = order()?;
    let until = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() + Duration::from_secs(DEADLINE_S.into());
    let (listen, until) = (format!("0.0.0.0:{PORT}"), until.as_secs().to_string());
    let args = ["agent", "discovery", "--driver", &order.driver, "--listen", &listen, "--until", &until];
    let request = ServiceRequest {
        name: name(&order),
        token: order.token,
        owner: order.owner,
        args: args.map(str::to_owned).to_vec(),
        port: PORT,
    };
    let answer = match Cluster::find(&order.spec).await {
        Err(e) => ClusterAnswer::OutOfReach(e),
        Ok(cluster) => match cluster.serve(&order.spec, &request).await {
            Ok(address) => ClusterAnswer::Made(address),
            Err(e) => ClusterAnswer::Failed(e),
        },
    };
    out!("{}\n", serde_json::to_string(&answer).unwrap_or_default());
    Ok(ExitCode::Done)
}

pub(super) async fn name_pods() -> CommandResult {
    let NameOrder { spec, token, owner, run } = order()?;
    let request = NameRequest { name: format!("tailbound-{token}"), token, owner, run };
    let answer = match Cluster::find(&spec).await {
        Err(e) => ClusterAnswer::OutOfReach(e),
        Ok(cluster) => match cluster.name(&request).await {
            Ok(name) => ClusterAnswer::Made(name),
            Err(e) => ClusterAnswer::Failed(e),
        },
    };
    out!("{}\n", serde_json::to_string(&answer).unwrap_or_default());
    Ok(ExitCode::Done)
}

pub(super) async fn unserved() -> CommandResult {
    let order: ServerOrder = order()?;
    let cluster = Cluster::find(&order.spec).await.map_err(failed)?;
    if let Some(why) = cluster.unserved(&name(&order), &order.token).await.map_err(failed)? {
        out!("{why}\n");
    }
    Ok(ExitCode::Done)
}

pub(super) async fn unserve(token: &str) -> CommandResult {
    let spec: PodSpec = order()?;
    let cluster = Cluster::find(&spec).await.map_err(failed)?;
    for gone in cluster.remove_services(token).await.map_err(failed)? {
        out!("{gone}\n");
    }
    Ok(ExitCode::Done)
}
