//! Resolves the keys of loads, which run during the measurement.

use super::Context;
use super::cpus::allowed;
use super::duration::positive;
use super::scheduling::role;
use crate::error::Fault;
use crate::format::{LoadAt, LoadChoice, LoadKeys, ParticipantChoice, TopicKeys, UdpStreamKeys};
use crate::read::At;
use tailbound_model::*;

/// Largest number of loads of a trial; a larger number is probably a mistake.
const MOST: usize = 64;

pub(super) fn loads(keys: &[At<LoadKeys>], context: &Context<'_>) -> Result<Vec<LoadSpec>, Fault> {
    if let Some(surplus) = keys.get(MOST) {
        return Err(
            Fault::new(surplus.at, format!("a trial cannot have {} loads", keys.len())).help(format!("at most {MOST}"))
        );
    }
    for keys in keys {
        if let Some(cpus) = keys.value.scheduling.as_ref().and_then(|s| s.value.cpus.as_ref()) {
            allowed(cpus, context)?;
        }
    }
    keys.iter().map(|keys| load_spec(&keys.value)).collect()
}

/// Resolves the keys of one load, without a check of its CPUs.
pub(crate) fn load_spec(keys: &LoadKeys) -> Result<LoadSpec, Fault> {
    let run = match &keys.run.value {
        LoadChoice::Cpu => LoadKind::Cpu,
        LoadChoice::Memory => LoadKind::Memory,
        LoadChoice::Cache => LoadKind::Cache,
        LoadChoice::Syscall => LoadKind::Syscall,
        LoadChoice::Command(words) if words.value.first().is_none_or(|w| w.trim().is_empty()) => {
            return Err(Fault::new(words.at, "the command is empty")
                .help("write the program and its arguments, for example `[stress-ng, --cpu, \"1\"]`"));
        }
        LoadChoice::Command(words) => LoadKind::Command(words.value.clone()),
        LoadChoice::UdpStream(keys) => LoadKind::UdpStream(udp_stream(keys)?),
        LoadChoice::Topic(keys) => LoadKind::Topic(topic(keys)?),
    };
    in_neighbours(keys)?;
    let scheduling = match &keys.scheduling {
        None => RoleScheduling::default(),
        Some(keys) => {
            let scheduling = role("load", keys)?;
            if scheduling.policy.is_some_and(|p| p.starves()) && scheduling.cpus.is_none() {
                let reason =
                    "a real-time load without `cpus` may run on every CPU, including the CPU of Tailbound itself";
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
            Some(LoadAt::PingNeighbours) => LoadSpec::at_neighbours("ping"),
            Some(LoadAt::PongNeighbours) => LoadSpec::at_neighbours("pong"),
        },
        scheduling,
        start: keys.start.as_ref().map_or(LoadStart::AfterMatching, |s| s.value.0),
        duration: positive(keys.duration.as_ref(), "a duration")?,
    })
}

/// Refuses keys that a load in the neighbours of a guest cannot have.
fn in_neighbours(keys: &LoadKeys) -> Result<(), Fault> {
    if !matches!(keys.at, Some(LoadAt::PingNeighbours | LoadAt::PongNeighbours)) {
        return Ok(());
    }
    if let LoadChoice::Topic(_) = &keys.run.value {
        let reason = "a topic needs a driver at both places, and neighbours have none";
        return Err(Fault::new(keys.run.at, reason).help("write `run: udp-stream`, or `at: ping` or `at: pong`"));
    }
    match keys.start.as_ref().map(|s| s.at).or(keys.duration.as_ref().map(|d| d.at)) {
        Some(at) => Err(Fault::new(at, "a load in neighbours runs while the messages are sent")
            .help("leave `start` and `duration` out")),
        None => Ok(()),
    }
}

/// Largest number of datagram streams of one `udp-stream` load; each stream has a thread of its own.
const MOST_FLOWS: u32 = 64;
/// Smallest payload of a load's datagram in bytes, which has room for the identity of the load.
const LEAST_DATAGRAM: u64 = 16;
/// Largest payload of a UDP datagram over IPv4, in bytes.
const LARGEST_DATAGRAM: u64 = 65_507;

fn udp_stream(keys: &UdpStreamKeys) -> Result<UdpStream, Fault> {
    let flows = keys.flows.as_ref().map_or(1, |f| f.value);
    if let Some(at) = keys.flows.as_ref().filter(|_| !(1..=MOST_FLOWS).contains(&flows)) {
        return Err(Fault::new(at.at, format!("a load cannot have {flows} flows")).help(format!("1 to {MOST_FLOWS}")));
    }
    let payload = keys.payload.as_ref().map_or(ByteSize(1472), |p| p.value.0);
    if let Some(at) = keys.payload.as_ref().filter(|_| !(LEAST_DATAGRAM..=LARGEST_DATAGRAM).contains(&payload.0)) {
        let help = format!("{LEAST_DATAGRAM} B to {LARGEST_DATAGRAM} B");
        return Err(Fault::new(at.at, format!("a datagram cannot carry {payload}")).help(help));
    }
    let rate = keys.rate.as_ref().map_or(Rate::Period(Nanos(100_000)), |r| r.value.0);
    Ok(UdpStream { flows, payload, rate })
}

fn topic(keys: &TopicKeys) -> Result<TopicLoad, Fault> {
    if keys.rate.value.0 == Rate::Max {
        return Err(
            Fault::new(keys.rate.at, "messages of a topic need a rate other than `max`").help("for example `30 Hz`")
        );
    }
    let participant = match keys.participant {
        None | Some(ParticipantChoice::Own) => Participant::Own,
        Some(ParticipantChoice::Shared) => Participant::Shared,
    };
    let payload = keys.payload.value.0;
    if let Some(problem) = payload_problem(payload, payload, "every driver", super::MAX_PAYLOAD) {
        return Err(Fault { at: keys.payload.at, problem });
    }
    let qos = keys.qos.as_ref().map(super::qos::qos).transpose()?;
    let (rate, jitter) = (keys.rate.value.0, positive(keys.jitter.as_ref(), "a jitter")?);
    if let (Some(at), Some(jitter), Some(period)) = (&keys.jitter, jitter, rate.period())
        && jitter >= period
    {
        return Err(Fault::new(at.at, format!("a jitter of {jitter} is not less than the period, {period}"))
            .help("messages keep their order, so that each is sent before the next one is due"));
    }
    Ok(TopicLoad { payload, rate, participant, qos, jitter })
}
