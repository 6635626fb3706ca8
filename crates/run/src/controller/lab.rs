//! A lab with its agents and the settings of the host, kept while trials ask for the same.

use super::agent::Agent;
use super::{RunError, knobs};
use std::path::Path;
use tailbound_host::journal::Journal;
use tailbound_host::knob::{Knobs, PutBack};
use tailbound_lab::{Lab, LabError, LabSpec};
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
    /// Entry of the settings in the record.
    pub settings: Option<usize>,
    started: usize,
}

fn lab_failed(e: &LabError) -> RunError {
    RunError::new(ExitCode::RunFailed, e, "")
}

impl Standing {
    /// Sets what the trial asks of the host, builds its lab and starts the agents. On any error all of it is taken back.
    pub async fn up(trial: &TrialSpec, run_id: &str, journal: &Journal, record: &Path) -> Result<Standing, RunError> {
        let (spec, mut knobs) = (LabSpec::from(trial), Knobs::default());
        if let Err(e) = knobs::set_host(&mut knobs, &trial.host, journal) {
            return Err(knobs::give_up(knobs, journal, e));
        }
        let lab = match Lab::up(&spec, run_id, journal).await {
            Ok(lab) => lab,
            Err(e) => return Err(knobs::give_up(knobs, journal, lab_failed(&e))),
        };
        let set = knobs::set_network(&mut knobs, &trial.host, (&spec, &lab), journal);
        let path = match set {
            Ok(()) => lab.probe().await.map_err(|e| lab_failed(&e)),
            Err(e) => Err(e),
        };
        let path = match path {
            Ok(path) => path,
            Err(e) => {
                // They hold the namespaces of the lab.
                let error = knobs::give_up(knobs, journal, e);
                let _ = lab.down(journal).await;
                return Err(error);
            }
        };
        let host = trial.host.clone();
        let mut standing = Standing { spec, lab, agents: Vec::new(), path, host, knobs, settings: None, started: 0 };
        if let Err(e) = standing.start_agents(run_id, journal, record).await {
            let Standing { lab, agents, knobs, .. } = standing;
            for (_, agent) in agents {
                agent.end(journal).await;
            }
            let error = knobs::give_up(knobs, journal, e);
            let _ = lab.down(journal).await;
            return Err(error);
        }
        Ok(standing)
    }

    /// It is what a trial asks for.
    pub fn suits(&self, trial: &TrialSpec) -> bool {
        self.spec == LabSpec::from(trial) && self.host == trial.host
    }

    /// The place of an end in the lab.
    pub fn place_of(&self, role: Role) -> usize {
        match role {
            Role::Ping => 0,
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
            Role::receiving(self.spec.subscribers).chain([Role::Ping]).map(|role| vec![role]).collect()
        };
        let program = std::env::current_exe()
            .map_err(|e| RunError::new(ExitCode::Unexpected, format!("cannot find this program: {e}"), ""))?;
        for (at, roles) in wanted.into_iter().enumerate() {
            if self.agents.iter().any(|(r, _)| *r == roles) {
                continue;
            }
            let name = roles.iter().map(|r| r.word()).collect::<Vec<_>>().join("+");
            let end = self.place_of(roles[0]);
            let command = self.lab.command(end, program.as_os_str());
            let log = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(record.join("logs").join(format!("agent-{name}.log")))
                .map_err(|e| {
                    RunError::new(ExitCode::RunFailed, format!("cannot open the log of agent {name}: {e}"), "")
                })?;
            let token = format!("{run_id}-{}", self.started);
            self.started += 1;
            let agent = Agent::start(command, &name, &token, journal, log).await?;
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
        let back = self.knobs.put_back(journal);
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
