//! Facts about the wall clock from the programs that adjust it: chrony and linuxptp. Conversions of time stamps do not
//! use these facts.

use super::source::Collector;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for an answer of chrony or linuxptp, which normally answer within milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);
/// Default socket on which `ptp4l` listens for requests of `pmc`.
const PTP4L: &str = "/var/run/ptp4l";

pub(super) fn read(c: &mut Collector) {
    // Programs are asked, and a copied tree of files has no running programs.
    if !c.is_live() {
        return;
    }
    if let Some(output) = output_of(Command::new("chronyc").args(["-c", "-n", "tracking"])) {
        let figures = output.and_then(|text| chrony(&text));
        let of = |figure: fn(&Chrony) -> f64| figures.as_ref().map(|f| nanoseconds(figure(f))).map_err(Clone::clone);
        let source = "chronyc tracking";
        c.put_number("clock.chrony.offset_ns", source, of(|f| f.offset_s));
        c.put_number("clock.chrony.root_delay_ns", source, of(|f| f.root_delay_s));
        c.put_number("clock.chrony.root_dispersion_ns", source, of(|f| f.root_dispersion_s));
        c.put_text("clock.chrony.leap", source, figures.map(|f| f.leap));
    }
    if c.exists(PTP4L)
        && let Some(output) = output_of(Command::new("pmc").args(["-u", "-b", "0", "GET TIME_STATUS_NP"]))
    {
        let source = "pmc GET TIME_STATUS_NP";
        let field = |name: &str| output.clone().and_then(|text| ptp(&text, name));
        let offset = field("master_offset").and_then(|t| t.parse().map_err(|_| format!("`{t}` is not a number")));
        c.put_number("clock.ptp.master_offset_ns", source, offset);
        c.put_text("clock.ptp.grandmaster", source, field("gmIdentity"));
        c.put_flag("clock.ptp.grandmaster_present", source, field("gmPresent").map(|t| t == "true"));
    }
}

/// Runs a program to its end and returns its output; `None` if the program is not installed.
fn output_of(command: &mut Command) -> Option<Result<String, String>> {
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
    // kill and wait fail only if the program has ended.
    let _ = child.kill();
    let ended = child.wait().is_ok_and(|status| status.success());
    let mut text = String::new();
    let read = child.stdout.take().map(|mut out| out.read_to_string(&mut text));
    match (ended, read) {
        (true, Some(Ok(_))) => Some(Ok(text)),
        _ => Some(Err(match text.trim() {
            "" => format!("{name} does not answer"),
            text => format!("{name}: {text}"),
        })),
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Chrony {
    /// Wall clock minus the time that chrony estimates, in seconds.
    offset_s: f64,
    root_delay_s: f64,
    root_dispersion_s: f64,
    leap: String,
}

/// Parses the output of `chronyc -c tracking`: fields separated by commas, in the order of the manual page.
fn chrony(text: &str) -> Result<Chrony, String> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    let number = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok());
    match (number(4), number(10), number(11), fields.get(13)) {
        (Some(slow_s), Some(root_delay_s), Some(root_dispersion_s), Some(leap)) => {
            // chrony reports by how much the clock is slow.
            Ok(Chrony { offset_s: -slow_s, root_delay_s, root_dispersion_s, leap: (*leap).to_owned() })
        }
        _ => Err(format!("`{}` is not an answer of `chronyc -c tracking`", text.trim())),
    }
}

/// Value of one field in the answer of linuxptp's `pmc`.
fn ptp(text: &str, name: &str) -> Result<String, String> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix(name).map(str::trim));
    value.map(str::to_owned).ok_or_else(|| "ptp4l does not report this value".to_owned())
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
        let read = chrony(line).unwrap();
        assert_eq!(nanoseconds(read.offset_s), 12_345, "a clock that is slow by a negative time is fast");
        assert_eq!((nanoseconds(read.root_delay_s), nanoseconds(read.root_dispersion_s)), (1_250_000, 300_000));
        assert_eq!(read.leap, "Normal");
        assert_eq!(
            chrony("506 Cannot talk to daemon").unwrap_err(),
            "`506 Cannot talk to daemon` is not an answer of `chronyc -c tracking`"
        );
    }

    #[test]
    fn the_output_of_pmc_is_parsed() {
        let text = "sending: GET TIME_STATUS_NP\n\t0a.fffe.0b-0 seq 0 RESPONSE MANAGEMENT TIME_STATUS_NP \n\
                    \t\tmaster_offset              -42\n\t\tgmPresent                  true\n\t\tgmIdentity                 0a.fffe.0c\n";
        assert_eq!(ptp(text, "master_offset").unwrap(), "-42");
        assert_eq!(ptp(text, "gmIdentity").unwrap(), "0a.fffe.0c");
        assert_eq!(ptp("sending: GET TIME_STATUS_NP\n", "gmPresent").unwrap_err(), "ptp4l does not report this value");
    }

    #[test]
    fn a_missing_program_and_a_failed_program_differ() {
        assert_eq!(output_of(&mut Command::new("tailbound-no-such-program")), None);
        assert_eq!(
            output_of(Command::new("sh").args(["-c", "echo 506 nobody; exit 1"])),
            Some(Err("sh: 506 nobody".into()))
        );
        assert_eq!(output_of(Command::new("sleep").arg("60")), Some(Err("sleep does not answer".into())));
        assert_eq!(output_of(Command::new("echo").arg("yes")), Some(Ok("yes\n".into())));
    }
}
