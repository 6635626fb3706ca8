//! Loads: what runs beside the measurement.

use super::scheduling::role;
use super::{Context, ends, length};
use crate::error::Fault;
use crate::format::{LoadAt, LoadChoice, LoadKeys, ParticipantChoice, TopicKeys, UdpStreamKeys};
use crate::read::At;
use tailbound_model::*;

/// More than this is a mistake.
const MOST: usize = 64;

pub(super) fn loads(keys: &[At<LoadKeys>], context: &Context<'_>) -> Result<Vec<LoadSpec>, Fault> {
    if let Some(surplus) = keys.get(MOST) {
        return Err(
            Fault::new(surplus.at, format!("a trial with {} loads", keys.len())).help(format!("at most {MOST}"))
        );
    }
    for keys in keys {
        if let Some(cpus) = keys.value.scheduling.as_ref().and_then(|s| s.value.cpus.as_ref()) {
            ends::allowed(cpus, context)?;
        }
    }
    keys.iter().map(|keys| load_spec(&keys.value)).collect()
}

/// One load, wherever it will run.
pub(crate) fn load_spec(keys: &LoadKeys) -> Result<LoadSpec, Fault> {
    let run = match &keys.run.value {
        LoadChoice::Cpu => LoadKind::Cpu,
        LoadChoice::Memory => LoadKind::Memory,
        LoadChoice::Cache => LoadKind::Cache,
        LoadChoice::Syscall => LoadKind::Syscall,
        LoadChoice::Command(words) if words.value.first().is_none_or(|w| w.trim().is_empty()) => {
            return Err(Fault::new(words.at, "the command is empty").help("for example `[stress-ng, --cpu, \"1\"]`"));
        }
        LoadChoice::Command(words) => LoadKind::Command(words.value.clone()),
        LoadChoice::UdpStream(keys) => LoadKind::UdpStream(udp_stream(keys)?),
        LoadChoice::Topic(keys) => LoadKind::Topic(topic(keys)?),
    };
    let scheduling = match &keys.scheduling {
        None => RoleScheduling::default(),
        Some(keys) => {
            let scheduling = role("load", keys)?;
            if scheduling.policy.is_some_and(|p| p.starves()) && scheduling.cpus.is_none() {
                let reason = "a real-time load without `cpus` may run on every CPU, that of Tailbound itself included";
                return Err(Fault::new(keys.at, reason).help("give it `cpus`"));
            }
            scheduling
        }
    };
    Ok(LoadSpec {
        run,
        at: match keys.at {
            None | Some(LoadAt::Ping) => "ping".into(),
            Some(LoadAt::Pong) => "pong".into(),
        },
        scheduling,
        start: keys.start.as_ref().map_or(LoadStart::AfterMatching, |s| s.value.0),
        duration: length::positive(keys.duration.as_ref(), "a duration")?,
    })
}

/// Flows of one load; each is a thread.
const MOST_FLOWS: u32 = 64;
/// What tells a datagram from those of others.
const LEAST_DATAGRAM: u64 = 16;
/// The most that UDP carries over IPv4.
const LARGEST_DATAGRAM: u64 = 65_507;

fn udp_stream(keys: &UdpStreamKeys) -> Result<UdpStream, Fault> {
    let flows = keys.flows.as_ref().map_or(1, |f| f.value);
    if let Some(at) = keys.flows.as_ref().filter(|_| !(1..=MOST_FLOWS).contains(&flows)) {
        return Err(Fault::new(at.at, format!("a load of {flows} flows")).help(format!("1 to {MOST_FLOWS}")));
    }
    let payload = keys.payload.as_ref().map_or(Octets(1472), |p| p.value.0);
    if let Some(at) = keys.payload.as_ref().filter(|_| !(LEAST_DATAGRAM..=LARGEST_DATAGRAM).contains(&payload.0)) {
        let help = format!("{LEAST_DATAGRAM} B to {LARGEST_DATAGRAM} B");
        return Err(Fault::new(at.at, format!("a datagram cannot carry {payload}")).help(help));
    }
    let rate = keys.rate.as_ref().map_or(Rate::Period(Nanos(100_000)), |r| r.value.0);
    Ok(UdpStream { flows, payload, rate })
}

fn topic(keys: &TopicKeys) -> Result<TopicLoad, Fault> {
    if keys.rate.value.0 == Rate::Max {
        return Err(Fault::new(keys.rate.at, "a topic is written at a rate").help("for example `30 Hz`"));
    }
    let participant = match keys.participant {
        None | Some(ParticipantChoice::Own) => Participant::Own,
        Some(ParticipantChoice::Shared) => Participant::Shared,
    };
    if keys.payload.value.0.0 > super::MAX_PAYLOAD {
        let reason = format!("a payload of {} is too large", keys.payload.value.0);
        return Err(Fault::new(keys.payload.at, reason).help("at most 2 GiB"));
    }
    Ok(TopicLoad { payload: keys.payload.value.0, rate: keys.rate.value.0, participant })
}
