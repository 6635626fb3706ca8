//! What the time services of the hosts of both ends claim of the difference between their clocks, beside what the messages of a trial
//! prove.
//!
//! Input: the histories of both clocks during a trial, and the bounds that the messages prove. Output: narrower bounds, or the finding
//! that a claim is wrong. Each service claims a range for the error of CLOCK_REALTIME of its host (`one_clock`). If both count the error
//! from one clock, both ranges give a range for the difference between the clocks, provided that the messages of the services take
//! equally long in both directions (ptp4l), or that the chain of servers is as good as chrony states.

mod hardware;
mod one_clock;

use one_clock::Reference;
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
    /// The clock from which both services count errors.
    from: Reference,
    /// CLOCK_REALTIME of the pong minus CLOCK_REALTIME of the ping, as claimed, ns: smallest and largest possible value.
    difference_ns: [i64; 2],
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
    /// the time or was set, or if the services do not count errors of CLOCK_REALTIME from one clock.
    pub fn of(record: &Record, trial: &TrialRecord, ends: [&str; 2]) -> Option<Claim> {
        record.manifest.plan.clock.as_ref()?;
        let histories: Vec<ClockHistory> = record.clocks(trial.id).into_iter().filter_map(Result::ok).collect();
        let of_end = |end: &str| {
            let clock = &trial.ends.get(end)?.clock;
            histories.iter().find(|history| history.clock == *clock && !clock.is_empty())
        };
        Claim::between([of_end(ends[0])?, of_end(ends[1])?])
    }

    fn between([a, b]: [&ClockHistory; 2]) -> Option<Claim> {
        let (error_a, error_b) = (one_clock::of(a)?, one_clock::of(b)?);
        let ([from_a, real_a], [from_b, real_b]) = (a.realtime?, b.realtime?);
        let was_set = |from: ClockOffset, to: ClockOffset| {
            (to.offset_ns - from.offset_ns).abs() > (from.width_ns + to.width_ns) / 2 + 1
        };
        if error_a.from != error_b.from || was_set(from_a, real_a) || was_set(from_b, real_b) {
            return None;
        }
        let error_ns = (real_a.width_ns + real_b.width_ns) / 2 + 1;
        let real_ns = real_b.offset_ns - real_a.offset_ns;
        let ([least_a, most_a], [least_b, most_b]) = (error_a.range_ns, error_b.range_ns);
        Some(Claim {
            hosts: [a.host.clone(), b.host.clone()],
            service: a.service.clone(),
            from: error_a.from,
            difference_ns: [least_b.saturating_sub(most_a), most_b.saturating_sub(least_a)],
            realtime_ns: [real_ns - error_ns, real_ns + error_ns],
        })
    }

    /// CLOCK_MONOTONIC of the pong minus CLOCK_MONOTONIC of the ping, as claimed, ns.
    fn offset_ns(&self) -> [i64; 2] {
        let ([least, most], [real_least, real_most]) = (self.difference_ns, self.realtime_ns);
        [least.saturating_sub(real_most), most.saturating_sub(real_least)]
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

    /// What both services claim, in words.
    fn in_words(&self) -> String {
        let Claim { hosts: [a, b], service, from, difference_ns: [least, most], .. } = self;
        let by = match least.checked_neg() == Some(*most) {
            true => format!("CLOCK_REALTIME of both hosts would differ by at most {}", Nanos(*most)),
            false => format!(
                "CLOCK_REALTIME of {b} would be ahead of the clock of {a} by {} to {}",
                Nanos(*least),
                Nanos(*most)
            ),
        };
        format!("the time services of {a} and {b} ({service}) report {} by which {by}", from.in_words())
    }
}

impl Judged {
    /// The bounds that the messages prove and the services claim; `None` if both contradict each other.
    pub fn narrowed(&self) -> Option<&SteadyParts> {
        self.narrowed.as_ref()
    }

    /// What a report says of the claim; `None` if it changes nothing.
    pub fn warning(&self) -> Option<Warning> {
        let Claim { hosts: [a, b], difference_ns: [least, most], .. } = &self.claim;
        let claims = self.claim.in_words();
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
        let wrong = match low.saturating_sub(*most).max(least.saturating_sub(high)) {
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
pub(super) mod tests {
    use super::*;
    use tailbound_model::{ClockMaster, ClockOffsetFromMaster, ClockReadings, MasterChange, RootError};
    use tailbound_stats::{ClockMessage, SteadySearch};

    pub const S: i64 = 1_000_000_000;
    /// CLOCK_MONOTONIC of the pong minus CLOCK_MONOTONIC of the ping, ns.
    pub const AHEAD_NS: i64 = 1_000 * S;

    /// The history of a clock whose host booted `booted_ns` after the begin of CLOCK_REALTIME.
    pub fn history(host: &str, booted_ns: i64, within_ns: i64) -> ClockHistory {
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
    pub fn proven() -> SteadyParts {
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
        assert!(!is_claim(ClockHistory { service: "chrony".into(), ..there() }), "another service");
        let mut set = there();
        set.realtime.as_mut().unwrap()[1].offset_ns += 500;
        assert!(!is_claim(set), "the clock was set by less than the bound");
        assert!(!is_claim(ClockHistory { realtime: None, ..there() }), "an older record");
    }

    /// The history of a clock by chrony, which states a root delay of 4 us and a root dispersion of 3 us, and an offset that rises from
    /// 500 ns by 100 ns per second.
    fn by_chrony(host: &str, booted_ns: i64) -> ClockHistory {
        let mut history = ClockHistory { service: "chrony".into(), ..history(host, booted_ns, 1_000_000) };
        history.masters[0].master.grandmaster = "192.0.2.1".into();
        for offset in &mut history.offsets {
            offset.offset_ns = 500 + offset.at_ns / S * 100;
        }
        let root = |offset: &ClockOffsetFromMaster| RootError {
            at_ns: offset.at_ns,
            delay_ns: 4_000,
            dispersion_ns: 3_000,
            rate_error_ppb: 500,
        };
        history.root_errors = history.offsets.iter().map(root).collect();
        history
    }

    /// A claim of chrony, if CLOCK_REALTIME of the pong is wrong by this time.
    fn judged_by_chrony(wrong_ns: i64) -> Judged {
        let both = [by_chrony("here", 5_000 * S), by_chrony("there", 5_000 * S - AHEAD_NS + wrong_ns)];
        Claim::between([&both[0], &both[1]]).unwrap().judged(&proven()).unwrap()
    }

    #[test]
    fn chrony_claims_its_offset_root_dispersion_and_half_of_the_root_delay() {
        let claim = Claim::between([&by_chrony("here", 0), &by_chrony("there", 0)]).unwrap();
        // 3 us and half of 4 us, 2 ns of rounding, and 1,500 ppb for 2 s: 8,003 ns beside offsets of 500 to 1,400 ns.
        let range_ns = [500 - 8_003, 1_400 + 8_003];
        assert_eq!(claim.difference_ns, [range_ns[0] - range_ns[1], range_ns[1] - range_ns[0]]);
        let text = claim.in_words();
        let says = "(chrony) report offsets, root delays and root dispersions of the server 192.0.2.1 (if both hosts mean one server by \
                    this address) by which CLOCK_REALTIME of both hosts would \
                    differ by at most 16.906 us";
        assert!(text.ends_with(says), "{text}");
    }

    /// Test: the claim lies inside the range of 50 us that the messages prove.
    #[test]
    fn a_true_claim_of_chrony_narrows_the_bounds_and_holds_the_truth() {
        for wrong_ns in [-2_500, 0, 2_500] {
            let judged = judged_by_chrony(wrong_ns);
            let [low, high] = judged.narrowed().unwrap().whole().unwrap().offset_ns(3 * S);
            assert!(low <= AHEAD_NS && AHEAD_NS <= high, "{low} to {high}");
            assert!((33_000..35_000).contains(&(high - low)), "{}", high - low);
            assert_eq!(judged.warning().unwrap().problem.code, "clock_claim");
        }
    }

    /// Test: the claim reaches beyond the range that the messages prove; what remains lies in both, and holds the truth.
    #[test]
    fn a_claim_of_chrony_that_overlaps_the_proven_range_is_cut_off_by_it() {
        // The messages prove -20 to 30 us around the truth.
        for wrong_ns in [-16_000, 16_000] {
            let judged = judged_by_chrony(wrong_ns);
            let [proven_low, proven_high] = proven().whole().unwrap().offset_ns(3 * S);
            let [low, high] = judged.narrowed().unwrap().whole().unwrap().offset_ns(3 * S);
            assert!(proven_low <= low && low <= AHEAD_NS && AHEAD_NS <= high && high <= proven_high, "{low} to {high}");
            assert!(low - proven_low <= 2 || proven_high - high <= 2, "{low} to {high}");
            assert!(high - low < proven_high - proven_low, "{low} to {high}");
        }
    }

    #[test]
    fn a_claim_of_chrony_that_messages_contradict_is_a_finding() {
        for wrong_ns in [-60_000, 60_000] {
            let judged = judged_by_chrony(wrong_ns);
            assert!(judged.narrowed().is_none());
            let found = judged.warning().unwrap();
            assert_eq!((found.severity, found.problem.code.as_ref()), (Severity::Warning, "clock_claim_wrong"));
            assert!(found.problem.what.contains("root dispersions of the server"), "{}", found.problem.what);
        }
        // The offset that chrony of one host reports is part of its claim: this host would be behind by 60 us.
        let (here, mut there) = (by_chrony("here", 5_000 * S), by_chrony("there", 5_000 * S - AHEAD_NS));
        there.offsets.iter_mut().for_each(|offset| offset.offset_ns -= 60_000);
        let judged = Claim::between([&here, &there]).unwrap().judged(&proven()).unwrap();
        let text = judged.warning().unwrap().problem.what;
        assert!(
            text.contains(
                "by which CLOCK_REALTIME of there would be ahead of the clock of here by -76.906 us to -43.094 us"
            ),
            "{text}"
        );
        assert!(judged.narrowed().is_none() && text.contains("at least one of them is wrong by "), "{text}");
    }

    #[test]
    fn chrony_without_stated_errors_or_without_one_server_claims_nothing() {
        let good = by_chrony("here", 0);
        let is_claim = |other: ClockHistory| Claim::between([&good, &other]).is_some();
        let there = || by_chrony("there", 0);
        assert!(is_claim(there()));
        assert!(!is_claim(ClockHistory { root_errors: Vec::new(), ..there() }), "an older record");
        let mut fewer = there();
        fewer.root_errors.remove(4);
        assert!(!is_claim(fewer), "an offset without an error");
        let with_server = |name: &str| {
            let mut history = there();
            history.masters[0].master.grandmaster = name.into();
            history
        };
        assert!(!is_claim(with_server("192.0.2.2")), "another server");
        assert!(Claim::between([&with_server("local"), &with_server("local")]).is_none(), "two clocks of their own");
        let mut card = there();
        card.readings = vec![ClockReadings { clock: "/dev/ptp0".into(), ..ClockReadings::default() }];
        assert!(is_claim(card), "the offset of chrony is the offset of CLOCK_REALTIME");
    }
}
