//! The place of an end: a network namespace of this host, or another host to which a lab sends requests ([`Ask`]).

use crate::answer::Answers;
use crate::netns::{NetNs, run_in};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use tailbound_model::{Answer, Ask, Interface};

/// Connection to another host or to a container. The caller makes the connection; the lab only sends requests ([`Ask`])
/// over it and starts programs.
pub trait Far: fmt::Debug + Send + Sync {
    /// Name of the other host or container as it appears in sentences, such as `host guest-1`.
    fn name(&self) -> &str;

    /// Address by which other places reach this place, if the address was assigned when the place was made.
    fn address(&self) -> Option<IpAddr>;

    /// Network namespace of the place, if the place is on this host.
    fn netns(&self) -> Option<NetNs> {
        None
    }

    /// Sends a request to the place and waits for the answer, at most some seconds.
    ///
    /// # Errors
    /// There was no answer. If the place answers that the request failed ([`Answer::Failed`]), the answer is returned,
    /// not an error.
    fn ask(&self, ask: Ask) -> io::Result<Answer>;

    /// Returns a command of this host that starts Tailbound at the place and connects the standard streams; the caller
    /// adds the arguments.
    fn program(&self) -> Command;
}

/// The place of an end, as the lab reaches it: on this host or on another host.
#[derive(Debug, Clone)]
pub(crate) enum Site {
    /// The end of the lab is in a network namespace of this host.
    Here(NetNs),
    /// The end is in the network namespace of a container of this host; the container client (for example `podman`)
    /// starts the processes of the end.
    Inside(NetNs, Arc<dyn Far>),
    /// The end of the lab is on another host.
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
    /// Network namespace of the place; `None` if the place is on another host.
    pub fn netns(&self) -> Option<&NetNs> {
        match self {
            Site::Here(netns) | Site::Inside(netns, _) => Some(netns),
            Site::There(_) => None,
        }
    }

    /// Sends a request to the place of the end and waits for the answer; blocks for a moment.
    pub fn ask(&self, ask: Ask) -> io::Result<Answer> {
        let told = match self {
            Site::Here(netns) => run_in(netns, move || Answers::default().answer(ask))?.join()?,
            // The agent in a container answers too, because counters include those of its control group.
            Site::Inside(_, far) | Site::There(far) => far.ask(ask)?,
        };
        match told {
            Answer::Failed(_, Some(number)) => Err(io::Error::from_raw_os_error(number)),
            Answer::Failed(problem, None) => Err(io::Error::other(problem)),
            told => Ok(told),
        }
    }

    /// Reads all interfaces of the place of the end; blocks.
    pub fn interfaces(&self) -> io::Result<Vec<Interface>> {
        match self.ask(Ask::Interfaces)? {
            Answer::Interfaces(all) => Ok(all),
            other => Err(unexpected(&other)),
        }
    }

    /// Text that identifies the network namespace of the end; equal for ends in the same namespace.
    pub fn identity(&self) -> String {
        match self {
            Site::Here(netns) | Site::Inside(netns, _) => format!("netns {}", netns.inode()),
            Site::There(far) => far.name().to_owned(),
        }
    }
}

/// Returns the error for an answer that has the wrong type for the request, for example a port for [`Ask::Clock`].
pub(crate) fn unexpected(answer: &Answer) -> io::Error {
    io::Error::other(format!("the agent of the other host sent an answer that does not fit the question: {answer:?}"))
}
