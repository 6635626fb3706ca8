//! Runs `tailbound agent hold` and `tailbound agent relay`: agents that continue while the connections to them are
//! broken.

use crate::cli::{Hold, Relay};
use crate::failure::{CommandResult, Failure};
use crate::output::errln;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use tailbound_model::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

fn unexpected(e: impl Into<io::Error>) -> Failure {
    Failure::unexpected(format!("cannot hold agents: {}", e.into()))
}

pub fn hold(args: &Hold) -> CommandResult {
    if std::process::id() == 1 {
        return first_process().map_err(unexpected);
    }
    // The first process of a container has blocked these signals.
    SigSet::empty().thread_set_mask().map_err(unexpected)?;
    let _log = tailbound_run::log::holder(&args.socket);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(unexpected)?;
    let over = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(unexpected)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(unexpected)?;
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        let held = tailbound_stream::hold(&args.socket, args.lease, tailbound_run::log::held_program, stop);
        held.await.map_err(Failure::run_failed)
    })?;
    errln!("tailbound agent hold: {over}");
    Ok(ExitCode::Done)
}

/// Starts the holder of agents (the process that keeps agents running) as a child process, and reaps all other
/// processes.
///
/// The first process of a container inherits every process whose parent has ended, and must reap that process. The
/// holder is a separate process, so that this process never reaps a process that the holder waits for. When the holder
/// ends, this process ends with the same exit code, and the kernel kills all remaining processes.
fn first_process() -> io::Result<ExitCode> {
    let mut waited = SigSet::empty();
    [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT].into_iter().for_each(|s| waited.add(s));
    waited.thread_block()?;
    let holder = tailbound_host::own_program()?.args(std::env::args_os().skip(1)).spawn()?;
    let holder = Pid::from_raw(holder.id() as i32);
    loop {
        match waited.wait()? {
            Signal::SIGCHLD => {
                while let Ok(ended) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                    match ended {
                        WaitStatus::Exited(child, code) if child == holder => std::process::exit(code),
                        WaitStatus::Signaled(child, signal, _) if child == holder => {
                            std::process::exit(128 + signal as i32)
                        }
                        WaitStatus::StillAlive => break,
                        _ => {}
                    }
                }
            }
            // The holder was not reaped yet, so its process id was not reused.
            other => kill(holder, other)?,
        }
    }
}

pub fn relay(args: &Relay) -> CommandResult {
    let as_file = |stream: io::Result<_>| stream.map(File::from).map_err(tailbound_stream::RelayError::from);
    let carried = as_file(io::stdin().as_fd().try_clone_to_owned())
        .and_then(|input| Ok((input, as_file(io::stdout().as_fd().try_clone_to_owned())?)))
        .and_then(|(input, output)| tailbound_stream::relay(&args.socket, input, output));
    carried.map(|()| ExitCode::Done).map_err(Failure::run_failed)
}
