//! The child processes of `tune`: one measures pairs, one undoes changes if `tune` is killed.

use crate::commands::run;
use crate::failure::{CommandResult, Failure};
use crate::output::errln;
use crate::progress::Display;
use nix::sys::signal::{SigSet, Signal};
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use tailbound_lab::userns;
use tailbound_model::{ExitCode, Plan};
use tailbound_record::Status;
use tailbound_run::{RunOptions, controller};

/// Pause between looks of the watchdog for changes of killed runs, and largest number of looks: the child that measures may still be
/// undoing its own changes.
const LOOKS: (Duration, u32) = (Duration::from_secs(2), 15);

/// Runs the trials of a plan and writes their record. If `tune` is killed, the run ends like after Ctrl-C.
pub fn trials(plan: &Path, out: &Path) -> CommandResult {
    let parent = nix::unistd::getppid();
    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM).map_err(Failure::unexpected)?;
    if nix::unistd::getppid() != parent {
        return Err(Failure::run_failed("`tune` has ended"));
    }
    // `tune` blocks Ctrl-C; the run handles it.
    SigSet::all().thread_unblock().map_err(Failure::unexpected)?;
    let text = std::fs::read_to_string(plan).map_err(Failure::unexpected)?;
    let plan: Plan = serde_json::from_str(&text).map_err(Failure::unexpected)?;
    run::undo_changes_of_killed_runs();
    let makes_namespaces = plan.conditions.iter().any(|c| tailbound_lab::LabSpec::from(&c.spec).makes_namespaces());
    userns::enter_if_needed(makes_namespaces).map_err(Failure::not_fit)?;
    let mut display = Display::new((true, false), out.to_owned());
    let options = RunOptions {
        out: out.to_owned(),
        command: std::env::args().collect(),
        warnings: Vec::new(),
        driver_files: run::driver_files,
        until: None,
        repeated: None,
        figures: false,
        allow_concurrent: false,
    };
    let finished = controller::run(plan, options, &mut display);
    display.end();
    Ok(match finished?.status {
        Status::Valid => ExitCode::Done,
        _ => ExitCode::RecordInvalid,
    })
}

/// Waits until standard input ends, then undoes the changes of killed runs.
pub fn watchdog() -> CommandResult {
    let mut last = Vec::new();
    // `tune` writes a byte before it ends; a killed one does not.
    let _ = std::io::stdin().read_to_end(&mut last);
    if last.is_empty() {
        let (pause, number) = LOOKS;
        for _ in 0..number {
            std::thread::sleep(pause);
            let report = tailbound_host::journal::cleanup(&mut |line| errln!("{line}"));
            // The trials may still run, and undo their own changes.
            if report.is_ok_and(|report| report.is_clean() && report.alive.is_empty()) {
                break;
            }
        }
    }
    Ok(ExitCode::Done)
}
