//! A lab with its agents and the settings of the host, kept while trials ask for the same.

use super::agent::Agent;
use super::remote::{Host, Hosts, Server};
use super::{RunError, knobs};
use std::path::Path;
use std::sync::Arc;
use tailbound_host::journal::{Journal, JournalError};
use tailbound_host::knob::{Knobs, PutBack};
use tailbound_lab::{Far, Lab, LabError, LabSpec};
use tailbound_model::*;
use tailbound_wire::{Role, StreamPath};

pub(super) struct Standing {
    pub spec: LabSpec,
    pub lab: Lab,
    /// One agent, or one per end.
    pub agents: Vec<(Vec<Role>, Agent)>,
    pub path: PathFacts,
    /// What is asked of the host.
    pub host: Vec<KnobSpec>,
    pub knobs: Knobs,
    /// What was set on other hosts.
    there: Vec<KnobDone>,
    /// Entry of the settings in the record.
    pub settings: Option<usize>,
    /// The other hosts of its places, where an end is not here.
    hosts: Vec<Option<Arc<Host>>>,
    discovery: Discovery,
    /// The discovery server of its ends.
    pub server: Option<Arc<Server>>,
    /// The name of all of its pods.
    pub name: Option<String>,
    started: usize,
}

pub(super) fn lab_failed(e: &LabError) -> RunError {
    let lacks = matches!(e, LabError::Lacks(_));
    RunError::new(if lacks { ExitCode::MachineNotFit } else { ExitCode::RunFailed }, e, "")
}

/// Each other host once; the settings of a container are those of this one.
fn each(hosts: &[Option<Arc<Host>>]) -> impl Iterator<Item = &Arc<Host>> {
    let known = |end: usize, host: &Arc<Host>| hosts[..end].iter().flatten().any(|h| Arc::ptr_eq(h, host));
    hosts
        .iter()
        .enumerate()
        .filter_map(move |(end, host)| host.as_ref().filter(|host| host.place.is_remote() && !known(end, host)))
}

/// What a trial asks of the host is asked of each that has an end of it.
fn set_there(hosts: &[Option<Arc<Host>>], run_id: &str, settings: &[KnobSpec]) -> Result<Vec<KnobDone>, RunError> {
    let asked = each(hosts).map(|host| (host, knobs::asked_there(&host.place, settings)));
    let asked = asked.filter(|(_, settings)| !settings.is_empty());
    Ok(asked.map(|(host, settings)| host.set(run_id, &settings)).collect::<Result<Vec<_>, _>>()?.concat())
}

impl Standing {
    /// Sets what the trial asks of the host, builds its lab and starts the agents. On any error all of it is taken back.
    pub async fn up(
        trial: &TrialSpec,
        (run_id, journal): (&str, &Journal),
        record: &Path,
        reached: &Hosts,
    ) -> Result<Standing, RunError> {
        let (spec, mut knobs) = (LabSpec::from(trial), Knobs::default());
        let hosts: Vec<Option<Arc<Host>>> = (0..spec.places()).map(|end| reached.of_end(&spec, end).cloned()).collect();
        let far: Vec<Option<Arc<dyn Far>>> = hosts.iter().map(|h| h.clone().map(|h| h as Arc<dyn Far>)).collect();
        let asked_here = &knobs::asked_here(trial)[..];
        if let Err(e) = knobs::set_host(&mut knobs, asked_here, journal) {
            return Err(knobs::give_up(knobs, journal, e));
        }
        let lab = match Lab::up_with(&spec, run_id, journal, (&far, reached.under())).await {
            Ok(lab) => lab,
            Err(e) => return Err(knobs::give_up(knobs, journal, lab_failed(&e))),
        };
        let set = knobs::set_network(&mut knobs, asked_here, (&spec, &lab), journal);
        let set = set.and_then(|()| set_there(&hosts, run_id, &trial.host));
        let there = set.as_ref().cloned().unwrap_or_default();
        let path = match set {
            Ok(_) => lab.probe().await.map_err(|e| lab_failed(&e)),
            Err(e) => Err(e),
        };
        let path = match path {
            Ok(path) => path,
            Err(e) => {
                each(&hosts).for_each(|host| drop(host.put_back()));
                // They hold the namespaces of the lab.
                let error = knobs::give_up(knobs, journal, e);
                let _ = lab.down(journal).await;
                return Err(error);
            }
        };
        let host = trial.host.clone();
        let mut standing = Standing {
            spec,
            lab,
            agents: Vec::new(),
            path,
            host,
            knobs,
            there,
            settings: None,
            hosts,
            discovery: trial.discovery,
            server: reached.server(),
            name: reached.name(),
            started: 0,
        };
        if let Err(e) = standing.start_agents(run_id, journal, record).await {
            let Standing { lab, agents, knobs, hosts, .. } = standing;
            for (_, agent) in agents {
                agent.end(journal).await;
            }
            each(&hosts).for_each(|host| drop(host.put_back()));
            let error = knobs::give_up(knobs, journal, e);
            let _ = lab.down(journal).await;
            return Err(error);
        }
        Ok(standing)
    }

    /// All settings in force.
    pub fn in_force(&self) -> Vec<KnobDone> {
        self.knobs.settings().into_iter().chain(self.there.iter().cloned()).collect()
    }

    /// What of them is not any more as it was set.
    pub fn changed(&self) -> Vec<String> {
        let there = each(&self.hosts).filter(|_| !self.there.is_empty()).flat_map(|host| host.changed());
        let places = each(&self.hosts).flat_map(|host| host.differs());
        self.knobs.verify().into_iter().chain(there).chain(places).collect()
    }

    /// It is what a trial asks for.
    pub fn suits(&self, trial: &TrialSpec) -> bool {
        let served = self.server.as_ref().is_none_or(|server| server.driver() == trial.driver.name);
        self.spec == LabSpec::from(trial) && self.host == trial.host && self.discovery == trial.discovery && served
    }

    /// The other host at a place of the lab.
    pub fn host_at(&self, place: usize) -> Option<&Arc<Host>> {
        self.hosts[place].as_ref()
    }

    /// The other host that an end is on.
    pub fn host_of(&self, role: Role) -> Option<&Arc<Host>> {
        self.hosts[self.place_of(role)].as_ref()
    }

    /// The other hosts, each once.
    pub fn others(&self) -> impl Iterator<Item = &Arc<Host>> {
        each(&self.hosts)
    }

    /// CPU time of this process, and of those that carry its streams to other hosts.
    pub fn cpu_ns(&self) -> i64 {
        let carriers = self.agents.iter().filter_map(|(_, agent)| agent.carrier());
        let carriers = carriers.chain(each(&self.hosts).filter_map(|host| host.carrier()));
        let carried: i64 = carriers.filter_map(tailbound_host::cpu_ns_of).sum();
        tailbound_host::process_cpu_ns() + carried
    }

    /// Why an end of a trial cannot have its CPUs on another host.
    pub fn lack_of_cpus(&self, trial: &TrialSpec) -> Option<RunError> {
        let hosts = self.hosts.iter().enumerate().filter_map(|(place, host)| Some((place, host.as_ref()?)));
        let mut hosts = hosts.map(|(place, host)| match self.spec.sends(place) {
            true => (&trial.ping, "ping", host),
            false => (&trial.pong, "pong", host),
        });
        hosts.find_map(|(end, name, host)| {
            let cpu = end.scheduling.named_cpus().into_iter().find(|cpu| !host.cpus.contains(cpu))?;
            let all = CpuList(host.cpus.iter().copied().collect());
            let text = format!("CPU {cpu} does not exist or is not allowed on {} ({name})", host.name());
            let mend = format!("there are {all}: write `ends: {{ {name}: {{ cpus: ... }} }}`");
            Some(RunError::new(ExitCode::MachineNotFit, text, mend))
        })
    }

    /// The place of an end in the lab.
    pub fn place_of(&self, role: Role) -> usize {
        match role {
            Role::Ping => 0,
            Role::Publisher(n) if self.spec.apart => self.spec.subscribers as usize + usize::from(n) - 1,
            Role::Publisher(_) => 0,
            Role::Further(n) if self.spec.apart => usize::from(n),
            Role::Pong | Role::Further(_) => 1,
        }
    }

    /// From where to where the loads `udp-stream` of a trial send.
    ///
    /// # Errors
    /// No port is free.
    pub fn streams(&self, trial: &TrialSpec) -> Result<Vec<StreamPath>, RunError> {
        let streams = trial.loads.iter().enumerate().filter(|(_, l)| matches!(l.run, LoadKind::UdpStream(_)));
        let path = |(load, spec): (usize, &LoadSpec)| {
            let from = usize::from(spec.at == Role::Pong.word());
            let port = self.lab.free_port(1 - from).map_err(|e| {
                let text = format!("load `{}`: there is no port for its sink: {e}", spec.run);
                RunError::new(ExitCode::RunFailed, text, "")
            })?;
            let to = (self.lab.end(1 - from).address, port).into();
            Ok(StreamPath { load, from: self.lab.end(from).address, to })
        };
        streams.map(path).collect()
    }

    /// Starts the agents that are not there: all at first, and one that was lost before.
    pub async fn start_agents(&mut self, run_id: &str, journal: &Journal, record: &Path) -> Result<(), RunError> {
        let wanted: Vec<Vec<Role>> = if self.spec.ping == PlaceSpec::SameProcess {
            vec![vec![Role::Ping, Role::Pong]]
        } else {
            let sending = Role::further_publishers(self.spec.publishers).chain([Role::Ping]);
            Role::receiving(self.spec.subscribers).chain(sending).map(|role| vec![role]).collect()
        };
        let no_program =
            |e: std::io::Error| RunError::new(ExitCode::Unexpected, format!("cannot find this program: {e}"), "");
        for (at, roles) in wanted.into_iter().enumerate() {
            if self.agents.iter().any(|(r, _)| *r == roles) {
                continue;
            }
            let name = roles.iter().map(|r| r.word()).collect::<Vec<_>>().join("+");
            let end = self.place_of(roles[0]);
            let command = self.lab.command(end, tailbound_host::own_program().map_err(no_program)?);
            let log = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(record.join("logs").join(format!("agent-{name}.log")))
                .map_err(|e| {
                    RunError::new(ExitCode::RunFailed, format!("cannot open the log of agent {name}: {e}"), "")
                })?;
            let token = format!("{run_id}-{}", self.started);
            self.started += 1;
            let far = self.host_of(roles[0]).map(|host| host.patience);
            let agent = Agent::start(command, &name, &token, journal, (log, far)).await?;
            // In their order: those that receive listen before the first message.
            self.agents.insert(at.min(self.agents.len()), (roles, agent));
        }
        Ok(())
    }

    /// Ends the agents, puts the settings back, takes the lab down.
    pub async fn down(self, journal: &Journal) -> (PutBack, Result<(), RunError>) {
        for (_, agent) in self.agents {
            agent.end(journal).await;
        }
        let mut back = self.knobs.put_back(journal);
        for host in each(&self.hosts) {
            let there = host.put_back();
            back.settings.extend(there.settings);
            back.left_alone.extend(there.left_alone);
            back.failed.extend((!there.failed.is_empty()).then_some(JournalError::NotUndone(there.failed)));
        }
        (back, self.lab.down(journal).await.map_err(|e| lab_failed(&e)))
    }

    /// The run is broken off: agents save what they hold. The ping end stops first: what it sent is still answered.
    pub async fn abandon(mut self, journal: &Journal) -> (PutBack, Result<(), RunError>) {
        let mut agents = std::mem::take(&mut self.agents);
        agents.sort_by_key(|(roles, _)| !roles.contains(&Role::Ping));
        for (_, agent) in agents {
            agent.abandon(journal).await;
        }
        self.down(journal).await
    }
}
