//! Programs that change settings of this host on their own, so that they would fight `tune`.

use crate::failure::Failure;

/// Names of the programs, as in /proc/PID/comm.
const PROGRAMS: [&str; 3] = ["tuned", "irqbalance", "bpftune"];

/// Refuses to run beside one of the programs.
pub fn refuse(beside: bool) -> Result<(), Failure> {
    let running = tailbound_host::process::running(&PROGRAMS);
    if beside || running.is_empty() {
        return Ok(());
    }
    let names = running.join(" and ");
    let what =
        format!("{names} runs and changes settings of this host, so that it could undo or hide what `tune` tries");
    Err(Failure::not_fit(what)
        .help(format!("stop {names} for the time of the run, or add --beside to measure beside it")))
}
