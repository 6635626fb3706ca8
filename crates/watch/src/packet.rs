//! Headers of IP and UDP.

use std::net::{IpAddr, SocketAddr};

const FRAGMENT_6: u8 = 44;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Length of the header of UDP in bytes.
const UDP_HEADER: usize = 8;

/// What a packet is.
#[derive(Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A datagram, or its first IP fragment.
    Datagram(Datagram<'a>),
    /// A later IP fragment of a datagram.
    Fragment { of: FragmentId, is_last: bool },
    /// A packet of TCP, or its first IP fragment, from and to these ports.
    Tcp { ports: [u16; 2] },
    /// Not read here.
    Other,
}

/// A datagram of UDP, as far as its bytes were copied.
#[derive(Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub payload: &'a [u8],
    /// Length of the payload in the packet, of which `payload` has the copied bytes.
    pub length: usize,
    /// The datagram goes on in later IP fragments.
    pub goes_on: Option<FragmentId>,
}

/// What the IP fragments of a datagram have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FragmentId {
    from: IpAddr,
    to: IpAddr,
    id: u32,
}

/// Reads the headers of a packet from the header of IP on.
pub fn read(bytes: &[u8]) -> Packet<'_> {
    let read = match bytes.first().map(|first| first >> 4) {
        Some(4) => version_4(bytes),
        Some(6) => version_6(bytes),
        _ => None,
    };
    read.unwrap_or(Packet::Other)
}

fn version_4(bytes: &[u8]) -> Option<Packet<'_>> {
    let header = usize::from(bytes[0] & 0x0f) * 4;
    let address = |at: usize| Some(IpAddr::from(*bytes.get(at..)?.first_chunk::<4>()?));
    let (from, to) = (address(12)?, address(16)?);
    let place = half(bytes, 6)?;
    let of = FragmentId { from, to, id: u32::from(half(bytes, 4)?) };
    let goes_on = place & 0x2000 != 0;
    match (bytes.get(9)?, place & 0x1fff) {
        (&UDP, 0) => datagram(bytes.get(header..)?, from, to, goes_on.then_some(of)),
        (&UDP, _) => Some(Packet::Fragment { of, is_last: !goes_on }),
        (&TCP, 0) => tcp(bytes.get(header..)?),
        _ => None,
    }
}

fn version_6(bytes: &[u8]) -> Option<Packet<'_>> {
    let address = |at: usize| Some(IpAddr::from(*bytes.get(at..)?.first_chunk::<16>()?));
    let (from, to) = (address(8)?, address(24)?);
    let rest = bytes.get(40..)?;
    match bytes[6] {
        UDP => datagram(rest, from, to, None),
        TCP => tcp(rest),
        FRAGMENT_6 if rest.first() == Some(&UDP) => {
            let (place, id) = (half(rest, 2)?, u32::from_be_bytes(*rest.get(4..)?.first_chunk()?));
            let (of, goes_on) = (FragmentId { from, to, id }, place & 1 != 0);
            match place >> 3 {
                0 => datagram(rest.get(8..)?, from, to, goes_on.then_some(of)),
                _ => Some(Packet::Fragment { of, is_last: !goes_on }),
            }
        }
        _ => None,
    }
}

fn tcp(bytes: &[u8]) -> Option<Packet<'_>> {
    Some(Packet::Tcp { ports: [half(bytes, 0)?, half(bytes, 2)?] })
}

fn datagram(bytes: &[u8], from: IpAddr, to: IpAddr, goes_on: Option<FragmentId>) -> Option<Packet<'_>> {
    let (from, to) = (SocketAddr::new(from, half(bytes, 0)?), SocketAddr::new(to, half(bytes, 2)?));
    let length = usize::from(half(bytes, 4)?).checked_sub(UDP_HEADER)?;
    let payload = bytes.get(UDP_HEADER..)?;
    let payload = &payload[..payload.len().min(length)];
    Some(Packet::Datagram(Datagram { from, to, payload, length, goes_on }))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
