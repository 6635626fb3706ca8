//! Places that are existing libvirt domains. libvirt on this host controls the libvirt domain; Tailbound reaches it
//! with the user's own ssh, or over its virtio-serial channels.

use super::host::{Candidate, Help, Host};
use super::kind::{Lifetime, PlaceKind, Reach};
use super::place::Place;
use super::vm::over_ports;
use super::{not_fit, ssh};
use crate::controller::RunError;
use crate::controller::context::RunContext;
use crate::controller::stop_signal::StopSignal;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tailbound_guest::{PORT_NAMES, await_ports, join_ports};
use tailbound_host::journal::EntryId;
use tailbound_host::libvirt::{Domain, DomainError};
use tailbound_model::*;

/// Longest time until a libvirt domain that was just started answers.
const BOOTS: Duration = Duration::from_secs(120);
/// Longest time until a libvirt domain that was already running answers over its channels.
const ANSWERS: Duration = Duration::from_secs(30);
/// Silence after which an agent in a libvirt domain counts as lost. The time is long, because an emulated libvirt
/// domain is slow.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest time for a libvirt domain that was started for the run to shut down. After this time the libvirt domain is
/// ended by force.
const SHUTS_DOWN: Duration = Duration::from_secs(30);

struct Controlled {
    inside: Box<dyn Place>,
    domain: Domain,
    spec: DomainSpec,
    /// Threads on this host that run the libvirt domain; none if they are not known.
    threads: Vec<GuestThread>,
    /// Journal entries of all changes to the libvirt domain, in the order of the changes.
    entries: Vec<EntryId>,
}

impl PlaceKind for DomainSpec {
    fn reach(&self, mut reach: Reach<'_>) -> Result<Vec<Host>, RunError> {
        Ok(vec![start(self, &mut reach)?])
    }

    fn lifetime(&self) -> Lifetime {
        Lifetime::Run
    }
}

/// Starts a libvirt domain if it does not run, sets the scheduling of its threads, and connects to it.
///
/// # Errors
/// The libvirt domain does not exist, libvirt refuses a change, or the libvirt domain cannot be reached. In these cases
/// all changes are undone.
fn start(spec: &DomainSpec, reach: &mut Reach<'_>) -> Result<Host, RunError> {
    let context = reach.context;
    let unfit = |e: DomainError| not_fit(e, "");
    let domain = Domain::find(spec.connect.as_deref(), &spec.name).map_err(unfit)?;
    let mut entries = Vec::new();
    let reached = control(&domain, spec, context, &mut entries).map_err(unfit).and_then(|started| {
        let inside = match &spec.ssh {
            Some(ssh) => log_in(ssh, reach, started)?,
            None => over_channels(&domain, reach, started)?,
        };
        Ok((inside, domain.facts().map_err(unfit)?))
    });
    let (inside, facts) = match reached {
        Ok(reached) => reached,
        Err(e) => {
            undo(entries, context);
            return Err(e);
        }
    };
    let emulated = facts.iter().any(|f| f.key == "domain.emulated" && f.value == FactValue::Flag(true));
    let threads = domain.threads().map(|threads| threads.outside()).unwrap_or_default();
    let help = Help {
        program: "",
        by_hand: "run Tailbound in the domain by hand to see the reason",
        other_release: "install the same release in the domain, or leave `program` out: Tailbound then copies itself \
                        into the domain",
    };
    let candidate = Candidate {
        reached: Box::new(Controlled { inside, domain, spec: spec.clone(), threads, entries }),
        place: PlaceSpec::Domain(Box::new(spec.clone())),
        called: format!("domain {}", spec.name),
        named: format!("domain {}", spec.name),
    };
    let mut host = Host::start(candidate, context, &help)?;
    host.facts.facts.extend(facts);
    host.facts.facts.sort_by(|a, b| a.key.cmp(&b.key));
    host.functional_only = emulated.then(|| format!("the virtual CPUs of domain {} are emulated", spec.name));
    Ok(host)
}

/// Starts the libvirt domain if it does not run, and sets the scheduling of its threads. Returns whether the libvirt
/// domain was started.
fn control(
    domain: &Domain,
    spec: &DomainSpec,
    context: &RunContext,
    entries: &mut Vec<EntryId>,
) -> Result<bool, DomainError> {
    let started = domain.start(SHUTS_DOWN, &context.journal)?;
    entries.extend(started);
    if spec.asks_for_threads() {
        entries.extend(domain.apply(&spec.vcpu_threads, &spec.emulator, &context.journal)?);
    }
    Ok(started.is_some())
}

/// Logs in to a libvirt domain with ssh. If the libvirt domain was just started, the login is tried again until the
/// libvirt domain answers.
fn log_in(spec: &SshSpec, reach: &mut Reach<'_>, started: bool) -> Result<Box<dyn Place>, RunError> {
    let begin = Instant::now();
    loop {
        match ssh::log_in(spec, &mut reach.hosts.bundle, reach.context) {
            Err(_) if started && !reach.context.stop.came() && begin.elapsed() < BOOTS => {
                std::thread::sleep(Duration::from_secs(2))
            }
            reached => return reached,
        }
    }
}

/// Connects to the agents in a libvirt domain over its virtio-serial channels.
fn over_channels(domain: &Domain, reach: &mut Reach<'_>, started: bool) -> Result<Box<dyn Place>, RunError> {
    let failed =
        |e: Problem| RunError::of(ExitCode::MachineNotFit, e.context(format_args!("domain {}", domain.name())));
    let sockets = domain.channels(PORT_NAMES).map_err(|e| not_fit(e, ""))?;
    let directory = reach.hosts.scratch(reach.context)?.join(format!("domain-{}", domain.uuid()));
    // Links of an earlier lab may be there.
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory)
        .map_err(|e| not_fit(format!("cannot make {}: {e}", directory.display()), ""))?;
    let place = reach.lab.place(reach.end);
    let agents = 1 + (0..reach.lab.places()).filter(|end| reach.lab.place(*end) == place).count() as u32;
    join_ports(&directory, &sockets, agents).map_err(failed)?;
    let limit = if started { BOOTS } else { ANSWERS };
    let stop: &StopSignal = &reach.context.stop;
    await_ports(&directory, limit, &|| stop.came()).map_err(failed)?;
    Ok(Box::new(Channels { directory }))
}

/// A libvirt domain whose agents are reached over its virtio-serial channels.
struct Channels {
    directory: PathBuf,
}

impl Place for Channels {
    fn command(&self) -> Command {
        over_ports(&self.directory)
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn leave(self: Box<Self>, _: &RunContext) -> Option<String> {
        // The links are removed with the directory that contains them.
        None
    }
}

/// Undoes changes to a libvirt domain in reverse order. Returns the reasons for changes that could not be undone.
fn undo(entries: Vec<EntryId>, context: &RunContext) -> Option<String> {
    let failed: Vec<String> = entries
        .into_iter()
        .rev()
        .filter_map(|entry| context.journal.undo(entry).err())
        .map(|e| e.to_string())
        .collect();
    (!failed.is_empty()).then(|| failed.join("; "))
}

impl Place for Controlled {
    fn command(&self) -> Command {
        self.inside.command()
    }

    fn patience(&self) -> Duration {
        self.inside.patience()
    }

    fn differences(&self) -> Vec<String> {
        if !self.spec.asks_for_threads() {
            return Vec::new();
        }
        match self.domain.verify(&self.spec.vcpu_threads, &self.spec.emulator) {
            Ok(differs) => {
                let text = |(what, asked, found): (String, String, String)| {
                    format!("{what} has {found}, the study asks for {asked}")
                };
                differs.into_iter().map(text).collect()
            }
            Err(e) => vec![e.to_string()],
        }
    }

    fn ended(&self) -> Option<String> {
        self.domain
            .state()
            .ok()
            .filter(|state| !state.runs())
            .map(|state| format!("libvirt reports that the domain is {}", state.0))
    }

    fn threads_outside(&self) -> Vec<GuestThread> {
        self.threads.clone()
    }

    fn leave(self: Box<Self>, context: &RunContext) -> Option<String> {
        let Controlled { inside, entries, .. } = *self;
        let left = [inside.leave(context), undo(entries, context)];
        let left: Vec<String> = left.into_iter().flatten().collect();
        (!left.is_empty()).then(|| left.join("; "))
    }
}
