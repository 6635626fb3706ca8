//! How the ends of a trial wait for messages, due times and acknowledgements: facts of the plan and of the drivers that the
//! recorded events do not show.

use crate::held::Held;
use crate::why::handled::Handled;
use std::collections::{BTreeMap, BTreeSet};
use tailbound_gates::Gate;
use tailbound_model::{Measure, Metric, ReceiveMode, TrialSpec};
use tailbound_record::Manifest;

/// How the ends of a trial send and receive.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conduct {
    /// Whether the threads that receive messages poll, and do not sleep until a message comes.
    pub poll: bool,
    /// Whether the sender sleeps by a timer of its own until a message is due.
    pub sleep_until_due: bool,
    /// Names of the ends whose writers wait for acknowledgements.
    pub await_acks: BTreeSet<String>,
    /// Names of the ends whose writers send a message again if it was lost.
    pub send_again: BTreeSet<String>,
    /// What executors handled, if they receive the messages.
    pub handled: Option<Handled>,
    /// Time by which a message of the ping is due before its queue may give it to the device, ns; 0 without launch times.
    pub launch_ns: i64,
    /// For each end with gates: the gate of the class of its messages.
    pub gates: BTreeMap<String, Gate>,
    /// The messages that were held on their way and released together.
    pub held: Held,
}

impl Conduct {
    /// How the ends of the trial of the condition `spec` send and receive.
    pub fn of(manifest: &Manifest, trial: usize, spec: Option<&TrialSpec>) -> Conduct {
        let of_spec = spec.map(Conduct::of_spec).unwrap_or_default();
        let done = manifest.trials.iter().find(|done| done.id == trial);
        let ends = || done.into_iter().flat_map(|done| &done.ends);
        let await_acks = ends().filter(|(_, end)| awaits_acks(&end.qos)).map(|(name, _)| name.clone()).collect();
        let send_again = ends().filter(|(_, end)| sends_again(&end.qos)).map(|(name, _)| name.clone()).collect();
        let path = done.and_then(|done| done.path.as_ref());
        let gates = path.zip(spec).map_or_else(Vec::new, |(path, spec)| Gate::of_ends(&path.ends, spec));
        let gates = gates.into_iter().collect();
        let launch_ns = manifest.launch_wait_ns(trial);
        Conduct { await_acks, send_again, gates, launch_ns, ..of_spec }
    }

    /// Whether the messages on this leg are sent again if they are lost.
    pub fn are_sent_again(&self, leg: Metric) -> bool {
        let sender = if leg == Metric::Back { "pong" } else { "ping" };
        self.send_again.contains(sender)
    }

    /// What the plan alone says of how the ends of the trial of a condition send and receive.
    pub fn of_spec(spec: &TrialSpec) -> Conduct {
        let receive = spec.measure.receive();
        // An executor waits by a function of the driver, which may set its timer in a coarser unit.
        let sleep_until_due = matches!(spec.measure, Measure::PingPong(_)) && receive != ReceiveMode::Executor;
        let poll = receive == ReceiveMode::Spin;
        let launch_ns = spec.stream.map_or(0, |stream| stream.least_wait().0);
        Conduct { poll, sleep_until_due, launch_ns, ..Conduct::default() }
    }
}

/// Whether a writer with these QoS settings, as its driver reported them, waits for acknowledgements: writers with another
/// history discard old messages in place of waiting.
fn awaits_acks(qos: &BTreeMap<String, String>) -> bool {
    let is = |policy: &str, value: &str| qos.get(policy).is_some_and(|found| found == value);
    is("reliability", "reliable") && is("history", "keep-all")
}

/// Whether a writer with these QoS settings, as its driver reported them, sends messages again that were lost.
fn sends_again(qos: &BTreeMap<String, String>) -> bool {
    qos.get("reliability").is_some_and(|found| found.contains("reliable"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reliable_writer_that_keeps_all_messages_waits_for_acknowledgements() {
        let with = |policies: &[(&str, &str)]| {
            awaits_acks(&policies.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
        };
        assert!(with(&[("reliability", "reliable"), ("history", "keep-all")]));
        assert!(!with(&[("reliability", "best-effort"), ("history", "keep-all")]));
        assert!(!with(&[("reliability", "reliable"), ("history", "keep-last")]));
        assert!(!with(&[("reliability", "writer reliable, reader best-effort"), ("history", "keep-all")]));
        // The driver reports no QoS.
        assert!(!with(&[]));
    }

    #[test]
    fn a_writer_that_is_reliable_for_anyone_sends_messages_again() {
        let with = |reliability: &str| sends_again(&[("reliability".to_owned(), reliability.to_owned())].into());
        assert!(with("reliable") && with("writer reliable, reader best-effort"));
        assert!(!with("best-effort") && !sends_again(&BTreeMap::new()));
    }
}
