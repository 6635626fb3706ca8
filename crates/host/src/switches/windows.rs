//! Chooses the time spans whose events are reported, if there are too many events.

/// The time spans whose events fit into `most` events, in the order of time. `times_ns` are the times of the events, in
/// rising order; `windows` are begin and end of each time span, the most important first. A time span gets at most half of
/// what is left, so that one long stall does not displace all others. A time span with more events is cut off where they
/// begin to be too many: what made its messages late happened at its begin.
pub(super) fn affordable(windows: &[(i64, i64)], times_ns: &[i64], most: usize) -> Vec<(i64, i64)> {
    let mut left = most;
    let cut = |(begin, end): &(i64, i64)| {
        let before = |at: i64| times_ns.partition_point(|time| *time < at);
        let first = before(*begin);
        let wanted = before(end.saturating_add(1)) - first;
        let room = left / 2;
        let end = if wanted <= room { *end } else { times_ns[first + room] - 1 };
        left -= before(end.saturating_add(1)).saturating_sub(first);
        (*begin <= end).then_some((*begin, end))
    };
    let mut kept: Vec<(i64, i64)> = windows.iter().filter_map(cut).collect();
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_time_span_does_not_displace_the_others() {
        let events: Vec<i64> = (0..100).chain([200, 300]).collect();
        let windows = [(0, 99), (300, 310), (190, 210)];
        assert_eq!(affordable(&windows, &events, 1_000), [(0, 99), (190, 210), (300, 310)]);
        assert_eq!(affordable(&windows, &events, 150), [(0, 74), (190, 210), (300, 310)]);
        // Events of one instant are kept together, or not at all.
        assert_eq!(affordable(&[(0, 9), (20, 29)], &[0, 0, 0, 20], 4), [(20, 29)]);
    }
}
