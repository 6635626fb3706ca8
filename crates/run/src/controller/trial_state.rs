//! State of one trial of the controller while the trial runs.

use super::collect::Incoming;
use super::context::RunContext;
use tailbound_host::OffsetTrack;
use tailbound_lab::wiring::Wiring;
use tailbound_model::*;
use tailbound_record::MatchedMessage;
use tailbound_wire::*;

/// Parameters of one trial that do not change while it runs.
pub(super) struct TrialContext<'a> {
    pub run: &'a RunContext,
    pub plan: &'a Plan,
    pub trial: &'a Trial,
    /// CPUs of this host on which everything runs that is not measured.
    pub housekeeping: &'a CpuList,
    /// CPUs of this host that Tailbound may use.
    pub allowed: &'a CpuList,
    /// Wiring that connects the guests of the lab; `None` = the lab has no wiring.
    pub wiring: Option<&'a Wiring>,
    /// Name in the record of the host on which the controller runs.
    pub here: &'a str,
    /// The condition of the message at which the run ends; `None` = the run ends after its trials.
    pub until: Option<&'a UntilCondition>,
}

impl TrialContext<'_> {
    /// Specification of the trial, taken from its condition.
    pub fn spec(&self) -> &TrialSpec {
        &self.plan.conditions[self.trial.condition].spec
    }
}

/// Result of a trial, apart from the samples.
#[derive(Debug, Default)]
pub(super) struct TrialResult {
    /// Number of slots of the trial that were answered.
    pub answered: u64,
    /// Number of slots of the trial that were scheduled.
    pub scheduled: u64,
    /// Number of scheduled messages of the trial that were sent.
    pub sent: u64,
    /// Smallest possible number of packets for the messages of the trial, if several messages may share one packet;
    /// `None` = each message has its own packet.
    pub batches: Option<u64>,
    /// The first message of the trial that fulfils the condition at which the run ends.
    pub matched: Option<MatchedMessage>,
}

/// The part of one agent in a trial: the order for the agent, the answers and the state.
pub(super) struct Part {
    pub roles: Vec<Role>,
    pub order: Order,
    pub prepared: Prepared,
    pub incoming: Vec<Incoming>,
    /// Readings of the agent's clock that arrived together with drained rows of samples.
    pub track: OffsetTrack,
    /// Stages that the messages of the ends passed, in the order in which they arrived.
    pub stamped: Vec<Stamped>,
    pub done: Option<Done>,
    /// True if the senders of the agent were asked to end the trial early.
    pub ended_early: bool,
    /// Reason why the agent was lost; `None` = the agent is not lost.
    pub lost: Option<String>,
    /// Failure because of which the agent could not open its ends for the trial.
    pub failed: Option<Failed>,
}

impl Part {
    pub fn new(roles: &[Role], order: Order) -> Part {
        let incoming = roles.iter().map(|role| Incoming::new(*role)).collect();
        let (prepared, track) = (Prepared::default(), OffsetTrack::new());
        Part {
            roles: roles.to_vec(),
            order,
            prepared,
            incoming,
            track,
            stamped: Vec::new(),
            done: None,
            ended_early: false,
            lost: None,
            failed: None,
        }
    }

    /// True if at least one end of this agent sends messages at due times, and not only answers.
    pub fn sends(&self) -> bool {
        self.roles.iter().any(|role| !role.receives())
    }

    /// Result of the end with this role (for example ping), if the agent has finished the trial.
    pub fn end_done(&self, role: Role) -> Option<&EndDone> {
        self.done.as_ref()?.ends.iter().find(|e| e.name == role.word())
    }
}
