//! `tailbound pod`: the process that speaks with a cluster for a run, as `ssh` does with a host.
//!
//! In: an order as JSON on standard input. Out: what became of it as JSON, or the octets of a stream.

use crate::cli::PodSub;
use crate::exit::Outcome;

#[cfg(feature = "pods")]
mod with_cluster;

pub fn pod(command: &PodSub) -> Outcome {
    tailbound_host::take_own_name();
    answer(command)
}

#[cfg(feature = "pods")]
use with_cluster::answer;

#[cfg(not(feature = "pods"))]
fn answer(command: &PodSub) -> Outcome {
    use crate::exit::Failure;
    use crate::say::out;
    use tailbound_model::{ExitCode, PodMade, PodTold};
    let text = "this tailbound was built without the feature `pods`";
    let mend = "build it with `cargo build --release --features pods -p tailbound`";
    if matches!(command, PodSub::Make | PodSub::Serve) {
        let told = PodTold::<PodMade>::OutOfReach(text.into(), mend.into());
        out!("{}\n", serde_json::to_string(&told).unwrap_or_default());
        return Ok(ExitCode::Done);
    }
    Err(Failure::new(ExitCode::MachineNotFit, format!("{text}\n  what to do: {mend}")))
}
