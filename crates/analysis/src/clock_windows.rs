//! Time spans in which a clock was not known to be in step with its master.

use tailbound_document::{BadClock, BadClockWindow};
use tailbound_model::{BracketedReading, ClockHistory, ClockReadings, MasterChange, Nanos, PortState};
use tailbound_stats::{ClockChange, ClockReading, SteadySearch};

/// Shortest time without a synchronisation that is a window, ns, and this number of usual intervals.
const GAP_NS: i64 = 2_000_000_000;
const GAP_INTERVALS: i64 = 5;

/// Largest difference between the rates of CLOCK_REALTIME and CLOCK_MONOTONIC_RAW: `adjtimex` sets ticks within 10 % and frequencies
/// within 500 ppm, slews by 500 ppm with `adjtime`, and by a quarter of up to 0.5 s per second with ADJ_OFFSET (kernel/time/ntp.c).
const REALTIME_RATE_PERCENT: i64 = 25;
/// The same of a hardware clock, which at most stands still or runs twice as fast: drivers permit less than 1,000,000,000 ppb.
const CARD_RATE_PERCENT: i64 = 100;

/// All windows of a history, in the order of time. They may overlap.
pub(crate) fn of(history: &ClockHistory) -> Vec<BadClockWindow> {
    let mut all = beyond_bound(history);
    all.extend(ports(history));
    all.extend(masters(history));
    let silent = history.silences.iter().map(|silence| BadClockWindow {
        from_ns: silence.from_ns,
        to_ns: silence.to_ns,
        kind: BadClock::Silent,
        why: silence.why.clone(),
    });
    all.extend(silent);
    // A gap is reported only if no other window explains it.
    let is_known = |gap: &BadClockWindow| all.iter().any(|w| w.from_ns < gap.to_ns && gap.from_ns < w.to_ns);
    let gaps: Vec<BadClockWindow> = gaps(history).into_iter().filter(|gap| !is_known(gap)).collect();
    all.extend(gaps);
    all.extend(history.readings.iter().flat_map(|readings| steps(readings, history.within)));
    all.sort_by_key(|window| (window.from_ns, window.to_ns));
    all
}

fn beyond_bound(history: &ClockHistory) -> Vec<BadClockWindow> {
    let mut found: Vec<BadClockWindow> = Vec::new();
    let (mut known_ns, mut worst_ns) = (history.from_ns, None::<i64>);
    let mut end = |from_ns, to_ns, worst_ns: i64| {
        let why = format!("the offset was up to {}, beyond the bound of {}", Nanos(worst_ns), history.within);
        found.push(BadClockWindow { from_ns, to_ns, kind: BadClock::BeyondBound, why });
    };
    for offset in &history.offsets {
        if offset.offset_ns.unsigned_abs() > history.within.0.unsigned_abs() {
            let worse = worst_ns.filter(|worst| worst.unsigned_abs() >= offset.offset_ns.unsigned_abs());
            worst_ns = Some(worse.unwrap_or(offset.offset_ns));
        } else {
            if let Some(worst_ns) = worst_ns.take() {
                end(known_ns, offset.at_ns, worst_ns);
            }
            known_ns = offset.at_ns;
        }
    }
    if let Some(worst_ns) = worst_ns {
        end(known_ns, history.to_ns, worst_ns);
    }
    found
}

/// Time spans in which no port had a master. A free-running clock is never more than UNCALIBRATED, although its offset is
/// reported.
fn ports(history: &ClockHistory) -> Vec<BadClockWindow> {
    let mut states: Vec<(u16, PortState)> = Vec::new();
    let mut found: Vec<BadClockWindow> = Vec::new();
    let mut since: Option<(i64, PortState)> = None;
    let bad = |from_ns, to_ns, state: PortState| {
        let why = format!("no port was SLAVE or UNCALIBRATED (it was {state})");
        BadClockWindow { from_ns, to_ns, kind: BadClock::PortNotSlave, why }
    };
    for change in &history.ports {
        states.retain(|(port, _)| *port != change.port);
        states.push((change.port, change.state));
        let has_master = states.iter().any(|(_, state)| matches!(state, PortState::Slave | PortState::Uncalibrated));
        match (has_master, since) {
            (false, None) => since = Some((change.at_ns, change.state)),
            (true, Some((from_ns, state))) => {
                found.push(bad(from_ns, change.at_ns, state));
                since = None;
            }
            _ => {}
        }
    }
    found.extend(since.map(|(from_ns, state)| bad(from_ns, history.to_ns, state)));
    found
}

fn masters(history: &ClockHistory) -> Vec<BadClockWindow> {
    let until = history.masters.iter().skip(1).map(|change| change.at_ns).chain([history.to_ns]);
    let without = history.masters.iter().zip(until).filter(|(change, _)| change.master.grandmaster.is_empty());
    let window = |(change, to_ns): (&MasterChange, i64)| BadClockWindow {
        from_ns: change.at_ns,
        to_ns,
        kind: BadClock::NoMaster,
        why: "the time service had no master".to_owned(),
    };
    without.map(window).collect()
}

fn gaps(history: &ClockHistory) -> Vec<BadClockWindow> {
    let mut times: Vec<i64> = history.offsets.iter().map(|offset| offset.at_ns).collect();
    let mut usual: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    usual.sort_unstable();
    let usual_ns = usual.get(usual.len() / 2).copied().unwrap_or(0);
    let longest_ns = GAP_NS.max(GAP_INTERVALS * usual_ns);
    // The offset before the history, which is kept, begins the first gap.
    if times.is_empty() {
        times.push(history.from_ns);
    }
    times.push(history.to_ns);
    let gap = |pair: &[i64]| {
        let why = format!("no synchronisation was reported for {}", Nanos((pair[1] - pair[0]) / 1_000_000 * 1_000_000));
        BadClockWindow { from_ns: pair[0], to_ns: pair[1], kind: BadClock::NoSynchronisation, why }
    };
    times.windows(2).filter(|pair| pair[1] - pair[0] > longest_ns).map(gap).collect()
}

/// Steps of a clock by more than the bound, which its readings prove: by the steady parts beside them, or else by two readings that
/// differ more than any rate explains.
fn steps(of: &ClockReadings, within: Nanos) -> Vec<BadClockWindow> {
    let mut all = between_steady_parts(of, within);
    let is_known = |jump: &BadClockWindow| all.iter().any(|w| w.from_ns < jump.to_ns && jump.from_ns < w.to_ns);
    let jumps: Vec<BadClockWindow> = jumps(of, within).into_iter().filter(|jump| !is_known(jump)).collect();
    all.extend(jumps);
    all
}

/// Steps between two readings whose clock differs from CLOCK_MONOTONIC_RAW by more than the rate of the clock can explain, whatever a
/// servo does meanwhile.
fn jumps(of: &ClockReadings, within: Nanos) -> Vec<BadClockWindow> {
    let rate_percent = if of.clock == "CLOCK_REALTIME" { REALTIME_RATE_PERCENT } else { CARD_RATE_PERCENT };
    let jump = |pair: &[BracketedReading]| {
        let [from, to] = [pair[0], pair[1]];
        let shortest_ns = to.unadjusted_ns[0] - from.unadjusted_ns[1];
        let longest_ns = to.unadjusted_ns[1] - from.unadjusted_ns[0];
        let clock_ns = to.clock_ns - from.clock_ns;
        let ahead_ns = clock_ns - longest_ns - longest_ns / 100 * rate_percent;
        let back_ns = shortest_ns - shortest_ns / 100 * rate_percent - clock_ns;
        let least_ns = ahead_ns.max(back_ns);
        let why = format!("{} was stepped by {} or more, beside changes of its rate", of.clock, Nanos(least_ns));
        let window = BadClockWindow { from_ns: from.at_ns, to_ns: to.at_ns, kind: BadClock::Stepped, why };
        (least_ns > within.0.saturating_abs()).then_some(window)
    };
    of.readings.windows(2).filter_map(jump).collect()
}

fn between_steady_parts(of: &ClockReadings, within: Nanos) -> Vec<BadClockWindow> {
    let mut search = SteadySearch::default();
    for reading in &of.readings {
        let [before_a_ns, after_a_ns] = reading.unadjusted_ns;
        search.add_reading(&ClockReading { before_a_ns, clock_b_ns: reading.clock_ns, after_a_ns });
    }
    let Ok(parts) = search.finish() else { return Vec::new() };
    // The changes are in CLOCK_MONOTONIC_RAW; the readings next to them have both clocks.
    let from = |raw_ns: i64| of.readings.iter().rev().find(|r| r.unadjusted_ns[0] <= raw_ns).or(of.readings.first());
    let to = |raw_ns: i64| of.readings.iter().find(|r| r.unadjusted_ns[1] >= raw_ns).or(of.readings.last());
    let window = |change: &ClockChange| {
        let why = format!("{} was stepped by {} or more", of.clock, Nanos(change.least_ns.saturating_abs()));
        Some(BadClockWindow {
            from_ns: from(change.from_ns)?.at_ns,
            to_ns: to(change.to_ns)?.at_ns,
            kind: BadClock::Stepped,
            why,
        })
    };
    let is_step = |change: &&ClockChange| change.least_ns.unsigned_abs() > within.0.unsigned_abs();
    parts.changes().iter().filter(is_step).filter_map(window).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{ClockMaster, ClockOffsetFromMaster, PortChange, ServiceSilence};

    const S: i64 = 1_000_000_000;

    /// A history of 20 s with an offset each half second, except in a time span.
    fn history(without: std::ops::Range<i64>, offset_ns: impl Fn(i64) -> i64) -> ClockHistory {
        let times = (0..40).map(|n| n * S / 2).filter(|at| !without.contains(&(at / S)));
        let offset = |at_ns| ClockOffsetFromMaster { at_ns, offset_ns: offset_ns(at_ns / S), path_delay_ns: None };
        let master = ClockMaster { grandmaster: "a".into(), ..ClockMaster::default() };
        ClockHistory {
            within: Nanos(1_000),
            to_ns: 20 * S,
            offsets: times.map(offset).collect(),
            ports: vec![PortChange { at_ns: 0, port: 1, state: PortState::Slave }],
            masters: vec![MasterChange { at_ns: 0, master }],
            ..ClockHistory::default()
        }
    }

    fn found(history: &ClockHistory) -> Vec<(f64, f64, BadClock)> {
        of(history).iter().map(|w| (w.from_ns as f64 / S as f64, w.to_ns as f64 / S as f64, w.kind)).collect()
    }

    #[test]
    fn a_clock_in_step_has_no_window() {
        assert_eq!(found(&history(0..0, |_| 1_000)), []);
        let free_running = [PortChange { at_ns: 0, port: 1, state: PortState::Uncalibrated }];
        assert_eq!(found(&ClockHistory { ports: free_running.into(), ..history(0..0, |_| -1_000) }), []);
    }

    #[test]
    fn an_offset_beyond_the_bound_is_a_window_from_the_last_good_to_the_next() {
        let beyond = |s: i64| if (5..7).contains(&s) || s >= 19 { -1_001 } else { 10 };
        let expected = [(4.5, 7.0, BadClock::BeyondBound), (18.5, 20.0, BadClock::BeyondBound)];
        assert_eq!(found(&history(0..0, beyond)), expected);
        assert_eq!(of(&history(0..0, beyond))[0].why, "the offset was up to -1.001 us, beyond the bound of 1 us");
    }

    #[test]
    fn a_service_that_is_silent_or_has_no_master_is_a_window() {
        let silence = ServiceSilence { from_ns: 9 * S, to_ns: 13 * S, why: "gone".into() };
        let silent = ClockHistory { silences: vec![silence], ..history(9..13, |_| 0) };
        assert_eq!(found(&silent), [(9.0, 13.0, BadClock::Silent)], "the gap is part of the silence");
        assert_eq!(found(&history(9..13, |_| 0)), [(8.5, 13.0, BadClock::NoSynchronisation)]);
        let mut lost = history(0..0, |_| 0);
        lost.ports.push(PortChange { at_ns: 5 * S, port: 1, state: PortState::Listening });
        lost.ports.push(PortChange { at_ns: 6 * S, port: 1, state: PortState::Uncalibrated });
        lost.ports.push(PortChange { at_ns: 15 * S, port: 1, state: PortState::Faulty });
        lost.masters.push(MasterChange { at_ns: 17 * S, master: ClockMaster::default() });
        let expected = [
            (5.0, 6.0, BadClock::PortNotSlave),
            (15.0, 20.0, BadClock::PortNotSlave),
            (17.0, 20.0, BadClock::NoMaster),
        ];
        assert_eq!(found(&lost), expected);
        assert_eq!(
            found(&ClockHistory { offsets: Vec::new(), ..history(0..0, |_| 0) }),
            [(0.0, 20.0, BadClock::NoSynchronisation)]
        );
    }

    #[test]
    fn a_step_beyond_the_bound_is_proved_by_readings_and_a_smaller_one_is_not_reported() {
        let with_step = |step_ns: i64| {
            let reading = |n: i64| {
                let clock_ns = 7 * S + n * S + if n > 10 { step_ns } else { 0 };
                let (at_ns, unadjusted_ns) = (n * S, [100 * S + n * S - 50, 100 * S + n * S + 50]);
                BracketedReading { at_ns, offset_ns: 0, half_width_ns: 50, clock_ns, unadjusted_ns }
            };
            let readings = ClockReadings {
                clock: "/dev/ptp0".into(),
                readings: (0..20).map(reading).collect(),
                ..ClockReadings::default()
            };
            found(&ClockHistory { readings: vec![readings], ..history(0..0, |_| 0) })
        };
        let stepped = with_step(500_000);
        assert!(
            matches!(stepped[..], [(from, to, BadClock::Stepped)] if from <= 10.0 && (11.0..=12.0).contains(&to)),
            "{stepped:?}"
        );
        assert_eq!(with_step(900), []);
    }

    #[test]
    fn a_step_under_a_servo_is_proved_by_two_readings_and_a_change_that_a_rate_explains_is_not() {
        // The servo changes the rate with each reading, by up to 500 ppm.
        let windows = |clock: &str, step_ns: i64| {
            let reading = |n: i64| {
                let servo_ns = [0, 400_000, -300_000, 100_000, -500_000][n as usize % 5];
                let clock_ns = 7 * S + n * S + servo_ns + if n > 10 { step_ns } else { 0 };
                let (at_ns, unadjusted_ns) = (n * S, [100 * S + n * S - 50, 100 * S + n * S + 50]);
                BracketedReading { at_ns, offset_ns: 0, half_width_ns: 50, clock_ns, unadjusted_ns }
            };
            jumps(
                &ClockReadings {
                    clock: clock.into(),
                    readings: (0..20).map(reading).collect(),
                    ..ClockReadings::default()
                },
                Nanos(1_000),
            )
        };
        for (step_ns, least) in [(300_000_000, "50.4 ms"), (-300_000_000, "49.6 ms")] {
            let found = windows("CLOCK_REALTIME", step_ns);
            assert!(matches!(&found[..], [w] if (w.from_ns, w.to_ns) == (10 * S, 11 * S)), "{found:?}");
            let why = format!("CLOCK_REALTIME was stepped by {least} or more, beside changes of its rate");
            assert_eq!(found[0].why, why);
            assert_eq!(windows("/dev/ptp0", step_ns), [], "a card may run this much faster");
        }
        assert_eq!(windows("CLOCK_REALTIME", 240_000_000), [], "ADJ_TICK and ADJ_OFFSET can do this");
        assert_eq!(windows("/dev/ptp0", 2 * S).len(), 1);
    }
}
