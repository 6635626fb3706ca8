//! While a long trial runs, joins what its agents know of late messages, for the progress output of the run. Nothing of this is
//! in the record: its figures come from all samples, after the trial.

use super::agent::Agent;
use super::progress::LateSoFar;
use tailbound_model::Counter;
use tailbound_wire::{Role, SoFar};
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

/// What the agents of a trial have reported since the last summary.
pub(super) struct LiveSummary {
    begun: Instant,
    /// Name of each agent, and what it reported last.
    agents: Vec<(String, Reported)>,
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
        LiveSummary { begun: Instant::now(), agents: agents.iter().map(one).collect() }
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
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{CounterSet, Nanos};

    #[test]
    fn the_agents_that_report_are_joined_when_all_of_them_have_reported() {
        let agent = |name: &str, reported| (name.to_owned(), reported);
        let agents =
            vec![agent("ping", Reported::Nothing), agent("pong", Reported::Nothing), agent("old", Reported::Never)];
        let mut live = LiveSummary { begun: Instant::now(), agents };
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
}
