//! Where an end is: on this host, in a network namespace, or on another host that answers for itself.

use crate::answer::Answers;
use crate::netns::{NetNs, run_in};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use tailbound_model::{Ask, Interface, Told};

/// Another host, reached by somebody else: the lab knows nothing of connections.
pub trait Far: fmt::Debug + Send + Sync {
    /// As it is called in sentences: `host guest-1`.
    fn name(&self) -> &str;

    /// The address that others reach it by, where whoever made it has given it one.
    fn address(&self) -> Option<IpAddr>;

    /// Its network namespace, where that is one of this host.
    fn netns(&self) -> Option<NetNs> {
        None
    }

    /// Asks it, and waits for the answer for some seconds at most.
    ///
    /// # Errors
    /// It did not answer. What it could not do is an answer.
    fn ask(&self, ask: Ask) -> io::Result<Told>;

    /// A command of this host that starts Tailbound there, with its standard streams; arguments follow.
    fn program(&self) -> Command;
}

/// Where an end is.
#[derive(Debug, Clone)]
pub(crate) enum Site {
    /// In a network namespace of this host.
    Here(NetNs),
    /// In a network namespace of this host whose processes somebody else starts: a container.
    Inside(NetNs, Arc<dyn Far>),
    /// On another host.
    There(Arc<dyn Far>),
}

impl From<Arc<dyn Far>> for Site {
    fn from(far: Arc<dyn Far>) -> Site {
        match far.netns() {
            Some(netns) => Site::Inside(netns, far),
            None => Site::There(far),
        }
    }
}

impl Site {
    /// Asks; blocks for a moment.
    pub fn ask(&self, ask: Ask) -> io::Result<Told> {
        let told = match self {
            Site::Here(netns) => run_in(netns, move || Answers::default().answer(ask))?.join()?,
            // Counters are those of its own control group too.
            Site::Inside(_, far) | Site::There(far) => far.ask(ask)?,
        };
        match told {
            Told::Failed(_, Some(number)) => Err(io::Error::from_raw_os_error(number)),
            Told::Failed(reason, None) => Err(io::Error::other(reason)),
            told => Ok(told),
        }
    }

    /// All its interfaces; blocks.
    pub fn interfaces(&self) -> io::Result<Vec<Interface>> {
        match self.ask(Ask::Interfaces)? {
            Told::Interfaces(all) => Ok(all),
            other => Err(unexpected(&other)),
        }
    }

    /// Equal for ends that share a network namespace.
    pub fn identity(&self) -> String {
        match self {
            Site::Here(netns) | Site::Inside(netns, _) => format!("netns {}", netns.inode()),
            Site::There(far) => far.name().to_owned(),
        }
    }
}

/// An answer to something else.
pub(crate) fn unexpected(told: &Told) -> io::Error {
    io::Error::other(format!("the answer does not fit the question: {told:?}"))
}
