//! System calls on the device of a PTP hardware clock (linux/ptp_clock.h).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A reading of the hardware clock between two readings of CLOCK_REALTIME: before, hardware, after, ns.
pub(super) type Bracket = [i64; 3];

/// Number of brackets that are asked for at once; the kernel permits 25.
const BRACKETS: usize = 10;

/// What a clock can do (PTP_CLOCK_GETCAPS). Fails with ENOTTY or EINVAL if the file is not such a clock.
pub(super) fn capabilities(file: &File) -> io::Result<libc::ptp_clock_caps> {
    // SAFETY: every bit pattern, zero too, is a valid ptp_clock_caps.
    let mut found: libc::ptp_clock_caps = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills in this structure, which lives until the call has returned.
    done(unsafe { libc::ioctl(file.as_raw_fd(), libc::PTP_CLOCK_GETCAPS, &raw mut found) })?;
    Ok(found)
}

/// The network card reads its clock and the kernel's clock at one instant (PTP_SYS_OFFSET_PRECISE).
pub(super) fn precise(file: &File) -> io::Result<Vec<Bracket>> {
    let one = |_| {
        // SAFETY: every bit pattern, zero too, is a valid ptp_sys_offset_precise.
        let mut found: libc::ptp_sys_offset_precise = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills in this structure, which lives until the call has returned.
        done(unsafe { libc::ioctl(file.as_raw_fd(), libc::PTP_SYS_OFFSET_PRECISE, &raw mut found) })?;
        let system_ns = ns(&found.sys_realtime);
        Ok([system_ns, ns(&found.device), system_ns])
    };
    (0..BRACKETS).map(one).collect()
}

/// The driver reads the kernel's clock immediately before and after it reads the hardware (PTP_SYS_OFFSET_EXTENDED).
pub(super) fn extended(file: &File) -> io::Result<Vec<Bracket>> {
    // SAFETY: every bit pattern, zero too, is a valid ptp_sys_offset_extended. Zero as the clock is CLOCK_REALTIME.
    let mut found: libc::ptp_sys_offset_extended = unsafe { std::mem::zeroed() };
    found.n_samples = BRACKETS as libc::c_uint;
    // SAFETY: the kernel fills in this structure, which has room for more brackets than are asked for.
    done(unsafe { libc::ioctl(file.as_raw_fd(), libc::PTP_SYS_OFFSET_EXTENDED, &raw mut found) })?;
    Ok(found.ts[..BRACKETS].iter().map(|[before, hardware, after]| [ns(before), ns(hardware), ns(after)]).collect())
}

/// The kernel reads its own clock and the hardware in turn (PTP_SYS_OFFSET): system, hardware, system, hardware, ..., system.
pub(super) fn basic(file: &File) -> io::Result<Vec<Bracket>> {
    // SAFETY: every bit pattern, zero too, is a valid ptp_sys_offset.
    let mut found: libc::ptp_sys_offset = unsafe { std::mem::zeroed() };
    found.n_samples = BRACKETS as libc::c_uint;
    // SAFETY: the kernel reads the number and fills in this structure, which has room for 25 brackets.
    done(unsafe { libc::ioctl(file.as_raw_fd(), libc::PTP_SYS_OFFSET, &raw mut found) })?;
    let times = &found.ts[..2 * BRACKETS + 1];
    Ok((0..BRACKETS).map(|n| [ns(&times[2 * n]), ns(&times[2 * n + 1]), ns(&times[2 * n + 2])]).collect())
}

/// This process reads the kernel's clock, the hardware, and the kernel's clock again (clock_gettime(2) on the descriptor).
pub(super) fn by_descriptor(file: &File) -> io::Result<Vec<Bracket>> {
    // FD_TO_CLOCKID of clock_getres(2).
    let clock = (!file.as_raw_fd() << 3) | 3;
    let one = |_| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let before = crate::clock::realtime_ns();
        // SAFETY: the pointer is to a live timespec; a descriptor that is no clock is an error.
        done(unsafe { libc::clock_gettime(clock, &mut time) })?;
        let after = crate::clock::realtime_ns();
        Ok([before, time.tv_sec * 1_000_000_000 + time.tv_nsec, after])
    };
    (0..BRACKETS).map(one).collect()
}

fn ns(time: &libc::ptp_clock_time) -> i64 {
    time.sec * 1_000_000_000 + i64::from(time.nsec)
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of linux/ptp_clock.h, which the numbers of the requests contain.
    #[test]
    fn structures_have_the_sizes_of_the_kernel() {
        assert_eq!(std::mem::size_of::<libc::ptp_clock_caps>(), 80);
        assert_eq!(std::mem::size_of::<libc::ptp_sys_offset>(), 16 + 51 * 16);
        assert_eq!(std::mem::size_of::<libc::ptp_sys_offset_extended>(), 16 + 75 * 16);
        assert_eq!(std::mem::size_of::<libc::ptp_sys_offset_precise>(), 64);
        assert_eq!(libc::PTP_SYS_OFFSET_EXTENDED, 0xc4c0_3d09);
    }

    #[test]
    fn a_file_that_is_no_clock_is_an_error() {
        let file = File::open("/dev/null").unwrap();
        assert!(capabilities(&file).is_err());
        for read in [precise, extended, basic, by_descriptor] {
            assert!(read(&file).is_err());
        }
    }
}
