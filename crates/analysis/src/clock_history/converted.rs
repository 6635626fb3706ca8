//! Converts the history of the clock of the pong into the clock of the ping, in which the messages of a report are.

use tailbound_document::BadClockWindow;
use tailbound_model::ClockHistory;
use tailbound_stats::ClockBounds;

/// A bad window in the clock of the ping (clock A of the bounds): as long as it can be.
pub(super) fn widen(window: &mut BadClockWindow, bounds: &ClockBounds) {
    window.from_ns = bounds.at_a_ns(window.from_ns)[0];
    window.to_ns = bounds.at_a_ns(window.to_ns)[1];
}

/// What a report shows of a history over time, in the clock of the ping: begin, end and offsets. Each time is in the middle of the
/// possible times.
pub(super) fn history(of: &ClockHistory, bounds: &ClockBounds) -> ClockHistory {
    let line = bounds.middle();
    let mut history = of.clone();
    (history.from_ns, history.to_ns) = (line.at_a_ns(of.from_ns), line.at_a_ns(of.to_ns));
    history.offsets.iter_mut().for_each(|offset| offset.at_ns = line.at_a_ns(offset.at_ns));
    history
}

/// Largest difference between the first and the last possible time of an event of the history, ns.
pub(super) fn width_ns(of: &ClockHistory, bounds: &ClockBounds) -> i64 {
    let width = |at_ns: i64| bounds.at_a_ns(at_ns)[1] - bounds.at_a_ns(at_ns)[0];
    width(of.from_ns).max(width(of.to_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_document::BadClock;
    use tailbound_model::ClockOffsetFromMaster;
    use tailbound_stats::TwoClocks;

    const S: i64 = 1_000_000_000;
    /// The clock of the pong is ahead by this, ns.
    const AHEAD_NS: i64 = 1_000 * S;

    #[test]
    fn the_times_of_the_pong_are_shown_in_the_clock_of_the_ping() {
        let mut clocks = TwoClocks::default();
        for at_ns in (0..=20).map(|n| n * S) {
            // 30 us there, and 20 us back.
            clocks.there(at_ns, at_ns + AHEAD_NS + 30_000);
            clocks.back(at_ns + AHEAD_NS + 40_000, at_ns + 60_000);
        }
        let bounds = clocks.bounds().unwrap();
        let offset = ClockOffsetFromMaster { at_ns: AHEAD_NS + 7 * S, offset_ns: -5, path_delay_ns: None };
        let (from_ns, to_ns) = (AHEAD_NS + S, AHEAD_NS + 19 * S);
        let seen = ClockHistory { from_ns, to_ns, offsets: vec![offset], ..ClockHistory::default() };
        let shown = history(&seen, &bounds);
        let is_near = |ns: i64, truth_ns: i64| (ns - truth_ns).abs() <= 50_000;
        assert!(is_near(shown.from_ns, S) && is_near(shown.to_ns, 19 * S) && is_near(shown.offsets[0].at_ns, 7 * S));
        assert_eq!(shown.offsets[0].offset_ns, -5);
        let mut window = BadClockWindow { from_ns, to_ns, kind: BadClock::Silent, why: String::new() };
        widen(&mut window, &bounds);
        assert!(window.from_ns <= S && window.to_ns >= 19 * S, "{window:?} holds the true times");
        assert!(is_near(window.from_ns, S) && is_near(window.to_ns, 19 * S), "{window:?}");
        // The bounds are as wide as the shortest round trip.
        let width_ns = width_ns(&seen, &bounds);
        assert!((50_000..60_000).contains(&width_ns), "{width_ns}");
    }
}
