//! Runs `tailbound pod`: the process that `run` starts to reach a Kubernetes cluster, as `run` starts `ssh` to reach a
//! host.
//!
//! Input: an order of the controller as JSON on standard input. Output: the answer as JSON, or the bytes of a stream.

use crate::cli::PodSub;
use crate::failure::CommandResult;
use tailbound_model::Problem;

#[cfg(feature = "pods")]
mod with_cluster;

pub fn pod(command: &PodSub) -> CommandResult {
    tailbound_host::take_own_name();
    let _log = tailbound_run::log::own_process();
    answer(command)
}

#[cfg(feature = "pods")]
use with_cluster::answer;

/// The problem of a program that cannot reach a Kubernetes cluster.
pub fn missing_feature() -> Problem {
    Problem::new(
        "feature_missing",
        "this tailbound was built without the feature `pods`",
        "build tailbound with `cargo build --release --features pods -p tailbound`",
    )
}

#[cfg(not(feature = "pods"))]
fn answer(command: &PodSub) -> CommandResult {
    use crate::failure::Failure;
    use crate::output::out;
    use tailbound_model::{ClusterAnswer, ExitCode, PodMade};
    let problem = missing_feature();
    if matches!(command, PodSub::Make | PodSub::Serve) {
        let answer = ClusterAnswer::<PodMade>::OutOfReach(problem);
        out!("{}\n", serde_json::to_string(&answer).unwrap_or_default());
        return Ok(ExitCode::Done);
    }
    Err(Failure::of(ExitCode::MachineNotFit, problem))
}
