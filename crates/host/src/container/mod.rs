//! Containers of this host, by the program that their user has for them: podman, or ctr of containerd.
//!
//! In: what a container is to be. Out: commands that start it and run in it, what its client tells of it, its removal. One
//! narrow adapter: each client is a few lists of words, and what it answers is read here and nowhere else. What was asked
//! of CPUs and memory is read back from the control group, not from the client.

mod group;
mod words;

pub use group::{Group, group_of};

use std::io;
use std::process::{Command, Output, Stdio};
use tailbound_model::{ContainerAccess, ContainerClient, ContainerSpec};

/// Variables that say which containers a client knows, and how it makes them.
const VARIABLES: [&str; 5] =
    ["CONTAINERD_ADDRESS", "CONTAINERD_NAMESPACE", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "CONTAINER_HOST"];
/// The label by which a container is found again.
const LABEL: &str = "tailbound.run";

/// A client of this host.
#[derive(Debug, Clone)]
pub struct Client {
    /// How it is called.
    pub access: ContainerAccess,
    /// As it tells it, for example `podman 4.3.1`.
    pub version: String,
}

/// An image as a client knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// As OCI writes it: `amd64`, `arm64`.
    pub architecture: String,
    /// Of its manifest.
    pub digest: String,
}

/// A container to be made.
#[derive(Debug)]
pub struct Order<'a> {
    /// What it is to be.
    pub spec: &'a ContainerSpec,
    /// The image.
    pub image: &'a str,
    /// Its name for the client.
    pub name: &'a str,
    /// A label of it and of nothing else.
    pub token: &'a str,
    /// Arguments of Tailbound, its first process.
    pub arguments: &'a [&'a str],
}

/// The processor family of this host, as OCI writes it.
pub fn own_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

impl Client {
    /// The client that is wanted, or the first that answers.
    ///
    /// # Errors
    /// None is there, or none answers: what, and what to do.
    pub fn find(wanted: Option<ContainerClient>) -> Result<Client, (String, String)> {
        let all = wanted.map_or(ContainerClient::ALL.to_vec(), |one| vec![one]);
        let environment = VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
        let environment: std::collections::BTreeMap<String, String> = environment.collect();
        let mut last = None;
        for client in all {
            let access = ContainerAccess { client, environment: environment.clone() };
            match words::version(&access) {
                Ok(version) => return Ok(Client { access, version }),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => last = Some((client, e)),
            }
        }
        Err(match (last, wanted) {
            (Some((client, e)), _) => {
                (format!("{} does not answer: {e}", client.program()), words::mend(client).into())
            }
            (None, Some(client)) => (
                format!("there is no program `{}` here", client.program()),
                format!("install it ({}), or leave `client` out", words::package(client)),
            ),
            (None, None) => (
                "there is neither podman nor ctr here".into(),
                "install podman, or containerd with its client ctr".into(),
            ),
        })
    }

    /// The image with this name; `None` where it has none.
    ///
    /// # Errors
    /// The client does not answer.
    pub fn image(&self, name: &str) -> io::Result<Option<Image>> {
        words::image(&self.access, name)
    }

    /// Makes a container; it does not run yet.
    ///
    /// # Errors
    /// What the client says.
    pub fn create(&self, order: &Order<'_>) -> io::Result<()> {
        words::run(&self.access, &words::create(self.access.client, order)).map(drop)
    }

    /// Starts it; the streams of the command are those of its first process.
    pub fn start(&self, name: &str) -> Command {
        words::command(&self.access, &words::start(self.access.client, name))
    }

    /// Tailbound in it, with the streams of the command; arguments follow. `id` is its own among those of the container.
    pub fn exec(&self, name: &str, id: &str) -> Command {
        words::command(&self.access, &words::exec(self.access.client, name, id))
    }

    /// The number of its first process on this host.
    ///
    /// # Errors
    /// It does not run.
    pub fn process(&self, name: &str) -> io::Result<i32> {
        words::process(&self.access, name)
    }

    /// What runs it: `runc`.
    pub fn runtime(&self, name: &str) -> String {
        words::runtime(&self.access, name)
    }

    /// How it ended, where it has.
    pub fn ended(&self, name: &str) -> Option<String> {
        words::ended(&self.access, name)
    }
}

/// Removes the containers with this label, running or not; their names.
///
/// # Errors
/// The client is not there, or refuses.
pub fn remove(access: &ContainerAccess, token: &str) -> io::Result<Vec<String>> {
    words::remove(access, token)
}

/// Runs a client to its end: what it wrote.
fn said(command: &mut Command) -> io::Result<String> {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output()?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).trim().to_owned());
    }
    let text = String::from_utf8_lossy(&stderr);
    // Its last line says it; a log line may precede it.
    let line = text.lines().map(str::trim).rfind(|l| !l.is_empty()).unwrap_or("it says nothing");
    let line = ["Error: ", "ctr: "].iter().find_map(|front| line.strip_prefix(front)).unwrap_or(line);
    Err(io::Error::other(line.to_owned()))
}
