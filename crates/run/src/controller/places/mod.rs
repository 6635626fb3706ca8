//! The places of a run that are not plain processes of this host. The controller connects to a place once, keeps the
//! connection while the place is needed, and closes it at the end. Processes at such a place end when their stream
//! ends, or when they have received nothing for a fixed time (their lease).
//!
//! [`PlaceKind`] is a place as the study specifies it; [`place::Place`] is a place to which there is a connection. Each
//! kind of place has its own module, and [`kind_of`] is the only list of kinds.

mod container;
mod discovery_server;
mod dns_name;
mod domain;
mod host;
mod host_agent;
mod kind;
mod local;
mod node_observer;
mod place;
mod pod;
mod ssh;
mod ssh_command;
mod ssh_errors;
mod ssh_link;
mod vm;

pub(super) use discovery_server::Server;
pub(super) use host::Host;
pub(super) use vm::lack as guest_lack;

use super::RunError;
use super::context::RunContext;
use crate::scratch::make_directory;
use kind::{Lifetime, PlaceKind, Reach};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use tailbound_host::journal::EntryId;
use tailbound_lab::LabSpec;
use tailbound_lab::wiring::Wiring;
use tailbound_model::{CpuList, Discovery, ExitCode, PlaceSpec, ServerOrder, TrialSpec, VmSpec};

/// Function that lists the drivers that are files: name and shared object of each driver.
pub type DriverFiles = fn() -> Vec<(String, PathBuf)>;

/// Returns the [`PlaceKind`] (how to connect to a place, and how long the connection is kept) of a place of the study.
fn kind_of(place: &PlaceSpec) -> &dyn PlaceKind {
    match place {
        PlaceSpec::Ssh(spec) => spec,
        PlaceSpec::Container(spec) => &**spec,
        PlaceSpec::Pod(spec) => &**spec,
        PlaceSpec::Vm(spec) => &**spec,
        PlaceSpec::Domain(spec) => &**spec,
        _ => &local::Local,
    }
}

/// All hosts to which the controller has connected for the places of a run.
pub(super) struct Hosts {
    reached: Vec<Arc<Host>>,
    bundle: ssh_link::Ship,
    /// Observer pods, one for each cluster node: each observes the node on which it runs.
    observers: Vec<Arc<Host>>,
    /// Number of pods, containers and services that the run has created so far.
    made: u32,
    /// Discovery server through which the ends of the lab find each other.
    server: Option<Arc<Server>>,
    /// DNS name that the ends of the lab use to find each other.
    name: Option<dns_name::Name>,
    /// Virtual network (wiring) of the lab's guests, which is created before the guests start.
    wiring: Option<(LabSpec, Wiring)>,
    /// Directory for the sockets of guests. It is created when the first guest needs it.
    scratch: Option<(PathBuf, EntryId)>,
    /// CPUs on which the controller may run.
    allowed: CpuList,
    /// Guests that already have a name in the record. The list is needed because several guests may have the same
    /// `name`.
    guests: Vec<VmSpec>,
    /// Sentences for the user about things of the run that could not be removed.
    left: Vec<String>,
}

impl Hosts {
    /// Creates the list of hosts, without a connection to any host.
    pub fn new(driver_files: DriverFiles, allowed: &[u32]) -> Hosts {
        Hosts {
            reached: Vec::new(),
            observers: Vec::new(),
            bundle: ssh_link::Ship::new(driver_files),
            made: 0,
            server: None,
            name: None,
            wiring: None,
            scratch: None,
            allowed: CpuList(allowed.iter().copied().collect()),
            guests: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Connects to the hosts of a lab without a connection, and closes the connections to hosts that the lab does not
    /// need. Returns the new hosts. `here` is the name of this host.
    ///
    /// # Errors
    /// No connection to a host is possible, or the host cannot be used.
    pub async fn reach(&mut self, lab: &LabSpec, context: &RunContext, here: &str) -> Result<Vec<Arc<Host>>, RunError> {
        self.leave_unwanted(lab, context).await;
        self.wire(lab, context).await?;
        let mut new = Vec::new();
        for end in 0..lab.places() {
            if self.of_end(lab, end).is_some() {
                continue;
            }
            let kind = kind_of(lab.place(end));
            let hosts = kind.reach(Reach { hosts: self, lab, end, context, here })?;
            let hosts: Vec<Arc<Host>> = hosts.into_iter().map(Arc::new).collect();
            for host in &hosts {
                tracing::info!(host = host.facts.host, "host reached");
            }
            self.reached.extend(hosts.iter().cloned());
            new.extend(hosts);
        }
        Ok(new)
    }

    /// Closes the connections to hosts that were lost, so that the controller connects to them again, and to hosts that
    /// the lab does not need, because such hosts use CPUs and memory. Pods of one place are created together and
    /// removed together.
    async fn leave_unwanted(&mut self, lab: &LabSpec, context: &RunContext) {
        // Guests are connected to the wiring of one lab.
        let same_wiring = self.wiring.as_ref().map(|(of, _)| of) == lab.is_wired().then_some(lab);
        let lifetime = |host: &Host| kind_of(&host.place).lifetime();
        let is_wanted = |host: &Host| match lifetime(host) {
            Lifetime::Run => host.answers(),
            Lifetime::Wiring => same_wiring && host.answers() && wanted(lab, &host.place) > 0,
            Lifetime::Lab => {
                let together: Vec<&Arc<Host>> = self.reached.iter().filter(|h| h.place == host.place).collect();
                together.len() == wanted(lab, &host.place) && together.iter().all(|h| h.answers())
            }
        };
        let (mut kept, mut unwanted): (Vec<_>, Vec<_>) = self.reached.iter().cloned().partition(|host| is_wanted(host));
        let guests_left = unwanted.iter().any(|host| lifetime(host) == Lifetime::Wiring);
        if guests_left {
            // An interface of the wiring can be used once only: all guests are started again.
            unwanted.extend(kept.extract_if(.., |host| lifetime(host) == Lifetime::Wiring));
        }
        self.reached = kept;
        for host in unwanted {
            tracing::info!(host = host.facts.host, answers = host.answers(), "host left");
            let left = host.leave(context);
            self.left.extend(left.filter(|_| lifetime(&host) != Lifetime::Run));
        }
        if guests_left || !same_wiring {
            self.take_wiring_down(context).await;
        }
    }

    async fn take_wiring_down(&mut self, context: &RunContext) {
        if let Some((_, wiring)) = self.wiring.take()
            && let Err(e) = wiring.down(&context.journal).await
        {
            self.left.push(e.to_string());
        }
    }

    /// Creates the wiring of a lab, if the ends of the lab must be connected before they start.
    async fn wire(&mut self, lab: &LabSpec, context: &RunContext) -> Result<(), RunError> {
        if lab.is_wired() && self.wiring.is_none() {
            let scratch = self.scratch(context)?;
            let path = (&lab.path, lab.vlan.as_ref());
            let wiring = Wiring::up(path, &lab.ports(), &context.run_id, &context.journal, &scratch).await?;
            self.wiring = Some((lab.clone(), wiring));
        }
        Ok(())
    }

    /// Directory for the sockets of guests. It is created if it does not exist yet.
    fn scratch(&mut self, context: &RunContext) -> Result<PathBuf, RunError> {
        if let Some((path, _)) = &self.scratch {
            return Ok(path.clone());
        }
        let path = std::env::temp_dir().join(format!("tailbound-{}", context.run_id));
        let made = make_directory(&context.journal, &path).map_err(|e| RunError::of(ExitCode::RunFailed, e))?;
        Ok(self.scratch.insert(made).0.clone())
    }

    /// Creates the token of the next pod, container or service.
    fn next_token(&mut self, context: &RunContext) -> String {
        self.made += 1;
        context.token(self.made)
    }

    /// Virtual network (wiring) to which the lab's guests are connected, if there is one.
    pub fn wiring(&self) -> Option<&Wiring> {
        self.wiring.as_ref().map(|(_, wiring)| wiring)
    }

    /// Creates the discovery server or the DNS name that a trial asks for, and removes those of other trials. The hosts
    /// of the trial must have a connection before.
    ///
    /// # Errors
    /// The discovery server or the DNS name does not become ready.
    pub fn make_discovery(&mut self, trial: &TrialSpec, context: &RunContext) -> Result<(), RunError> {
        let owner = self.of_end(&LabSpec::from(trial), 0).and_then(|host| host.pod.clone());
        let wanted = match (&trial.ping.place, owner) {
            (PlaceSpec::Pod(spec), Some(owner)) if trial.discovery == Discovery::Server => Some((spec, owner)),
            _ => None,
        };
        let suits = |server: &Server| {
            let driver = server.driver() == trial.driver.name;
            wanted.as_ref().is_some_and(|(_, owner)| driver && server.order.owner == *owner)
        };
        if let Some(old) = self.server.take_if(|server| !suits(server)) {
            self.left.extend(old.leave(context));
        }
        if let (Some((spec, owner)), None) = (wanted, &self.server) {
            let (token, driver) = (self.next_token(context), trial.driver.name.clone());
            let order = ServerOrder { spec: (**spec).clone(), token, owner, driver };
            self.server = Some(Arc::new(Server::make(order, context)?));
        }
        self.make_name(trial, context)
    }

    /// Discovery server that the ends of the lab use, if there is one.
    pub fn server(&self) -> Option<Arc<Server>> {
        self.server.clone()
    }

    /// Host of an end of the lab; `None` = the end is on this host, or there is no connection to its host. If each end
    /// has its own pod, the first publisher gets the first pod of the publishers, and so on; the same for subscribers.
    pub fn of_end(&self, lab: &LabSpec, end: usize) -> Option<&Arc<Host>> {
        let place = lab.place(end);
        let before = (0..end).filter(|other| lab.apart && lab.place(*other) == place).count();
        self.reached.iter().filter(|h| h.place == *place).nth(before)
    }

    /// Guest that runs as a neighbour of a measured guest; `None` = there is no connection to it.
    pub fn neighbour(&self, spec: &VmSpec) -> Option<&Arc<Host>> {
        self.reached.iter().find(|host| matches!(&host.place, PlaceSpec::Vm(guest) if **guest == *spec))
    }

    /// The neighbours of the lab's guests, each with the end whose guest it is a neighbour of.
    pub fn neighbours(&self, lab: &LabSpec) -> Vec<(&'static str, Arc<Host>)> {
        let all = lab.neighbours().into_iter();
        all.filter_map(|(end, guest)| Some((end, self.neighbour(&guest)?.clone()))).collect()
    }

    /// All hosts to which there is a connection.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Host>> {
        self.reached.iter()
    }

    /// True if all hosts to which the controller has connected still answer.
    pub fn answer(&self) -> bool {
        self.reached.iter().all(|h| h.answers())
    }

    /// Closes the connections to all hosts and removes all created objects. Returns sentences about things that could
    /// not be removed.
    pub async fn leave(mut self, context: &RunContext) -> Vec<String> {
        self.left.extend(self.name.take().and_then(|name| name.leave(context)));
        self.left.extend(self.server.take().and_then(|server| server.leave(context)));
        let reached = std::mem::take(&mut self.reached).into_iter().chain(std::mem::take(&mut self.observers));
        self.left.extend(reached.filter_map(|host| host.leave(context)));
        self.take_wiring_down(context).await;
        if let Some((_, entry)) = self.scratch.take() {
            self.left.extend(context.journal.undo(entry).err().map(|e| e.to_string()));
        }
        self.left
    }
}

/// Number of hosts that a lab needs for a place of the study, or for a neighbour.
fn wanted(lab: &LabSpec, place: &PlaceSpec) -> usize {
    let ends = (0..lab.places()).filter(|end| lab.place(*end) == place).count();
    let neighbours = lab.neighbours();
    let neighbours = neighbours.iter().filter(|(_, guest)| matches!(place, PlaceSpec::Vm(spec) if **spec == *guest));
    neighbours.count() + if lab.apart { ends } else { ends.min(1) }
}

/// Makes an error with exit code 3: this machine or another host cannot run the study.
pub(super) fn not_fit(what: impl ToString, remedy: impl ToString) -> RunError {
    RunError::new(ExitCode::MachineNotFit, what, remedy)
}

/// Calls `ask` for all items at the same time, each on a thread of its own, and returns the answers in the order of the items. A
/// thread that panics ends the caller in the same way.
pub(super) fn all_at_once<T: Send, A: Send>(items: Vec<T>, ask: impl Fn(T) -> A + Sync) -> Vec<A> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = items.into_iter().map(|item| scope.spawn(|| ask(item))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
