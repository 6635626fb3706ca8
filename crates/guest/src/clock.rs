//! Changes the clock of a guest by a known amount, so that estimates of clock offsets can be compared with the true
//! offset.

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
        adjust(|change| (change.modes, change.freq) = (libc::ADJ_FREQUENCY, ppm << 16))?;
    }
    if let Some(step) = step {
        // The kernel adds the step itself: a program that reads the clock and then sets it loses the time in between.
        adjust(|change| {
            change.modes = libc::ADJ_SETOFFSET | libc::ADJ_NANO;
            change.time.tv_sec = step.as_secs() as libc::time_t;
            // With ADJ_NANO this member holds nanoseconds.
            change.time.tv_usec = libc::suseconds_t::from(step.subsec_nanos());
        })?;
    }
    Ok(())
}

/// Changes the wall clock of this guest by adjtimex(2); `fill` writes the request.
fn adjust(fill: impl FnOnce(&mut libc::timex)) -> io::Result<()> {
    // SAFETY: all zeros are a valid value of this structure of plain numbers.
    let mut change: libc::timex = unsafe { std::mem::zeroed() };
    fill(&mut change);
    // SAFETY: the structure lives on this stack and has the kernel's layout.
    if unsafe { libc::adjtimex(&raw mut change) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
