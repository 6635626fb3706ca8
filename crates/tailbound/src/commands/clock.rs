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

/// A clock of which readings are made. Without a hardware clock, it is the system's clock.
struct Watched {
    clock: Option<PtpClock>,
    readings: Vec<PtpReading>,
    found: ClockFound,
}

pub fn clock(args: &Clock) -> CommandResult {
    let mut watched = vec![system()];
    for device in chosen(args).map_err(failed)? {
        watched.push(hardware(device).map_err(failed)?);
    }
    let tai_offset_s = tai_offset_s();
    let is_text = args.format == ClockFormat::Text;
    if is_text {
        out!("{}", text::head(tai_offset_s, watched.iter().map(|w| &w.found)));
    }
    let Nanos(duration_ns) = args.duration;
    let begin_ns = unadjusted_ns();
    for second in 0..=duration_ns / SECOND_NS {
        let due_ns = begin_ns + second * SECOND_NS;
        std::thread::sleep(Duration::from_nanos((due_ns - unadjusted_ns()).max(0).unsigned_abs()));
        for one in &mut watched {
            let reading = one.read(begin_ns).map_err(failed)?;
            if is_text {
                outln!("{}", text::reading(&one.found.clock, &reading));
            }
            one.found.readings.push(reading);
        }
    }
    let clocks = watched.into_iter().map(|one| one.found.with_changes(&one.readings, begin_ns)).collect();
    let found = Found { tai_offset_s, most_rate_ppm: MOST_DRIFT / 1e3, clocks };
    match args.format {
        ClockFormat::Text => out!("{}", text::findings(&found)),
        ClockFormat::Json => outln!("{}", serde_json::to_string_pretty(&found).map_err(Failure::unexpected)?),
    }
    Ok(ExitCode::Done)
}

fn failed(e: PtpError) -> Failure {
    let code = match e {
        PtpError::NoInterface(_) | PtpError::NotAClock(_) => ExitCode::BadInput,
        _ => ExitCode::MachineNotFit,
    };
    Failure::of(code, e)
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
    Watched { clock: None, readings: Vec::new(), found }
}

fn hardware(device: PtpDevice) -> Result<Watched, PtpError> {
    let clock = PtpClock::open(&device.path())?;
    let found = ClockFound {
        clock: device.path().display().to_string(),
        name: device.name,
        interfaces: device.interfaces,
        read_by: clock.interface.name().into(),
        max_adjustment_ppb: Some(clock.max_adjustment_ppb),
        ..ClockFound::default()
    };
    Ok(Watched { clock: Some(clock), readings: Vec::new(), found })
}

impl Watched {
    /// Makes one reading. `begin_ns`: CLOCK_MONOTONIC_RAW when the command began.
    fn read(&mut self, begin_ns: i64) -> Result<ReadingFound, PtpError> {
        let reading = self.clock.as_ref().map_or_else(|| Ok(system_reading()), PtpClock::read)?;
        let found = ReadingFound::new(&reading, self.readings.last(), (begin_ns, self.clock.is_none()));
        self.readings.push(reading);
        Ok(found)
    }
}
