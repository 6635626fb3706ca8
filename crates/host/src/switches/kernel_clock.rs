//! The monotonic clock of the kernel, which recorded events have: time_namespaces(7) can shift the clock of a process
//! against it.

/// Time of the kernel's monotonic clock, ns.
pub(super) fn now_ns() -> i64 {
    crate::monotonic_ns() - ahead_ns()
}

/// Time by which the monotonic clock of this process is ahead of the kernel's, ns. It is 0 on kernels without time
/// namespaces.
pub(super) fn ahead_ns() -> i64 {
    std::fs::read_to_string("/proc/self/timens_offsets").ok().and_then(|text| of_monotonic(&text)).unwrap_or(0)
}

/// Offset of the monotonic clock in ns: its line has the name of the clock, seconds, and nanoseconds.
fn of_monotonic(text: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| line.strip_prefix("monotonic"))?;
    let mut numbers = line.split_whitespace().map(str::parse::<i64>);
    let (seconds, ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(seconds * 1_000_000_000 + ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_the_monotonic_clock_is_read() {
        let text = "monotonic        -1000         7\nboottime           20         0\n";
        assert_eq!(of_monotonic(text), Some(-999_999_999_993));
        assert_eq!(of_monotonic("boottime 1 0\n"), None);
    }
}
