//! Lines that the first process of a guest writes to the guest's console.

use std::io::{self, Write};

/// Text on the console that says that the guest is up; the test of KVM looks for this text.
pub(crate) const READY: &str = "tailbound guest READY";

/// Writes to the console of the guest that the guest is up, with the uptime of the guest's kernel.
pub(super) fn ready() {
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    let version = std::fs::read_to_string("/proc/sys/kernel/version").unwrap_or_default();
    let since = uptime.split(' ').next().unwrap_or_default();
    say(&format!("{READY} {} after {since} s, {}", env!("CARGO_PKG_VERSION"), version.trim()));
}

/// Writes a line to the guest's console; errors are ignored.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
