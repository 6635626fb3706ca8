//! Readings of the hardware clocks of this host, and of CLOCK_REALTIME, once a second.

use tailbound_host::{PtpClock, PtpReading, monotonic_ns, ptp_devices, system_reading};
use tailbound_model::{BracketedReading, ClockReadings};

const SECOND_NS: i64 = 1_000_000_000;
/// Largest number of hardware clocks that are read.
const MOST_CLOCKS: usize = 8;

/// The clocks of this host that are read.
pub(super) struct Hardware {
    clocks: Vec<Watched>,
    due_ns: i64,
}

struct Watched {
    about: ClockReadings,
    /// `None` = CLOCK_REALTIME.
    clock: Option<PtpClock>,
}

impl Hardware {
    /// Opens the hardware clocks of this host. A clock that cannot be opened is in the history with the reason.
    pub fn open() -> Hardware {
        let about = |clock: String, interfaces, read_by: &str| ClockReadings {
            clock,
            interfaces,
            read_by: read_by.to_owned(),
            ..ClockReadings::default()
        };
        let mut clocks =
            vec![Watched { about: about("CLOCK_REALTIME".into(), Vec::new(), "clock_gettime"), clock: None }];
        // An error says that there is no hardware clock.
        for device in ptp_devices().unwrap_or_default().into_iter().take(MOST_CLOCKS) {
            let opened = PtpClock::open(&device.path());
            let read_by = opened.as_ref().map_or("", |clock| clock.interface.name());
            let mut about = about(device.path().display().to_string(), device.interfaces, read_by);
            about.not_read = opened.as_ref().err().map(|e| e.problem().what);
            clocks.push(Watched { about, clock: opened.ok() });
        }
        Hardware { clocks, due_ns: 0 }
    }

    /// One reading of each clock, each second; otherwise nothing.
    pub fn read_if_due(&mut self) -> Vec<ClockReadings> {
        let now_ns = monotonic_ns();
        if now_ns < self.due_ns {
            return Vec::new();
        }
        self.due_ns = now_ns + SECOND_NS;
        self.clocks.iter_mut().map(Watched::read).collect()
    }
}

impl Watched {
    /// One reading, or the reason why there is none; a clock that failed is not read again.
    fn read(&mut self) -> ClockReadings {
        let at_ns = monotonic_ns();
        let bracketed = |reading: PtpReading, offset_ns| BracketedReading {
            at_ns,
            offset_ns,
            half_width_ns: reading.half_width_ns(),
            clock_ns: reading.clock_ns,
            unadjusted_ns: reading.unadjusted_ns,
        };
        let reading = match self.clock.as_ref().map(PtpClock::read) {
            None if self.about.not_read.is_some() => None,
            None => Some(bracketed(system_reading(), 0)),
            Some(Ok(reading)) => Some(bracketed(reading, reading.middle_ns())),
            Some(Err(e)) => {
                self.about.not_read = Some(e.problem().what);
                self.clock = None;
                None
            }
        };
        ClockReadings { readings: reading.into_iter().collect(), ..self.about.clone() }
    }
}
