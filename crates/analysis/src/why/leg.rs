//! Finds the leg of a message whose time exceeds the leg's median most.

use tailbound_document::{ConditionReport, Message};
use tailbound_model::Metric;

/// A leg: one part of the time from the due time of a message to its answer.
pub(crate) struct Leg {
    pub metric: Metric,
    /// Name of the end (ping or pong) at which the leg ends.
    pub end: &'static str,
    pub begin_ns: i64,
    pub end_ns: i64,
    pub took_ns: i64,
    pub excess_ns: i64,
    /// Begin and end of the send call in ns, if the call lies within the leg and took longer than its median.
    pub call: Option<(i64, i64)>,
}

impl Leg {
    /// Finds the leg of a message whose time exceeds the leg's median most; `None` if no leg took longer than its
    /// median.
    pub fn longest(condition: &ConditionReport, message: &Message) -> Option<Leg> {
        let send = message.send_begin_ns?;
        let due = message.intended_ns.unwrap_or(send);
        let into = send + message.out_ns.unwrap_or(0);
        let out = into + message.turnaround_ns.unwrap_or(0);
        let median = |m| condition.metric(m).and_then(|m| m.quantile(0.5)?.value_ns()).unwrap_or(0);
        let call = message.send_duration_ns.filter(|took| took - median(Metric::SendDuration) > 0);
        let call = call.map(|took| (send, send + took));
        // If not all legs are known, the whole round trip is one leg.
        let whole = message.out_ns.is_none() || message.turnaround_ns.is_none() || message.back_ns.is_none();
        let legs: &[(Metric, &'static str, i64, i64)] = if whole {
            &[
                (Metric::SendLateness, "ping", due, send),
                (Metric::RoundTrip, "ping", send, send + message.round_trip_ns?),
            ]
        } else {
            &[
                (Metric::SendLateness, "ping", due, send),
                (Metric::Out, "pong", send, into),
                (Metric::Turnaround, "pong", into, out),
                (Metric::Back, "ping", out, out + message.back_ns?),
            ]
        };
        let leg = |&(metric, end, begin_ns, end_ns): &(Metric, &'static str, i64, i64)| Leg {
            metric,
            end,
            begin_ns,
            end_ns,
            took_ns: end_ns - begin_ns,
            excess_ns: end_ns - begin_ns - median(metric),
            call: call.filter(|_| matches!(metric, Metric::Out | Metric::RoundTrip)),
        };
        legs.iter().map(leg).max_by_key(|l| l.excess_ns).filter(|l| l.excess_ns > 0)
    }
}
