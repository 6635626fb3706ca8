//! A lab with its agents, kept while trials ask for the same.

use super::RunError;
use super::agent::Agent;
use std::path::Path;
use tailbound_host::journal::Journal;
use tailbound_lab::{Lab, LabError, LabSpec};
use tailbound_model::*;
use tailbound_wire::Role;

pub(super) struct Standing {
    pub spec: LabSpec,
    pub lab: Lab,
    /// One agent, or one per end.
    pub agents: Vec<(Vec<Role>, Agent)>,
    pub path: PathFacts,
    started: usize,
}

fn lab_failed(e: &LabError) -> RunError {
    RunError::new(ExitCode::RunFailed, e, "")
}

impl Standing {
    pub async fn up(spec: LabSpec, run_id: &str, journal: &Journal, record: &Path) -> Result<Standing, RunError> {
        let lab = Lab::up(&spec, run_id, journal).await.map_err(|e| lab_failed(&e))?;
        let path = match lab.probe().await {
            Ok(path) => path,
            Err(e) => {
                let _ = lab.down(journal).await;
                return Err(lab_failed(&e));
            }
        };
        let mut standing = Standing { spec, lab, agents: Vec::new(), path, started: 0 };
        if let Err(e) = standing.start_agents(run_id, journal, record).await {
            standing.down(journal).await?;
            return Err(e);
        }
        Ok(standing)
    }

    /// Starts the agents that are not there: all at first, and one that was lost before.
    pub async fn start_agents(&mut self, run_id: &str, journal: &Journal, record: &Path) -> Result<(), RunError> {
        let wanted: &[&[Role]] = if self.spec.ping == PlaceSpec::SameProcess {
            &[&[Role::Ping, Role::Pong]]
        } else {
            &[&[Role::Pong], &[Role::Ping]]
        };
        let program = std::env::current_exe()
            .map_err(|e| RunError::new(ExitCode::Unexpected, format!("cannot find this program: {e}"), ""))?;
        for roles in wanted {
            if self.agents.iter().any(|(r, _)| r == roles) {
                continue;
            }
            let name = roles.iter().map(|r| r.word()).collect::<Vec<_>>().join("+");
            let end = usize::from(roles[0] == Role::Pong);
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
            self.agents.push((roles.to_vec(), agent));
        }
        Ok(())
    }

    pub async fn down(self, journal: &Journal) -> Result<(), RunError> {
        for (_, agent) in self.agents {
            agent.end(journal).await;
        }
        self.lab.down(journal).await.map_err(|e| lab_failed(&e))
    }

    /// The run is broken off: agents save what they hold. The ping end stops first: what it sent is still answered.
    pub async fn abandon(mut self, journal: &Journal) -> Result<(), RunError> {
        self.agents.sort_by_key(|(roles, _)| !roles.contains(&Role::Ping));
        for (_, agent) in self.agents {
            agent.abandon(journal).await;
        }
        self.lab.down(journal).await.map_err(|e| lab_failed(&e))
    }
}
