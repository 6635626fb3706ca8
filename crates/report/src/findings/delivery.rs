//! Words about losses and the QoS of the ends: whether `reliable` promised delivery, and whether `history` permitted a
//! newer message to replace an older one. Both policies are the ones that were read back from the drivers. Losses for
//! which neither the QoS nor the path is the cause are named apart.

use crate::findings::finding::finding;
use std::collections::{BTreeMap, BTreeSet};
use tailbound_document::number::count;
use tailbound_document::{ConditionReport, ConditionStatus, EndReport, Finding, FindingLevel, Report};

/// Code of the findings about messages that were lost although the QoS promised delivery. These findings come first.
pub(crate) const RELIABLE_LOST: &str = "reliable_lost";

/// Sentence that names the broken promise of the QoS, to follow the number of lost messages. `None` if nothing was lost,
/// if an end was not `reliable`, or if the instrument may be the cause of the losses.
pub(crate) fn broken_promise(report: &Report, condition: &ConditionReport) -> Option<String> {
    let reliable = values(report, condition, "reliability").iter().eq(["reliable"].iter());
    let elsewhere = lost_elsewhere(report, condition);
    if lost(condition) <= elsewhere || !reliable || condition.status == ConditionStatus::Invalid {
        return None;
    }
    let lifespan = values(report, condition, "lifespan");
    let expires = lifespan.iter().any(|l| !matches!(*l, "" | "infinite"));
    let within = if expires { " within the `lifespan` of its writer" } else { "" };
    let at_least = match elsewhere {
        0 => String::new(),
        n => format!(
            " At least {} of these messages were lost outside of the ends' own processes, and not because a driver refused to \
             send the answer.",
            count(lost(condition) - n)
        ),
    };
    let promise = match history(report, condition) {
        History::KeepLast(words) => format!(
            " The QoS of all ends was `reliable`, which promises the delivery of every message{within} that no newer \
             message replaced ({words}). The record does not show whether messages were replaced; \
             `--set qos.history=keep-all` measures without replacement."
        ),
        History::KeepAll => format!(
            " The QoS of all ends was `reliable` with `history: keep-all`, which promises the delivery of every \
             message{within}."
        ),
        History::Unknown => format!(
            " The QoS of all ends was `reliable`, which promises the delivery of every message{within}, unless the policy \
             `history`, which the drivers did not report, permits replacement."
        ),
    };
    Some(at_least + &promise)
}

/// Findings about ends whose second thread (`hand_off`) took received messages too late, so that they were dropped. The
/// middleware had delivered these messages.
pub(crate) fn dropped_between_threads(report: &Report) -> Vec<Finding> {
    let one = |condition: &ConditionReport| {
        let trials = || condition.used_trial_ids.iter().filter_map(|id| report.trial(*id));
        let mut by_end: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, end) in trials().flat_map(|t| &t.ends).filter(|(_, end)| end.hand_off_dropped > 0) {
            *by_end.entry(name).or_default() += end.hand_off_dropped;
        }
        let ends: Vec<String> = by_end.iter().map(|(end, n)| format!("{} at the {end} end", count(*n))).collect();
        let text = format!(
            "{}: the processing thread did not take received messages in time, so that they were dropped and count as \
             lost: {}.",
            condition.name,
            ends.join(", ")
        );
        (!ends.is_empty()).then(|| finding(FindingLevel::Failed, "hand_off_dropped", text, &[condition.id]))
    };
    report.conditions.iter().filter_map(one).collect()
}

/// Finding about conditions that lost messages under `history: keep-last`, if no promise of delivery was broken.
pub(crate) fn replaceable(report: &Report) -> Option<Finding> {
    let found = |c: &ConditionReport| match history(report, c) {
        History::KeepLast(words) if lost(c) > lost_elsewhere(report, c) && broken_promise(report, c).is_none() => {
            Some((c.id, lost(c), words))
        }
        _ => None,
    };
    let all: Vec<(usize, u64, String)> = report.conditions.iter().filter_map(found).collect();
    let (first, n, words) = all.first()?;
    let more = match all.len() {
        1 => String::new(),
        n => format!(" (and messages of {} more conditions)", n - 1),
    };
    let text = format!(
        "{}: {} messages were lost{more} under {words}, which lets a newer message replace an older one that was not \
         sent or taken yet. The record does not show whether messages were replaced; `--set qos.history=keep-all` \
         measures without replacement.",
        report.conditions[*first].name,
        count(*n),
    );
    let ids: Vec<usize> = all.iter().map(|(id, ..)| *id).collect();
    Some(finding(FindingLevel::Caution, "keep_last", text, &ids))
}

/// Number of messages of a condition that were sent and never answered or, for a flow, never received.
fn lost(condition: &ConditionReport) -> u64 {
    condition.flow.as_ref().map_or(condition.counts.lost, |flow| flow.lost)
}

/// Largest number of lost messages of a condition that the QoS did not lose: messages that were delivered and then
/// dropped between two threads of an end, and answers that a driver refused to send.
fn lost_elsewhere(report: &Report, condition: &ConditionReport) -> u64 {
    // A refused answer of a subscriber is no lost sample of the flow.
    let refused = |end: &EndReport| if condition.flow.is_some() { 0 } else { end.answers_refused };
    ends(report, condition).map(|end| end.hand_off_dropped + refused(end)).sum()
}

/// The policy `history` of the ends of a condition.
enum History {
    /// An end keeps only the newest messages; the text names the policy and its depth.
    KeepLast(String),
    /// Every end keeps all messages.
    KeepAll,
    /// An end did not report its policy.
    Unknown,
}

fn history(report: &Report, condition: &ConditionReport) -> History {
    let kinds = values(report, condition, "history");
    if kinds.iter().any(|kind| kind.contains("keep-last")) {
        let depths = values(report, condition, "history.depth");
        return History::KeepLast(match depths.iter().next() {
            Some(depth) if depths.len() == 1 && !depth.is_empty() => format!("`history: {{ keep-last: {depth} }}`"),
            _ => "`history: keep-last`".into(),
        });
    }
    if kinds.iter().eq(["keep-all"].iter()) { History::KeepAll } else { History::Unknown }
}

/// All values of a QoS policy that the ends of a condition had, as the drivers reported them; an end without the policy
/// gives an empty text.
fn values<'r>(report: &'r Report, condition: &ConditionReport, policy: &str) -> BTreeSet<&'r str> {
    ends(report, condition).map(|end| end.qos.get(policy).map_or("", String::as_str)).collect()
}

/// All ends of the trials from which the figures of a condition are computed.
fn ends<'r>(report: &'r Report, condition: &ConditionReport) -> impl Iterator<Item = &'r EndReport> {
    condition.used_trial_ids.iter().filter_map(|id| report.trial(*id)).flat_map(|trial| trial.ends.values())
}
