//! Changes the clock of a guest by a known amount, so that estimates of clock offsets can be compared with the true
//! offset.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime, clock_settime};
use std::io;
use std::time::Duration;

/// Largest frequency offset of a clock that the kernel accepts, in ppm.
const MOST_PPM: i64 = 500;

/// Makes the clocks of this guest run faster by `frequency_ppm` (slower if negative), and steps its wall clock forward
/// by `step`.
///
/// # Errors
/// This is not a guest of Tailbound, the frequency is out of range (500 ppm), or the kernel refuses.
pub fn set_clock(frequency_ppm: Option<i64>, step: Option<Duration>) -> io::Result<()> {
    if !std::fs::read_to_string("/proc/cmdline")?.contains("tailbound.name=") {
        return Err(io::Error::other("this is not a guest of Tailbound: the clock of a host is never changed"));
    }
    if let Some(ppm) = frequency_ppm {
        if ppm.abs() > MOST_PPM {
            return Err(io::Error::other(format!(
                "{ppm} ppm is out of range: the kernel accepts -{MOST_PPM} to {MOST_PPM}"
            )));
        }
        // SAFETY: all zeros are a valid value of this structure of plain numbers.
        let mut change: libc::timex = unsafe { std::mem::zeroed() };
        (change.modes, change.freq) = (libc::ADJ_FREQUENCY, ppm << 16);
        // SAFETY: the structure lives on this stack and has the kernel's layout.
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
