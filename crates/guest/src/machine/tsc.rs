//! Measures the rate of this host's time stamp counter; an emulated processor has the same rate.
//!
//! A kernel measures the rate of the time stamp counter in its first milliseconds. If the emulated processor loses its
//! CPU meanwhile, the result is far off, and the guest's clock has a wrong rate until the guest ends; half the rate has
//! been seen. Therefore the rate is passed on the kernel command line.

use std::sync::OnceLock;
#[cfg(target_arch = "x86_64")]
use std::time::Duration;

/// Time between two readings of the counter: if the clock is read within 200 ns around the counter, the measured rate
/// is exact to a few parts per million.
#[cfg(target_arch = "x86_64")]
const APART: Duration = Duration::from_millis(50);

/// Rate of the time stamp counter in kHz, measured once; `None` if the rate is not known.
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

/// Reads the time stamp counter and the monotonic clock at the same moment: of many pairs of readings, uses the pair
/// for which the time between the two clock readings around the counter was shortest.
#[cfg(target_arch = "x86_64")]
fn reading() -> (u64, i64) {
    let pairs = (0..1000).map(|_| {
        let before = tailbound_host::monotonic_ns();
        // SAFETY: every processor of this family has the instruction, and it accesses no memory.
        let ticks = unsafe { core::arch::x86_64::_rdtsc() };
        let after = tailbound_host::monotonic_ns();
        (after - before, (ticks, before + (after - before) / 2))
    });
    pairs.min_by_key(|(width, _)| *width).map_or((0, 0), |(_, pair)| pair)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    /// Test: two measurements of the rate of the time stamp counter agree.
    #[test]
    fn two_measurements_agree() {
        let (a, b) = (super::measure().unwrap(), super::measure().unwrap());
        assert!(a.abs_diff(b) <= a / 1000, "{a} and {b} kHz");
        assert!(a > 100_000, "{a} kHz");
    }
}
