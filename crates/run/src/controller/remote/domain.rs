//! Domains of libvirt that exist already: steered by libvirt from this host, reached by the user's own ssh, or over channels
//! of virtio-serial that they have.

use super::host::{Help, Host, Known, Way};
use super::link::Ship;
use super::vm::over_ports;
use super::{not_fit, ssh};
use crate::controller::RunError;
use crate::controller::stop::Stop;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tailbound_guest::{GuestError, PORT_NAMES, await_ports, join_ports};
use tailbound_host::journal::{EntryId, Journal};
use tailbound_host::libvirt::{Domain, DomainError};
use tailbound_model::*;

/// A domain that was started answers within this time.
const BOOTS: Duration = Duration::from_secs(120);
/// One that ran already answers over its channels within this time.
const ANSWERS: Duration = Duration::from_secs(30);
/// An emulated domain may be slow to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// One that was started for the run is asked to shut down, and ended when it has not within this time.
const SHUTS_DOWN: Duration = Duration::from_secs(30);

struct Steered {
    inside: Box<dyn Way>,
    domain: Domain,
    spec: DomainSpec,
    /// What was done to it, in its order.
    entries: Vec<EntryId>,
}

/// What a domain is reached for.
pub(super) struct Around<'a> {
    /// For links to its channels.
    pub scratch: &'a Path,
    /// So many are in it at a time.
    pub agents: u32,
    /// It is given up.
    pub stop: &'a Stop,
}

/// Starts a domain if it does not run, gives its threads what is asked for them, and reaches it.
///
/// # Errors
/// libvirt does not have it or refuses something, or it cannot be reached: who says so, and what to do. It is as it was then.
pub(super) fn reach(
    spec: &DomainSpec,
    ship: &mut Ship,
    (run_id, journal): (&str, &Journal),
    around: &Around<'_>,
) -> Result<Host, RunError> {
    let unfit = |e: DomainError| not_fit(e, "");
    let domain = Domain::find(spec.connect.as_deref(), &spec.name).map_err(unfit)?;
    let mut entries = Vec::new();
    let reached = steer(&domain, spec, journal, &mut entries).map_err(unfit).and_then(|started| {
        let inside = match &spec.ssh {
            Some(ssh) => log_in(ssh, ship, (run_id, journal), started, around)?,
            None => over_channels(&domain, started, around)?,
        };
        Ok((inside, domain.facts().map_err(unfit)?))
    });
    let (way, facts) = match reached {
        Ok(reached) => reached,
        Err(e) => {
            put_back(entries, journal);
            return Err(e);
        }
    };
    let emulated = facts.iter().any(|f| f.key == "domain.emulated" && f.value == FactValue::Flag(true));
    let help = Help {
        program: "",
        by_hand: "run it there by hand to see why",
        other_release: "install the same release there, or leave `program` out: it is then copied",
    };
    let known = Known {
        way: Box::new(Steered { inside: way, domain, spec: spec.clone(), entries }),
        place: PlaceSpec::Domain(Box::new(spec.clone())),
        called: format!("domain {}", spec.name),
        named: format!("domain {}", spec.name),
    };
    let mut host = Host::over(known, (run_id, journal), &help)?;
    host.facts.facts.extend(facts);
    host.facts.facts.sort_by(|a, b| a.key.cmp(&b.key));
    host.functional_only = emulated.then(|| format!("the virtual CPUs of domain {} are emulated", spec.name));
    Ok(host)
}

/// Whether it was started.
fn steer(
    domain: &Domain,
    spec: &DomainSpec,
    journal: &Journal,
    entries: &mut Vec<EntryId>,
) -> Result<bool, DomainError> {
    let started = domain.start(SHUTS_DOWN, journal)?;
    entries.extend(started);
    if spec.asks_for_threads() {
        entries.extend(domain.apply(&spec.vcpu_threads, &spec.emulator, journal)?);
    }
    Ok(started.is_some())
}

/// By ssh, which one that was just started does not answer at once.
fn log_in(
    spec: &SshSpec,
    ship: &mut Ship,
    run: (&str, &Journal),
    started: bool,
    around: &Around<'_>,
) -> Result<Box<dyn Way>, RunError> {
    let begin = Instant::now();
    loop {
        match ssh::way(spec, ship, run) {
            Err(_) if started && !around.stop.came() && begin.elapsed() < BOOTS => {
                std::thread::sleep(Duration::from_secs(2))
            }
            reached => return reached,
        }
    }
}

/// Over the ports that Tailbound serves in it.
fn over_channels(domain: &Domain, started: bool, around: &Around<'_>) -> Result<Box<dyn Way>, RunError> {
    let failed = |e: GuestError| not_fit(format!("domain {}: {}", domain.name(), e.what), e.mend);
    let sockets = domain.channels(PORT_NAMES).map_err(|e| not_fit(e, ""))?;
    let directory = around.scratch.join(format!("domain-{}", domain.uuid()));
    // One of before is in the way.
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory)
        .map_err(|e| not_fit(format!("cannot make {}: {e}", directory.display()), ""))?;
    join_ports(&directory, &sockets, around.agents).map_err(failed)?;
    let limit = if started { BOOTS } else { ANSWERS };
    await_ports(&directory, limit, &|| around.stop.came()).map_err(failed)?;
    Ok(Box::new(Ports { directory }))
}

/// Tailbound in a domain, over its channels.
struct Ports {
    directory: PathBuf,
}

impl Way for Ports {
    fn program(&self) -> Command {
        over_ports(&self.directory)
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn leave(self: Box<Self>, _: &Journal) -> Option<String> {
        // It goes with the directory that it is in.
        None
    }
}

/// The last first; why some could not be.
fn put_back(entries: Vec<EntryId>, journal: &Journal) -> Option<String> {
    let failed: Vec<String> =
        entries.into_iter().rev().filter_map(|entry| journal.undo(entry).err()).map(|e| e.to_string()).collect();
    (!failed.is_empty()).then(|| failed.join("; "))
}

impl Way for Steered {
    fn program(&self) -> Command {
        self.inside.program()
    }

    fn patience(&self) -> Duration {
        self.inside.patience()
    }

    fn changed(&self) -> Vec<String> {
        if !self.spec.asks_for_threads() {
            return Vec::new();
        }
        match self.domain.verify(&self.spec.vcpu_threads, &self.spec.emulator) {
            Ok(differs) => {
                let text =
                    |(what, asked, found): (String, String, String)| format!("{what} has {found}, asked was {asked}");
                differs.into_iter().map(text).collect()
            }
            Err(e) => vec![e.to_string()],
        }
    }

    fn ended(&self) -> Option<String> {
        self.domain.state().ok().filter(|state| !state.runs()).map(|state| format!("libvirt says it is {}", state.0))
    }

    fn leave(self: Box<Self>, journal: &Journal) -> Option<String> {
        let Steered { inside, entries, .. } = *self;
        let left = [inside.leave(journal), put_back(entries, journal)];
        let left: Vec<String> = left.into_iter().flatten().collect();
        (!left.is_empty()).then(|| left.join("; "))
    }
}
