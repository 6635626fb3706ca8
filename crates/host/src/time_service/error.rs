//! Reasons why a time service cannot be asked.

use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tailbound_model::Problem;

/// Reason why a time service cannot be asked. `Display` writes [`TimeServiceError::problem`] on one line.
#[derive(Debug, thiserror::Error)]
pub enum TimeServiceError {
    /// Error: there is no socket of ptp4l with this path, or ptp4l has ended.
    NoPtp4l(PathBuf, io::Error),
    /// Error: ptp4l does not answer requests for this domain.
    SilentPtp4l(PathBuf, u8),
    /// Error: the socket of this client, with this path, cannot be made or used.
    OwnSocket(PathBuf, io::Error),
    /// Error: the program chronyc is not installed, or cannot be started.
    NoChronyc(io::Error),
    /// Error: chronyc was ended, because it did not end by itself within this time.
    LateChronyc(Duration),
    /// Error: chronyc printed this text in place of the state of chrony.
    NoChrony(String),
}

impl TimeServiceError {
    /// Returns why the time service cannot be asked, and what the user can do.
    pub fn problem(&self) -> Problem {
        let (what, remedy) = match self {
            TimeServiceError::NoPtp4l(path, reason) => (
                format!("ptp4l cannot be asked at its socket {}: {reason}", path.display()),
                match reason.kind() {
                    io::ErrorKind::PermissionDenied => {
                        "run as root, or name the socket for readers (`uds_ro_address` of ptp4l.conf)"
                    }
                    _ => {
                        "start ptp4l, or name its socket (`uds_address` of ptp4l.conf) in the study: `clock: { by: { ptp4l: { socket: PATH } } }`"
                    }
                },
            ),
            TimeServiceError::SilentPtp4l(path, domain) => (
                format!("ptp4l at {} does not answer requests for the PTP domain {domain}", path.display()),
                "name its `domainNumber` in the study: `clock: { by: { ptp4l: { domain: NUMBER } } }`",
            ),
            TimeServiceError::OwnSocket(path, reason) => (
                format!("cannot use the socket {} for the answers of ptp4l: {reason}", path.display()),
                "set TMPDIR to a directory with a short path in which sockets can be made",
            ),
            TimeServiceError::NoChronyc(reason) => (
                format!("chrony cannot be asked: its program chronyc cannot be started: {reason}"),
                "install the package chrony, or ask ptp4l: `clock: { by: ptp4l }`",
            ),
            TimeServiceError::LateChronyc(patience) => (
                format!("chrony cannot be asked: chronyc did not end within {} s", patience.as_secs_f64()),
                "leave the program chronyc a CPU on which it runs in time",
            ),
            TimeServiceError::NoChrony(text) => {
                (format!("chrony cannot be asked: chronyc printed `{text}`"), "start chronyd")
            }
        };
        Problem::new("time_service", what, remedy)
    }
}

impl std::fmt::Display for TimeServiceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.problem().fmt(f)
    }
}

impl From<TimeServiceError> for Problem {
    fn from(e: TimeServiceError) -> Problem {
        e.problem()
    }
}
