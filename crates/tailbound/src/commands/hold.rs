//! `tailbound agent hold` and `tailbound agent relay`: agents that outlive the connections to them.

use crate::cli::{Hold, Relay};
use crate::exit::{Failure, Outcome};
use crate::say::errln;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use tailbound_model::{ExitCode, Nanos};
use tokio::signal::unix::{SignalKind, signal};

/// A lease.
pub fn lease(text: &str) -> Result<Duration, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos(ns)) if ns > 0 => Ok(Duration::from_nanos(ns as u64)),
        Ok(_) => Err("a lease has to be longer than nothing".into()),
        Err(e) => Err(e.to_string()),
    }
}

fn unexpected(e: impl Into<io::Error>) -> Failure {
    Failure::new(ExitCode::Unexpected, format!("cannot hold agents: {}", e.into()))
}

pub fn hold(args: &Hold) -> Outcome {
    if std::process::id() == 1 {
        return first_process().map_err(unexpected);
    }
    // The first process of a container has them blocked.
    SigSet::empty().thread_set_mask().map_err(unexpected)?;
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
        let held = tailbound_stream::hold(&args.socket, args.lease, tailbound_host::own_program, stop);
        held.await.map_err(|e| Failure::new(ExitCode::RunFailed, e))
    })?;
    errln!("tailbound agent hold: {over}");
    Ok(ExitCode::Done)
}

/// The first process of a container inherits every process whose parent has ended, and has to collect it. This one does that
/// and nothing else: the holder is a child, with children of its own, so that nobody collects what another one waits for.
/// Ends as the holder does; the kernel then ends what is left.
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
            // Not collected yet, so the number is still its own.
            other => kill(holder, other)?,
        }
    }
}

pub fn relay(args: &Relay) -> Outcome {
    let own = |stream: io::Result<_>| stream.map(File::from).map_err(tailbound_stream::RelayError::from);
    let carried = own(io::stdin().as_fd().try_clone_to_owned())
        .and_then(|input| Ok((input, own(io::stdout().as_fd().try_clone_to_owned())?)))
        .and_then(|(input, output)| tailbound_stream::relay(&args.socket, input, output));
    carried.map(|()| ExitCode::Done).map_err(|e| Failure::new(ExitCode::RunFailed, e))
}
