//! Resolves the options of a flow: throughput and fan-out.

use super::duration::positive;
use super::length::receive_mode;
use crate::error::Fault;
use crate::format::{BatchingChoice, Duration, FanOutKeys, ReceiveChoice, SpreadChoice, ThroughputKeys};
use crate::read::At;
use crate::source::Pos;
use tailbound_model::{Flow, FlowRows, MOST_PUBLISHERS, MOST_SUBSCRIBERS, Nanos, Rate, ReceiveMode};

/// Largest number of payloads that one message may contain.
const MOST_PACKED: u32 = 65_535;

pub(super) fn throughput(keys: &ThroughputKeys, rate: Rate, measure: Pos) -> Result<Flow, Fault> {
    let pack = keys.pack.as_ref().map_or(1, |p| p.value);
    if let Some(at) = keys.pack.as_ref().filter(|_| !(1..=MOST_PACKED).contains(&pack)) {
        return Err(Fault::new(at.at, format!("{pack} payloads in one message are not possible")).help("1 to 65535"));
    }
    let every = keys.ping_every.as_ref();
    if let Some(at) = every.filter(|e| e.value == 0) {
        return Err(Fault::new(at.at, "`ping_every` cannot be 0").help("at least 1"));
    }
    let rows = every.map_or(FlowRows::None, |e| FlowRows::Pings { every: e.value });
    let times = [&keys.duration, &keys.ramp_up, &keys.drain];
    let flow = flow(times, keys.subscribers.as_ref(), keys.receive.as_ref(), (rate, measure), (pack, rows))?;
    let batching = keys.batching == Some(BatchingChoice::On);
    let unacked_limit = keys.unacked_limit.as_ref().and_then(|l| l.value.0);
    let publishers = keys.publishers.as_ref().map_or(1, |p| p.value);
    if let Some(at) = keys.publishers.as_ref().filter(|_| !(1..=MOST_PUBLISHERS).contains(&publishers)) {
        return Err(Fault::new(at.at, format!("{publishers} publishers are not possible")).help("1 to 64"));
    }
    Ok(Flow { batching, unacked_limit, publishers, apart: apart(keys.spread), ..flow })
}

pub(super) fn fan_out(keys: &FanOutKeys, rate: Rate, measure: Pos) -> Result<Flow, Fault> {
    let times = [&keys.duration, &keys.ramp_up, &keys.drain];
    let flow = flow(times, keys.subscribers.as_ref(), keys.receive.as_ref(), (rate, measure), (1, FlowRows::OneWay))?;
    Ok(Flow { apart: apart(keys.spread), ..flow })
}

/// True if each end of the flow has its own place. The key `place` of the study says which kind of place.
fn apart(spread: Option<SpreadChoice>) -> bool {
    spread.is_some_and(|spread| spread != SpreadChoice::Processes)
}

fn flow(
    [duration, ramp_up, drain]: [&Option<At<Duration>>; 3],
    subscribers: Option<&At<u32>>,
    receive: Option<&At<ReceiveChoice>>,
    (rate, measure): (Rate, Pos),
    (pack, rows): (u32, FlowRows),
) -> Result<Flow, Fault> {
    let window = positive(duration.as_ref(), "a duration")?.unwrap_or(Nanos::from_secs(10));
    if let Some(period) = rate.period().filter(|p| p.0 > window.0) {
        let reason = format!("a window of {window} ends before its first message: a message is due every {period}");
        let at = duration.as_ref().map_or(measure, |d| d.at);
        return Err(Fault::new(at, reason).help("use a longer duration, or a higher rate"));
    }
    let count = subscribers.map_or(1, |s| s.value);
    if let Some(at) = subscribers.filter(|_| !(1..=MOST_SUBSCRIBERS).contains(&count)) {
        return Err(Fault::new(at.at, format!("{count} subscribers are not possible")).help("1 to 64"));
    }
    let receive_mode = receive_mode(receive.map(|r| r.value));
    if let Some(at) = receive.filter(|_| receive_mode == ReceiveMode::Executor) {
        let reason = "an executor handles slots and answers in turn, and a flow has no answers";
        return Err(Fault::new(at.at, reason).help("write `receive: listener`, `block` or `spin`"));
    }
    Ok(Flow {
        window,
        ramp_up: positive(ramp_up.as_ref(), "a ramp-up")?.unwrap_or(Nanos::from_secs(1)),
        drain: positive(drain.as_ref(), "a drain")?.unwrap_or(Nanos::from_millis(200)),
        publishers: 1,
        subscribers: count,
        pack,
        batching: false,
        unacked_limit: None,
        apart: false,
        rows,
        receive: receive_mode,
    })
}
