//! DDS Security of a run: certificates and signed documents for the ends, and whether drivers can use them.
//!
//! The files exist in memory only. The controller gives each end its own files in the order for a trial, over the stream
//! of the end's agent, whatever the place of the end is.

mod documents;
mod in_force;
mod openssl;
mod user_files;

use super::RunError;
use openssl::Identity;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tailbound_driver::Description;
use tailbound_model::*;
use tailbound_wire::{EndSecurity, Role};

pub(super) use in_force::{differences, facts, hint, record};

/// Driver option whose presence says that the driver has DDS Security.
const OPTION: &str = "identity_certificate";
/// Transports of drivers that do not send what they protect over a network.
const NOT_PROTECTED: [&str; 2] = ["data-sharing", "intra-process"];

/// Certificates and signed documents of all ends of a run.
pub(super) struct Security {
    files: BTreeMap<Key, EndSecurity>,
}

/// What decides which files an end gets: the directory of the user, the governance, the name of the end.
type Key = (Option<String>, Governance, &'static str);

impl Security {
    /// Makes the files for all conditions of a plan that can be run and have DDS Security.
    ///
    /// # Errors
    /// The program `openssl` is missing or fails, or the files of the user are wrong.
    pub fn make(plan: &Plan) -> Result<Security, RunError> {
        let mut wanted: BTreeMap<Option<String>, (BTreeSet<Governance>, BTreeSet<&'static str>)> = BTreeMap::new();
        for spec in plan.conditions.iter().filter(|c| c.not_possible.is_none()).map(|c| &c.spec) {
            let Some(asked) = &spec.security else { continue };
            let (governances, ends) = wanted.entry(asked.files.clone()).or_default();
            governances.insert(asked.governance);
            ends.extend(roles(spec).map(Role::word));
        }
        let mut files = BTreeMap::new();
        for (directory, (governances, ends)) in wanted {
            for (key, of_end) in of_source(directory, &governances, &ends).map_err(refused)? {
                files.insert(key, of_end);
            }
        }
        Ok(Security { files })
    }

    /// The files of an end; `None` = the trial has no DDS Security.
    pub fn of(&self, spec: &TrialSpec, role: Role) -> Option<Box<EndSecurity>> {
        let asked = spec.security.as_ref()?;
        self.files.get(&(asked.files.clone(), asked.governance, role.word())).cloned().map(Box::new)
    }
}

/// All ends of a trial.
fn roles(spec: &TrialSpec) -> impl Iterator<Item = Role> {
    let others = Role::further_publishers(spec.measure.publishers()).chain(Role::receiving(spec.measure.subscribers()));
    std::iter::once(Role::Ping).chain(others)
}

/// Makes the files of all ends whose identities have one source: the directory of a user, or Tailbound itself.
fn of_source(
    directory: Option<String>,
    governances: &BTreeSet<Governance>,
    ends: &BTreeSet<&'static str>,
) -> Result<Vec<(Key, EndSecurity)>, Problem> {
    let authority = openssl::authority("Tailbound")?;
    let mut identities: Vec<(&'static str, String, Identity)> = Vec::new();
    let subjects: Vec<String> = match &directory {
        None => {
            for (number, end) in ends.iter().enumerate() {
                let made = openssl::identity(&authority, end, number + 2)?;
                identities.push((end, authority.certificate.clone(), made));
            }
            ends.iter().map(|end| format!("CN={end}")).collect()
        }
        Some(directory) => {
            let sides = user_files::read(Path::new(directory))?;
            for end in ends {
                let side = &sides[usize::from(of_word(end).receives())];
                let identity = Identity { certificate: side.certificate.clone(), key: side.key.clone() };
                identities.push((end, side.authority.clone(), identity));
            }
            let subjects: BTreeSet<String> = sides.into_iter().map(|side| side.subject).collect();
            subjects.into_iter().collect()
        }
    };
    let permissions = openssl::signed(&authority, &documents::permissions(&subjects))?;
    let mut files = Vec::new();
    for asked in governances {
        let governance = openssl::signed(&authority, &documents::governance(*asked))?;
        for (end, identity_ca, identity) in &identities {
            let of_end = EndSecurity {
                identity_ca: identity_ca.clone(),
                identity_certificate: identity.certificate.clone(),
                private_key: identity.key.clone(),
                permissions_ca: authority.certificate.clone(),
                governance: governance.clone(),
                permissions: permissions.clone(),
            };
            files.push(((directory.clone(), *asked, *end), of_end));
        }
    }
    Ok(files)
}

fn of_word(end: &str) -> Role {
    let mut all = Role::receiving(u32::MAX);
    all.find(|role| role.word() == end).unwrap_or(Role::Ping)
}

/// Makes the error of a run whose certificates cannot be made or are wrong.
fn refused(problem: Problem) -> RunError {
    let exit = if problem.code == "security_files" { ExitCode::BadInput } else { ExitCode::MachineNotFit };
    RunError::of(exit, problem)
}

/// Reason why a driver cannot protect the messages of a trial as the study asks; `None` = it can.
pub(super) fn lack(spec: &TrialSpec, driver: &Description) -> Option<String> {
    spec.security.as_ref()?;
    let (name, options) = (&driver.name, &spec.driver.options);
    if driver.option(OPTION).is_none() {
        return Some(format!(
            "driver {name} has no DDS Security; `security` works with the drivers `cyclonedds` and `fastdds`"
        ));
    }
    if spec.driver.config.is_some() {
        return Some(format!(
            "the `config` of driver {name} is used unchanged, so Tailbound cannot add `security` to it: write the \
             security into the configuration, or remove `config`"
        ));
    }
    if let Some(key) = ["identity_ca", OPTION, "private_key", "permissions_ca", "governance", "permissions"]
        .into_iter()
        .find(|key| options.contains_key(*key))
    {
        return Some(format!(
            "`security` sets the option `{key}` of driver {name}, but the study sets this option too"
        ));
    }
    if let Some(transport) = options.get("transport").filter(|word| NOT_PROTECTED.contains(&word.as_str())) {
        return Some(format!(
            "the transport `{transport}` of driver {name} hands messages over without the network, where DDS Security \
             protects nothing: use `udp` or `shm`"
        ));
    }
    if spec.is_one_session() {
        return Some(
            "both ends share one session, which delivers messages inside the process, where DDS Security protects \
             nothing: remove `arrangement`, or write two processes"
                .to_owned(),
        );
    }
    let server = spec.discovery == Discovery::Server || options.contains_key("discovery_server");
    server.then(|| "`security` does not apply to the discovery server, which the ends would then refuse".to_owned())
}

/// Describes for a dry run which programs a run would call for DDS Security.
pub(super) fn describe(plan: &Plan) -> Vec<String> {
    let possible = plan.conditions.iter().filter(|c| c.not_possible.is_none());
    let asked: BTreeSet<String> = possible
        .filter_map(|c| c.spec.security.as_ref())
        .map(|asked| asked.files.clone().unwrap_or_default())
        .collect();
    let line = |files: String| match files.as_str() {
        "" => "DDS Security: call `openssl` to make a certificate authority and an identity for each end, and to sign \
               governance and permissions; all files are in memory  [no privilege]"
            .to_owned(),
        directory => format!(
            "DDS Security: read the identities in {directory}; call `openssl` to check them, and to make an authority \
             that signs governance and permissions; all files of the run are in memory  [no privilege]"
        ),
    };
    asked.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests;
