//! The speed of this host's time stamp counter, which an emulated processor hands on as its own.
//!
//! A kernel measures it in its first milliseconds. An emulated processor that lost its CPU meanwhile is told a speed that is
//! far off, and its clock runs wrong for good: seen as a clock at half its speed.

use std::sync::OnceLock;
use std::time::Duration;

/// Between two readings: with brackets of less than 200 ns this is exact to a few millionths.
const APART: Duration = Duration::from_millis(50);

/// In kHz, measured once; `None` where it cannot be told.
pub(crate) fn khz() -> Option<u32> {
    static KHZ: OnceLock<Option<u32>> = OnceLock::new();
    *KHZ.get_or_init(measure)
}

#[cfg(not(target_arch = "x86_64"))]
fn measure() -> Option<u32> {
    None
}

#[cfg(target_arch = "x86_64")]
fn measure() -> Option<u32> {
    let first = reading();
    std::thread::sleep(APART);
    let last = reading();
    let elapsed_ns = u64::try_from(last.1 - first.1).ok().filter(|ns| *ns > 0)?;
    u32::try_from(u128::from(last.0.wrapping_sub(first.0)) * 1_000_000 / u128::from(elapsed_ns)).ok()
}

/// The counter and the monotonic clock at the same moment: of many pairs the one with the narrowest bracket.
#[cfg(target_arch = "x86_64")]
fn reading() -> (u64, i64) {
    let pairs = (0..1000).map(|_| {
        let before = tailbound_host::monotonic_ns();
        // SAFETY: every processor of this family has the instruction, and it touches nothing.
        let ticks = unsafe { core::arch::x86_64::_rdtsc() };
        let after = tailbound_host::monotonic_ns();
        (after - before, (ticks, before + (after - before) / 2))
    });
    pairs.min_by_key(|(width, _)| *width).map_or((0, 0), |(_, pair)| pair)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    /// The counter runs as fast as the processor says, where it says so; two measurements agree.
    #[test]
    fn two_measurements_agree() {
        let (a, b) = (super::measure().unwrap(), super::measure().unwrap());
        assert!(a.abs_diff(b) <= a / 1000, "{a} and {b} kHz");
        assert!(a > 100_000, "{a} kHz");
    }
}
