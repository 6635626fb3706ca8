//! While a trial runs, passes on what its agents report: to the other agents, which time spans the agent of the sender found worth
//! keeping and when the sender had no message, and to the caller of the run, which messages were late so far, and why.

use super::agent::{Agent, Writer};
use super::common_start::difference;
use super::live_summary::LiveSummary;
use super::progress::{Progress, ProgressEvent};
use super::trial_state::Part;
use tailbound_model::Attribution;
use tailbound_record::{ClockApart, FiguresSoFar};
use tailbound_wire::{Figures, Message, Role, Spare};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Two clocks drift apart by less than this part of the time, as do those of usual crystals.
const DRIFT: f64 = 200e-6;
/// What is added to a time span for a clock that does not run evenly, as in an emulated guest, ns.
const UNEVEN_NS: i64 = 5_000_000;

/// How far the clocks of the agents are ahead of the controller's clock.
#[derive(Default)]
pub(super) struct Clocks {
    /// In the order of the agents; `None` = it is not known.
    of_agents: Vec<Option<ClockApart>>,
    /// Time at which the clocks were compared, ns of the controller's clock.
    at_ns: i64,
}

impl Clocks {
    /// Asks the agents with a clock of their own for their times.
    pub async fn compare(parts: &[Part], agents: &mut [(Vec<Role>, Agent)]) -> Clocks {
        let own = tailbound_host::clock_id().unwrap_or_default();
        let mut of_agents = Vec::new();
        for (part, (_, agent)) in parts.iter().zip(agents) {
            let is_asked = part.lost.is_none() && part.order.spec.attribution != Attribution::Off;
            of_agents.push(match is_asked {
                true if agent.clock == own => Some(ClockApart::default()),
                true => difference(agent).await.ok(),
                false => None,
            });
        }
        Clocks { of_agents, at_ns: tailbound_host::monotonic_ns() }
    }

    /// A time span of the clock of agent `from`, on the clock of agent `to`, at the time `now_ns` of the controller.
    fn converted(&self, spare: Spare, (from, to): (usize, usize), now_ns: i64) -> Option<Spare> {
        let of_agent = |number: usize| self.of_agents.get(number).copied().flatten();
        let (from, to) = (of_agent(from)?, of_agent(to)?);
        if from == ClockApart::default() && to == ClockApart::default() {
            return Some(spare);
        }
        let drift_ns = ((now_ns - self.at_ns).max(0) as f64 * DRIFT) as i64;
        let within_ns = from.within_ns + to.within_ns + drift_ns + UNEVEN_NS;
        let (begin, end) = spare.span();
        let ahead_ns = to.offset_ns - from.offset_ns;
        let mut wider = Spare::of((begin + ahead_ns - within_ns, end + ahead_ns + within_ns), 0);
        wider.2 = spare.2;
        Some(wider)
    }
}

/// What agents report while their ends measure (`Spare`, `SoFar`, `Figures`, `Absence` and `Causes`), with the number of the agent.
pub(super) struct Meanwhile {
    /// For each agent the identifier of its clock, if it finds causes.
    finders: Vec<Option<String>>,
    sender: UnboundedSender<(usize, Message)>,
    receiver: UnboundedReceiver<(usize, Message)>,
    summary: LiveSummary,
}

impl Meanwhile {
    pub fn new(agents: &[(Vec<Role>, Agent)]) -> Meanwhile {
        let (sender, receiver) = unbounded_channel();
        let finders = agents.iter().map(|(_, agent)| agent.has_causes.then(|| agent.clock.clone())).collect();
        Meanwhile { finders, sender, receiver, summary: LiveSummary::begin(agents) }
    }

    /// The channel for what an agent reports.
    pub fn sender(&self) -> UnboundedSender<(usize, Message)> {
        self.sender.clone()
    }

    /// Whether the agent `to` can look for causes in a time of the clock of the agent `from`.
    fn can_look(&self, from: usize, to: usize) -> bool {
        let finder = |number: usize| self.finders.get(number).and_then(Option::as_ref);
        from != to && finder(to).is_some() && finder(to) == finder(from)
    }

    /// Passes each time span on to all other agents that understand it (`None` = one does not), and late messages with their causes to
    /// `progress`, until the future is dropped.
    pub async fn pass_on(mut self, clocks: &Clocks, agents: Vec<Option<Writer>>, progress: &mut dyn Progress) {
        while let Some((from, message)) = self.receiver.recv().await {
            let now_ns = tailbound_host::monotonic_ns();
            let spare = match message {
                Message::Spare(spare) => spare,
                Message::SoFar(so_far) => {
                    let all = self.summary.add(from, so_far);
                    all.iter().for_each(|all| progress.event(ProgressEvent::SoFar(all)));
                    continue;
                }
                Message::Figures(figures) => {
                    progress.event(ProgressEvent::Figures { after: self.summary.after(), figures: so_far(figures) });
                    continue;
                }
                Message::Causes(causes) => {
                    self.summary.add_causes(from, causes);
                    continue;
                }
                Message::Absence(absence) => {
                    let others = agents.iter().enumerate().filter(|(to, _)| self.can_look(from, *to));
                    for agent in others.filter_map(|(_, agent)| agent.as_ref()) {
                        // As below.
                        let _ = agent.send(Message::Absence(absence)).await;
                    }
                    continue;
                }
                _ => continue,
            };
            for (to, agent) in agents.iter().enumerate().filter(|(to, _)| *to != from) {
                if let (Some(agent), Some(spare)) = (agent, clocks.converted(spare, (from, to), now_ns)) {
                    // The code that waits for an answer notices that the agent no longer reads. So short a message is
                    // written as a whole or not at all (pipe(7)), also if this future is dropped.
                    let _ = agent.send(Message::Spare(spare)).await;
                }
            }
        }
    }
}

/// The round trips that an agent has reported.
fn so_far(of: Figures) -> FiguresSoFar {
    let time = |ns: i64| Some(ns).filter(|ns| *ns > 0);
    FiguresSoFar {
        messages: of.messages,
        lost: of.lost,
        p50_ns: time(of.p50_ns),
        p99_ns: time(of.p99_ns),
        max_ns: time(of.max_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_span_on_another_clock_contains_all_that_is_possible() {
        let apart = |offset_ns, within_ns| Some(ClockApart { offset_ns, within_ns });
        let clocks = Clocks { of_agents: vec![apart(0, 0), apart(7_000_000_000, 1_000_000), None], at_ns: 0 };
        let spare = Spare::of((50_000_000, 51_000_000), 1 << 20);
        let hour_ns = 3_600_000_000_000;
        let on_other = clocks.converted(spare, (0, 1), hour_ns).unwrap();
        // The clocks can be 1 ms apart, 5 ms uneven, and 720 ms apart after an hour.
        assert_eq!(on_other.span().0, 7_050_000_000 - 726_000_000);
        assert_eq!((on_other.span().1, on_other.rank()), (7_051_000_000 + 726_002_000, spare.rank()));
        assert_eq!(clocks.converted(spare, (0, 0), hour_ns), Some(spare));
        assert_eq!(clocks.converted(spare, (0, 2), 0), None);
    }
}
