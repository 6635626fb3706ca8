//! Hosts that the user's own `ssh` reaches.
//!
//! One connection for each is made first and held open by this process's pipe; all that follows (the bundle, the agents,
//! the one that answers for the host) goes through it, so that there is one login. Nothing of it outlives this process:
//! what runs there ends with its stream, or when it has heard nothing for the time of its lease.

use super::host::{Help, Host, Known, Way};
use super::link::{Link, Ship};
use super::shell::quoted;
use crate::controller::RunError;
use std::process::Command;
use tailbound_host::journal::Journal;
use tailbound_model::{PlaceSpec, SshSpec};

/// A host by ssh.
struct Ssh {
    link: Link,
    /// The words that start Tailbound there.
    words: Vec<String>,
    /// The bundle there, if it is to be removed.
    remove: Option<String>,
}

/// Reaches a host.
///
/// # Errors
/// It cannot be reached or used: who says so, and what to do.
pub(super) fn reach(
    spec: &SshSpec,
    ship: &mut Ship,
    (run_id, journal): (&str, &Journal),
    here: &str,
) -> Result<Host, RunError> {
    let way = way(spec, ship, (run_id, journal))?;
    let named = if spec.host == here { format!("{here} (ssh)") } else { spec.host.clone() };
    let program = spec.program.as_ref().map_or_else(String::new, |p| format!(" ({p})"));
    let help = Help {
        program: &program,
        by_hand: "run it there by hand to see why",
        other_release: "install the same release there, or leave `program` out: it is then copied",
    };
    let called = format!("host {}", spec.host);
    Host::over(Known { way, place: PlaceSpec::Ssh(spec.clone()), called, named }, (run_id, journal), &help)
}

/// The way to a host: logged in, and the bundle there.
///
/// # Errors
/// As [`reach`].
pub(super) fn way(
    spec: &SshSpec,
    ship: &mut Ship,
    (run_id, journal): (&str, &Journal),
) -> Result<Box<dyn Way>, RunError> {
    let link = Link::open(spec, &format!("{run_id}-{}", spec.host), journal)?;
    let words = match &spec.program {
        Some(program) => Ok((None, vec![program.clone()])),
        None => ship.to(&link, spec, run_id).map(|(directory, words)| (Some(directory), words)),
    };
    let (directory, words) = match words {
        Ok(words) => words,
        Err(e) => {
            link.close(journal);
            return Err(e);
        }
    };
    Ok(Box::new(Ssh { link, words, remove: directory.filter(|_| spec.remove) }))
}

impl Way for Ssh {
    fn program(&self) -> Command {
        let mut command = self.link.ssh();
        command.arg("exec").args(self.words.iter().map(|w| quoted(w)));
        command
    }

    fn leave(self: Box<Self>, journal: &Journal) -> Option<String> {
        let left = self.remove.as_ref().and_then(|directory| {
            let said = match self.link.run(&format!("rm -rf {}", quoted(directory))) {
                Ok((true, _)) => return None,
                Ok((false, said)) => said.trim().to_owned(),
                Err(e) => e.to_string(),
            };
            Some(format!("{directory} is still there: {said}"))
        });
        self.link.close(journal);
        left
    }
}
