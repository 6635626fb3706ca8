//! SIGTERM as a descriptor: the agent saves what it holds before it goes.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Readable once SIGTERM has come.
pub(super) fn termination() -> nix::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)
}

/// For a child: signals as if this process had never blocked any.
pub(super) fn unblock_all() -> nix::Result<()> {
    SigSet::empty().thread_set_mask()
}
