//! Places that are hosts to which the user's own `ssh` connects.
//!
//! For each host, one connection is opened first, and a pipe of this process keeps it open. The bundle, the agents and
//! the host agent all use this connection, so that the user logs in only once. No process on the host outlives this
//! process: each process ends when its stream ends, or when it has received nothing for a fixed time (its lease).

use super::host::{Candidate, Help, Host};
use super::kind::{Lifetime, PlaceKind, Reach};
use super::place::Place;
use super::ssh_command::quoted;
use super::ssh_link::{Link, Ship};
use crate::controller::RunError;
use crate::controller::context::RunContext;
use std::process::Command;
use tailbound_model::{PlaceSpec, SshSpec};

/// A host to which the controller connects with ssh.
struct Ssh {
    link: Link,
    /// Words of the command line that starts Tailbound on the host.
    words: Vec<String>,
    /// Directory of Tailbound's bundle on the host, if the directory is to be removed at the end.
    remove: Option<String>,
}

impl PlaceKind for SshSpec {
    fn reach(&self, reach: Reach<'_>) -> Result<Vec<Host>, RunError> {
        let reached = log_in(self, &mut reach.hosts.bundle, reach.context)?;
        Ok(vec![start(self, reached, reach.context, reach.here)?])
    }

    fn lifetime(&self) -> Lifetime {
        Lifetime::Run
    }
}

/// Starts the host agent, which answers questions about the host.
fn start(spec: &SshSpec, reached: Box<dyn Place>, context: &RunContext, here: &str) -> Result<Host, RunError> {
    let named = if spec.host == here { format!("{here} (ssh)") } else { spec.host.clone() };
    let program = spec.program.as_ref().map_or_else(String::new, |p| format!(" ({p})"));
    let help = Help {
        program: &program,
        by_hand: "run Tailbound on the host by hand to see the reason",
        other_release: "install the same release on the host, or leave `program` out: Tailbound then copies itself to \
                        the host",
    };
    let called = format!("host {}", spec.host);
    Host::start(Candidate { reached, place: PlaceSpec::Ssh(spec.clone()), called, named }, context, &help)
}

/// Opens the ssh connection to a host, and copies Tailbound's bundle to the host if the study names no program on that
/// host.
///
/// # Errors
/// ssh cannot connect to the host, or the bundle cannot be copied.
pub(super) fn log_in(spec: &SshSpec, ship: &mut Ship, context: &RunContext) -> Result<Box<dyn Place>, RunError> {
    let link = Link::open(spec, &context.token(&spec.host), context)?;
    let words = match &spec.program {
        Some(program) => Ok((None, vec![program.clone()])),
        None => ship.to(&link, spec, &context.run_id).map(|(directory, words)| (Some(directory), words)),
    };
    let (directory, words) = match words {
        Ok(words) => words,
        Err(e) => {
            link.close(context);
            return Err(e);
        }
    };
    Ok(Box::new(Ssh { link, words, remove: directory.filter(|_| spec.remove) }))
}

impl Place for Ssh {
    fn command(&self) -> Command {
        let mut command = self.link.ssh();
        command.arg("exec").args(self.words.iter().map(|w| quoted(w)));
        command
    }

    fn leave(self: Box<Self>, context: &RunContext) -> Option<String> {
        let left = self.remove.as_ref().and_then(|directory| {
            let why = match self.link.run(&format!("rm -rf {}", quoted(directory))) {
                Ok((true, _)) => return None,
                Ok((false, written)) => written.trim().to_owned(),
                Err(e) => e.to_string(),
            };
            Some(format!("{directory} is still there: {why}"))
        });
        self.link.close(context);
        left
    }
}
