//! A lab with its agents and the settings of its hosts. The lab is kept while the next trial asks for the same lab.

use super::agent::{Agent, AgentOrder};
use super::context::RunContext;
use super::places::{Host, Hosts, Server};
use super::{RunError, knobs};
use std::sync::Arc;
use tailbound_host::journal::JournalError;
use tailbound_host::knob::{Knobs, Restored};
use tailbound_lab::{Far, Lab, LabSpec};
use tailbound_model::*;
use tailbound_wire::{Role, StreamPath};

/// A lab (the places and the path of a trial) that is built, with its agents.
pub(super) struct ActiveLab {
    pub spec: LabSpec,
    pub lab: Lab,
    /// Agents, each with the list of its ends (for example ping and pong): one agent for all ends, or one agent for
    /// each end.
    pub agents: Vec<(Vec<Role>, Agent)>,
    pub path: PathFacts,
    /// Host settings that the trials in this lab ask for.
    pub host: Vec<KnobSpec>,
    pub knobs: Knobs,
    /// Settings that were changed on hosts other than the controller's host.
    remote_settings: Vec<KnobDone>,
    /// Index of the entry for the host settings in the record; `None` = no setting is changed.
    pub settings: Option<usize>,
    /// Host of each place of the lab; `None` = the place is on this host.
    hosts: Vec<Option<Arc<Host>>>,
    /// Guests in which no end runs, each with the end whose guest it is a neighbour of.
    neighbours: Vec<(&'static str, Arc<Host>)>,
    discovery: Discovery,
    /// Discovery server that the ends of the lab use, if there is one.
    pub server: Option<Arc<Server>>,
    /// DNS name of the lab's pods, if there is one.
    pub name: Option<String>,
    /// Number of agents that were started in this lab so far.
    started: usize,
}

/// Iterates over the hosts other than the controller's host, each once. Containers are left out, because they share
/// the settings of the controller's host.
fn each(hosts: &[Option<Arc<Host>>]) -> impl Iterator<Item = &Arc<Host>> {
    let known = |end: usize, host: &Arc<Host>| hosts[..end].iter().flatten().any(|h| Arc::ptr_eq(h, host));
    hosts
        .iter()
        .enumerate()
        .filter_map(move |(end, host)| host.as_ref().filter(|host| host.place.is_remote() && !known(end, host)))
}

/// Changes the settings of a trial on each other host that has an end.
fn set_remote(hosts: &[Option<Arc<Host>>], run_id: &str, settings: &[KnobSpec]) -> Result<Vec<KnobDone>, RunError> {
    let asked = each(hosts).map(|host| (host, knobs::asked_there(&host.place, settings)));
    let asked = asked.filter(|(_, settings)| !settings.is_empty());
    Ok(asked.map(|(host, settings)| host.set(run_id, &settings)).collect::<Result<Vec<_>, _>>()?.concat())
}

impl ActiveLab {
    /// Changes the settings of the trial, builds its lab and starts the agents.
    ///
    /// # Errors
    /// A step fails. In this case all steps before it are undone.
    pub async fn up(trial: &TrialSpec, context: &RunContext, reached: &Hosts) -> Result<ActiveLab, RunError> {
        let (run_id, journal) = (&context.run_id, &context.journal);
        let (spec, mut knobs) = (LabSpec::from(trial), Knobs::default());
        let hosts: Vec<Option<Arc<Host>>> = (0..spec.places()).map(|end| reached.of_end(&spec, end).cloned()).collect();
        let far: Vec<Option<Arc<dyn Far>>> = hosts.iter().map(|h| h.clone().map(|h| h as Arc<dyn Far>)).collect();
        let asked_here = &knobs::asked_here(trial)[..];
        if let Err(e) = knobs::set_host(&mut knobs, asked_here, journal) {
            return Err(knobs::give_up(knobs, journal, e));
        }
        let lab = match Lab::up_with(&spec, run_id, journal, (&far, reached.wiring())).await {
            Ok(lab) => lab,
            Err(e) => return Err(knobs::give_up(knobs, journal, e.into())),
        };
        let set = knobs::set_network(&mut knobs, asked_here, (&spec, &lab), journal);
        let set = set.and_then(|()| set_remote(&hosts, run_id, &trial.host));
        let remote_settings = set.as_ref().cloned().unwrap_or_default();
        let path = match set {
            Ok(_) => lab.probe().await.map_err(RunError::from),
            Err(e) => Err(e),
        };
        let path = match path {
            Ok(path) => path,
            Err(e) => {
                each(&hosts).for_each(|host| drop(host.restore_settings()));
                // The settings keep the namespaces of the lab open, so they are restored first.
                let error = knobs::give_up(knobs, journal, e);
                let _ = lab.down(journal).await;
                return Err(error);
            }
        };
        let host = trial.host.clone();
        let mut active = ActiveLab {
            lab,
            agents: Vec::new(),
            path,
            host,
            knobs,
            remote_settings,
            settings: None,
            neighbours: reached.neighbours(&spec),
            spec,
            hosts,
            discovery: trial.discovery,
            server: reached.server(),
            name: reached.name(),
            started: 0,
        };
        if let Err(e) = active.start_agents(context).await {
            let ActiveLab { lab, agents, knobs, hosts, .. } = active;
            for (_, agent) in agents {
                agent.end(context).await;
            }
            each(&hosts).for_each(|host| drop(host.restore_settings()));
            let error = knobs::give_up(knobs, journal, e);
            let _ = lab.down(journal).await;
            return Err(error);
        }
        Ok(active)
    }

    /// All host settings that are in force for the lab, on this host and on other hosts.
    pub fn in_force(&self) -> Vec<KnobDone> {
        self.knobs.settings().into_iter().chain(self.remote_settings.iter().cloned()).collect()
    }

    /// Lists the settings and properties of places that are no longer as the trial asks, as sentences.
    pub fn changed(&self) -> Vec<String> {
        let remote = each(&self.hosts).filter(|_| !self.remote_settings.is_empty()).flat_map(|host| host.changed());
        let places = each(&self.hosts).flat_map(|host| host.differences());
        self.knobs.verify().into_iter().chain(remote).chain(places).collect()
    }

    /// True if this lab is the lab that a trial asks for.
    pub fn suits(&self, trial: &TrialSpec) -> bool {
        let served = self.server.as_ref().is_none_or(|server| server.driver() == trial.driver.name);
        self.spec == LabSpec::from(trial) && self.host == trial.host && self.discovery == trial.discovery && served
    }

    /// Other host on which a place of the lab is; `None` = the place is on this host.
    pub fn host_at(&self, place: usize) -> Option<&Arc<Host>> {
        self.hosts[place].as_ref()
    }

    /// Other host on which an end runs; `None` = the end is a process of this host.
    pub fn host_of(&self, role: Role) -> Option<&Arc<Host>> {
        self.hosts[self.place_of(role)].as_ref()
    }

    /// Iterates over the hosts of the lab other than the controller's host, each once.
    pub fn others(&self) -> impl Iterator<Item = &Arc<Host>> {
        each(&self.hosts)
    }

    /// Guests in which no end runs, each with the end, `ping` or `pong`, whose guest it is a neighbour of.
    pub fn neighbours(&self) -> &[(&'static str, Arc<Host>)] {
        &self.neighbours
    }

    /// CPU time of the controller and of the processes that pass on its control streams to other hosts, for example
    /// `ssh`, in ns.
    pub fn cpu_ns(&self) -> i64 {
        let carriers = self.agents.iter().filter_map(|(_, agent)| agent.carrier());
        let carriers = carriers.chain(
            each(&self.hosts).chain(self.neighbours.iter().map(|(_, host)| host)).filter_map(|host| host.carrier()),
        );
        let carried: i64 = carriers.filter_map(tailbound_host::cpu_ns_of).sum();
        tailbound_host::process_cpu_ns() + carried
    }

    /// Makes the error for an end on another host that cannot run on the CPUs that the study asks for; `None` = all
    /// ends can run on their CPUs.
    pub fn lack_of_cpus(&self, trial: &TrialSpec) -> Option<RunError> {
        let hosts = self.hosts.iter().enumerate().filter_map(|(place, host)| Some((place, host.as_ref()?)));
        let mut hosts = hosts.map(|(place, host)| match self.spec.sends(place) {
            true => (&trial.ping, "ping", host),
            false => (&trial.pong, "pong", host),
        });
        hosts.find_map(|(end, name, host)| {
            let all = host.pinnable_cpus();
            let cpu = end.scheduling.named_cpus().into_iter().find(|cpu| !all.0.contains(cpu))?;
            let text = format!("CPU {cpu} does not exist or is not allowed on {} ({name})", host.name());
            let remedy = format!("the host has the CPUs {all}: write `ends: {{ {name}: {{ cpus: ... }} }}`");
            Some(RunError::new(ExitCode::MachineNotFit, text, remedy))
        })
    }

    /// Index in the lab of the place of an end.
    pub fn place_of(&self, role: Role) -> usize {
        match role {
            Role::Ping => 0,
            Role::Publisher(n) if self.spec.apart => self.spec.subscribers as usize + usize::from(n) - 1,
            Role::Publisher(_) => 0,
            Role::Further(n) if self.spec.apart => usize::from(n),
            Role::Pong | Role::Further(_) => 1,
        }
    }

    /// Computes the addresses of the loads `udp-stream` of a trial.
    ///
    /// # Errors
    /// No port is free for a load.
    pub fn streams(&self, trial: &TrialSpec) -> Result<Vec<StreamPath>, RunError> {
        let streams = trial.loads.iter().enumerate().filter(|(_, l)| matches!(l.run, LoadKind::UdpStream(_)));
        let path = |(load, spec): (usize, &LoadSpec)| {
            // Each neighbour that sends the streams has an address of its own.
            let end = spec.of_neighbours().unwrap_or(&spec.at);
            let from = usize::from(end == Role::Pong.word());
            let port = self.lab.free_port(1 - from).map_err(|e| {
                let text = format!("load `{}`: no port is free for its sink: {e}", spec.run);
                RunError::new(ExitCode::RunFailed, text, "")
            })?;
            let to = (self.lab.end(1 - from).address, port).into();
            Ok(StreamPath { load, from: self.lab.end(from).address, to })
        };
        streams.map(path).collect()
    }

    /// Starts all agents before the first trial, and the agents that were lost before each later trial.
    ///
    /// # Errors
    /// An agent cannot be started.
    pub async fn start_agents(&mut self, context: &RunContext) -> Result<(), RunError> {
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
                .open(context.logs.join(format!("agent-{name}.log")))
                .map_err(|e| {
                    RunError::new(ExitCode::RunFailed, format!("cannot open the log of agent {name}: {e}"), "")
                })?;
            let token = context.token(self.started);
            self.started += 1;
            let remote_silence = self.host_of(roles[0]).map(|host| host.patience);
            let agent = Agent::start(AgentOrder { command, name, token, log, remote_silence }, context).await?;
            // Receivers come first in the list, so that they listen before the first message.
            self.agents.insert(at.min(self.agents.len()), (roles, agent));
        }
        Ok(())
    }

    /// Ends the agents, restores the host settings and removes the lab.
    pub async fn down(self, context: &RunContext) -> (Restored, Result<(), RunError>) {
        for (_, agent) in self.agents {
            agent.end(context).await;
        }
        let mut back = self.knobs.restore(&context.journal);
        for host in each(&self.hosts) {
            let remote = host.restore_settings();
            back.settings.extend(remote.settings);
            back.left_alone.extend(remote.left_alone);
            back.failed.extend((!remote.failed.is_empty()).then_some(JournalError::NotUndone(remote.failed)));
        }
        (back, self.lab.down(&context.journal).await.map_err(RunError::from))
    }

    /// Ends the lab when a run is aborted: the agents save their samples. The ping end stops first, so that its last
    /// messages are answered.
    pub async fn abandon(mut self, context: &RunContext) -> (Restored, Result<(), RunError>) {
        let mut agents = std::mem::take(&mut self.agents);
        agents.sort_by_key(|(roles, _)| !roles.contains(&Role::Ping));
        for (_, agent) in agents {
            agent.abandon(context).await;
        }
        self.down(context).await
    }
}
