//! Finds the shortest cycle that explains the waits of messages, and the windows in it.

use super::edges::{Drift, Edges, drift};
use super::folded::{Closed, Folded, Message};
use super::spectrum::{LONGEST_NS, frequencies};
use super::{NotRecovered, Probe, Recovered, RecoveredWindow, Recovery};
use std::ops::Range;

/// Number of messages that are needed at least.
const NEEDS: usize = 200;
/// Shortest and longest cycle that is recovered, ns.
const CYCLES_NS: [f64; 2] = [1e6, 1e8];
/// A frequency of the openings is at most this multiple of the frequency of the cycle.
const MULTIPLES: u32 = 8;
/// Longest part of the cycle without a message, as a share of the cycle.
const LARGEST_GAP: f64 = 0.05;
/// Number of times that a cycle is corrected.
const CORRECTIONS: usize = 6;
/// One message of this number is explained by the others.
const EXPLAINED: usize = 4;
/// Number of standard errors from which on a cycle explains the waits better than a part of it.
const BETTER: f64 = 4.0;
/// Share of the unexplained waits from which on a cycle explains them better than a part of it.
const BETTER_SHARE: f64 = 0.02;

/// The send times of the messages that [`recover`] uses, ns: 250 s from the first message that arrived.
pub fn used_send_times(probes: &[Probe]) -> Range<i64> {
    let first_ns = probes.iter().map(|probe| probe.sent_ns).min().unwrap_or_default();
    first_ns..first_ns.saturating_add(LONGEST_NS)
}

/// Recovers the gate schedule from messages whose send times are at all phases of its cycle, given in any order. Only the messages
/// with the send times of [`used_send_times`] are used.
///
/// # Errors
/// The reason why there is no schedule that explains the waits.
pub fn recover(probes: &[Probe]) -> Result<Recovery, NotRecovered> {
    let times = used_send_times(probes);
    let first_ns = times.start;
    let used: Vec<Probe> = probes.iter().filter(|probe| times.contains(&probe.sent_ns)).copied().collect();
    if used.len() < NEEDS {
        return Err(NotRecovered::TooFewProbes { probes: used.len() as u64, needs: NEEDS as u64 });
    }
    let way_ns = |probe: &Probe| probe.arrived_ns - probe.sent_ns;
    let shortest_way_ns = used.iter().map(way_ns).min().unwrap_or_default();
    let last_ns = used.iter().map(|probe| probe.sent_ns).max().unwrap_or_default();
    let reference_ns = first_ns + (last_ns - first_ns) / 2;
    let message = |probe: &Probe| Message {
        sent_ns: (probe.sent_ns - reference_ns) as f64,
        wait_ns: (way_ns(probe) - shortest_way_ns) as f64,
    };
    let messages: Vec<Message> = used.iter().map(message).collect();
    let span_ns = (last_ns - first_ns) as f64;
    let cycles = cycles(&messages, span_ns);
    let cycle_ns = shortest(&messages, &cycles).ok_or(NotRecovered::NoGate { probes: used.len() as u64 })?;
    let largest_gap_ns = Folded::of(&messages, cycle_ns).largest_gap_ns();
    if largest_gap_ns > LARGEST_GAP * cycle_ns {
        return Err(NotRecovered::PhasesNotCovered { cycle_ns, largest_gap_ns });
    }
    let (cycle, folded, closed) = exact(&messages, cycle_ns).ok_or(NotRecovered::TooFewCycles { cycle_ns, span_ns })?;
    let cycles_to_an_end = span_ns / 2.0 / cycle.ns;
    let wider_ns = cycles_to_an_end * (cycle.ns - cycle.low_ns).max(cycle.high_ns - cycle.ns);
    let windows = windows(&folded, &closed, wider_ns, shortest_way_ns as f64);
    let probes = used.len() as u64;
    Ok(Recovery { reference_ns, cycle, windows, probes, shortest_way_ns, largest_gap_ns })
}

/// Cycles that could explain the times at which messages arrived, ns, in the order of their length.
fn cycles(messages: &[Message], span_ns: f64) -> Vec<f64> {
    let most_ns = quantile(messages.iter().map(|message| message.wait_ns).collect(), 0.95);
    let since_first = |ns: f64| (ns + span_ns / 2.0) / 1e9;
    let event = |message: &Message| {
        (since_first(message.sent_ns + message.wait_ns), message.wait_ns.min(most_ns) / most_ns.max(1.0))
    };
    // Messages that were sent at the end, and waited for long, arrive after the longest time of a spectrum.
    let events: Vec<_> = messages.iter().map(event).filter(|(at_s, _)| *at_s * 1e9 < LONGEST_NS as f64).collect();
    let sent: Vec<_> = messages.iter().map(|message| since_first(message.sent_ns)).collect();
    let multiples = |hz: f64| (1..=MULTIPLES).map(move |multiple| f64::from(multiple) * 1e9 / hz);
    let mut found: Vec<f64> = frequencies(&events, &sent).into_iter().flat_map(multiples).collect();
    let [shortest_ns, longest_ns] = CYCLES_NS;
    found.retain(|ns| (0.999 * shortest_ns..1.001 * longest_ns).contains(ns));
    found.sort_by(f64::total_cmp);
    // Cycles that differ by less than a hundredth of a cycle at the end.
    found.dedup_by(|a, b| (*a - *b).abs() * span_ns < 0.01 * *a * *a);
    found
}

/// Of every fourth message, what the others' schedule of a cycle does not explain of its wait, ns, at most `most_ns`; `None` if no
/// part of the cycle is closed. (The messages themselves would be explained the better, the longer the cycle is.)
fn unexplained(messages: &[Message], cycle_ns: f64, most_ns: f64) -> Option<Vec<f64>> {
    let (mut explained, mut others) = (Vec::new(), Vec::new());
    for (number, message) in messages.iter().enumerate() {
        if number % EXPLAINED == 0 { explained.push(*message) } else { others.push(*message) }
    }
    let folded = Folded::of(&others, cycle_ns);
    let closed = folded.closed();
    let all = folded.unexplained_ns(&closed, &explained).into_iter().map(|ns| ns.min(most_ns)).collect();
    (!closed.is_empty()).then_some(all)
}

/// The cycle that explains the waits best, or the shortest part of it that explains them as well; `None` if no part of any cycle is
/// closed.
fn shortest(messages: &[Message], cycles: &[f64]) -> Option<f64> {
    let most_ns = quantile(messages.iter().map(|message| message.wait_ns).collect(), 0.99);
    let of = |cycle_ns: &f64| Some((*cycle_ns, mean(&unexplained(messages, *cycle_ns, most_ns)?)));
    let (longest_ns, _) = cycles.iter().filter_map(of).min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    // Only of the exact cycle, parts are exact.
    let longest_ns = exact(messages, longest_ns).map_or(longest_ns, |(cycle, ..)| cycle.ns);
    let best = unexplained(messages, longest_ns, most_ns)?;
    let is_as_good = |other: Vec<f64>| {
        let more: Vec<f64> = other.iter().zip(&best).map(|(other, best)| other - best).collect();
        let (more_ns, best_ns) = (mean(&more), mean(&best));
        let squares: Vec<f64> = more.iter().map(|ns| (ns - more_ns).powi(2)).collect();
        let error_ns = (mean(&squares) / more.len() as f64).sqrt();
        more_ns <= (BETTER * error_ns).min(best_ns).max(BETTER_SHARE * best_ns)
    };
    let most = (longest_ns / (0.999 * CYCLES_NS[0])) as u32;
    let mut parts = (1..=most).rev().map(|part| longest_ns / f64::from(part));
    parts.find(|cycle_ns| unexplained(messages, *cycle_ns, most_ns).is_some_and(is_as_good))
}

fn mean(all: &[f64]) -> f64 {
    all.iter().sum::<f64>() / all.len() as f64
}

/// The cycle with its interval, the messages in it, and the closed parts: corrected until the openings do not shift any more.
fn exact(messages: &[Message], mut cycle_ns: f64) -> Option<(Recovered, Folded, Vec<Closed>)> {
    let of = |cycle_ns: f64| {
        let folded = Folded::of(messages, cycle_ns);
        let closed = folded.closed();
        let drift = drift(&folded, &closed, &folded.delays(&closed))?;
        Some((drift, folded, closed))
    };
    for _ in 0..CORRECTIONS {
        let (drift, ..) = of(cycle_ns)?;
        cycle_ns += drift.at_ns;
    }
    let (Drift { low_ns, high_ns, .. }, folded, closed) = of(cycle_ns)?;
    Some((Recovered { ns: cycle_ns, low_ns: cycle_ns + low_ns, high_ns: cycle_ns + high_ns }, folded, closed))
}

/// The windows between the closed parts. The edges are wider by `wider_ns` because the cycle is not known exactly, and by the
/// shortest way because the gate is somewhere on it.
fn windows(folded: &Folded, closed: &[Closed], wider_ns: f64, way_ns: f64) -> Vec<RecoveredWindow> {
    let delays = folded.delays(closed);
    let edges: Vec<Edges> = closed.iter().map(|part| Edges::of(folded, part, &delays)).collect();
    let recovered = |[low_ns, high_ns]: [f64; 2]| {
        let (low_ns, high_ns) = (low_ns - wider_ns, high_ns + wider_ns + way_ns);
        Recovered { ns: (low_ns + high_ns) / 2.0, low_ns, high_ns }
    };
    let mut found: Vec<RecoveredWindow> = Vec::new();
    for (number, part) in edges.iter().enumerate() {
        // The window ends with the next closed part.
        let next = &edges[(number + 1) % edges.len()];
        let (opens, closes) = (recovered(part.opens_ns), recovered(next.closes_ns));
        let later_ns = folded.cycle_ns() * ((opens.low_ns - closes.high_ns) / folded.cycle_ns()).ceil();
        found.push(RecoveredWindow { opens, closes: closes.later(later_ns) }.later(0.0, folded.cycle_ns()));
    }
    found.sort_by(|a, b| a.opens.ns.total_cmp(&b.opens.ns));
    found
}

fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    let rank = ((values.len() as f64 * share) as usize).min(values.len() - 1);
    *values.select_nth_unstable_by(rank, f64::total_cmp).1
}
