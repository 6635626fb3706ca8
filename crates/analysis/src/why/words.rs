//! Formats the causes of late messages as sentences.

use crate::why::leg::Leg;
use tailbound_document::number::count;
use tailbound_document::{Message, number};
use tailbound_model::Metric;

pub(crate) fn time(ns: i64) -> String {
    number::time(ns as f64)
}

pub(crate) fn leg_key(metric: Metric) -> &'static str {
    match metric {
        Metric::SendLateness => "send_lateness",
        Metric::Out => "out",
        Metric::Turnaround => "turnaround",
        Metric::Back => "back",
        _ => "round_trip",
    }
}

/// Formats the cause of a late message as a sentence, for example `slot 12 took 5.1 ms, 5 ms of it on the way out:
/// ...`.
pub(crate) fn sentence(message: &Message, leg: &Leg, text: &str) -> String {
    let place = match leg.metric {
        Metric::SendLateness => "before it was sent",
        Metric::Out => "on the way out",
        Metric::Turnaround => "at the pong",
        Metric::Back => "on the way back",
        _ => "between the send call of the message and its answer",
    };
    let whole = message.from_intended_ns.or(message.round_trip_ns).unwrap_or(0);
    format!("slot {} took {}, {} of it {place}: {text}", count(message.slot), time(whole), time(leg.took_ns))
}
