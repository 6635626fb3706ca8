//! State of chrony, as `chronyc -c tracking` prints it.

use super::error::TimeServiceError;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for an answer of chrony, which normally answers within milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// State of chrony.
#[derive(Debug, Clone, PartialEq)]
pub struct ChronyTracking {
    /// Identity of the reference: an address, or the name of a reference clock; empty if there is none.
    pub reference: String,
    /// Number of servers between a reference clock and this host, itself included.
    pub stratum: u16,
    /// Wall clock minus the time that chrony estimates, ns.
    pub offset_ns: i64,
    /// Delay of the path to the reference clock, ns.
    pub root_delay_ns: i64,
    /// Largest error that the reference itself may have, ns.
    pub root_dispersion_ns: i64,
    /// Largest error of the rate of the clock, ppb: skew and residual frequency.
    pub rate_error_ppb: i64,
    /// Whether the clock is in step: `Normal`, `Insert second`, `Delete second`, or `Not synchronised`.
    pub leap: String,
}

impl ChronyTracking {
    /// True if chrony has a reference with which the clock is in step.
    pub fn is_synchronised(&self) -> bool {
        self.leap != "Not synchronised"
    }
}

/// Asks chrony for its state.
///
/// # Errors
/// `chronyc` cannot be started, or prints no state.
pub fn chrony_tracking() -> Result<ChronyTracking, TimeServiceError> {
    parsed(&text_of(Command::new("chronyc").args(["-c", "-n", "tracking"]))?)
}

/// Text that a program prints, if it ends in time.
fn text_of(command: &mut Command) -> Result<String, TimeServiceError> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.map_err(TimeServiceError::NoChronyc)?;
    let deadline = Instant::now() + PATIENCE;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    let is_late = matches!(child.try_wait(), Ok(None));
    // kill and wait fail only if the program has ended.
    let _ = child.kill();
    let ended = child.wait().is_ok_and(|status| status.success());
    let mut text = String::new();
    let read = child.stdout.take().map(|mut out| out.read_to_string(&mut text));
    match (ended, read) {
        (true, Some(Ok(_))) => Ok(text),
        _ if is_late => Err(TimeServiceError::LateChronyc(PATIENCE)),
        _ => Err(TimeServiceError::NoChrony(text.trim().to_owned())),
    }
}

/// Parses the output of `chronyc -c tracking`: fields separated by commas, in the order of the manual page chronyc(1).
///
/// # Errors
/// The text is not such an output.
fn parsed(text: &str) -> Result<ChronyTracking, TimeServiceError> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    let seconds = |at: usize| fields.get(at)?.parse::<f64>().ok().filter(|s| s.abs() < 1e9).map(nanoseconds);
    let found = || {
        Some(ChronyTracking {
            reference: (*fields.get(1)?).to_owned(),
            stratum: fields.get(2)?.parse().ok()?,
            // chrony reports by how much the clock is slow.
            offset_ns: -seconds(4)?,
            root_delay_ns: seconds(10)?,
            root_dispersion_ns: seconds(11)?,
            rate_error_ppb: ppb(fields.get(8)?)? + ppb(fields.get(9)?)?,
            leap: (*fields.get(13)?).to_owned(),
        })
    };
    found().ok_or_else(|| TimeServiceError::NoChrony(text.trim().to_owned()))
}

/// A number of ppm without its sign, in ppb, rounded up.
fn ppb(ppm: &str) -> Option<i64> {
    ppm.parse::<f64>().ok().filter(|ppm| ppm.abs() < 1e9).map(|ppm| (ppm.abs() * 1e3).ceil() as i64)
}

fn nanoseconds(s: f64) -> i64 {
    (s * 1e9).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_chrony_is_parsed() {
        let line = "0A00000A,10.0.0.10,3,1795356676.526,-0.000012345,0.000001,0.000002,-1.5,0.001,0.02,0.001250000,0.000300000,64.2,Normal\n";
        let read = parsed(line).unwrap();
        assert_eq!(read.offset_ns, 12_345, "a clock that is slow by a negative time is fast");
        assert_eq!((read.root_delay_ns, read.root_dispersion_ns, read.stratum), (1_250_000, 300_000, 3));
        assert_eq!(read.rate_error_ppb, 21, "a residual frequency of 0.001 ppm and a skew of 0.02 ppm");
        assert_eq!(
            (read.leap.as_str(), read.reference.as_str(), read.is_synchronised()),
            ("Normal", "10.0.0.10", true)
        );
        for text in ["506 Cannot talk to daemon", "", ",,,,,,,,,,,,,", "a,b,3,1,NaN,0,0,0,0,0,inf,0,0,Normal"] {
            let error = parsed(text).unwrap_err();
            assert!(error.to_string().contains(&format!("printed `{text}`")), "{error}");
        }
    }

    #[test]
    fn a_missing_program_and_a_failed_program_differ() {
        let missing = text_of(&mut Command::new("tailbound-no-such-program"));
        assert!(matches!(missing, Err(TimeServiceError::NoChronyc(_))));
        let failed = text_of(Command::new("sh").args(["-c", "echo 506 nobody; exit 1"])).unwrap_err();
        assert!(failed.to_string().contains("506 nobody"), "{failed}");
        let late = text_of(Command::new("sleep").arg("60")).unwrap_err();
        assert_eq!(
            late.to_string(),
            "chrony cannot be asked: chronyc did not end within 1 s; leave the program chronyc a CPU on which it runs in time"
        );
        assert_eq!(text_of(Command::new("echo").arg("yes")).unwrap(), "yes\n");
    }
}
