//! Signals as descriptors: the agent saves what it holds before SIGTERM ends it, and notices what befalls its children.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Readable once SIGTERM has come.
pub(super) fn termination() -> nix::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)
}

/// Readable once a child has ended, was stopped, or went on.
pub(super) fn children() -> nix::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGCHLD);
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// For a child: signals as if this process had never blocked any.
pub(super) fn unblock_all() -> nix::Result<()> {
    SigSet::empty().thread_set_mask()
}
