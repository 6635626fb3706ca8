//! Runs `tailbound tune apply`: sets the kept host settings of a receipt on this host, with a lease.
//!
//! A process of its own ([`super::lease`]) makes the changes and owns their journal, so that they are undone when the lease ends,
//! or by the next cleanup after this process was killed.

use super::changes::{Changes, Effect};
use super::export::form_for;
use super::lease::{self, Reply};
use super::replay::read;
use super::{fighting, run};
use crate::commands::run::undo_changes_of_killed_runs;
use crate::failure::{CommandResult, Failure};
use crate::output::{errln, outln};
use clap::ValueEnum;
use std::io::{IsTerminal, Write};
use std::path::Path;
use tailbound_host::interface::carries_traffic_of_the_host;
use tailbound_host::knob;
use tailbound_model::{ExitCode, KnobSpec, Nanos};
use tailbound_tune::Receipt;

/// What the user asked for.
pub struct Wishes {
    pub lease: Nanos,
    pub beside: bool,
    pub dry_run: bool,
    pub yes: bool,
}

/// Sets the kept host settings of a receipt.
pub fn apply(path: &Path, wishes: &Wishes) -> CommandResult {
    let receipt = read(path)?;
    let changes = Changes::of(&receipt, path)?;
    let host: Vec<KnobSpec> = changes.host().into_iter().filter(lasts).collect();
    if host.is_empty() {
        let what = format!("{}: no kept change is a setting of this host that lasts", path.display());
        let help = commands(path, &receipt, &changes).join("; ");
        return Err(Failure::bad_input(what).help(format!("take the changes along: {help}")));
    }
    if wishes.dry_run {
        outln!("Would be set on this host for {}, and then put back unless confirmed:", wishes.lease);
        host.iter().for_each(print_now);
        print_others(path, &receipt, &changes);
        host.iter().try_for_each(check)?;
        return Ok(ExitCode::Done);
    }
    host.iter().try_for_each(check)?;
    fighting::refuse(wishes.beside)?;
    lease::refuse_second()?;
    ask(wishes.yes, &host)?;
    // Without this, values that a killed run has left would be taken for the original values.
    undo_changes_of_killed_runs();
    match lease::begin(&host, wishes.lease)? {
        Reply::Failed(problem) => return Err(Failure::of(ExitCode::RunFailed, problem)),
        Reply::Set(done) => {
            outln!("Set on this host, and read back:");
            for one in &done {
                let same = one.before == one.found;
                let before = if same { "as before".to_owned() } else { format!("was {}", one.before) };
                outln!("  {}: {} ({}; {before})", one.key, one.found, one.what);
            }
        }
    }
    outln!(
        "The lease is {}: then the settings are put back. `tailbound tune confirm` keeps them until the next boot; `tailbound \
         tune revert` puts them back at any time.",
        wishes.lease
    );
    print_others(path, &receipt, &changes);
    Ok(ExitCode::Done)
}

/// True if a setting is of the whole host, and stays when the process that made it has ended.
fn lasts(knob: &KnobSpec) -> bool {
    !matches!(knob, KnobSpec::CpuDmaLatency { .. } | KnobSpec::CpuQuota)
}

/// Checks that a setting can be made here and touches no interface that the host needs.
fn check(knob: &KnobSpec) -> Result<(), Failure> {
    if let KnobSpec::Sysctl { name, .. } = knob {
        let parts = name.split(['.', '/']);
        if let Some((part, why)) = parts.filter_map(|part| Some((part, carries_traffic_of_the_host(part)?))).next() {
            let what = format!("{}: settings of interface {part} are never changed, because {why}", knob.key());
            return Err(Failure::not_fit(what).help("set it by hand, if you can reach this host in another way"));
        }
    }
    knob::check(knob, &[], false).map_err(|e| Failure::of(ExitCode::MachineNotFit, e.problem()))
}

fn print_now(knob: &KnobSpec) {
    let now: Vec<String> = knob::now(knob, &[]).into_iter().map(|(what, now)| format!("{what}: now {now}")).collect();
    outln!("  {knob}  ({})", now.join(", "));
}

/// Prints the kept changes that are not settings of the host, with the commands that take them along.
fn print_others(path: &Path, receipt: &Receipt, changes: &Changes) {
    let commands = commands(path, receipt, changes);
    if !commands.is_empty() {
        outln!("Not set, because they are not settings of this host that last; take them along:");
        commands.iter().for_each(|command| outln!("  {command}"));
    }
}

/// For each kept change that `apply` does not set: the command that takes it along.
fn commands(path: &Path, receipt: &Receipt, changes: &Changes) -> Vec<String> {
    let is_set = |effect: &Effect| matches!(effect, Effect::Host(knob) if lasts(knob));
    let others = changes.all.iter().filter(|change| !change.effects.iter().all(is_set));
    let one = |setting: &str| match form_for(receipt, changes, setting).and_then(|form| form.to_possible_value()) {
        Some(form) => {
            let path = path.display();
            format!("{setting}  (`tailbound tune export {path} --format {}`)", form.get_name())
        }
        None => format!("{setting}  (no form of `tailbound tune export` can express it)"),
    };
    others.map(|change| one(&change.setting)).collect()
}

fn ask(yes: bool, host: &[KnobSpec]) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let what = "`tune apply` changes settings of this host, and there is no terminal to ask for permission";
        return Err(Failure::bad_input(what).help("add --yes, or see with --dry-run what it would do"));
    }
    host.iter().for_each(print_now);
    errln!("`tune apply` sets these on this host. Go on? [y/N] ");
    let _ = std::io::stderr().flush();
    run::answer("nothing was changed")
}
