//! Loads: what runs beside the measurement.

use super::scheduling::role;
use super::{Context, ends, length};
use crate::error::Fault;
use crate::format::{LoadAt, LoadChoice, LoadKeys};
use crate::read::At;
use tailbound_model::{LoadKind, LoadSpec, LoadStart, RoleScheduling};

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
