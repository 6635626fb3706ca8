//! Clocks of the host, and the conversion of wall-clock time stamps to monotonic time.
//!
//! Input: readings of the clocks, or of a scripted clock. Output: offsets between the clocks, each with its bracket
//! (the monotonic clock read before and after the wall clock), converted time stamps with their error, and the time
//! spans in which a stepped clock makes conversion impossible.

use std::io;
use tailbound_model::{ClockOffset, InvalidWindow};

/// Fastest slewing that the kernel or an NTP daemon applies to a clock, in parts per million (adjtimex(2), ntp_adjtime:
/// 500 ppm).
pub const MAX_SLEW_PPM: i64 = 500;

/// Number of brackets (the monotonic clock read before and after the wall clock) measured for one clock offset; the
/// narrowest bracket is used.
pub const TRIES: usize = 9;

/// Time of CLOCK_MONOTONIC in ns.
pub fn monotonic_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Time of CLOCK_BOOTTIME in ns: as the monotonic clock, but with the time for which the host was suspended.
pub fn since_boot_ns() -> i64 {
    read(libc::CLOCK_BOOTTIME)
}

/// Time of CLOCK_MONOTONIC_RAW in ns: as the monotonic clock, but without the adjustments of its rate by NTP or PTP.
pub fn unadjusted_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC_RAW)
}

/// Time of CLOCK_REALTIME in ns since 1970.
pub fn realtime_ns() -> i64 {
    read(libc::CLOCK_REALTIME)
}

/// Time of CLOCK_TAI in ns since 1970: CLOCK_REALTIME plus the whole seconds that a time service has set, or 0 s.
pub fn tai_ns() -> i64 {
    read(libc::CLOCK_TAI)
}

/// Time by which CLOCK_TAI is ahead of CLOCK_REALTIME, s (adjtimex(2)): 37 since 2017, if a time service has set it; 0 after
/// the kernel was started.
///
/// # Errors
/// The kernel refuses the call: a seccomp filter, as of a container, can do so.
pub fn tai_offset_s() -> io::Result<i32> {
    // SAFETY: every bit pattern, zero too, is a valid timex. Without modes, the call sets nothing.
    let mut found: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills in this structure, which lives until the call has returned.
    match unsafe { libc::adjtimex(&raw mut found) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(found.tai),
    }
}

/// Length in ns of a clock tick, the unit of times in /proc (proc_pid_stat(5)).
pub(crate) fn tick_ns() -> u64 {
    // SAFETY: sysconf takes a constant and accesses no memory of this program; the kernel always has this value.
    1_000_000_000 / unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64
}

/// CPU time of all threads of this process, in ns.
pub fn process_cpu_ns() -> i64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the calling thread, in ns.
pub fn thread_cpu_ns() -> i64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of all threads of another process, in ns; `None` if that process has ended.
pub fn cpu_ns_of(pid: i32) -> Option<i64> {
    let mut clock = 0;
    // SAFETY: the pointer is to a live clock id.
    let found = unsafe { libc::clock_getcpuclockid(pid, &mut clock) } == 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec; a process that has ended since is an error.
    let read = found && unsafe { libc::clock_gettime(clock, &mut time) } == 0;
    read.then_some(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

#[inline]
fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec; these clocks exist on every Linux kernel, so it cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Offset CLOCK_REALTIME - CLOCK_MONOTONIC of this host, from [`TRIES`] brackets: the bracket with the shortest time
/// between its two readings of the monotonic clock is used.
pub fn read_offset() -> ClockOffset {
    read_offset_with(monotonic_ns, realtime_ns)
}

/// Measures the offset between two clocks that the caller gives as functions: reads `mono`, `real` and again `mono`. The
/// time of `real` belongs to the middle of this bracket, with an error of at most half the bracket's width.
pub fn read_offset_with(mut mono: impl FnMut() -> i64, mut real: impl FnMut() -> i64) -> ClockOffset {
    let mut best: Option<ClockOffset> = None;
    for _ in 0..TRIES {
        let before = mono();
        let wall = real();
        let after = mono();
        let width_ns = after - before;
        let at_ns = before + width_ns / 2;
        if best.is_none_or(|b| width_ns < b.width_ns) {
            best = Some(ClockOffset { at_ns, offset_ns: wall - at_ns, width_ns });
        }
    }
    best.expect("at least one try")
}

/// Clock offsets read during a trial, in the order of monotonic time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffsetTrack {
    readings: Vec<ClockOffset>,
    /// Whether the wall clock never went back from one reading to the next.
    ascending: bool,
}

impl From<Vec<ClockOffset>> for OffsetTrack {
    fn from(mut readings: Vec<ClockOffset>) -> Self {
        readings.sort_by_key(|r| r.at_ns);
        let ascending = readings.windows(2).all(|p| wall(&p[0]) <= wall(&p[1]));
        OffsetTrack { readings, ascending }
    }
}

fn wall(reading: &ClockOffset) -> i64 {
    reading.at_ns + reading.offset_ns
}

/// Step of the wall clock between two readings of its offset, in ns; `None` if slewing and the widths of the brackets
/// can explain the change of the offset.
fn step(a: &ClockOffset, b: &ClockOffset) -> Option<i64> {
    let change = b.offset_ns - a.offset_ns;
    let slewed = i128::from(b.at_ns - a.at_ns) * i128::from(MAX_SLEW_PPM) / 1_000_000;
    (i128::from(change.abs()) > slewed + i128::from(a.width_ns) + i128::from(b.width_ns)).then_some(change)
}

impl OffsetTrack {
    /// Creates a list of clock offsets that contains no readings yet.
    pub fn new() -> Self {
        Vec::new().into()
    }

    /// Adds a reading of the clock offset; normally this reading is later than all earlier readings.
    pub fn push(&mut self, reading: ClockOffset) {
        match self.readings.last() {
            Some(last) if last.at_ns > reading.at_ns => {
                let mut all = std::mem::take(&mut self.readings);
                all.push(reading);
                *self = all.into();
            }
            last => {
                self.ascending &= last.is_none_or(|l| wall(l) <= wall(&reading));
                self.readings.push(reading);
            }
        }
    }

    /// All readings of the clock offset, in the order of monotonic time.
    pub fn readings(&self) -> &[ClockOffset] {
        &self.readings
    }

    /// Time spans in which the wall clock was stepped: between the two readings at the ends of the span, the offset
    /// changed by more than 500 ppm of the elapsed time plus the widths of both brackets.
    pub fn steps(&self) -> Vec<InvalidWindow> {
        self.readings
            .windows(2)
            .filter_map(|p| {
                step(&p[0], &p[1]).map(|step_ns| InvalidWindow { from_ns: p[0].at_ns, to_ns: p[1].at_ns, step_ns })
            })
            .collect()
    }

    /// Converts a wall-clock time stamp to monotonic time and the largest error in either direction, both in ns.
    ///
    /// The offset is interpolated between the two readings around the time stamp. The error is the wider of the two
    /// brackets plus the change of the offset between the readings, because a slew can be uneven. The result is `None`
    /// outside the readings, in a span in which the clock was stepped, and if a step back made the time stamp
    /// ambiguous.
    pub fn convert(&self, realtime_ns: i64) -> Option<(i64, i64)> {
        if self.ascending {
            let next = self.readings.partition_point(|r| wall(r) <= realtime_ns);
            // A time stamp equal to the last reading belongs to the last span.
            let next = if next == self.readings.len() { next.checked_sub(1)? } else { next };
            return between(self.readings.get(next.checked_sub(1)?)?, &self.readings[next], realtime_ns);
        }
        let mut found = None;
        for pair in self.readings.windows(2) {
            let (low, high) = (wall(&pair[0]).min(wall(&pair[1])), wall(&pair[0]).max(wall(&pair[1])));
            if step(&pair[0], &pair[1]).is_some() || !(low..=high).contains(&realtime_ns) {
                continue;
            }
            match (found, between(&pair[0], &pair[1], realtime_ns)) {
                (None, here) => found = here,
                // A time stamp on the border of two spans is found twice, with the same result.
                (Some(one), Some(other)) if one.0 != other.0 => return None,
                _ => {}
            }
        }
        found
    }
}

fn between(a: &ClockOffset, b: &ClockOffset, realtime_ns: i64) -> Option<(i64, i64)> {
    let (from, to) = (wall(a), wall(b));
    if step(a, b).is_some() || realtime_ns < from || realtime_ns > to {
        return None;
    }
    let change = b.offset_ns - a.offset_ns;
    let part = if to == from { 0 } else { i128::from(change) * i128::from(realtime_ns - from) / i128::from(to - from) };
    Some((realtime_ns - a.offset_ns - part as i64, a.width_ns.max(b.width_ns) + change.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn at(at_ns: i64, offset_ns: i64) -> ClockOffset {
        ClockOffset { at_ns, offset_ns, width_ns: 100 }
    }

    #[test]
    fn the_real_clocks_give_a_plausible_offset() {
        let reading = read_offset();
        assert!(reading.width_ns >= 0);
        assert!((realtime_ns() - monotonic_ns() - reading.offset_ns).abs() < S);
    }

    /// Lets each call of this thread with one of these numbers fail with EPERM (seccomp(2)).
    fn refuse(calls: [libc::c_long; 2]) {
        let op = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
        let equals = |call: libc::c_long, jt: u8| op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jt, 0, call as u32);
        let returns = |value: u32| op(libc::BPF_RET | libc::BPF_K, 0, 0, value);
        let mut filter = [
            // Offset 0 of seccomp_data: number of the call.
            op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            equals(calls[0], 2),
            equals(calls[1], 1),
            returns(libc::SECCOMP_RET_ALLOW),
            returns(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: without a pointer, the call sets a flag of this thread.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
        // SAFETY: the kernel copies the filter, which lives until the call has returned. It is for this thread alone.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) }, 0);
    }

    #[test]
    fn a_tai_offset_that_a_filter_refuses_is_not_known() {
        assert!(tai_offset_s().is_ok());
        let refused = std::thread::spawn(|| {
            refuse([libc::SYS_adjtimex, libc::SYS_clock_adjtime]);
            tai_offset_s().map_err(|e| e.raw_os_error())
        });
        assert_eq!(refused.join().unwrap(), Err(Some(libc::EPERM)));
        assert!(tai_offset_s().is_ok());
    }

    #[test]
    fn the_narrowest_bracket_counts() {
        let steps = [500, 40, 300];
        let (now, calls) = (std::cell::Cell::new(1000), std::cell::Cell::new(0));
        let mono = || {
            let n = calls.get();
            calls.set(n + 1);
            now.set(now.get() + if n % 2 == 1 { steps[(n / 2) % 3] } else { 1 });
            now.get()
        };
        let reading = read_offset_with(mono, || now.get() + 7 * S + 20);
        assert_eq!(reading.width_ns, 40);
        // The wall clock was read at the start of the bracket, 20 ns before the middle, and is 20 ns ahead.
        assert_eq!(reading.offset_ns, 7 * S);
    }

    #[test]
    fn a_steady_offset_converts_exactly() {
        let track: OffsetTrack = vec![at(0, 5 * S), at(S, 5 * S), at(2 * S, 5 * S)].into();
        assert!(track.steps().is_empty());
        assert_eq!(track.convert(6 * S + 17), Some((S + 17, 100)));
        assert_eq!(track.convert(5 * S), Some((0, 100)));
        assert_eq!(track.convert(7 * S), Some((2 * S, 100)));
        assert_eq!(track.convert(5 * S - 1), None);
        assert_eq!(track.convert(7 * S + 1), None);
        assert_eq!(OffsetTrack::new().convert(0), None);
    }

    #[test]
    fn a_slew_is_interpolated_and_widens_the_error() {
        let track: OffsetTrack = vec![at(0, 0), at(S, 400_000)].into();
        assert!(track.steps().is_empty());
        let (mono, error) = track.convert(S / 2 + 200_000).unwrap();
        assert!((mono - S / 2).abs() <= 1);
        assert_eq!(error, 400_100);
    }

    #[test]
    fn a_step_invalidates_its_window_only() {
        let mut track = OffsetTrack::new();
        for reading in [at(0, 0), at(S, 0), at(2 * S, 30 * S), at(3 * S, 30 * S)] {
            track.push(reading);
        }
        assert_eq!(track.steps(), vec![InvalidWindow { from_ns: S, to_ns: 2 * S, step_ns: 30 * S }]);
        assert_eq!(track.convert(S / 2), Some((S / 2, 100)));
        assert_eq!(track.convert(15 * S), None);
        assert_eq!(track.convert(32 * S + 5), Some((2 * S + 5, 100)));
    }

    #[test]
    fn a_step_back_makes_a_stamp_that_fits_twice_unusable() {
        let track: OffsetTrack = vec![at(0, 0), at(S, 0), at(2 * S, -S - S / 2), at(3 * S, -S - S / 2)].into();
        assert_eq!(track.steps()[0].step_ns, -S - S / 2);
        // 0.7 s is in both the first span (mono 0.7) and the last (mono 2.2).
        assert_eq!(track.convert(700_000_000), None);
        assert_eq!(track.convert(200_000_000), Some((200_000_000, 100)));
        assert_eq!(track.convert(1_400_000_000), Some((2_900_000_000, 100)));
    }

    #[test]
    fn the_smallest_step_beyond_slewing_is_seen() {
        let allowed = 500_000 + 200;
        assert!(OffsetTrack::from(vec![at(0, 0), at(S, allowed)]).steps().is_empty());
        assert_eq!(OffsetTrack::from(vec![at(0, 0), at(S, -allowed - 1)]).steps().len(), 1);
    }
}
