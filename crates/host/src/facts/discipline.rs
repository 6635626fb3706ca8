//! What programs that steer the wall clock tell of it: chrony and linuxptp. Facts only: nothing is converted by them.

use super::source::Collector;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Both answer within milliseconds, or say at once that nobody is there.
const PATIENCE: Duration = Duration::from_secs(1);
/// Where `ptp4l` listens for `pmc`, unless it was told otherwise.
const PTP4L: &str = "/var/run/ptp4l";

pub(super) fn read(c: &mut Collector) {
    // They are asked, not read: a copied tree has none.
    if !c.is_live() {
        return;
    }
    if let Some(told) = said(Command::new("chronyc").args(["-c", "-n", "tracking"])) {
        let figures = told.and_then(|text| chrony(&text));
        let of = |figure: fn(&Chrony) -> f64| figures.as_ref().map(|f| nanoseconds(figure(f))).map_err(Clone::clone);
        let source = "chronyc tracking";
        c.put_number("clock.chrony.offset_ns", source, of(|f| f.offset_s));
        c.put_number("clock.chrony.root_delay_ns", source, of(|f| f.root_delay_s));
        c.put_number("clock.chrony.root_dispersion_ns", source, of(|f| f.root_dispersion_s));
        c.put_text("clock.chrony.leap", source, figures.map(|f| f.leap));
    }
    if c.exists(PTP4L)
        && let Some(told) = said(Command::new("pmc").args(["-u", "-b", "0", "GET TIME_STATUS_NP"]))
    {
        let source = "pmc GET TIME_STATUS_NP";
        let field = |name: &str| told.clone().and_then(|text| ptp(&text, name));
        let offset = field("master_offset").and_then(|t| t.parse().map_err(|_| format!("`{t}` is not a number")));
        c.put_number("clock.ptp.master_offset_ns", source, offset);
        c.put_text("clock.ptp.grandmaster", source, field("gmIdentity"));
        c.put_flag("clock.ptp.grandmaster_present", source, field("gmPresent").map(|t| t == "true"));
    }
}

/// What a program prints; `None` = it is not installed.
fn said(command: &mut Command) -> Option<Result<String, String>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
        Err(e) => return Some(Err(format!("{name} cannot be started: {e}"))),
    };
    let deadline = Instant::now() + PATIENCE;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    // Both fail only if it has ended.
    let _ = child.kill();
    let ended = child.wait().is_ok_and(|status| status.success());
    let mut text = String::new();
    let read = child.stdout.take().map(|mut out| out.read_to_string(&mut text));
    match (ended, read) {
        (true, Some(Ok(_))) => Some(Ok(text)),
        _ => Some(Err(match text.trim() {
            "" => format!("{name} does not answer"),
            said => format!("{name}: {said}"),
        })),
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Chrony {
    /// The wall clock less the time that chrony estimates, s.
    offset_s: f64,
    root_delay_s: f64,
    root_dispersion_s: f64,
    leap: String,
}

/// `chronyc -c tracking`: comma-separated, in the order of its man page.
fn chrony(text: &str) -> Result<Chrony, String> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    let number = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok());
    match (number(4), number(10), number(11), fields.get(13)) {
        (Some(slow_s), Some(root_delay_s), Some(root_dispersion_s), Some(leap)) => {
            // It tells how much the clock is slow.
            Ok(Chrony { offset_s: -slow_s, root_delay_s, root_dispersion_s, leap: (*leap).to_owned() })
        }
        _ => Err(format!("`{}` is not what chronyc prints", text.trim())),
    }
}

/// A field of the answer of `pmc`.
fn ptp(text: &str, name: &str) -> Result<String, String> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix(name).map(str::trim));
    value.map(str::to_owned).ok_or_else(|| "ptp4l does not tell it".to_owned())
}

fn nanoseconds(s: f64) -> i64 {
    (s * 1e9).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chrony_prints_is_read() {
        let line = "0A00000A,10.0.0.10,3,1795356676.526,-0.000012345,0.000001,0.000002,-1.5,0.001,0.02,0.001250000,0.000300000,64.2,Normal\n";
        let told = chrony(line).unwrap();
        assert_eq!(nanoseconds(told.offset_s), 12_345, "the sign: a clock that is slow by a negative time is fast");
        assert_eq!((nanoseconds(told.root_delay_s), nanoseconds(told.root_dispersion_s)), (1_250_000, 300_000));
        assert_eq!(told.leap, "Normal");
        assert_eq!(
            chrony("506 Cannot talk to daemon").unwrap_err(),
            "`506 Cannot talk to daemon` is not what chronyc prints"
        );
    }

    #[test]
    fn what_pmc_prints_is_read() {
        let text = "sending: GET TIME_STATUS_NP\n\t0a.fffe.0b-0 seq 0 RESPONSE MANAGEMENT TIME_STATUS_NP \n\
                    \t\tmaster_offset              -42\n\t\tgmPresent                  true\n\t\tgmIdentity                 0a.fffe.0c\n";
        assert_eq!(ptp(text, "master_offset").unwrap(), "-42");
        assert_eq!(ptp(text, "gmIdentity").unwrap(), "0a.fffe.0c");
        assert_eq!(ptp("sending: GET TIME_STATUS_NP\n", "gmPresent").unwrap_err(), "ptp4l does not tell it");
    }

    #[test]
    fn a_program_that_is_not_there_or_fails_is_told_apart() {
        assert_eq!(said(&mut Command::new("tailbound-no-such-program")), None);
        assert_eq!(
            said(Command::new("sh").args(["-c", "echo 506 nobody; exit 1"])),
            Some(Err("sh: 506 nobody".into()))
        );
        assert_eq!(said(Command::new("sleep").arg("60")), Some(Err("sleep does not answer".into())));
        assert_eq!(said(Command::new("echo").arg("yes")), Some(Ok("yes\n".into())));
    }
}
