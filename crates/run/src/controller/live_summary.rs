//! While a long trial runs, joins what its agents know of late messages, for the progress output of the run. Nothing of this is
//! in the record: its figures come from all samples, after the trial.

use super::agent::Agent;
use super::progress::{KnownCause, KnownCauses, LateSoFar};
use crate::cause_numbers;
use std::time::Duration;
use tailbound_model::{Counter, Nanos};
use tailbound_wire::{Cause, Causes, Role, SoFar};
use tokio::time::Instant;

/// The kernel counters that agents read while a trial runs and that move at few times only.
const COUNTERS: [Counter; 7] = [
    Counter::QuotaThrottledNs,
    Counter::StealNs,
    Counter::SocketBufferDrops,
    Counter::ReassemblyFailures,
    Counter::InterfaceReceiveDrops,
    Counter::InterfaceSendDrops,
    Counter::BacklogDrops,
];

/// Largest number of causes in a summary.
const MOST: usize = 3;

/// What the agents of a trial have reported since the last summary.
pub(super) struct LiveSummary {
    begun: Instant,
    /// Name of each agent, and what it reported last.
    agents: Vec<(String, Reported)>,
    /// What each agent has reported of causes since the last summary.
    causes: Vec<Option<Causes>>,
}

/// What an agent has reported since the last summary.
enum Reported {
    /// The agent reports nothing, because it is of an earlier release.
    Never,
    Nothing,
    SoFar(SoFar),
}

impl LiveSummary {
    /// The summary of a trial that begins now.
    pub fn begin(agents: &[(Vec<Role>, Agent)]) -> LiveSummary {
        let one = |(_, agent): &(_, Agent)| {
            (agent.name.clone(), if agent.has_summaries { Reported::Nothing } else { Reported::Never })
        };
        LiveSummary::of(agents.iter().map(one).collect())
    }

    fn of(agents: Vec<(String, Reported)>) -> LiveSummary {
        let causes = vec![None; agents.len()];
        LiveSummary { begun: Instant::now(), agents, causes }
    }

    /// Time since the begin of the trial.
    pub fn after(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Adds what the agent of this number reports of the causes of an incident.
    pub fn add_causes(&mut self, number: usize, causes: Causes) {
        self.causes.iter_mut().skip(number).take(1).for_each(|of_agent| *of_agent = Some(causes.clone()));
    }

    /// Adds what the agent of this number reports. If all agents have reported, returns what they know together.
    pub fn add(&mut self, number: usize, so_far: SoFar) -> Option<LateSoFar> {
        self.agents.get_mut(number)?.1 = Reported::SoFar(so_far);
        if self.agents.iter().any(|(_, reported)| matches!(reported, Reported::Nothing)) {
            return None;
        }
        let mut sum = LateSoFar { after: self.begun.elapsed(), ..LateSoFar::default() };
        for (name, reported) in &mut self.agents {
            let Reported::SoFar(one) = reported else { continue };
            sum.incidents += one.incidents;
            sum.late += one.late;
            sum.lost += one.lost;
            if one.worst_excess_us > sum.worst_excess.0 / 1_000 {
                sum.worst_excess.0 = one.worst_excess_us * 1_000;
                sum.worst_after.0 = one.worst_after_ms * 1_000_000;
            }
            let moved = COUNTERS.into_iter().filter(|counter| one.moved.has(*counter));
            sum.moved.extend(moved.map(|counter| (counter, name.clone())));
            *reported = Reported::Nothing;
        }
        let causes: Vec<Causes> = self.causes.iter_mut().filter_map(Option::take).collect();
        sum.no_free_cpu = causes.contains(&Causes::NoCpu);
        sum.causes = joined(&causes);
        Some(sum)
    }
}

/// The causes of the worst incident, as the agents of both ends know them.
fn joined(all: &[Causes]) -> Option<KnownCauses> {
    let excess = |causes: &&Causes| match causes {
        Causes::Sender { excess_us, .. } => *excess_us,
        _ => 0,
    };
    let worst = all.iter().max_by_key(excess)?;
    let Causes::Sender { seq, after_ms, excess_us, elsewhere_us, causes, others_us } = worst else { return None };
    let is_asked = |one: &&Causes| matches!(one, Causes::Receiver { seq: of, .. } if of == seq);
    let (mut others_us, mut elsewhere_us) = (*others_us, *elsewhere_us);
    let mut known: Vec<KnownCause> = causes.iter().filter_map(|cause| known_cause(cause, cause.2)).collect();
    let answer = all.iter().find(is_asked);
    if let Some(Causes::Receiver { causes, others_us: more_us, .. }) = answer {
        // All that the answering end says is about a time in which the sending end had no message.
        for cause in causes {
            let us = cause.2.min(elsewhere_us);
            known.extend(known_cause(cause, us));
            elsewhere_us -= us;
        }
        let more_us = (*more_us).min(elsewhere_us);
        (others_us, elsewhere_us) = (others_us + more_us, elsewhere_us - more_us);
    }
    known.sort_by_key(|cause| std::cmp::Reverse(cause.time));
    let more = known.split_off(known.len().min(MOST));
    let time = |us: i64| Nanos(us.saturating_mul(1_000));
    Some(KnownCauses {
        after: time(after_ms.saturating_mul(1_000)),
        excess: time(*excess_us),
        causes: known,
        others: Nanos(time(others_us).0 + more.iter().map(|cause| cause.time.0).sum::<i64>()),
        not_seen: time(if answer.is_none() { elsewhere_us } else { 0 }),
    })
}

/// A cause that lasted for at least `us`; `None` if this release does not know its word.
fn known_cause((number, by, _): &Cause, us: i64) -> Option<KnownCause> {
    let cause = cause_numbers::word(number / 2)?;
    let by = Some(by.clone()).filter(|by| !by.is_empty());
    let end = if number % 2 == 1 { "pong" } else { "ping" };
    (us > 0).then(|| KnownCause { cause, end: end.to_owned(), by, time: Nanos(us.saturating_mul(1_000)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_document::CauseWord;
    use tailbound_model::{CounterSet, Nanos};

    #[test]
    fn the_agents_that_report_are_joined_when_all_of_them_have_reported() {
        let agent = |name: &str, reported| (name.to_owned(), reported);
        let agents =
            vec![agent("ping", Reported::Nothing), agent("pong", Reported::Nothing), agent("old", Reported::Never)];
        let mut live = LiveSummary::of(agents);
        let mut moved = CounterSet::default();
        moved.add(Counter::SocketBufferDrops);
        let of_pong = SoFar { moved, ..SoFar::default() };
        let (worst_after_ms, worst_excess_us) = (35_200, 41_000);
        let of_ping = SoFar { incidents: 2, late: 30, lost: 1, worst_after_ms, worst_excess_us, ..SoFar::default() };
        for _ in 0..2 {
            assert_eq!(live.add(1, of_pong), None);
            let sum = live.add(0, of_ping).expect("both have reported");
            assert_eq!((sum.incidents, sum.late, sum.lost), (2, 30, 1));
            assert_eq!((sum.worst_after, sum.worst_excess), (Nanos(35_200_000_000), Nanos(41_000_000)));
            assert_eq!(sum.moved, [(Counter::SocketBufferDrops, "pong".to_owned())]);
        }
        assert_eq!(live.add(7, of_ping), None, "no such agent");
    }

    /// At the ping end.
    fn softirq(us: i64) -> Cause {
        (cause_numbers::number(CauseWord::Softirq).unwrap() * 2, String::new(), us)
    }

    /// At the pong end.
    fn stopped(us: i64) -> Cause {
        (cause_numbers::number(CauseWord::Stopped).unwrap() * 2 + 1, String::new(), us)
    }

    /// The sums of causes, other causes and time that was not seen, ms.
    fn joined_ms(all: &[Causes]) -> (Vec<(CauseWord, String, i64)>, i64, i64) {
        let joined = joined(all).expect("a sender");
        assert_eq!((joined.after, joined.excess), (Nanos(34_000_000_000), Nanos(219_000_000)));
        let causes = joined.causes.into_iter().map(|c| (c.cause, c.end, c.time.0 / 1_000_000)).collect();
        (causes, joined.others.0 / 1_000_000, joined.not_seen.0 / 1_000_000)
    }

    #[test]
    fn the_answering_end_explains_only_the_time_that_the_sending_end_had_no_message() {
        let (seq, excess_us, elsewhere_us) = (7, 219_000, 200_000);
        let causes = vec![softirq(9_000)];
        let sender = Causes::Sender { seq, after_ms: 34_000, excess_us, elsewhere_us, causes, others_us: 1_000 };
        let receiver = |seq, causes| Causes::Receiver { seq, causes, others_us: 6_000 };
        let of_ping = (CauseWord::Softirq, "ping".to_owned(), 9);
        let of_pong = |ms| (CauseWord::Stopped, "pong".to_owned(), ms);
        let answer = receiver(7, vec![stopped(190_000)]);
        let known = joined_ms(&[sender.clone(), answer]);
        assert_eq!(known, (vec![of_pong(190), of_ping.clone()], 7, 0));
        // A longer time is cut off, and an unknown word is left out.
        let answer = receiver(7, vec![stopped(300_000), (255, String::new(), 1)]);
        assert_eq!(joined_ms(&[sender.clone(), answer]), (vec![of_pong(200), of_ping.clone()], 1, 0));
        // The answer for another message says nothing about this one.
        let answer = receiver(8, vec![stopped(190_000)]);
        assert_eq!(joined_ms(&[sender, answer.clone()]), (vec![of_ping], 1, 200));
        assert_eq!(joined(&[answer, Causes::NoCpu]), None);
    }

    #[test]
    fn causes_are_in_one_summary_only() {
        let mut live = LiveSummary::of(vec![("ping".to_owned(), Reported::Nothing)]);
        let (after_ms, excess_us) = (34_000, 219_000);
        let sender = Causes::Sender { seq: 0, after_ms, excess_us, elsewhere_us: 0, causes: Vec::new(), others_us: 0 };
        live.add_causes(0, sender);
        assert!(live.add(0, SoFar::default()).is_some_and(|sum| sum.causes.is_some() && !sum.no_free_cpu));
        live.add_causes(0, Causes::NoCpu);
        live.add_causes(1, Causes::NoCpu);
        assert!(live.add(0, SoFar::default()).is_some_and(|sum| sum.causes.is_none() && sum.no_free_cpu));
        assert!(live.add(0, SoFar::default()).is_some_and(|sum| !sum.no_free_cpu));
    }
}
