//! A client of `ptp4l`: asks for data sets, and receives the reports of events.

use super::error::TimeServiceError;
use super::ptp_message::{DataSet, Envelope, PtpAnswer, parse};
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest wait for the first answer, for each profile.
const PATIENCE: Duration = Duration::from_millis(500);
/// Longest message: linuxptp's buffer has 1,500 bytes.
const MOST_BYTES: usize = 1_500;
/// First bytes of a message: 0 for most profiles, 1 for the profile of IEEE 802.1AS (gPTP). linuxptp can be configured to answer
/// only its own profile.
const PROFILES: [u8; 2] = [0, 1];

/// A connection to a running `ptp4l`. Its own socket is a file, which is removed when the connection is dropped.
#[derive(Debug)]
pub struct Ptp4l {
    socket: UnixDatagram,
    own: PathBuf,
    service: PathBuf,
    envelope: Envelope,
}

impl Ptp4l {
    /// Connects to the `ptp4l` whose socket is `service`, and waits for its first answer. `directory`: where the client's own
    /// socket is made, because the answers are sent to a path.
    ///
    /// # Errors
    /// There is no such socket, nobody answers requests for this PTP domain, or the own socket cannot be made.
    pub fn connect(service: &Path, domain: u8, directory: &Path) -> Result<Ptp4l, TimeServiceError> {
        let own = directory.join(format!("ptp-{}", std::process::id()));
        let own_failed = |e| TimeServiceError::OwnSocket(own.clone(), e);
        let socket = UnixDatagram::bind(&own).map_err(own_failed)?;
        // If ptp4l is stopped, its queue fills up.
        socket.set_write_timeout(Some(PATIENCE)).map_err(own_failed)?;
        let client = u64::from(std::process::id());
        let envelope = Envelope { client, sequence: 0, domain, sdo: 0 };
        let mut made = Ptp4l { socket, own: own.clone(), service: service.to_owned(), envelope };
        for sdo in PROFILES {
            made.envelope.sdo = sdo;
            made.ask(DataSet::TimeStatus)?;
            if made.next(PATIENCE)?.is_some() {
                return Ok(made);
            }
        }
        Err(TimeServiceError::SilentPtp4l(service.to_owned(), domain))
    }

    /// Sends a request for a data set. Each port answers for itself, if the data set belongs to a port.
    ///
    /// # Errors
    /// `ptp4l` has ended.
    pub fn ask(&mut self, of: DataSet) -> Result<(), TimeServiceError> {
        let message = self.envelope.get(of);
        self.send(&message)
    }

    /// Asks for a report of each synchronisation (since linuxptp 4.0) and of each change of a port. `ptp4l` answers
    /// [`PtpAnswer::Subscribed`], or [`PtpAnswer::Refused`] on its socket for readers.
    ///
    /// # Errors
    /// `ptp4l` has ended.
    pub fn subscribe(&mut self, time: Duration) -> Result<(), TimeServiceError> {
        let seconds = u16::try_from(time.as_secs()).unwrap_or(u16::MAX);
        let message = self.envelope.subscribe(seconds);
        self.send(&message)
    }

    fn send(&mut self, message: &[u8]) -> Result<(), TimeServiceError> {
        self.envelope.sequence = self.envelope.sequence.wrapping_add(1);
        match self.socket.send_to(message, &self.service) {
            Ok(_) => Ok(()),
            Err(e) => Err(TimeServiceError::NoPtp4l(self.service.clone(), e)),
        }
    }

    /// The next answer or report; `None` if none arrives in time. What is no message is passed over.
    ///
    /// # Errors
    /// The own socket fails.
    pub fn next(&self, patience: Duration) -> Result<Option<PtpAnswer>, TimeServiceError> {
        let own_failed = |e| TimeServiceError::OwnSocket(self.own.clone(), e);
        let deadline = Instant::now() + patience;
        let mut buffer = [0; MOST_BYTES];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.set_read_timeout(Some(left)).map_err(own_failed)?;
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    if let Ok(answer) = parse(&buffer[..length]) {
                        return Ok(Some(answer));
                    }
                }
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return Ok(None),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(own_failed(e)),
            }
        }
    }
}

impl Drop for Ptp4l {
    fn drop(&mut self) {
        // The directory of the run, which is removed too, may be gone already.
        let _ = std::fs::remove_file(&self.own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test: a service that ended, and one that answers nobody, are errors that differ; the own socket is removed.
    #[test]
    fn a_service_that_is_absent_or_silent_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let service = dir.path().join("ptp4l");
        let absent = Ptp4l::connect(&service, 0, dir.path()).unwrap_err();
        assert!(
            matches!(&absent, TimeServiceError::NoPtp4l(path, e) if *path == service && e.kind() == io::ErrorKind::NotFound)
        );
        let listening = UnixDatagram::bind(&service).unwrap();
        assert!(matches!(Ptp4l::connect(&service, 24, dir.path()), Err(TimeServiceError::SilentPtp4l(_, 24))));
        drop(listening);
        let ended = Ptp4l::connect(&service, 0, dir.path()).unwrap_err();
        assert!(matches!(&ended, TimeServiceError::NoPtp4l(_, e) if e.kind() == io::ErrorKind::ConnectionRefused));
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["ptp4l"]);
    }
}
