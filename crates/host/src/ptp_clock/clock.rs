//! Readings of a PTP hardware clock, by the best interface that its driver has.

use super::call::{self, Bracket};
use super::error::PtpError;
use crate::clock::{read_offset, read_offset_with, realtime_ns, unadjusted_ns};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tailbound_model::ClockOffset;

/// The interface of the kernel by which a clock is read, the best one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PtpInterface {
    /// PTP_SYS_OFFSET_PRECISE: both clocks at one instant. What the hardware itself may be wrong by is not known.
    Precise,
    /// PTP_SYS_OFFSET_EXTENDED: the kernel's clock immediately before and after the hardware is read.
    Extended,
    /// PTP_SYS_OFFSET: the kernel's clock before and after the driver is asked for the time.
    Basic,
    /// clock_gettime on the descriptor of the device: the clocks are read by this process.
    Descriptor,
}

impl PtpInterface {
    const ALL: [PtpInterface; 4] =
        [PtpInterface::Precise, PtpInterface::Extended, PtpInterface::Basic, PtpInterface::Descriptor];

    /// Name of the request, as in linux/ptp_clock.h.
    pub fn name(self) -> &'static str {
        match self {
            PtpInterface::Precise => "PTP_SYS_OFFSET_PRECISE",
            PtpInterface::Extended => "PTP_SYS_OFFSET_EXTENDED",
            PtpInterface::Basic => "PTP_SYS_OFFSET",
            PtpInterface::Descriptor => "clock_gettime",
        }
    }

    fn brackets(self, file: &File) -> io::Result<Vec<Bracket>> {
        match self {
            PtpInterface::Precise => call::precise(file),
            PtpInterface::Extended => call::extended(file),
            PtpInterface::Basic => call::basic(file),
            PtpInterface::Descriptor => call::by_descriptor(file),
        }
    }
}

/// An open PTP hardware clock.
#[derive(Debug)]
pub struct PtpClock {
    path: PathBuf,
    file: File,
    /// The best interface that the driver has.
    pub interface: PtpInterface,
    /// Largest change of the clock's rate that its driver permits, ppb.
    pub max_adjustment_ppb: i32,
}

/// One reading of a clock. The reading of the clock lies between two readings of CLOCK_REALTIME, and between two times of
/// CLOCK_MONOTONIC_RAW, whose rate nobody adjusts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtpReading {
    /// Time of the clock, ns.
    pub clock_ns: i64,
    /// CLOCK_REALTIME before and after the clock was read, ns.
    pub realtime_ns: [i64; 2],
    /// CLOCK_MONOTONIC_RAW: latest time that was before, and earliest time that was after the clock was read, ns.
    pub unadjusted_ns: [i64; 2],
}

impl PtpReading {
    /// Smallest and largest possible difference, clock - CLOCK_REALTIME, ns.
    pub fn offset_ns(&self) -> [i64; 2] {
        let [before, after] = self.realtime_ns;
        [self.clock_ns - after, self.clock_ns - before]
    }

    /// Middle of the possible differences, clock - CLOCK_REALTIME, ns.
    pub fn middle_ns(&self) -> i64 {
        let [low, high] = self.offset_ns();
        low + (high - low) / 2
    }

    /// Largest possible error of the middle of the offset, ns: half of its range, rounded up.
    pub fn half_width_ns(&self) -> i64 {
        let [before, after] = self.realtime_ns;
        (after - before + 1) / 2
    }
}

impl PtpClock {
    /// Opens the device of a clock, and finds the best interface by which the clock can be read.
    ///
    /// # Errors
    /// The device cannot be opened, is not a PTP hardware clock, or cannot be read by any interface.
    pub fn open(path: &Path) -> Result<PtpClock, PtpError> {
        let file = File::open(path).map_err(|e| PtpError::NotOpened(path.to_owned(), e))?;
        let capabilities = call::capabilities(&file).map_err(|_| PtpError::NotAClock(path.to_owned()))?;
        let mut refused = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        for interface in PtpInterface::ALL {
            match interface.brackets(&file) {
                Ok(_) => {
                    let (path, max_adjustment_ppb) = (path.to_owned(), capabilities.max_adj);
                    return Ok(PtpClock { path, file, interface, max_adjustment_ppb });
                }
                Err(e) => refused = e,
            }
        }
        Err(PtpError::NotRead(path.to_owned(), refused))
    }

    /// Opens the device /dev/ptpN with this number, as [`PtpClock::open`] does.
    ///
    /// # Errors
    /// See [`PtpClock::open`].
    pub fn numbered(number: u32) -> Result<PtpClock, PtpError> {
        PtpClock::open(Path::new(&format!("/dev/ptp{number}")))
    }

    /// Reads the clock: the narrowest of several brackets, of which the first is dropped, because the first one after a pause
    /// is the widest.
    ///
    /// # Errors
    /// The kernel refuses to read the clock, or CLOCK_REALTIME was set back in each bracket.
    pub fn read(&self) -> Result<PtpReading, PtpError> {
        let not_read = |e| PtpError::NotRead(self.path.clone(), e);
        let before = read_offset_with(unadjusted_ns, realtime_ns);
        let brackets = self.interface.brackets(&self.file).map_err(not_read)?;
        let after = read_offset_with(unadjusted_ns, realtime_ns);
        let best =
            best(&brackets).ok_or_else(|| not_read(io::Error::other("CLOCK_REALTIME was set back meanwhile")))?;
        Ok(converted(best, [before, after]))
    }

    /// Time by which the clock is ahead of CLOCK_MONOTONIC, by way of CLOCK_REALTIME.
    ///
    /// # Errors
    /// See [`PtpClock::read`].
    pub fn ahead_of_monotonic(&self) -> Result<ClockOffset, PtpError> {
        let (reading, realtime) = (self.read()?, read_offset());
        let offset_ns = reading.middle_ns() + realtime.offset_ns;
        Ok(ClockOffset { offset_ns, width_ns: 2 * reading.half_width_ns() + realtime.width_ns, ..realtime })
    }
}

/// Reads CLOCK_REALTIME itself, in the form of a reading of a hardware clock.
pub fn system_reading() -> PtpReading {
    let offset = read_offset_with(unadjusted_ns, realtime_ns);
    let before = offset.at_ns - offset.width_ns / 2;
    let clock_ns = offset.at_ns + offset.offset_ns;
    PtpReading { clock_ns, realtime_ns: [clock_ns; 2], unadjusted_ns: [before, before + offset.width_ns] }
}

/// The narrowest bracket without the first one.
fn best(brackets: &[Bracket]) -> Option<Bracket> {
    let width = |bracket: &Bracket| bracket[2] - bracket[0];
    brackets.iter().skip(1).copied().filter(|bracket| width(bracket) >= 0).min_by_key(width)
}

/// The reading with its times of CLOCK_MONOTONIC_RAW: CLOCK_REALTIME was ahead of it by some time between the smallest and the
/// largest one that the readings before and afterwards permit, if it was not set forth and back in between.
fn converted([before, clock_ns, after]: Bracket, readings: [ClockOffset; 2]) -> PtpReading {
    // The time of a reading is within its bracket: the offset is that at the middle, plus or minus half the width.
    let ahead = readings.map(|reading| {
        let begin = reading.at_ns - reading.width_ns / 2;
        let wall = reading.at_ns + reading.offset_ns;
        [wall - (begin + reading.width_ns), wall - begin]
    });
    let least = ahead[0][0].min(ahead[1][0]);
    let most = ahead[0][1].max(ahead[1][1]);
    PtpReading { clock_ns, realtime_ns: [before, after], unadjusted_ns: [before - most, after - least] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_bracket_counts_without_the_first_one() {
        assert_eq!(best(&[[0, 5, 1], [10, 15, 40], [50, 55, 60], [70, 71, 60]]), Some([50, 55, 60]));
        assert_eq!(best(&[[0, 5, 1]]), None);
        assert_eq!(best(&[[0, 5, 1], [9, 5, 8]]), None);
    }

    #[test]
    fn a_reading_lies_between_two_times_of_the_unadjusted_clock() {
        // CLOCK_REALTIME is ahead by 1,000 to 1,010 before, and by 1,020 to 1,031 afterwards.
        let offset = |at_ns: i64, offset_ns, width_ns| ClockOffset { at_ns, offset_ns, width_ns };
        let reading = converted([2_000, 777, 2_004], [offset(100, 1_005, 10), offset(3_000, 1_025, 11)]);
        assert_eq!(reading.offset_ns(), [777 - 2_004, 777 - 2_000]);
        assert_eq!(reading.half_width_ns(), 2);
        assert_eq!(reading.unadjusted_ns, [2_000 - 1_030, 2_004 - 1_000]);
        let own = system_reading();
        let [before, after] = own.unadjusted_ns;
        assert!(before <= after && own.offset_ns() == [0, 0]);
        assert!((before..=unadjusted_ns()).contains(&after));
    }
}
