//! Runs `tailbound tune`: measures a study, tries changes that answer the causes of its late messages, and writes a receipt.
//!
//! `tailbound_tune` decides; this module measures. Pairs of trials are ordinary records, which a child process writes.

mod apply;
mod bench;
mod candidates;
mod changes;
mod export;
mod fighting;
mod lease;
mod limit;
mod reboot;
mod replay;
mod run;
mod state;
mod trials;

use crate::cli;
use crate::failure::CommandResult;

pub fn tune(args: &cli::Tune) -> CommandResult {
    match &args.command {
        None => run::begin(args),
        Some(cli::TuneSub::Resume { directory, changed }) => run::resume(directory, *changed),
        Some(cli::TuneSub::Replay { receipt, out, beside, yes }) => {
            replay::replay(receipt, out.as_deref(), *beside, *yes)
        }
        Some(cli::TuneSub::Export { receipt, format, end }) => export::export(receipt, *format, *end),
        Some(cli::TuneSub::Apply { receipt, lease, beside, dry_run, yes }) => {
            let wishes = apply::Wishes { lease: *lease, beside: *beside, dry_run: *dry_run, yes: *yes };
            apply::apply(receipt, &wishes)
        }
        Some(cli::TuneSub::Confirm) => lease::confirm(),
        Some(cli::TuneSub::Revert) => lease::revert(),
        Some(cli::TuneSub::Lease { ns }) => lease::hold(*ns),
        Some(cli::TuneSub::Trials { plan, out }) => trials::trials(plan, out),
        Some(cli::TuneSub::Watchdog) => trials::watchdog(),
    }
}
