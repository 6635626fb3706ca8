//! The clock of a guest, set by a known amount: so that what is told of two clocks can be held against the truth.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime, clock_settime};
use std::io;
use std::time::Duration;

/// What the kernel takes at most.
const MOST_PPM: i64 = 500;

/// Lets the clocks of this guest run faster by so many millionths (slower, when negative); steps its wall clock forward.
///
/// # Errors
/// This is no guest of Tailbound, the kernel refuses it, or the frequency is beyond what it takes (500).
pub fn set_clock(frequency_ppm: Option<i64>, step: Option<Duration>) -> io::Result<()> {
    if !std::fs::read_to_string("/proc/cmdline")?.contains("tailbound.name=") {
        return Err(io::Error::other("this is no guest of Tailbound: the clock of a host is never set"));
    }
    if let Some(ppm) = frequency_ppm {
        if ppm.abs() > MOST_PPM {
            return Err(io::Error::other(format!("{ppm} ppm: the kernel takes -{MOST_PPM} to {MOST_PPM}")));
        }
        // SAFETY: all zeros are a valid value of this structure of plain numbers.
        let mut change: libc::timex = unsafe { std::mem::zeroed() };
        (change.modes, change.freq) = (libc::ADJ_FREQUENCY, ppm << 16);
        // SAFETY: the structure is ours, and of the kernel's shape.
        if unsafe { libc::adjtimex(&raw mut change) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    if let Some(step) = step {
        let now = clock_gettime(ClockId::CLOCK_REALTIME)?;
        clock_settime(ClockId::CLOCK_REALTIME, now + TimeSpec::from_duration(step))?;
    }
    Ok(())
}
