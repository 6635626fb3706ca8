//! Runs `tailbound clock`: reads the hardware clocks of this machine and the system's clock once a second, and says what their
//! readings prove about steps and changes of rate.

mod found;
mod text;

use crate::cli::{Clock, ClockFormat};
use crate::failure::{CommandResult, Failure};
use crate::output::{out, outln};
use found::{ClockFound, Found, ReadingFound};
use std::path::PathBuf;
use std::time::Duration;
use tailbound_host::{
    PtpClock, PtpDevice, PtpError, PtpReading, ptp_device_of, ptp_devices, system_reading, tai_offset_s, unadjusted_ns,
};
use tailbound_model::{ExitCode, Nanos};
use tailbound_stats::MOST_DRIFT;

const SECOND_NS: i64 = 1_000_000_000;

type Read = Box<dyn Fn() -> Result<PtpReading, PtpError>>;

/// A clock of which readings are made.
struct Watched {
    /// Makes a reading. An error is the reason why there are no more readings.
    read: Result<Read, PtpError>,
    is_system: bool,
    readings: Vec<PtpReading>,
    found: ClockFound,
}

pub fn clock(args: &Clock) -> CommandResult {
    let devices = chosen(args).map_err(|e| failed(&e))?;
    let mut watched: Vec<Watched> = [system()].into_iter().chain(devices.into_iter().map(hardware)).collect();
    needs_one(&watched)?;
    let tai_offset_s = tai_offset_s();
    let is_text = args.format == ClockFormat::Text;
    if is_text {
        out!("{}", text::head(&tai_offset_s, watched.iter().map(|w| &w.found)));
    }
    let Nanos(duration_ns) = args.duration;
    let begin_ns = unadjusted_ns();
    for second in 0..=duration_ns / SECOND_NS {
        let due_ns = begin_ns + second * SECOND_NS;
        std::thread::sleep(Duration::from_nanos((due_ns - unadjusted_ns()).max(0).unsigned_abs()));
        let lines = watched.iter_mut().filter_map(|one| one.read(begin_ns));
        lines.filter(|_| is_text).for_each(|line| outln!("{line}"));
        needs_one(&watched)?;
    }
    let clocks: Vec<ClockFound> = watched.into_iter().map(|one| one.finished(begin_ns)).collect();
    let is_whole = clocks.iter().all(|clock| clock.not_read.is_none());
    let found = Found { tai_offset_s: tai_offset_s.ok(), most_rate_ppm: MOST_DRIFT / 1e3, clocks };
    match args.format {
        ClockFormat::Text => out!("{}", text::findings(&found)),
        ClockFormat::Json => outln!("{}", serde_json::to_string_pretty(&found).map_err(Failure::unexpected)?),
    }
    Ok(if is_whole { ExitCode::Done } else { ExitCode::RecordInvalid })
}

/// # Errors
/// No hardware clock has a reading or can still be read: the reason of the first one.
fn needs_one(watched: &[Watched]) -> Result<(), Failure> {
    let is_lost = |one: &Watched| one.read.is_err() && one.readings.is_empty();
    if !watched.iter().filter(|one| !one.is_system).all(is_lost) {
        return Ok(());
    }
    let of_first = watched.iter().find_map(|one| one.read.as_ref().err());
    of_first.map_or(Ok(()), |e| Err(failed(e)))
}

fn failed(e: &PtpError) -> Failure {
    let code = match e {
        PtpError::NoInterface(_) | PtpError::NotAClock(_) => ExitCode::BadInput,
        _ => ExitCode::MachineNotFit,
    };
    Failure::of(code, e.problem())
}

/// The devices that the user chose: one, or all of this machine.
fn chosen(args: &Clock) -> Result<Vec<PtpDevice>, PtpError> {
    let path = match (&args.device, &args.interface) {
        (Some(path), _) => path.clone(),
        (None, Some(interface)) => PathBuf::from(format!("/dev/ptp{}", ptp_device_of(interface)?)),
        (None, None) => return ptp_devices(),
    };
    // A link may lead to the device: /dev/ptp_kvm does.
    let device = path.canonicalize().map_err(|e| PtpError::NotOpened(path.clone(), e))?;
    let listed = ptp_devices().unwrap_or_default().into_iter().find(|listed| listed.path() == device);
    listed.map(|device| vec![device]).ok_or(PtpError::NotAClock(path))
}

fn system() -> Watched {
    let found = ClockFound {
        clock: "CLOCK_REALTIME".into(),
        name: "clock of the system".into(),
        read_by: "clock_gettime".into(),
        ..ClockFound::default()
    };
    Watched { read: Ok(Box::new(|| Ok(system_reading()))), is_system: true, readings: Vec::new(), found }
}

fn hardware(device: PtpDevice) -> Watched {
    let opened = PtpClock::open(&device.path());
    let clock = opened.as_ref().ok();
    let found = ClockFound {
        clock: device.path().display().to_string(),
        name: device.name,
        interfaces: device.interfaces,
        read_by: clock.map(|clock| clock.interface.name().into()).unwrap_or_default(),
        max_adjustment_ppb: clock.map(|clock| clock.max_adjustment_ppb),
        ..ClockFound::default()
    };
    let read = opened.map(|clock| Box::new(move || clock.read()) as Read);
    Watched { read, is_system: false, readings: Vec::new(), found }
}

impl Watched {
    /// Makes one reading, and returns the line that shows it, or why it failed; `None` if an earlier one failed. `begin_ns`:
    /// CLOCK_MONOTONIC_RAW when the command began.
    fn read(&mut self, begin_ns: i64) -> Option<String> {
        let reading = match self.read.as_ref().ok()?() {
            Ok(reading) => reading,
            Err(e) => {
                let line = text::not_read(unadjusted_ns() - begin_ns, &self.found.clock, &e.problem().what);
                self.read = Err(e);
                return Some(line);
            }
        };
        let found = ReadingFound::new(&reading, self.readings.last(), (begin_ns, self.is_system));
        let line = text::reading(&self.found.clock, &found);
        self.found.readings.push(found);
        self.readings.push(reading);
        Some(line)
    }

    /// What all readings together prove, or why there are none.
    fn finished(self, begin_ns: i64) -> ClockFound {
        let not_read = self.read.err().map(|e| e.problem());
        ClockFound { not_read, ..self.found }.with_changes(&self.readings, begin_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io;

    /// A hardware clock that is read this number of times before its device is gone.
    fn hardware_for(times: i64) -> Watched {
        let made = Cell::new(0);
        let read = move || {
            made.set(made.get() + 1);
            let at_ns = made.get() * SECOND_NS;
            let gone = || PtpError::NotRead("/dev/ptp1".into(), io::Error::from_raw_os_error(libc::ENODEV));
            let of = |clock_ns| PtpReading { clock_ns, realtime_ns: [at_ns; 2], unadjusted_ns: [at_ns, at_ns + 100] };
            (made.get() <= times).then(|| of(at_ns)).ok_or_else(gone)
        };
        let found = ClockFound { clock: "/dev/ptp1".into(), ..ClockFound::default() };
        Watched { read: Ok(Box::new(read)), is_system: false, readings: Vec::new(), found }
    }

    /// Test: a clock that is lost keeps its readings, and the other clocks are read on.
    #[test]
    fn a_clock_that_fails_keeps_its_readings() {
        let gone = PtpError::NotOpened("/dev/ptp0".into(), io::Error::from_raw_os_error(libc::EACCES));
        let mut refused = Watched { read: Err(gone), ..hardware_for(0) };
        refused.found.clock = "/dev/ptp0".into();
        let mut watched = vec![system(), refused, hardware_for(2), hardware_for(4)];
        let mut lines = Vec::new();
        for _ in 0..4 {
            lines.push(watched.iter_mut().filter_map(|one| one.read(0)).count());
            needs_one(&watched).unwrap();
        }
        assert_eq!(lines, [3, 3, 3, 2], "the line of a failure is the last one of its clock");
        let found: Vec<ClockFound> = watched.into_iter().map(|one| one.finished(0)).collect();
        let number: Vec<_> = found.iter().map(|clock| (clock.readings.len(), clock.not_read.is_some())).collect();
        assert_eq!(number, [(4, false), (0, true), (2, true), (4, false)]);
        insta::assert_snapshot!(text::findings(&Found {
            tai_offset_s: None,
            most_rate_ppm: 1e3,
            clocks: found.into_iter().skip(1).collect()
        }));
    }

    /// Test: if no hardware clock has a reading, the command fails.
    #[test]
    fn a_command_without_a_reading_fails() {
        let mut watched = vec![system(), hardware_for(0), hardware_for(0)];
        needs_one(&watched).unwrap();
        let lines: Vec<_> = watched.iter_mut().filter_map(|one| one.read(0)).collect();
        assert!(lines[1].ends_with("/dev/ptp1 cannot be read: No such device (os error 19)"), "{lines:?}");
        needs_one(&watched).unwrap_err();
    }
}
