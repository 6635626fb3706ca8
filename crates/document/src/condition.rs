//! Report of one condition: the condition's levels, counts of messages, and figures by metric.

use crate::bins::BinsReport;
use crate::flow::FlowReport;
use crate::gates::GateReport;
use crate::held::HeldReport;
use crate::incident::{CauseShare, IncidentReport, IncidentTotals, LateLimit, LossReport, MissesReport, WithoutCause};
use crate::launch::LaunchReport;
use crate::message::Message;
use crate::metric::{LegRange, MetricReport};
use crate::movement::MovementReport;
use crate::next_step::NextStep;
use crate::path_proof::PathProofReport;
use crate::range::{AboveReport, ChosenReport};
use crate::recording::RecordingReport;
use crate::stages::StageReport;
use crate::usual::UsualReport;
use crate::warm_up::WarmUpReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::Metric;

/// State of a condition at the end of the run: complete, invalid, incomplete or not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConditionStatus {
    /// All trials of the condition ended, and at least one trial is valid; the figures are computed from the valid
    /// trials.
    Valid,
    /// Every trial that ended is invalid; the figures, if any, are computed from the invalid trials.
    Invalid,
    /// Some trial did not end or never began; the figures are computed from the existing samples.
    Incomplete,
    /// The condition's combination of levels cannot be run.
    NotPossible,
}

/// A condition, that is, one combination of levels, with its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionReport {
    /// Index of the condition in the plan.
    pub id: usize,
    /// Name of the condition in words.
    pub name: String,
    /// Level of each factor, including factors with only one level.
    pub levels: BTreeMap<String, String>,
    /// State of the condition at the end of the run.
    pub status: ConditionStatus,
    /// Reason why the condition cannot be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_possible: Option<String>,
    /// Name of the benchmark program that ran in place of a driver; Tailbound then measured nothing itself, and the
    /// program's figures are in `tools`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Size of the payload of each sample (`Sample.payload`), in bytes.
    pub payload_bytes: u64,
    /// Time from one slot to the next in ns; absent for stop-and-wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<i64>,
    /// Smallest MTU on the path, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u32>,
    /// Number of trials of the condition in the plan, without older trials that were kept for their incidents.
    pub trials: usize,
    /// Ids of all trials of the condition.
    pub trial_ids: Vec<usize>,
    /// Ids of the trials from whose slots the figures are computed.
    pub used_trial_ids: Vec<usize>,
    /// Reason why no message was answered, as far as the driver knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// Evidence for the transport and the path that messages used; absent if no message was sent or the time was
    /// virtual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_proof: Option<PathProofReport>,
    /// Number of measured slots by outcome; the warm-up is counted separately.
    pub counts: Counts,
    /// Figures of the round trip: time from the begin of the send call to the receipt of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<MetricReport>,
    /// Figures of half of the round trip; only the median is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_round_trip: Option<MetricReport>,
    /// Figures of the leg from ping to pong: time from the begin of the send call to the receipt at the pong; absent if
    /// the ends have different clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<MetricReport>,
    /// Smallest and largest possible figures of `out` (leg from ping to pong), if the ends have different clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_range: Option<LegRange>,
    /// Figures of the time from the begin of the send call to the kernel's receive timestamp on the pong's host; absent
    /// if there are no such timestamps or the ends have different clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_network: Option<MetricReport>,
    /// Smallest and largest possible figures of `out_network` (time in the network from ping to pong), if the ends have
    /// different clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_network_range: Option<LegRange>,
    /// Figures of the turnaround inside the pong: time from the receipt of the message to the end of the send call for
    /// the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turnaround: Option<MetricReport>,
    /// Figures of the leg from pong to ping: time from the end of the pong's send call to the receipt of the answer;
    /// absent if the ends have different clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<MetricReport>,
    /// Smallest and largest possible figures of `back` (leg from pong to ping), if the ends have different clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_range: Option<LegRange>,
    /// Figures of the time from the end of the pong's send call to the kernel's receive timestamp on the ping's host;
    /// absent if there are no such timestamps or the ends have different clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_network: Option<MetricReport>,
    /// Smallest and largest possible figures of `back_network` (time in the network from pong to ping), if the ends
    /// have different clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_network_range: Option<LegRange>,
    /// Figures of the time from the moment at which the message was due to the receipt of the answer; absent for
    /// stop-and-wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_intended: Option<MetricReport>,
    /// Figures of the send lateness: time from the moment at which the message was due to the begin of the send call;
    /// absent for stop-and-wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lateness: Option<MetricReport>,
    /// Figures of the duration of the send call, from its start to its return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_duration: Option<MetricReport>,
    /// Figures of M2: time from the wake-up of the sender to the return of the send call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_to_sent: Option<MetricReport>,
    /// Figures of M4: time from one wake-up of the sender to the next; absent for stop-and-wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_period: Option<MetricReport>,
    /// A warm-up that the analysis found at the beginning of trials; the messages of the warm-up are part of all
    /// figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUpReport>,
    /// Table of latencies in bins of equal width, if the study asks for the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bins: Option<BinsReport>,
    /// The first message of the condition whose round trip is the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_message: Option<Message>,
    /// The latest messages by the time from intended (for stop-and-wait, by round trip), the latest first.
    pub worst: Vec<Message>,
    /// Figures of a chosen time range of each trial; all other figures cover the whole trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<ChosenReport>,
    /// Numbers of messages above the latency limit of the study, in the whole trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<AboveReport>,
    /// The rule by which messages of each used trial are late.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_limits: Vec<LateLimit>,
    /// The worst incidents of the used trials, at most 1,000, the one with the largest excess first; sustained incidents
    /// come before all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incidents: Vec<IncidentReport>,
    /// Numbers over all incidents of the used trials; absent if no message was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incident_totals: Option<IncidentTotals>,
    /// How much each cause accounts for over the incidents that have a ledger, the largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<CauseShare>,
    /// What ordinary messages spend their time on; absent if their events were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual: Option<UsualReport>,
    /// Estimates of the tail without each of the causes that explain at least 1 % of the covered excess.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_cause: Vec<WithoutCause>,
    /// What to try first against late and lost messages, the most promising first; empty if no cause was seen or counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_steps: Vec<NextStep>,
    /// How events of the kernel were recorded, and what the recording cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recordings: Vec<RecordingReport>,
    /// Predicted and measured waits for the gates of the ends (IEEE 802.1Q).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateReport>,
    /// Arrivals of the messages in comparison with their launch times; absent if they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchReport>,
    /// Parts of the one-way latency of the messages of each end, from stamps of their stages; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageReport>,
    /// Messages that were held on their way and released together, for each direction with at least one burst.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hold_and_release: Vec<HeldReport>,
    /// Slow movements of the times on the ways that are understood, at most one for each trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub movements: Vec<MovementReport>,
    /// Where messages were lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<LossReport>,
    /// Runs of messages that were late or lost; absent if no message was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<MissesReport>,
    /// Figures of the flow: sent and received samples; absent if the measurement is not a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowReport>,
}

impl ConditionReport {
    /// Smallest and largest possible figures of this metric, if the metric is a leg between two ends with different
    /// clocks.
    pub fn range(&self, metric: Metric) -> Option<&LegRange> {
        match metric {
            Metric::Out => self.out_range.as_ref(),
            Metric::Back => self.back_range.as_ref(),
            Metric::OutNetwork => self.out_network_range.as_ref(),
            Metric::BackNetwork => self.back_network_range.as_ref(),
            _ => None,
        }
    }

    /// Figures of the given metric for this condition, if they were computed.
    pub fn metric(&self, metric: Metric) -> Option<&MetricReport> {
        match metric {
            Metric::RoundTrip => self.round_trip.as_ref(),
            Metric::HalfRoundTrip => self.half_round_trip.as_ref(),
            Metric::Out => self.out.as_ref(),
            Metric::OutNetwork => self.out_network.as_ref(),
            Metric::Turnaround => self.turnaround.as_ref(),
            Metric::Back => self.back.as_ref(),
            Metric::BackNetwork => self.back_network.as_ref(),
            Metric::FromIntended => self.from_intended.as_ref(),
            Metric::SendLateness => self.send_lateness.as_ref(),
            Metric::SendDuration => self.send_duration.as_ref(),
            Metric::WakeToSent => self.wake_to_sent.as_ref(),
            Metric::WakePeriod => self.wake_period.as_ref(),
        }
    }
}

/// Numbers of measured slots of a condition, by the outcome of the slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Number of all measured slots: the sum of the next four counts.
    pub scheduled: u64,
    /// Number of slots whose message was answered within the timeout.
    pub answered: u64,
    /// Number of slots that were answered after the timeout; their times are part of the figures.
    pub after_timeout: u64,
    /// Number of slots whose message was sent and never answered.
    pub lost: u64,
    /// Number of slots whose message was not sent.
    pub not_sent: u64,
    /// Number of answers after the first answer to the same slot.
    pub duplicate: u64,
    /// Number of answers that arrived after the answer to a later slot.
    pub out_of_order: u64,
    /// Number of slots of the warm-up, which no other count contains.
    pub warm_up: u64,
}
