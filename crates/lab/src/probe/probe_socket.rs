//! A socket of the path check: on this host, or opened by another host that is asked to use it.

use crate::datagram_socket::{received, send};
use crate::site::{Far, unexpected};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tailbound_model::{Answer, Ask, ProbeMessage};

/// A socket of the path check, on this host or on another host.
#[derive(Debug)]
pub(super) enum ProbeSocket {
    /// A socket of this process, which stays in the network namespace in which it was opened.
    Here(UdpSocket),
    /// A socket of another host. The member `group` is true if the socket has joined the multicast group, and false if
    /// it is the plain socket.
    There { far: Arc<dyn Far>, group: bool },
}

impl ProbeSocket {
    pub fn is_here(&self) -> bool {
        matches!(self, ProbeSocket::Here(_))
    }

    pub fn send(&self, to: SocketAddr, message: ProbeMessage, whole: bool) -> io::Result<()> {
        match self {
            ProbeSocket::Here(socket) => send(socket, to, message, whole),
            ProbeSocket::There { far, .. } => match far.ask(Ask::Send { to, message, whole })? {
                Answer::Sent => Ok(()),
                Answer::Failed(_, Some(number)) => Err(io::Error::from_raw_os_error(number)),
                Answer::Failed(problem, None) => Err(io::Error::other(problem)),
                other => Err(unexpected(&other)),
            },
        }
    }

    /// Waits for a message and returns the time at which it arrived, or at which another host reported its arrival.
    pub fn received(&self, message: ProbeMessage, limit: Duration) -> Option<Instant> {
        match self {
            ProbeSocket::Here(socket) => received(socket, message, limit),
            ProbeSocket::There { far, group } => {
                let ask = Ask::Received { message, group: *group, within_ns: limit.as_nanos() as i64 };
                matches!(far.ask(ask), Ok(Answer::Received(true))).then(Instant::now)
            }
        }
    }
}
