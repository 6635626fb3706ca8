//! The clock whose offset ptp4l reports, and what its readings add to a claim: with time stamps of a network card, ptp4l reports the
//! offset of the clock of this card, and CLOCK_REALTIME was read beside this clock once a second.

use tailbound_model::{ClockHistory, ClockReadings, PortState};

/// Longest time between two readings of a clock, ns: they are due once a second.
const LONGEST_GAP_NS: i64 = 3_000_000_000;

/// The clock whose offset ptp4l reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reported<'a> {
    /// CLOCK_REALTIME.
    System,
    /// A hardware clock, with its readings.
    Hardware(&'a ClockReadings),
}

impl<'a> Reported<'a> {
    /// Finds the clock by the port that has a master. `None` if several ports had one, or if it is not known which of the clocks of the
    /// host belongs to the port.
    pub fn of(history: &'a ClockHistory) -> Option<Reported<'a>> {
        let mut hardware = history.readings.iter().filter(|clock| clock.clock.starts_with('/'));
        if history.port_clocks.is_empty() {
            // Without the time stamps of the ports, only a host without a hardware clock is certain.
            return hardware.next().is_none().then_some(Reported::System);
        }
        let has_master = |state: PortState| matches!(state, PortState::Slave | PortState::Uncalibrated);
        let mut ports: Vec<u16> = history.ports.iter().filter(|c| has_master(c.state)).map(|c| c.port).collect();
        ports.sort_unstable();
        ports.dedup();
        let [port] = ports[..] else { return None };
        let of_port: Vec<_> = history.port_clocks.iter().filter(|clock| clock.port == port).collect();
        let [stamps] = of_port[..] else { return None };
        if !stamps.is_hardware {
            return Some(Reported::System);
        }
        let path = stamps.index.map(|index| format!("/dev/ptp{index}"));
        let is_it = |clock: &&ClockReadings| match &path {
            Some(path) => clock.clock == *path,
            None => clock.interfaces.contains(&stamps.interface),
        };
        hardware.find(is_it).map(Reported::Hardware)
    }
}

/// Range of CLOCK_REALTIME minus the master, ns, if the hardware clock was within `within_ns` of the master: the range of all readings
/// with their widths, and on each side the largest possible change between two of them, because no reading shows what happened in
/// between. `None` if the clock was not read during the whole history.
pub(super) fn range_ns(of: &ClockReadings, within_ns: i64, [from_ns, to_ns]: [i64; 2]) -> Option<[i64; 2]> {
    let readings = of.readings.iter();
    let times: Vec<i64> = [from_ns].into_iter().chain(readings.clone().map(|r| r.at_ns)).chain([to_ns]).collect();
    if of.not_read.is_some() || of.readings.len() < 2 || times.windows(2).any(|t| t[1] - t[0] > LONGEST_GAP_NS) {
        return None;
    }
    let change = |pair: &[tailbound_model::BracketedReading]| {
        let widths_ns = pair[0].half_width_ns.saturating_add(pair[1].half_width_ns);
        pair[1].offset_ns.saturating_sub(pair[0].offset_ns).saturating_abs().saturating_add(widths_ns)
    };
    let moved_ns = of.readings.windows(2).map(change).max()?;
    let least_ns = readings.clone().map(|r| r.offset_ns.saturating_sub(r.half_width_ns)).min()?;
    let most_ns = readings.map(|r| r.offset_ns.saturating_add(r.half_width_ns)).max()?;
    let error_ns = within_ns.saturating_add(moved_ns);
    // The readings are the hardware clock minus CLOCK_REALTIME.
    Some([most_ns.saturating_add(error_ns).checked_neg()?, error_ns.saturating_sub(least_ns)])
}

#[cfg(test)]
mod tests {
    use super::super::Claim;
    use super::super::tests::{AHEAD_NS, S, history, proven};
    use super::*;
    use tailbound_model::{BracketedReading, PortChange, PortClock, Severity};

    /// Time of a hardware clock minus CLOCK_REALTIME of its host at the begin, ns: TAI minus UTC.
    const TAI_NS: i64 = 37 * S;

    fn readings(path: &str, interface: &str, offset_ns: impl Fn(i64) -> i64) -> ClockReadings {
        let reading = |s: i64| BracketedReading {
            at_ns: s * S,
            offset_ns: offset_ns(s),
            half_width_ns: 150,
            clock_ns: 0,
            unadjusted_ns: [0, 0],
        };
        ClockReadings {
            clock: path.into(),
            interfaces: vec![interface.into()],
            read_by: "PTP_SYS_OFFSET_EXTENDED".into(),
            readings: (0..10).map(reading).collect(),
            not_read: None,
        }
    }

    /// A host whose ptp4l keeps the clock of eth0 within 1 us of the master. CLOCK_REALTIME is behind this clock by 37 s, and is off by
    /// `wrong_ns` beside this; it swings by 100 ns in each second.
    fn of_card(host: &str, booted_ns: i64, wrong_ns: i64) -> ClockHistory {
        let clock = readings("/dev/ptp1", "eth0", |s| TAI_NS - wrong_ns + s % 2 * 100);
        ClockHistory {
            readings: vec![readings("/dev/ptp0", "eth1", |_| 7 * S), clock],
            ports: vec![PortChange { at_ns: 0, port: 1, state: PortState::Slave }],
            port_clocks: vec![PortClock { port: 1, interface: "eth0".into(), is_hardware: true, index: None }],
            ..history(host, booted_ns + wrong_ns, 1_000)
        }
    }

    fn claim(wrong_here_ns: i64, wrong_there_ns: i64, said_ns: i64) -> Claim {
        let here = of_card("here", 5_000 * S, wrong_here_ns);
        let mut there = of_card("there", 5_000 * S - AHEAD_NS, wrong_there_ns);
        // What ptp4l of the second host does not know.
        for reading in &mut there.readings[1].readings {
            reading.offset_ns += said_ns;
        }
        Claim::between([&here, &there]).unwrap()
    }

    #[test]
    fn a_claim_about_a_hardware_clock_is_one_about_the_system_clock_with_the_widths_of_the_readings() {
        // Within 1 us, half widths of 150 ns, a swing of 100 ns, and the same with two half widths between two readings.
        let clock = readings("/dev/ptp0", "eth0", |s| TAI_NS + s % 2 * 100);
        let range = range_ns(&clock, 1_000, [0, 9 * S]).unwrap();
        assert_eq!(range, [-TAI_NS - 100 - 150 - 1_400, -TAI_NS + 150 + 1_400]);
        let text = claim(0, 0, 0).in_words();
        let says = "report offsets of hardware clocks from one grandmaster, and readings of these clocks, by which CLOCK_REALTIME of \
                    both hosts would differ by at most 3.2 us";
        assert!(text.ends_with(says), "{text}");
    }

    /// Test: both system clocks are wrong by up to a second, which the readings show, so that the claim remains true.
    #[test]
    fn a_true_claim_narrows_the_bounds_and_holds_the_truth() {
        for (here_ns, there_ns) in [(0, 0), (700_000, -40_000), (-S, S)] {
            let judged = claim(here_ns, there_ns, 0).judged(&proven()).unwrap();
            let [low, high] = judged.narrowed().unwrap().whole().unwrap().offset_ns(3 * S);
            assert!(low <= AHEAD_NS && AHEAD_NS <= high, "{low} to {high}");
            assert!((6_400..6_900).contains(&(high - low)), "{}", high - low);
            assert_eq!(judged.warning().unwrap().severity, Severity::Note);
        }
    }

    #[test]
    fn a_claim_that_overlaps_the_proven_range_is_cut_off_by_it_and_another_one_is_a_finding() {
        // The messages prove -20 to 30 us around the truth.
        for said_ns in [-30_000, 20_000] {
            let judged = claim(0, 0, said_ns).judged(&proven()).unwrap();
            let [proven_low, proven_high] = proven().whole().unwrap().offset_ns(3 * S);
            let [low, high] = judged.narrowed().expect("an overlap").whole().unwrap().offset_ns(3 * S);
            assert!(proven_low <= low && high <= proven_high && high - low < 3_500, "{low} to {high}");
        }
        for said_ns in [-60_000, 60_000] {
            let judged = claim(0, 0, said_ns).judged(&proven()).unwrap();
            assert!(judged.narrowed().is_none());
            assert_eq!(judged.warning().unwrap().problem.code, "clock_claim_wrong");
        }
    }

    #[test]
    fn the_clock_of_the_port_with_a_master_is_found() {
        let good = of_card("here", 0, 0);
        let clock_of = |history: &ClockHistory| match Reported::of(history) {
            None => "unknown".to_owned(),
            Some(Reported::System) => "CLOCK_REALTIME".to_owned(),
            Some(Reported::Hardware(clock)) => clock.clock.clone(),
        };
        assert_eq!(clock_of(&good), "/dev/ptp1", "by the interface");
        let with = |change: &dyn Fn(&mut ClockHistory)| {
            let mut changed = good.clone();
            change(&mut changed);
            clock_of(&changed)
        };
        assert_eq!(
            with(&|h| h.port_clocks[0].index = Some(0)),
            "/dev/ptp0",
            "by the number, for example of a virtual clock"
        );
        assert_eq!(with(&|h| h.port_clocks[0].index = Some(5)), "unknown");
        assert_eq!(with(&|h| h.port_clocks[0].interface = "eth7".into()), "unknown");
        assert_eq!(
            with(&|h| h.port_clocks[0].is_hardware = false),
            "CLOCK_REALTIME",
            "by the kernel, although there are clocks"
        );
        assert_eq!(with(&|h| h.port_clocks.clear()), "unknown", "an older record");
        assert_eq!(with(&|h| h.port_clocks.push(PortClock { port: 1, ..PortClock::default() })), "unknown", "a change");
        let other = |state| PortChange { at_ns: 0, port: 2, state };
        assert_eq!(with(&|h| h.ports.push(other(PortState::Master))), "/dev/ptp1", "a boundary clock");
        assert_eq!(with(&|h| h.ports.push(other(PortState::Uncalibrated))), "unknown", "two ports with a master");
    }

    #[test]
    fn a_clock_that_was_not_read_all_the_time_and_clocks_of_two_kinds_claim_nothing() {
        let good = readings("/dev/ptp0", "eth0", |_| TAI_NS);
        let range = |clock: &ClockReadings| range_ns(clock, 1_000, [0, 9 * S]);
        assert!(range(&good).is_some());
        assert!(range_ns(&good, 1_000, [0, 13 * S]).is_none(), "no reading at the end");
        let mut gap = good.clone();
        gap.readings.drain(3..6);
        assert!(range(&gap).is_none(), "no reading for 4 s");
        assert!(range(&ClockReadings { not_read: Some("gone".into()), ..good }).is_none());
        let mut by_kernel = of_card("there", 0, 0);
        by_kernel.port_clocks[0].is_hardware = false;
        assert!(Claim::between([&by_kernel, &by_kernel]).is_some());
        // The time of the master may be TAI for one and UTC for the other.
        assert!(Claim::between([&of_card("here", 0, 0), &by_kernel]).is_none());
    }
}
