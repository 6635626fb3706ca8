//! Services of a run: its discovery server behind one, and one that names its pods.

use super::{DEADLINE_S, failed, given};
use crate::exit::Outcome;
use crate::say::out;
use std::time::{Duration, SystemTime};
use tailbound_model::{ExitCode, NameOrder, PodSpec, PodTold, ServerOrder};
use tailbound_pods::{Cluster, NameRequest, ServiceRequest};

/// Where clients of Fast DDS look when no port is named.
const PORT: u16 = 11811;

fn name(order: &ServerOrder) -> String {
    format!("tailbound-{}-discovery", order.token)
}

pub(super) async fn serve() -> Outcome {
    let order: ServerOrder = given()?;
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
    let told = match Cluster::find(&order.spec).await {
        Err(e) => PodTold::OutOfReach(e.what, e.mend),
        Ok(cluster) => match cluster.serve(&order.spec, &request).await {
            Ok(address) => PodTold::Made(address),
            Err(e) => PodTold::Failed(e.what, e.mend),
        },
    };
    out!("{}\n", serde_json::to_string(&told).unwrap_or_default());
    Ok(ExitCode::Done)
}

pub(super) async fn name_pods() -> Outcome {
    let NameOrder { spec, token, owner, run } = given()?;
    let request = NameRequest { name: format!("tailbound-{token}"), token, owner, run };
    let told = match Cluster::find(&spec).await {
        Err(e) => PodTold::OutOfReach(e.what, e.mend),
        Ok(cluster) => match cluster.name(&request).await {
            Ok(name) => PodTold::Made(name),
            Err(e) => PodTold::Failed(e.what, e.mend),
        },
    };
    out!("{}\n", serde_json::to_string(&told).unwrap_or_default());
    Ok(ExitCode::Done)
}

pub(super) async fn unserved() -> Outcome {
    let order: ServerOrder = given()?;
    let cluster = Cluster::find(&order.spec).await.map_err(failed)?;
    if let Some(why) = cluster.unserved(&name(&order), &order.token).await.map_err(failed)? {
        out!("{why}\n");
    }
    Ok(ExitCode::Done)
}

pub(super) async fn unserve(token: &str) -> Outcome {
    let spec: PodSpec = given()?;
    let cluster = Cluster::find(&spec).await.map_err(failed)?;
    for gone in cluster.remove_services(token).await.map_err(failed)? {
        out!("{gone}\n");
    }
    Ok(ExitCode::Done)
}
