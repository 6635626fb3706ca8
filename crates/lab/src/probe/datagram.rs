//! One datagram of the path check: sent by one end, known again by the other.

use super::socket;
use crate::site::{Far, unexpected};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tailbound_model::{Ask, ProbeMessage, Told};

/// Token and number, then octets that differ from place to place.
fn octets(message: ProbeMessage) -> Vec<u8> {
    let head = [message.token.to_be_bytes(), message.sequence.to_be_bytes()].concat();
    let mut octets: Vec<u8> = (0..message.octets).map(|i| (i.wrapping_mul(167) >> 3) as u8).collect();
    let length = head.len().min(octets.len());
    octets[..length].copy_from_slice(&head[..length]);
    octets
}

pub(crate) fn send(socket: &UdpSocket, to: SocketAddr, message: ProbeMessage, whole: bool) -> io::Result<()> {
    socket::forbid_fragments(socket, whole)?;
    socket.send_to(&octets(message), to).map(drop)
}

/// When exactly this message arrived; others (of an earlier try, or of strangers) are passed over.
pub(crate) fn received(socket: &UdpSocket, message: ProbeMessage, limit: Duration) -> Option<Instant> {
    let end = Instant::now() + limit;
    let message = octets(message);
    let mut buffer = vec![0; message.len() + 1];
    loop {
        let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        socket.set_read_timeout(Some(left)).ok()?;
        match socket.recv_from(&mut buffer) {
            Ok((length, _)) if buffer[..length] == *message => return Some(Instant::now()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// A socket of the path check, wherever it is.
#[derive(Debug)]
pub(super) enum Station {
    /// It was opened in its namespace, which it keeps, and is held here.
    Here(UdpSocket),
    /// Another host holds it: the one that has joined the group, or the plain one.
    There { far: Arc<dyn Far>, group: bool },
}

impl Station {
    pub fn is_here(&self) -> bool {
        matches!(self, Station::Here(_))
    }

    pub fn send(&self, to: SocketAddr, message: ProbeMessage, whole: bool) -> io::Result<()> {
        match self {
            Station::Here(socket) => send(socket, to, message, whole),
            Station::There { far, .. } => match far.ask(Ask::Send { to, message, whole })? {
                Told::Sent => Ok(()),
                Told::Failed(_, Some(number)) => Err(io::Error::from_raw_os_error(number)),
                Told::Failed(reason, None) => Err(io::Error::other(reason)),
                other => Err(unexpected(&other)),
            },
        }
    }

    /// When the message arrived, or was told to have.
    pub fn received(&self, message: ProbeMessage, limit: Duration) -> Option<Instant> {
        match self {
            Station::Here(socket) => received(socket, message, limit),
            Station::There { far, group } => {
                let ask = Ask::Received { message, group: *group, within_ns: limit.as_nanos() as i64 };
                matches!(far.ask(ask), Ok(Told::Received(true))).then(Instant::now)
            }
        }
    }
}
