//! Sending datagrams of chosen sizes and seeing which arrive whole.

use super::{Side, socket};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use tailbound_model::PathFacts;

/// IPv4 and UDP headers without options.
const HEADERS: u64 = 28;
/// The largest UDP payload of IPv4.
const MAX_DATAGRAM: u64 = 65_507;
/// Tried besides the sizes around the MTU.
const SIZES: [u64; 3] = [8192, 60_000, MAX_DATAGRAM];
const SMALL: u64 = 64;
/// The first datagram waits for the neighbour to be resolved: ARP asks three times, a second apart.
const FIRST: (u32, Duration) = (11, Duration::from_millis(200));
const LATER: (u32, Duration) = (3, Duration::from_millis(70));
const ROUND_TRIPS: usize = 20;

/// A number that no other probe uses.
pub(super) fn random() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

struct Party {
    name: &'static str,
    socket: UdpSocket,
    address: SocketAddr,
    interface: String,
    mtu: u64,
}

/// Both ends' sockets, on one thread.
pub(super) struct Exchange {
    parties: Vec<Party>,
    multicast: Option<UdpSocket>,
    token: u64,
    sequence: u64,
}

impl Exchange {
    pub fn new(sockets: Vec<UdpSocket>, sides: &[Side; 2], multicast: Option<UdpSocket>) -> Exchange {
        let parties = sockets.into_iter().zip(sides).zip(crate::spec::ENDS).map(|((socket, side), name)| Party {
            name,
            address: socket.local_addr().unwrap_or_else(|_| (side.net.address, 0).into()),
            socket,
            interface: side.net.interface.clone(),
            mtu: u64::from(side.net.mtu),
        });
        Exchange { parties: parties.collect(), multicast, token: random(), sequence: 0 }
    }

    /// Fills in what was found.
    pub fn run(mut self, mut facts: PathFacts) -> PathFacts {
        let mut fragments = Vec::new();
        for (from, to) in [(0, 1), (1, 0)] {
            let (max, all) = self.sizes(from, to, &mut facts.remarks);
            *[&mut facts.max_datagram_ping_to_pong, &mut facts.max_datagram_pong_to_ping][from] = max;
            fragments.push(all);
        }
        facts.fragments_pass = fragments.iter().all(|pass| *pass);
        let reachable = facts.max_datagram_ping_to_pong > 0;
        if let (Some(group), true) = (self.multicast.take(), reachable) {
            let passes = self.multicast(&group);
            if !passes {
                facts.remarks.push(format!(
                    "multicast does not pass from ping ({}) to pong ({}): discovery by multicast will find nobody; give the \
                     driver its peers by address",
                    self.parties[0].interface, self.parties[1].interface
                ));
            }
            facts.multicast_passes = Some(passes);
        }
        if reachable && facts.max_datagram_pong_to_ping > 0 {
            facts.probe_round_trip_ns = self.round_trip();
        }
        facts
    }

    /// Largest datagram that passed, and whether all those above the MTU did.
    fn sizes(&mut self, from: usize, to: usize, remarks: &mut Vec<String>) -> (u64, bool) {
        let unfragmented = self.parties[from].mtu.saturating_sub(HEADERS);
        if let Err(reason) = self.passes(from, to, SMALL.min(unfragmented), false, FIRST) {
            let [a, b] = [from, to].map(|i| &self.parties[i]);
            remarks.push(format!(
                "nothing passes from {} ({} on {}) to {} ({} on {}): {reason}; look at routes, firewall rules and the other side",
                a.name,
                a.address.ip(),
                a.interface,
                b.name,
                b.address.ip(),
                b.interface
            ));
            return (0, false);
        }
        let mut sizes: Vec<u64> = [unfragmented, unfragmented + 1].into_iter().chain(SIZES).collect();
        sizes.retain(|size| (SMALL + 1..=MAX_DATAGRAM).contains(size));
        sizes.sort_unstable();
        sizes.dedup();
        let mut max = SMALL.min(unfragmented);
        let (mut whole_lost, mut fragments_lost) = (Vec::new(), Vec::new());
        let mut why = String::new();
        for size in sizes {
            let whole = size <= unfragmented;
            match self.passes(from, to, size, whole, LATER) {
                Ok(()) => max = max.max(size),
                Err(reason) => {
                    why = reason;
                    let lost = if whole { &mut whole_lost } else { &mut fragments_lost };
                    lost.push(format!("{size} B"));
                }
            }
        }
        let [a, b] = [from, to].map(|i| &self.parties[i]);
        for (lost, how) in [(&whole_lost, "in one frame"), (&fragments_lost, "in fragments")] {
            if !lost.is_empty() {
                remarks.push(format!(
                    "datagrams of {} do not pass from {} to {} ({how} at MTU {}): {why}",
                    lost.join(", "),
                    a.name,
                    b.name,
                    a.mtu
                ));
            }
        }
        (max, fragments_lost.is_empty())
    }

    fn passes(&mut self, from: usize, to: usize, size: u64, whole: bool, tries: (u32, Duration)) -> Result<(), String> {
        let target = self.parties[to].address;
        let refused = |error: io::Error| format!("the kernel refuses to send it ({error})");
        socket::forbid_fragments(&self.parties[from].socket, whole).map_err(refused)?;
        for _ in 0..tries.0 {
            let message = self.message(size);
            self.parties[from].socket.send_to(&message, target).map_err(refused)?;
            if received(&self.parties[to].socket, &message, tries.1).is_some() {
                return Ok(());
            }
        }
        Err(format!("{} sent, none arrived within {} ms", tries.0, tries.1.as_millis()))
    }

    fn multicast(&mut self, group: &UdpSocket) -> bool {
        let Ok(target) = group.local_addr() else { return false };
        let (tries, limit) = LATER;
        (0..tries).any(|_| {
            let message = self.message(SMALL);
            let sent = self.parties[0].socket.send_to(&message, target);
            sent.is_ok() && received(group, &message, limit).is_some()
        })
    }

    /// Smallest of the round trips of small datagrams, ns.
    fn round_trip(&mut self) -> Option<i64> {
        let mut best: Option<Duration> = None;
        let mut missed = 0;
        for _ in 0..ROUND_TRIPS {
            let there = self.message(SMALL);
            let back = self.message(SMALL);
            let [ping, pong] = &self.parties[..] else { return None };
            let begin = Instant::now();
            let trip = || {
                ping.socket.send_to(&there, pong.address).ok()?;
                received(&pong.socket, &there, LATER.1)?;
                pong.socket.send_to(&back, ping.address).ok()?;
                received(&ping.socket, &back, LATER.1)
            };
            match trip() {
                Some(end) => best = Some(best.map_or(end - begin, |b| b.min(end - begin))),
                None => missed += 1,
            }
            if missed == 3 {
                break;
            }
        }
        best.map(|b| b.as_nanos() as i64)
    }

    /// Token and number, then octets that differ from place to place.
    fn message(&mut self, size: u64) -> Vec<u8> {
        self.sequence += 1;
        let head = [self.token.to_be_bytes(), self.sequence.to_be_bytes()].concat();
        let mut message: Vec<u8> = (0..size).map(|i| (i.wrapping_mul(167) >> 3) as u8).collect();
        let length = head.len().min(message.len());
        message[..length].copy_from_slice(&head[..length]);
        message
    }
}

/// When exactly this message arrived; others (of an earlier try, or of strangers) are passed over.
fn received(socket: &UdpSocket, message: &[u8], limit: Duration) -> Option<Instant> {
    let end = Instant::now() + limit;
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
