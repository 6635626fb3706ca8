//! Other hosts that a run uses: reached once, kept until its end. What runs there ends with its stream, or when it has
//! heard nothing for the time of its lease.

mod asked;
mod container;
mod domain;
mod explain;
mod host;
mod link;
mod name;
mod observe;
mod pod;
mod server;
mod shell;
mod ssh;
mod vm;

pub(super) use host::Host;
pub(super) use observe::Nodes;
pub(super) use server::Server;
pub(super) use vm::lack as guest_lack;

use super::RunError;
use super::stop::Stop;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;
use tailbound_host::journal::{EntryId, Journal};
use tailbound_lab::LabSpec;
use tailbound_lab::under::Under;
use tailbound_model::{CpuList, Discovery, ExitCode, PlaceSpec, ServerOrder, TrialSpec, Undo, VmSpec};

/// The drivers that are files: name and shared object.
pub type DriverFiles = fn() -> Vec<(String, PathBuf)>;

/// An agent on another host that has heard nothing for this long ends itself.
pub(super) const LEASE_NS: i64 = 30_000_000_000;
/// So that none does as long as this process lives, they are told to be still there.
pub(super) const BEAT: std::time::Duration = std::time::Duration::from_secs(5);

/// The hosts of a run.
pub(super) struct Hosts {
    reached: Vec<Arc<Host>>,
    bundle: link::Ship,
    /// Pods that look at their nodes.
    observers: Vec<Arc<Host>>,
    /// So many times pods and containers were made.
    made: u32,
    /// The discovery server that the ends of the lab ask, where they ask one.
    server: Option<Arc<Server>>,
    /// The name by which the ends of the lab find each other, where they do so.
    name: Option<name::Name>,
    /// What joins the guests of a lab, made before they start.
    under: Option<(LabSpec, Under)>,
    /// For the sockets of guests, once there are some.
    scratch: Option<(PathBuf, EntryId)>,
    /// The logs of the record.
    logs: PathBuf,
    /// CPUs that this program was given.
    allowed: CpuList,
    /// Signals that end the run.
    stop: Stop,
    /// Guests that the record knows: of one name there may be several.
    guests: Vec<VmSpec>,
    /// What could not be removed.
    left: Vec<String>,
}

impl Hosts {
    pub fn new(driver_files: DriverFiles, logs: PathBuf, allowed: &[u32], stop: Stop) -> Hosts {
        Hosts {
            reached: Vec::new(),
            observers: Vec::new(),
            bundle: link::Ship::new(driver_files),
            made: 0,
            server: None,
            name: None,
            under: None,
            scratch: None,
            logs,
            allowed: CpuList(allowed.iter().copied().collect()),
            stop,
            guests: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Reaches the hosts of a lab that are not reached yet; those that were newly reached.
    ///
    /// # Errors
    /// A host cannot be reached or used: who says so, and what to do.
    pub async fn reach(
        &mut self,
        lab: &LabSpec,
        (run_id, journal): (&str, &Journal),
        here: &str,
    ) -> Result<Vec<Arc<Host>>, RunError> {
        let mut new = Vec::new();
        self.leave_others(lab, journal).await;
        new.extend(self.start_guests(lab, (run_id, journal)).await?);
        for end in 0..lab.places() {
            let place = lab.place(end);
            if self.of_end(lab, end).is_some() {
                continue;
            }
            let hosts = match place {
                PlaceSpec::Ssh(spec) => vec![ssh::reach(spec, &mut self.bundle, (run_id, journal), here)?],
                PlaceSpec::Domain(spec) => {
                    let scratch = self.scratch((run_id, journal))?;
                    let agents = 1 + (0..lab.places()).filter(|end| lab.place(*end) == place).count() as u32;
                    let around = domain::Around { scratch: &scratch, agents, stop: &self.stop };
                    vec![domain::reach(spec, &mut self.bundle, (run_id, journal), &around)?]
                }
                PlaceSpec::Pod(spec) => {
                    self.made += 1;
                    let other_node = self.of_end(lab, 0).and_then(|host| host.node.clone());
                    let token = format!("{run_id}-{}", self.made);
                    let mut hosts = pod::reach((spec, wanted(lab, place)), (run_id, journal), (token, other_node))?;
                    for host in &mut hosts {
                        host.observer = self.observer(spec, host, (run_id, journal))?;
                    }
                    hosts
                }
                PlaceSpec::Container(spec) => {
                    self.made += 1;
                    vec![container::reach(spec, (run_id, journal), format!("{run_id}-{}", self.made))?]
                }
                _ => continue,
            };
            let hosts: Vec<Arc<Host>> = hosts.into_iter().map(Arc::new).collect();
            self.reached.extend(hosts.iter().cloned());
            new.extend(hosts);
        }
        Ok(new)
    }

    /// Leaves those that were lost, to be reached anew, and pods that this lab does not want: they hold the CPUs and the
    /// memory that others may need. Pods of one place are made together, and left together.
    async fn leave_others(&mut self, lab: &LabSpec, journal: &Journal) {
        // Guests are plugged into what was made for their lab.
        let same = self.under.as_ref().map(|(of, _)| of) == lab.is_wired().then_some(lab);
        let made = |place: &PlaceSpec| matches!(place, PlaceSpec::Pod(_) | PlaceSpec::Container(_));
        let is_as_wanted = |host: &Host| {
            if let PlaceSpec::Vm(_) = host.place {
                return same && host.answers() && (0..lab.places()).any(|end| *lab.place(end) == host.place);
            }
            if !made(&host.place) {
                return host.answers();
            }
            let together: Vec<&Arc<Host>> = self.reached.iter().filter(|h| h.place == host.place).collect();
            together.len() == wanted(lab, &host.place) && together.iter().all(|h| h.answers())
        };
        let (kept, others): (Vec<_>, Vec<_>) = self.reached.iter().cloned().partition(|host| is_as_wanted(host));
        let guests_lost = others.iter().any(|host| matches!(host.place, PlaceSpec::Vm(_)));
        self.reached = kept;
        for other in others {
            let left = other.leave(journal);
            self.left.extend(left.filter(|_| made(&other.place)));
        }
        if guests_lost {
            // A plug is taken once: the other guest goes too.
            let is_guest = |host: &Arc<Host>| matches!(host.place, PlaceSpec::Vm(_));
            let (guests, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.reached).into_iter().partition(is_guest);
            self.reached = kept;
            self.left.extend(guests.into_iter().filter_map(|guest| guest.leave(journal)));
        }
        if guests_lost || !same {
            self.take_under_down(journal).await;
        }
    }

    async fn take_under_down(&mut self, journal: &Journal) {
        if let Some((_, under)) = self.under.take()
            && let Err(e) = under.down(journal).await
        {
            self.left.push(e.to_string());
        }
    }

    /// The directory for sockets, which is made when somebody wants it.
    fn scratch(&mut self, (run_id, journal): (&str, &Journal)) -> Result<PathBuf, RunError> {
        if let Some((path, _)) = &self.scratch {
            return Ok(path.clone());
        }
        let made = scratch(run_id, journal).map_err(|text| RunError::new(ExitCode::RunFailed, text, ""))?;
        Ok(self.scratch.insert(made).0.clone())
    }

    /// Makes what joins the ends of a lab before they start, and starts the guests that do not run.
    async fn start_guests(
        &mut self,
        lab: &LabSpec,
        (run_id, journal): (&str, &Journal),
    ) -> Result<Vec<Arc<Host>>, RunError> {
        let mut wanted: Vec<vm::Wanted<'_>> = Vec::new();
        for end in 0..lab.places() {
            if let PlaceSpec::Vm(spec) = lab.place(end)
                && self.of_end(lab, end).is_none()
                && !wanted.iter().any(|w| *w.spec == **spec)
            {
                wanted.push(vm::Wanted { end, spec, named: known_as(&mut self.guests, spec) });
            }
        }
        let joined = !lab.is_wired() || self.under.is_some();
        if wanted.is_empty() && joined {
            return Ok(Vec::new());
        }
        let scratch = self.scratch((run_id, journal))?;
        if !joined {
            let under = Under::up((&lab.path, lab.vlan.as_ref()), &lab.ports(), run_id, journal, &scratch).await;
            self.under = Some((lab.clone(), under.map_err(|e| super::lab::lab_failed(&e))?));
        }
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let under = self.under.as_mut().map(|(_, under)| under);
        let shared =
            vm::Shared { lab, under, scratch: &scratch, logs: &self.logs, allowed: &self.allowed, stop: &self.stop };
        let hosts = vm::reach_all(&wanted, shared, &mut self.bundle, (run_id, journal));
        let hosts: Vec<Arc<Host>> = match hosts {
            Ok(hosts) => hosts.into_iter().map(Arc::new).collect(),
            Err(e) => {
                self.take_under_down(journal).await;
                return Err(e);
            }
        };
        self.reached.extend(hosts.iter().cloned());
        Ok(hosts)
    }

    /// What joins the guests.
    pub fn under(&self) -> Option<&Under> {
        self.under.as_ref().map(|(_, under)| under)
    }

    /// Sees to it that what the ends of a trial find each other by is there, and nothing else of the kind. Its hosts are reached.
    ///
    /// # Errors
    /// It does not come to serve: who says so, and what to do.
    pub fn serve(&mut self, trial: &TrialSpec, (run_id, journal): (&str, &Journal)) -> Result<(), RunError> {
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
            self.left.extend(old.leave(journal));
        }
        if let (Some((spec, owner)), None) = (wanted, &self.server) {
            self.made += 1;
            let (token, driver) = (format!("{run_id}-{}", self.made), trial.driver.name.clone());
            let order = ServerOrder { spec: (**spec).clone(), token, owner, driver };
            self.server = Some(Arc::new(Server::make(order, journal)?));
        }
        self.call(trial, (run_id, journal))
    }

    /// The discovery server.
    pub fn server(&self) -> Option<Arc<Server>> {
        self.server.clone()
    }

    /// The host of an end: where each has a pod of its own, those of one side are taken in their order.
    pub fn of_end(&self, lab: &LabSpec, end: usize) -> Option<&Arc<Host>> {
        let place = lab.place(end);
        let before = (0..end).filter(|other| lab.apart && lab.place(*other) == place).count();
        self.reached.iter().filter(|h| h.place == *place).nth(before)
    }

    /// All of them still answer.
    pub fn answer(&self) -> bool {
        self.reached.iter().all(|h| h.answers())
    }

    /// Leaves them; what was asked to be removed is. What could not be is told.
    pub async fn leave(mut self, journal: &Journal) -> Vec<String> {
        self.left.extend(self.name.take().and_then(|name| name.leave(journal)));
        self.left.extend(self.server.take().and_then(|server| server.leave(journal)));
        let reached = std::mem::take(&mut self.reached).into_iter().chain(std::mem::take(&mut self.observers));
        self.left.extend(reached.filter_map(|host| host.leave(journal)));
        self.take_under_down(journal).await;
        if let Some((_, entry)) = self.scratch.take() {
            self.left.extend(journal.undo(entry).err().map(|e| e.to_string()));
        }
        self.left
    }
}

/// The name of a guest in the record: the first of a name has it, others of that name a number behind it.
fn known_as(guests: &mut Vec<VmSpec>, spec: &VmSpec) -> String {
    if !guests.contains(spec) {
        guests.push(spec.clone());
    }
    let alike = guests.iter().filter(|guest| guest.name == spec.name);
    match alike.clone().position(|guest| guest == spec) {
        Some(0) | None => format!("guest {}", spec.name),
        Some(n) => format!("guest {} #{}", spec.name, n + 1),
    }
}

/// A directory for sockets, whose paths are no longer than 107 octets.
fn scratch(run_id: &str, journal: &Journal) -> Result<(PathBuf, EntryId), String> {
    let path = std::env::temp_dir().join(format!("tailbound-{run_id}"));
    let text = path.display().to_string();
    let undo = |inode| Undo::RemoveDirectory { path: text.clone(), inode };
    let entry = journal.before(undo(None)).map_err(|e| e.to_string())?;
    let made = std::fs::DirBuilder::new().mode(0o700).create(&path).and_then(|()| std::fs::metadata(&path));
    let inode = made.map_err(|e| format!("cannot make {text}: {e}"))?.ino();
    journal.update(entry, undo(Some(inode))).map_err(|e| e.to_string())?;
    Ok((path, entry))
}

/// How many pods of a place a lab wants.
fn wanted(lab: &LabSpec, place: &PlaceSpec) -> usize {
    let ends = (0..lab.places()).filter(|end| lab.place(*end) == place).count();
    if lab.apart { ends } else { ends.min(1) }
}

pub(super) fn not_fit(text: impl ToString, mend: impl ToString) -> RunError {
    RunError::new(ExitCode::MachineNotFit, text, mend)
}
