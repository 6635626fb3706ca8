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
    let (do_what, they) = match running.len() {
        1 => ("runs and changes", "it"),
        _ => ("run and change", "they"),
    };
    let what = format!(
        "{names} {do_what} settings of this host, so that {they} could undo what `tune` sets, or hide its effect"
    );
    Err(Failure::not_fit(what).help(format!("stop {names} meanwhile, or add --beside to go on all the same")))
}
