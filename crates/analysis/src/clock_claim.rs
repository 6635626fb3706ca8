//! What the time services of the hosts of both ends claim of the difference between their clocks, beside what the messages of a trial
//! prove.
//!
//! Input: the histories of both clocks during a trial, and the bounds that the messages prove. Output: narrower bounds, or the finding
//! that a claim is wrong. If two ptp4l report offsets of at most the bound of the study from one PTP grandmaster, CLOCK_REALTIME of both
//! hosts differs by at most the sum of both bounds, provided that their messages take equally long in both directions. The offset
//! that chrony reports is not the error of the clock, so that chrony claims nothing.

use crate::clock_windows;
use tailbound_model::{ClockHistory, ClockOffset, Nanos, Severity, Warning};
use tailbound_record::{Record, TrialRecord};
use tailbound_stats::{ClockBounds, SteadyParts};

/// The claim of two time services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Names of the hosts of ping and pong.
    hosts: [String; 2],
    /// The service of the ping's host, in words.
    service: String,
    /// Largest difference between CLOCK_REALTIME of both hosts, ns.
    within_ns: i64,
    /// Pong minus ping of (CLOCK_REALTIME minus CLOCK_MONOTONIC), ns: smallest and largest possible value.
    realtime_ns: [i64; 2],
}

/// A claim beside what messages prove.
#[derive(Debug)]
pub(crate) struct Judged {
    claim: Claim,
    /// Widths of the possible offset at the begin of the trial by the messages, and with the claim, ns.
    widths_ns: [i64; 2],
    /// CLOCK_REALTIME of the pong minus CLOCK_REALTIME of the ping at the begin of the trial, as the messages prove it, ns.
    proven_ns: [i64; 2],
    /// The narrower bounds; `None` = the claim and the messages contradict each other.
    narrowed: Option<SteadyParts>,
}

impl Claim {
    /// The claim about a trial whose ends have different clocks. `None` if not both clocks have a history, if one was not in step all
    /// the time or was set, if they have different grandmasters, or if a service is not ptp4l for CLOCK_REALTIME.
    pub fn of(record: &Record, trial: &TrialRecord, ends: [&str; 2]) -> Option<Claim> {
        record.manifest.plan.clock.as_ref()?;
        let histories: Vec<ClockHistory> = record.clocks(trial.id).into_iter().filter_map(Result::ok).collect();
        let of_end = |end: &str| {
            let clock = &trial.ends.get(end)?.clock;
            histories.iter().find(|history| history.clock == *clock && !clock.is_empty())
        };
        Claim::between([of_end(ends[0])?, of_end(ends[1])?])
    }

    fn between(both: [&ClockHistory; 2]) -> Option<Claim> {
        let is_usable = |history: &ClockHistory| {
            // With a hardware clock, the offset of ptp4l is the offset of this clock.
            let is_system = history.readings.iter().all(|clock| !clock.clock.starts_with('/'));
            let has_master = history.masters.len() == 1 && !history.masters[0].master.grandmaster.is_empty();
            let is_ptp = history.service.starts_with("ptp4l");
            is_ptp && is_system && has_master && !history.offsets.is_empty() && clock_windows::of(history).is_empty()
        };
        let [a, b] = both;
        let same_master =
            a.masters.first().map(|m| &m.master.grandmaster) == b.masters.first().map(|m| &m.master.grandmaster);
        if !both.into_iter().all(is_usable) || !same_master {
            return None;
        }
        let ([from_a, real_a], [from_b, real_b]) = (a.realtime?, b.realtime?);
        let was_set = |from: ClockOffset, to: ClockOffset| {
            (to.offset_ns - from.offset_ns).abs() > (from.width_ns + to.width_ns) / 2 + 1
        };
        if was_set(from_a, real_a) || was_set(from_b, real_b) {
            return None;
        }
        let error_ns = (real_a.width_ns + real_b.width_ns) / 2 + 1;
        let difference_ns = real_b.offset_ns - real_a.offset_ns;
        Some(Claim {
            hosts: both.map(|history| history.host.clone()),
            service: a.service.clone(),
            within_ns: a.within.0 + b.within.0,
            realtime_ns: [difference_ns - error_ns, difference_ns + error_ns],
        })
    }

    /// CLOCK_MONOTONIC of the pong minus CLOCK_MONOTONIC of the ping, as claimed, ns.
    fn offset_ns(&self) -> [i64; 2] {
        [-self.within_ns - self.realtime_ns[1], self.within_ns - self.realtime_ns[0]]
    }

    /// The claim beside what the messages prove; `None` if one of the clocks changed during the trial.
    pub fn judged(self, proven: &SteadyParts) -> Option<Judged> {
        let (span_ns, bounds) = proven.parts().next().filter(|_| proven.whole().is_some())?;
        let width = |bounds: &ClockBounds| bounds.offset_ns(span_ns.0)[1] - bounds.offset_ns(span_ns.0)[0];
        let narrowed = bounds.narrowed(&[span_ns.0, span_ns.1], self.offset_ns());
        let [low, high] = bounds.offset_ns(span_ns.0);
        Some(Judged {
            widths_ns: [width(bounds), narrowed.as_ref().map_or(0, width)],
            proven_ns: [low + self.realtime_ns[0], high + self.realtime_ns[1]],
            narrowed: narrowed.map(|bounds| proven.with_whole(bounds)),
            claim: self,
        })
    }
}

impl Judged {
    /// The bounds that the messages prove and the services claim; `None` if both contradict each other.
    pub fn narrowed(&self) -> Option<&SteadyParts> {
        self.narrowed.as_ref()
    }

    /// What a report says of the claim; `None` if it changes nothing.
    pub fn warning(&self) -> Option<Warning> {
        let Claim { hosts: [a, b], service, within_ns, .. } = &self.claim;
        let within = Nanos(*within_ns);
        let claims = format!(
            "the time services of {a} and {b} ({service}) report offsets from one grandmaster by which CLOCK_REALTIME of both hosts would differ by \
             at most {within}"
        );
        let [proven_ns, with_claim_ns] = self.widths_ns;
        if self.narrowed.is_some() {
            let text = format!(
                "{claims}. The times of one way between the two clocks rest on this: with it, the offset between the clocks is known \
                 to {} instead of {}, which the messages alone prove",
                Nanos(with_claim_ns),
                Nanos(proven_ns)
            );
            return (with_claim_ns < proven_ns).then(|| Warning::new("clock_claim", Severity::Note, text, ""));
        }
        let [low, high] = self.proven_ns;
        // If both ranges overlap at the begin, they differ later.
        let wrong = match (low - within_ns).max(-high - within_ns) {
            by if by > 0 => format!("by {} or more", Nanos(by)),
            _ => "at the end of the trial".to_owned(),
        };
        let text = format!(
            "{claims}, but the messages prove that CLOCK_REALTIME of {b} is ahead of the clock of {a} by {} to {}: the report of at \
             least one of them is wrong {wrong}",
            Nanos(low),
            Nanos(high)
        );
        let remedy = "do not use the offsets of this time service; look for a path to the master that takes longer in one direction";
        Some(Warning::new("clock_claim_wrong", Severity::Warning, text, remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{ClockMaster, ClockOffsetFromMaster, ClockReadings, MasterChange};
    use tailbound_stats::{ClockMessage, SteadySearch};

    const S: i64 = 1_000_000_000;
    /// CLOCK_MONOTONIC of the pong minus CLOCK_MONOTONIC of the ping, ns.
    const AHEAD_NS: i64 = 1_000 * S;

    /// The history of a clock whose host booted `booted_ns` after the begin of CLOCK_REALTIME.
    fn history(host: &str, booted_ns: i64, within_ns: i64) -> ClockHistory {
        let at = |n: i64| ClockOffsetFromMaster { at_ns: n * S, offset_ns: 10, path_delay_ns: None };
        let master = ClockMaster { grandmaster: "a.b.c".into(), ..ClockMaster::default() };
        ClockHistory {
            host: host.into(),
            service: "ptp4l".into(),
            within: Nanos(within_ns),
            to_ns: 9 * S,
            offsets: (0..10).map(at).collect(),
            masters: vec![MasterChange { at_ns: 0, master }],
            realtime: Some([0, 9].map(|s| ClockOffset { at_ns: s * S, offset_ns: booted_ns, width_ns: 100 })),
            ..ClockHistory::default()
        }
    }

    /// What messages prove that need 30 us there and 20 us back.
    fn proven() -> SteadyParts {
        let mut search = SteadySearch::default();
        for n in 0..2_000 {
            let sent_a_ns = n * 5_000_000;
            search.add(&ClockMessage {
                sent_a_ns,
                arrived_b_ns: Some(sent_a_ns + AHEAD_NS + 30_000),
                answered_b_ns: Some(sent_a_ns + AHEAD_NS + 40_000),
                received_a_ns: Some(sent_a_ns + 60_000),
            });
        }
        search.finish().unwrap()
    }

    /// A claim with this bound for each clock, if CLOCK_REALTIME of the pong is wrong by this time.
    fn judged(within_ns: i64, wrong_ns: i64) -> Judged {
        let both =
            [history("here", 5_000 * S, within_ns), history("there", 5_000 * S - AHEAD_NS + wrong_ns, within_ns)];
        Claim::between([&both[0], &both[1]]).unwrap().judged(&proven()).unwrap()
    }

    #[test]
    fn a_true_claim_narrows_the_bounds_and_holds_the_truth() {
        for wrong_ns in [-1_900, 0, 1_900] {
            let judged = judged(1_000, wrong_ns);
            let [low, high] = judged.narrowed().unwrap().whole().unwrap().offset_ns(3 * S);
            assert!(low <= AHEAD_NS && AHEAD_NS <= high, "{low} to {high}");
            assert!((3_900..4_300).contains(&(high - low)), "{}", high - low);
        }
        let note = judged(1_000, 0).warning().unwrap();
        assert_eq!(note.severity, Severity::Note);
        let begin = "the time services of here and there (ptp4l) report offsets from one grandmaster by which CLOCK_REALTIME of both hosts would differ by at most 2 us. The \
                     times of one way between the two clocks rest on this: with it, the offset between the clocks is known to 4";
        assert!(note.problem.what.starts_with(begin), "{}", note.problem.what);
    }

    #[test]
    fn a_claim_that_is_wider_than_what_messages_prove_changes_nothing() {
        let judged = judged(100_000, 0);
        assert_eq!(judged.widths_ns[0], judged.widths_ns[1]);
        assert!(judged.warning().is_none());
    }

    #[test]
    fn a_claim_that_messages_contradict_is_a_finding_with_the_least_error() {
        for (wrong_ns, least_ns) in [(200_000, 165_000), (-200_000, 165_000)] {
            let judged = judged(1_000, wrong_ns);
            assert!(judged.narrowed().is_none());
            let found = judged.warning().unwrap();
            assert_eq!((found.severity, found.problem.code.as_ref()), (Severity::Warning, "clock_claim_wrong"));
            let [low, high] = judged.proven_ns;
            assert!(low <= wrong_ns && wrong_ns <= high, "{low} to {high}");
            assert!((low.max(-high) - 2_000) > least_ns, "{low} to {high}");
        }
        let text = judged(1_000, 200_000).warning().unwrap().problem.what;
        let says = "but the messages prove that CLOCK_REALTIME of there is ahead of the clock of here by 17";
        assert!(text.contains(says) && text.contains("at least one of them is wrong by 17"), "{text}");
    }

    #[test]
    fn clocks_that_were_not_in_step_with_one_master_claim_nothing() {
        let good = history("here", 0, 1_000);
        let is_claim = |other: ClockHistory| Claim::between([&good, &other]).is_some();
        let there = || history("there", 0, 1_000);
        assert!(is_claim(there()));
        let mut beyond = there();
        beyond.offsets[3].offset_ns = 2_000;
        assert!(!is_claim(beyond), "beyond the bound");
        let mut other = there();
        other.masters[0].master.grandmaster = "d.e.f".into();
        assert!(!is_claim(other), "another master");
        let mut card = there();
        card.readings = vec![ClockReadings { clock: "/dev/ptp0".into(), ..ClockReadings::default() }];
        assert!(!is_claim(card), "the offset may be the offset of a network card");
        assert!(!is_claim(ClockHistory { service: "chrony".into(), ..there() }), "its offset is not the error");
        let mut set = there();
        set.realtime.as_mut().unwrap()[1].offset_ns += 500;
        assert!(!is_claim(set), "the clock was set by less than the bound");
        assert!(!is_claim(ClockHistory { realtime: None, ..there() }), "an older record");
    }
}
