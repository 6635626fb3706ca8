//! The client program (podman or ctr) with which Tailbound makes and uses containers.

use super::commands;
use super::order::{Image, Order};
use std::io;
use std::process::Command;
use tailbound_model::{ContainerAccess, ContainerClient};

/// Names of the environment variables that configure podman and ctr.
const VARIABLES: [&str; 5] =
    ["CONTAINERD_ADDRESS", "CONTAINERD_NAMESPACE", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "CONTAINER_HOST"];
/// A container client program (podman or ctr) that is installed on this host.
#[derive(Debug, Clone)]
pub struct Client {
    /// The client program (podman or ctr) and the environment variables that it reads.
    pub access: ContainerAccess,
    /// Name and version of the container client, for example `podman 4.3.1`.
    pub version: String,
}

impl Client {
    /// Finds the requested container client, or else the first client (podman, ctr) that answers.
    ///
    /// # Errors
    /// The client is not installed or does not answer; the error contains the problem and its remedy.
    pub fn find(wanted: Option<ContainerClient>) -> Result<Client, (String, String)> {
        let all = wanted.map_or(ContainerClient::ALL.to_vec(), |one| vec![one]);
        let environment = VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
        let environment: std::collections::BTreeMap<String, String> = environment.collect();
        let mut last = None;
        for client in all {
            let access = ContainerAccess { client, environment: environment.clone() };
            match commands::version(&access) {
                Ok(version) => return Ok(Client { access, version }),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => last = Some((client, e)),
            }
        }
        Err(match (last, wanted) {
            (Some((client, e)), _) => {
                (format!("{} does not answer: {e}", client.program()), commands::remedy(client).into())
            }
            (None, Some(client)) => (
                format!("this host has no program `{}`", client.program()),
                format!("install the client ({}), or leave `client` out", commands::package(client)),
            ),
            (None, None) => (
                "this host has neither podman nor ctr".into(),
                "install podman, or containerd with its client ctr".into(),
            ),
        })
    }

    /// Looks up the container image with this name; `None` if the client has no such image.
    ///
    /// # Errors
    /// The client does not answer.
    pub fn image(&self, name: &str) -> io::Result<Option<Image>> {
        commands::image(&self.access, name)
    }

    /// Makes a container without starting it.
    ///
    /// # Errors
    /// The client refuses; the error contains the client's message.
    pub fn create(&self, order: &Order<'_>) -> io::Result<()> {
        commands::run(&self.access, &commands::create(self.access.client, order)).map(drop)
    }

    /// The command that starts a container; the standard streams of the command are the standard streams of the
    /// container's first process.
    pub fn start(&self, name: &str) -> Command {
        commands::command(&self.access, &commands::start(self.access.client, name))
    }

    /// The command that runs Tailbound in a container; the caller adds the arguments. `id` must be unique among the
    /// commands in this container.
    pub fn exec(&self, name: &str, id: &str) -> Command {
        commands::command(&self.access, &commands::exec(self.access.client, name, id))
    }

    /// Process id, on this host, of the first process of a container.
    ///
    /// # Errors
    /// The container does not run.
    pub fn process(&self, name: &str) -> io::Result<i32> {
        commands::process(&self.access, name)
    }

    /// Name of the OCI runtime that runs a container, such as `runc`.
    pub fn runtime(&self, name: &str) -> String {
        commands::runtime(&self.access, name)
    }

    /// Sentence that says how a container ended; `None` if the container runs.
    pub fn ended(&self, name: &str) -> Option<String> {
        commands::ended(&self.access, name)
    }
}

/// Removes all containers with the label `token`, running or not, and returns the names of the removed containers.
///
/// # Errors
/// The container client is not installed, or refuses.
pub fn remove(access: &ContainerAccess, token: &str) -> io::Result<Vec<String>> {
    commands::remove(access, token)
}
