//! `tailbound lab`.

use crate::cli::LabSub;
use crate::exit::{Failure, Outcome};
use crate::say::outln;
use tailbound_host::journal;
use tailbound_model::ExitCode;

pub fn lab(command: Option<&LabSub>) -> Outcome {
    let failed = |e: journal::JournalError| Failure::new(ExitCode::RunFailed, e);
    match command {
        None | Some(LabSub::List) => {
            let states = journal::list().map_err(failed)?;
            if states.is_empty() {
                outln!("nothing: no run is going on, and none left anything behind");
            }
            for state in states {
                let life = match (state.owner_alive, state.stale_boot, state.busy) {
                    (_, true, _) => "of an earlier boot: void",
                    (true, ..) => "goes on",
                    (_, _, true) => "is being cleaned up",
                    _ => "is dead: `tailbound lab cleanup` takes this back",
                };
                outln!("run {} {life}", state.run);
                for entry in &state.entries {
                    outln!("  {}", tailbound_host::undo::describe(&entry.undo));
                }
                if let Some(problem) = &state.problem {
                    outln!("  problem: {problem}");
                }
            }
            Ok(ExitCode::Done)
        }
        Some(LabSub::Cleanup) => {
            let report = journal::cleanup(&mut |line| outln!("{line}")).map_err(failed)?;
            if report.undone.is_empty() && report.failed.is_empty() {
                outln!("nothing to take back");
            }
            for alive in &report.alive {
                outln!("left alone: {alive}");
            }
            Ok(if report.is_clean() { ExitCode::Done } else { ExitCode::RunFailed })
        }
    }
}
