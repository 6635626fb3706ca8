//! The process that holds the settings of `tune apply`: it sets them, waits for the end of the lease or for a confirmation, and
//! puts them back.
//!
//! The process owns the journal of the changes. If it is killed, the next cleanup finds a journal without an owner and undoes it.

use crate::failure::{CommandResult, Failure};
use crate::output::outln;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tailbound_host::journal::{self, Journal, JournalState};
use tailbound_host::{Knobs, process};
use tailbound_model::{ExitCode, KnobDone, KnobSpec, Nanos, Problem};

/// Longest time in which the process of a lease puts settings back and ends.
const PATIENCE: Duration = Duration::from_secs(20);

/// Answer of the process of a lease to the process that started it.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// All settings are in force.
    Set(Vec<KnobDone>),
    /// A setting could not be made; the ones before it are put back.
    Failed(Problem),
}

/// Starts the process of a lease, and returns its answer.
pub fn begin(host: &[KnobSpec], lease: Nanos) -> Result<Reply, Failure> {
    let failed = |e: std::io::Error| Failure::unexpected(format!("the process of the lease cannot be started: {e}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(["tune", "lease"]).arg(lease.0.to_string()).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let text = serde_json::to_string(host).map_err(Failure::unexpected)?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(text.as_bytes()).map_err(failed)?;
    }
    let mut reply = String::new();
    child.stdout.take().map_or(Ok(0), |mut pipe| pipe.read_to_string(&mut reply)).map_err(failed)?;
    serde_json::from_str(&reply).map_err(|e| {
        let what = format!("the process of the lease ended without an answer: {e}");
        Failure::run_failed(what).help("`tailbound lab cleanup` puts back what it had set")
    })
}

/// The process of a lease: reads the settings from standard input, sets them and waits.
pub fn hold(lease_ns: i64) -> CommandResult {
    // A session of its own: the process survives the end of the terminal.
    let _ = nix::unistd::setsid();
    let mut mask = SigSet::empty();
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGUSR1].into_iter().for_each(|signal| mask.add(signal));
    mask.thread_block().map_err(Failure::unexpected)?;
    let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC).map_err(Failure::unexpected)?;
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(Failure::unexpected)?;
    let host: Vec<KnobSpec> = serde_json::from_str(&text).map_err(Failure::unexpected)?;
    let end = Instant::now() + Duration::from_nanos(lease_ns.unsigned_abs());
    let (reply, held) = match set(&host, lease_ns) {
        Ok((knobs, journal)) => (Reply::Set(knobs.settings()), Some((knobs, journal))),
        Err(problem) => (Reply::Failed(problem), None),
    };
    answer(&reply)?;
    let Some((knobs, journal)) = held else { return Ok(ExitCode::RunFailed) };
    if wait(&signals, end)? {
        journal.keep().map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
        return Ok(ExitCode::Done);
    }
    put_back(knobs, &journal);
    Ok(ExitCode::Done)
}

/// Sets everything, or puts back what was set and returns the problem.
fn set(host: &[KnobSpec], lease_ns: i64) -> Result<(Knobs, Journal), Problem> {
    let now = tailbound_host::realtime_ns();
    let journal = Journal::create_with_lease(&format!("apply-{now}"), now.saturating_add(lease_ns))?;
    let mut knobs = Knobs::default();
    let made = host.iter().try_for_each(|knob| knobs.set(knob, &[], &journal).map_err(|e| e.problem()));
    let made = made.and_then(|()| match knobs.verify().into_iter().next() {
        Some(changed) => {
            Err(Problem::new("changed_again", changed, "apply the settings that contradict it separately"))
        }
        None => Ok(()),
    });
    match made {
        Ok(()) => Ok((knobs, journal)),
        Err(problem) => {
            put_back(knobs, &journal);
            Err(problem)
        }
    }
}

/// Puts everything back. Entries that cannot be undone stay in the journal for the next cleanup.
fn put_back(knobs: Knobs, journal: &Journal) {
    let _ = knobs.restore(journal);
    let _ = journal.finish();
}

/// Writes the answer, and closes standard output, whose end the other process waits for.
fn answer(reply: &Reply) -> Result<(), Failure> {
    let text = serde_json::to_string(reply).map_err(Failure::unexpected)?;
    outln!("{text}");
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null").map_err(Failure::unexpected)?;
    nix::unistd::dup2_stdout(&null).map_err(Failure::unexpected)
}

/// Waits until the end of the lease or a signal. Returns true if the settings are confirmed.
fn wait(signals: &SignalFd, end: Instant) -> Result<bool, Failure> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let timeout = PollTimeout::try_from(left.min(Duration::from_secs(3600)) + Duration::from_millis(1));
        let mut ready = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        let number = poll(&mut ready, timeout.map_err(Failure::unexpected)?).map_err(Failure::unexpected)?;
        if number > 0
            && let Some(signal) = signals.read_signal().map_err(Failure::unexpected)?
        {
            return Ok(signal.ssi_signo == Signal::SIGUSR1 as u32);
        }
    }
}

/// The journals of leases that are not confirmed: the owner of the first ones runs, the one of the others was killed.
fn leases() -> Result<(Vec<JournalState>, Vec<JournalState>), Failure> {
    let all = journal::list().map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
    Ok(all.into_iter().filter(JournalState::has_lease).partition(|state| state.owner_alive))
}

/// Refuses a second lease beside one that is not confirmed.
pub fn refuse_second() -> Result<(), Failure> {
    match leases()?.0.is_empty() {
        true => Ok(()),
        false => Err(Failure::not_fit("settings of an earlier `tune apply` are neither confirmed nor put back")
            .help("end its lease first: `tailbound tune confirm` or `tailbound tune revert`")),
    }
}

/// Runs `tailbound tune confirm`: ends the lease and keeps the settings.
pub fn confirm() -> CommandResult {
    let (open, killed) = leases()?;
    let Some(lease) = open.first() else {
        let what = "no lease is open";
        return Err(match killed.is_empty() {
            true => Failure::bad_input(format!("{what}: nothing was applied, or the lease has ended"))
                .help("apply the receipt again: `tailbound tune apply RECEIPT`"),
            false => Failure::bad_input(format!("{what}: the process that held the settings was killed"))
                .help("`tailbound lab cleanup` puts the settings back; then apply the receipt again"),
        });
    };
    let Some(owner) = lease.header.as_ref().map(|header| header.owner) else { return Ok(ExitCode::Unexpected) };
    let failed = |e: std::io::Error| Failure::run_failed(format!("the lease cannot be ended: {e}"));
    process::signal(owner, Signal::SIGUSR1 as i32).map_err(failed)?;
    let has_ended = process::wait_for_end(owner, PATIENCE);
    let kept = journal::kept().map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
    let Some(kept) = kept.iter().find(|state| state.run == lease.run).filter(|_| has_ended) else {
        return Err(Failure::run_failed("the lease ended before it could be confirmed").help("apply the receipt again"));
    };
    outln!("Kept until the next boot. `tailbound tune revert` would:");
    kept.entries.iter().for_each(|entry| outln!("  {}", tailbound_host::undo::describe(&entry.undo)));
    Ok(ExitCode::Done)
}

/// Runs `tailbound tune revert`: puts back what `tune apply` has set, confirmed or not.
pub fn revert() -> CommandResult {
    let failed = |e: journal::JournalError| Failure::of(ExitCode::RunFailed, e);
    let (open, _) = leases()?;
    for owner in open.iter().filter_map(|lease| Some(lease.header.as_ref()?.owner)) {
        let ended = process::end(owner, PATIENCE);
        ended.map_err(|e| Failure::run_failed(format!("the process of a lease cannot be ended: {e}")))?;
    }
    for undo in open.iter().flat_map(|lease| lease.entries.iter().rev()) {
        outln!("ended the lease: {}", tailbound_host::undo::describe(&undo.undo));
    }
    // After a kill, the journal still has entries.
    let cleaned = journal::cleanup(&mut |line| outln!("{line}")).map_err(failed)?;
    let reverted = journal::revert(&mut |line| outln!("{line}")).map_err(failed)?;
    let nothing = [&cleaned, &reverted].iter().all(|of| of.undone.is_empty() && of.void.is_empty() && of.is_clean());
    if open.is_empty() && nothing && reverted.left_alone.is_empty() {
        outln!("nothing to revert: no settings of `tune apply` are in force");
    }
    Ok(if cleaned.is_clean() && reverted.is_clean() { ExitCode::Done } else { ExitCode::RunFailed })
}
