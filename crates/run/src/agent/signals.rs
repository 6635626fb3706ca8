//! Signals as descriptors, so that the agent saves its samples before it ends on SIGTERM, and notices changes of its
//! child processes.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// A descriptor that becomes readable when SIGTERM arrives.
pub(super) fn termination() -> nix::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)
}

/// A descriptor that becomes readable when a child process has ended, was stopped or was continued.
pub(super) fn children() -> nix::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGCHLD);
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// Unblocks all signals. A child process calls this function before it starts its program.
pub(super) fn unblock_all() -> nix::Result<()> {
    SigSet::empty().thread_set_mask()
}
