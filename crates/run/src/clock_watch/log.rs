//! What was seen of the clock of this host, and the history of a time span made from it.

use super::service::Seen;
use tailbound_model::{
    ClockHistory, ClockOffsetFromMaster, ClockReadings, MOST_OFFSETS, MasterChange, Nanos, PortChange, ServiceSilence,
    TimeService,
};

/// Largest number of entries of each list but the offsets, which change seldom.
const MOST_CHANGES: usize = 10_000;

/// What was seen of the clock, from the begin of the watch or of the last history on.
#[derive(Debug, Clone, Default)]
pub(super) struct ClockLog {
    seen: ClockHistory,
    /// When the service answered last, CLOCK_MONOTONIC, ns.
    answered_ns: Option<i64>,
    /// True while the service does not answer.
    is_silent: bool,
    /// The offset has been within the bound since this time; `None` = the last one was not.
    held_since_ns: Option<i64>,
    /// Longest time for which the offset was within the bound, ns.
    longest_held_ns: i64,
}

impl ClockLog {
    pub fn new(by: &TimeService, within: Nanos) -> ClockLog {
        let seen = ClockHistory { service: by.to_string(), within, ..ClockHistory::default() };
        ClockLog { seen, ..ClockLog::default() }
    }

    /// The service, in words.
    pub fn service(&self) -> String {
        self.seen.service.clone()
    }

    /// Adds what the service said.
    pub fn add(&mut self, seen: Seen) {
        match seen {
            Seen::Offset(offset) => self.add_offset(offset),
            Seen::RootError(root) => {
                // An offset that is not kept has no error either.
                if self.seen.offsets.last().is_some_and(|offset| offset.at_ns == root.at_ns) {
                    self.seen.root_errors.push(root);
                }
            }
            Seen::PathDelay(delay_ns) => {
                if let Some(last) = self.seen.offsets.last_mut() {
                    last.path_delay_ns.get_or_insert(delay_ns);
                }
            }
            Seen::Port(at_ns, port, state) => {
                let last = self.seen.ports.iter().rev().find(|change| change.port == port);
                if last.is_none_or(|last| last.state != state) && self.seen.ports.len() < MOST_CHANGES {
                    self.seen.ports.push(PortChange { at_ns, port, state });
                }
            }
            Seen::PortClock(clock) => {
                let last = self.seen.port_clocks.iter().rev().find(|known| known.port == clock.port);
                if last != Some(&clock) && self.seen.port_clocks.len() < MOST_CHANGES {
                    self.seen.port_clocks.push(clock);
                }
            }
            Seen::Master(at_ns, master) => {
                if master.grandmaster.is_empty() {
                    self.held_since_ns = None;
                }
                let is_new = self.seen.masters.last().is_none_or(|last| last.master != master);
                if is_new && self.seen.masters.len() < MOST_CHANGES {
                    self.seen.masters.push(MasterChange { at_ns, master });
                }
            }
            Seen::Answered(at_ns) => {
                if std::mem::take(&mut self.is_silent)
                    && let Some(silence) = self.seen.silences.last_mut()
                {
                    silence.to_ns = at_ns;
                }
                self.answered_ns = Some(at_ns);
            }
            Seen::Silent(at_ns, why) => self.add_silence(at_ns, why),
        }
    }

    fn add_offset(&mut self, offset: ClockOffsetFromMaster) {
        if offset.offset_ns.unsigned_abs() > self.seen.within.0.unsigned_abs() {
            self.held_since_ns = None;
        } else {
            let since_ns = *self.held_since_ns.get_or_insert(offset.at_ns);
            self.longest_held_ns = self.longest_held_ns.max(offset.at_ns - since_ns);
        }
        if self.seen.offsets.len() < MOST_OFFSETS {
            self.seen.offsets.push(offset);
        } else {
            self.seen.offsets_not_kept += 1;
        }
    }

    fn add_silence(&mut self, at_ns: i64, why: String) {
        self.held_since_ns = None;
        if self.is_silent {
            if let Some(silence) = self.seen.silences.last_mut() {
                silence.to_ns = at_ns;
            }
        } else if self.seen.silences.len() < MOST_CHANGES {
            self.is_silent = true;
            let from_ns = self.answered_ns.unwrap_or(at_ns);
            self.seen.silences.push(ServiceSilence { from_ns, to_ns: at_ns, why });
        }
    }

    /// Adds one reading of each clock.
    pub fn add_readings(&mut self, readings: Vec<ClockReadings>) {
        for mut new in readings {
            match self.seen.readings.iter_mut().find(|known| known.clock == new.clock) {
                Some(known) => {
                    if known.readings.len() < MOST_OFFSETS {
                        known.readings.append(&mut new.readings);
                    }
                    known.not_read = new.not_read;
                }
                None => self.seen.readings.push(new),
            }
        }
    }

    /// What was seen since the begin of the watch, or since the last history.
    pub fn so_far(&self) -> &ClockHistory {
        &self.seen
    }

    /// Time for which the offset has been within the bound until its last value, ns, with the time of this value.
    pub fn held(&self) -> Option<(i64, i64)> {
        let last = self.seen.offsets.last()?;
        self.held_since_ns.map(|since_ns| (last.at_ns - since_ns, last.at_ns))
    }

    /// Longest time for which the offset was within the bound, ns.
    pub fn longest_held_ns(&self) -> i64 {
        self.longest_held_ns
    }

    /// The history of a time span, with the last value and the last states before it. What came before is no longer kept.
    pub fn history(&mut self, from_ns: i64, to_ns: i64) -> ClockHistory {
        let seen = &mut self.seen;
        if self.is_silent
            && let Some(silence) = seen.silences.last_mut()
        {
            silence.to_ns = silence.to_ns.max(to_ns);
        }
        let earlier = seen.offsets.partition_point(|offset| offset.at_ns < from_ns);
        seen.offsets.drain(..earlier.saturating_sub(1));
        let earlier = seen.root_errors.partition_point(|root| root.at_ns < from_ns);
        seen.root_errors.drain(..earlier.saturating_sub(1));
        seen.silences.retain(|silence| silence.to_ns >= from_ns);
        for clock in &mut seen.readings {
            clock.readings.retain(|reading| reading.at_ns >= from_ns);
        }
        let is_last = |ports: &[PortChange], n: usize| {
            !ports[n + 1..].iter().any(|c| c.port == ports[n].port && c.at_ns <= from_ns)
        };
        let ports = std::mem::take(&mut seen.ports);
        seen.ports = (0..ports.len()).filter(|n| is_last(&ports, *n)).map(|n| ports[n]).collect();
        let masters = seen.masters.partition_point(|change| change.at_ns <= from_ns);
        seen.masters.drain(..masters.saturating_sub(1));
        let history = ClockHistory { from_ns, to_ns, ..seen.clone() };
        seen.offsets_not_kept = 0;
        let clocks = std::mem::take(&mut seen.port_clocks);
        let is_last = |n: usize| !clocks[n + 1..].iter().any(|clock| clock.port == clocks[n].port);
        seen.port_clocks = (0..clocks.len()).filter(|n| is_last(*n)).map(|n| clocks[n].clone()).collect();
        history
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{BracketedReading, ClockMaster, PortClock, PortState, RootError};

    const S: i64 = 1_000_000_000;

    fn offset(at_ns: i64, offset_ns: i64) -> Seen {
        Seen::Offset(ClockOffsetFromMaster { at_ns, offset_ns, path_delay_ns: None })
    }

    fn log() -> ClockLog {
        let by = TimeService::Ptp4l { socket: "/run/ptp4l".into(), domain: 0 };
        ClockLog::new(&by, Nanos(1_000))
    }

    #[test]
    fn the_time_within_the_bound_begins_again_after_each_fault() {
        let mut log = log();
        assert_eq!(log.held(), None);
        for at in 0..5 {
            log.add(offset(at * S, if at == 1 { -1_001 } else { 1_000 }));
        }
        assert_eq!(log.held(), Some((2 * S, 4 * S)), "since the third value");
        log.add(Seen::Silent(5 * S, "gone".into()));
        assert_eq!(log.held(), None);
        log.add(Seen::Answered(6 * S));
        log.add(offset(6 * S, 0));
        log.add(offset(7 * S, 0));
        assert_eq!(log.held(), Some((S, 7 * S)));
        log.add(Seen::Master(8 * S, ClockMaster::default()));
        assert_eq!((log.held(), log.longest_held_ns()), (None, 2 * S));
    }

    #[test]
    fn a_history_has_its_time_span_and_the_states_at_its_begin() {
        let mut log = log();
        let master = |name: &str| ClockMaster { grandmaster: name.into(), ..ClockMaster::default() };
        for (at, state) in
            [(0, PortState::Listening), (1, PortState::Uncalibrated), (2, PortState::Slave), (9, PortState::Listening)]
        {
            log.add(Seen::Port(at * S, 1, state));
            log.add(Seen::Port(at * S, 2, PortState::Master));
            log.add(Seen::Master(at * S, master(if at < 9 { "a" } else { "b" })));
        }
        for at in 0..10 {
            log.add(Seen::Answered(at * S));
            log.add(offset(at * S, at));
            log.add(Seen::PathDelay(100 + at));
            log.add(Seen::PathDelay(999));
            let reading = BracketedReading::from([at * S, 0, 5, 0, 0, 1]);
            log.add_readings(vec![ClockReadings {
                clock: "CLOCK_REALTIME".into(),
                readings: vec![reading],
                ..ClockReadings::default()
            }]);
        }
        log.add(Seen::Silent(12 * S, "gone".into()));
        log.add(Seen::Silent(13 * S, "gone".into()));
        let history = log.history(5 * S, 20 * S);
        let times: Vec<i64> = history.offsets.iter().map(|offset| offset.at_ns / S).collect();
        assert_eq!(times, [4, 5, 6, 7, 8, 9], "with the value before the begin");
        assert_eq!(history.offsets[1].path_delay_ns, Some(105));
        let states: Vec<_> = history.ports.iter().map(|c| (c.at_ns / S, c.port, c.state)).collect();
        assert_eq!(states, [(0, 2, PortState::Master), (2, 1, PortState::Slave), (9, 1, PortState::Listening)]);
        let masters: Vec<_> = history.masters.iter().map(|c| (c.at_ns / S, c.master.grandmaster.as_str())).collect();
        assert_eq!(masters, [(0, "a"), (9, "b")]);
        assert_eq!(
            (history.silences.len(), history.silences[0].from_ns, history.silences[0].to_ns),
            (1, 9 * S, 20 * S)
        );
        assert_eq!(history.readings[0].readings.len(), 5);
        // The next trial begins with the last states, and the silence that goes on.
        let next = log.history(21 * S, 22 * S);
        assert_eq!((next.offsets.len(), next.ports.len(), next.masters.len()), (1, 2, 1));
        assert_eq!((next.silences[0].from_ns, next.silences[0].to_ns), (9 * S, 22 * S));
        log.add(Seen::Answered(23 * S));
        assert_eq!(log.history(24 * S, 25 * S).silences, []);
    }

    #[test]
    fn what_chrony_states_of_its_reference_is_kept_with_its_offsets() {
        let mut log = ClockLog::new(&TimeService::Chrony, Nanos(1_000));
        let root = |at_ns| RootError { at_ns, delay_ns: 4_000, dispersion_ns: 3_000, rate_error_ppb: 12 };
        for at in 0..10 {
            log.add(offset(at * S, at));
            log.add(Seen::RootError(root(at * S)));
        }
        log.add(Seen::RootError(root(99 * S)));
        let history = log.history(5 * S, 20 * S);
        let times: Vec<i64> = history.offsets.iter().map(|offset| offset.at_ns).collect();
        assert_eq!(times, history.root_errors.iter().map(|root| root.at_ns).collect::<Vec<_>>());
        assert_eq!((times.len(), history.root_errors[1]), (6, root(5 * S)));
        let text = serde_json::to_string(&history).unwrap();
        assert!(text.contains("[5000000000,4000,3000,12]"), "{text}");
        assert_eq!(serde_json::from_str::<ClockHistory>(&text).unwrap(), history);
        let older = text.replace(r#""root_errors""#, r#""unknown""#);
        assert_eq!(serde_json::from_str::<ClockHistory>(&older).unwrap().root_errors, [], "an older record");
    }

    #[test]
    fn a_change_of_the_clock_of_a_port_belongs_to_one_history() {
        let mut log = log();
        let clock = |port, index| PortClock { port, interface: "eth0".into(), is_hardware: true, index };
        for (port, index) in [(1, None), (2, None), (1, None), (1, Some(3)), (2, None)] {
            log.add(Seen::PortClock(clock(port, index)));
        }
        assert_eq!(log.history(0, S).port_clocks, [clock(1, None), clock(2, None), clock(1, Some(3))]);
        assert_eq!(log.history(S, 2 * S).port_clocks, [clock(2, None), clock(1, Some(3))]);
    }

    /// Test: the history of 900 s with 16 synchronisations per second fits, and so does its file.
    #[test]
    fn a_long_history_fits() {
        let mut log = log();
        for n in 0..900 * 16 {
            log.add(offset(S / 16 * n + 123_456_789_012_345, -1_234 * (n % 7)));
            log.add(Seen::PathDelay(2_345));
        }
        let history = log.history(0, 901 * S);
        assert_eq!((history.offsets.len(), history.offsets_not_kept), (14_400, 0));
        let bytes = serde_json::to_vec(&history).unwrap();
        assert!(bytes.len() < 600_000, "{}", bytes.len());
        assert_eq!(serde_json::from_slice::<ClockHistory>(&bytes).unwrap(), history);
        for n in 0..MOST_OFFSETS as i64 {
            log.add(offset(n, 0));
        }
        assert_eq!(log.so_far().offsets.len(), MOST_OFFSETS);
        assert!(log.so_far().offsets_not_kept > 0, "what is not kept is counted");
    }
}
