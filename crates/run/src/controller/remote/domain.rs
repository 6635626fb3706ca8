//! Domains of libvirt that exist already: steered by libvirt from this host, reached by the user's own ssh.

use super::host::{Help, Host, Known, Way};
use super::link::Ship;
use super::{not_fit, ssh};
use crate::controller::RunError;
use std::process::Command;
use std::time::{Duration, Instant};
use tailbound_host::journal::{EntryId, Journal};
use tailbound_host::libvirt::{Domain, DomainError};
use tailbound_model::*;

/// A domain that was started answers by ssh within this time.
const BOOTS: Duration = Duration::from_secs(120);
/// One that was started for the run is asked to shut down, and ended when it has not within this time.
const SHUTS_DOWN: Duration = Duration::from_secs(30);

struct Steered {
    ssh: Box<dyn Way>,
    domain: Domain,
    spec: DomainSpec,
    /// What was done to it, in its order.
    entries: Vec<EntryId>,
}

/// Starts a domain if it does not run, gives its threads what is asked for them, and reaches it.
///
/// # Errors
/// libvirt does not have it or refuses something, or it cannot be reached: who says so, and what to do. It is as it was then.
pub(super) fn reach(spec: &DomainSpec, ship: &mut Ship, (run_id, journal): (&str, &Journal)) -> Result<Host, RunError> {
    let unfit = |e: DomainError| not_fit(e, "");
    let domain = Domain::find(spec.connect.as_deref(), &spec.name).map_err(unfit)?;
    let mut entries = Vec::new();
    let reached = steer(&domain, spec, journal, &mut entries)
        .map_err(unfit)
        .and_then(|started| Ok((log_in(spec, ship, (run_id, journal), started)?, domain.facts().map_err(unfit)?)));
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
        way: Box::new(Steered { ssh: way, domain, spec: spec.clone(), entries }),
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
fn log_in(spec: &DomainSpec, ship: &mut Ship, run: (&str, &Journal), started: bool) -> Result<Box<dyn Way>, RunError> {
    let begin = Instant::now();
    loop {
        match ssh::way(&spec.ssh, ship, run) {
            Err(_) if started && begin.elapsed() < BOOTS => std::thread::sleep(Duration::from_secs(2)),
            reached => return reached,
        }
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
        self.ssh.program()
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
        let Steered { ssh, entries, .. } = *self;
        let left = [ssh.leave(journal), put_back(entries, journal)];
        let left: Vec<String> = left.into_iter().flatten().collect();
        (!left.is_empty()).then(|| left.join("; "))
    }
}
