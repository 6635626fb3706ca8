//! Reasons why a PTP hardware clock cannot be read.

use std::io;
use std::path::PathBuf;
use tailbound_model::Problem;

/// Reason why a PTP hardware clock cannot be read. `Display` writes [`PtpError::problem`] on one line.
#[derive(Debug, thiserror::Error)]
pub enum PtpError {
    /// Error: this machine has no PTP hardware clock.
    NoClock,
    /// Error: the network interface does not exist in this network namespace.
    NoInterface(String),
    /// Error: the network interface has no PTP hardware clock; the second text is the reason.
    NoClockOfInterface(String, String),
    /// Error: the device of a clock cannot be opened.
    NotOpened(PathBuf, io::Error),
    /// Error: the file is not the device of a PTP hardware clock.
    NotAClock(PathBuf),
    /// Error: the kernel refuses to read the clock.
    NotRead(PathBuf, io::Error),
}

impl PtpError {
    /// Returns why the clock cannot be read, and what the user can do.
    pub fn problem(&self) -> Problem {
        let (what, remedy) = match self {
            PtpError::NoClock => (
                "this machine has no PTP hardware clock: /sys/class/ptp is empty".to_owned(),
                "load the driver of a network card with a hardware clock; `ethtool -T INTERFACE` shows whether a card has one",
            ),
            PtpError::NoInterface(name) => (
                format!("there is no network interface {name} in this network namespace"),
                "`ip link` lists the interfaces",
            ),
            PtpError::NoClockOfInterface(name, why) => (
                format!("the network interface {name} has no PTP hardware clock: {why}"),
                "name another interface; without --interface, all clocks of this machine are read",
            ),
            PtpError::NotOpened(path, reason) => (
                format!("cannot open the PTP hardware clock {}: {reason}", path.display()),
                match reason.kind() {
                    io::ErrorKind::PermissionDenied => "run as root, or give this user the right to read the device",
                    io::ErrorKind::NotFound => "`ls /dev/ptp*` lists the clocks of this machine",
                    _ => "",
                },
            ),
            PtpError::NotAClock(path) => (
                format!("{} is not the device of a PTP hardware clock", path.display()),
                "`ls /dev/ptp*` lists the clocks of this machine",
            ),
            PtpError::NotRead(path, reason) => (
                format!("the PTP hardware clock {} cannot be read: {reason}", path.display()),
                "the kernel's log may contain the reason: `dmesg`",
            ),
        };
        Problem::new("clock_not_read", what, remedy)
    }
}

impl std::fmt::Display for PtpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.problem().fmt(f)
    }
}

impl From<PtpError> for Problem {
    fn from(e: PtpError) -> Problem {
        e.problem()
    }
}
