//! Resolves the keys of the stream of the ping.

use crate::error::Fault;
use crate::format::{LaunchByChoice, LaunchKeys, LaunchModeChoice, ReplaceChoice, StreamKeys};
use crate::read::At;
use tailbound_model::{DriverSpec, LaunchBy, LaunchMode, LaunchSpec, Nanos, Rate, StreamSpec};

/// Longest lead of launch times: each message waits in the queue for this time.
const LONGEST_LEAD: Nanos = Nanos::from_secs(1);
/// Default of `ahead`: the wake-up of a timer on a machine that works needs less.
pub(super) const USUAL_AHEAD: Nanos = Nanos(300_000);

/// Resolves the keys of the stream of the ping, which has this rate and this driver.
pub(crate) fn stream(keys: &At<StreamKeys>, rate: Rate, driver: &DriverSpec) -> Result<StreamSpec, Fault> {
    let Rate::Period(period) = rate else {
        return Err(Fault::new(keys.at, "messages of a stream are due at given times, and the rate is `max`")
            .help("give a rate such as `1 kHz`, or remove `stream`"));
    };
    let offset = keys.value.offset.as_ref().map(|offset| match offset.value.0 {
        time if time < period => Ok(time),
        time => Err(Fault::new(offset.at, format!("an offset of {time} is not within the period of {period}"))
            .help(format!("write less than {period}"))),
    });
    let offset = offset.transpose()?.unwrap_or_default();
    let launch = keys.value.launch.as_ref().map(|launch| resolved(launch, driver)).transpose()?;
    Ok(StreamSpec { offset, launch })
}

fn resolved(keys: &At<LaunchKeys>, driver: &DriverSpec) -> Result<LaunchSpec, Fault> {
    let (lead, ahead) = (keys.value.lead.value.0, keys.value.ahead.as_ref().map_or(USUAL_AHEAD, |ahead| ahead.value.0));
    if lead > LONGEST_LEAD {
        let reason = format!("launch times {lead} ahead are too early");
        return Err(Fault::new(keys.value.lead.at, reason).help(format!("write at most {LONGEST_LEAD}")));
    }
    if lead <= ahead {
        let reason = format!(
            "with a lead of {lead} and `ahead: {ahead}`, messages reach the queue when they should already leave it"
        );
        return Err(Fault::new(keys.value.lead.at, reason)
            .help("make `lead` longer than `ahead`, by the time of a late wake-up"));
    }
    let mode = match keys.value.mode {
        None | Some(LaunchModeChoice::Strict) => LaunchMode::Strict,
        Some(LaunchModeChoice::Deadline) => LaunchMode::Deadline,
    };
    let priority = driver.options.get("priority").and_then(|text| text.trim().parse().ok());
    // The queue with launch times drops what has none: discovery, ARP, and everything else with priority 0.
    let Some(priority) = priority.filter(|priority| (1..=15).contains(priority)) else {
        let reason = "messages with launch times need a priority of their own, because their queue drops all others";
        return Err(Fault::new(keys.at, reason).help("write for example `driver: { udp: { priority: 3 } }`"));
    };
    let by = match keys.value.by.as_ref().map(|by| by.value) {
        None | Some(LaunchByChoice::Etf) => LaunchBy::Etf,
        Some(LaunchByChoice::Existing) => LaunchBy::Existing,
    };
    if let (LaunchBy::Existing, Some(replace)) = (by, &keys.value.replace) {
        let reason = "an existing queue with launch times is only read, so that `replace` has no effect";
        return Err(Fault::new(replace.at, reason).help("remove `replace`, or `by: existing`"));
    }
    let replace = keys.value.replace.as_ref().is_some_and(|replace| replace.value == ReplaceChoice::Yes);
    Ok(LaunchSpec { lead, ahead, mode, priority, by, replace })
}
