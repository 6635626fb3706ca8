//! Sending datagrams of chosen sizes and seeing which arrive whole.

use super::Side;
use super::datagram::Station;
use crate::spec::LabSpec;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tailbound_model::{PathFacts, PathSpec, ProbeMessage};

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
    sends: bool,
    socket: Station,
    address: SocketAddr,
    interface: String,
    mtu: u64,
}

/// Both ends' sockets, on one thread.
pub(super) struct Exchange {
    parties: Vec<Party>,
    multicast: Option<(Station, SocketAddr)>,
    /// What the path itself is known to take.
    delay: Duration,
    token: u64,
    sequence: u64,
}

impl Exchange {
    pub fn new(
        sockets: Vec<(Station, SocketAddr)>,
        (sides, spec): (&[Side], &LabSpec),
        multicast: Option<(Station, SocketAddr)>,
    ) -> Exchange {
        let parties = sockets.into_iter().zip(sides).enumerate();
        let parties = parties.map(|(end, ((socket, address), side))| Party {
            name: spec.name(end),
            sends: spec.sends(end),
            address,
            socket,
            interface: side.net.interface.clone(),
            mtu: u64::from(side.net.mtu),
        });
        let delay = match spec.path {
            PathSpec::Veth { delay: Some(delay), .. } => delay.duration(),
            _ => Duration::ZERO,
        };
        Exchange { parties: parties.collect(), multicast, delay, token: random(), sequence: 0 }
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
        self.further(&mut facts);
        facts
    }

    /// One small datagram each way between every further end and the first that it speaks with.
    fn further(&mut self, facts: &mut PathFacts) {
        for end in 2..self.parties.len() {
            let first = usize::from(self.parties[end].sends);
            let size = SMALL.min(self.parties[end].mtu.saturating_sub(HEADERS));
            for (from, to) in [(first, end), (end, first)] {
                if let Err(reason) = self.passes(from, to, size, false, FIRST) {
                    facts.remarks.push(self.nothing_passes(from, to, &reason));
                    facts.cut_off.push(self.parties[end].name.to_owned());
                    break;
                }
            }
        }
    }

    fn nothing_passes(&self, from: usize, to: usize, reason: &str) -> String {
        let [a, b] = [from, to].map(|i| &self.parties[i]);
        format!(
            "nothing passes from {} ({} on {}) to {} ({} on {}): {reason}; look at routes, firewall rules and the other side",
            a.name,
            a.address.ip(),
            a.interface,
            b.name,
            b.address.ip(),
            b.interface
        )
    }

    /// Largest datagram that passed, and whether all those above the MTU did.
    fn sizes(&mut self, from: usize, to: usize, remarks: &mut Vec<String>) -> (u64, bool) {
        let unfragmented = self.parties[from].mtu.saturating_sub(HEADERS);
        if let Err(reason) = self.passes(from, to, SMALL.min(unfragmented), false, FIRST) {
            remarks.push(self.nothing_passes(from, to, &reason));
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
        let tries = (tries.0, tries.1 + self.delay);
        for _ in 0..tries.0 {
            let message = self.message(size);
            self.parties[from].socket.send(target, message, whole).map_err(refused)?;
            if self.parties[to].socket.received(message, tries.1).is_some() {
                return Ok(());
            }
        }
        Err(format!("{} sent, none arrived within {} ms", tries.0, tries.1.as_millis()))
    }

    fn multicast(&mut self, (group, target): &(Station, SocketAddr)) -> bool {
        let (tries, limit) = (LATER.0, LATER.1 + self.delay);
        (0..tries).any(|_| {
            let message = self.message(SMALL);
            let sent = self.parties[0].socket.send(*target, message, false);
            sent.is_ok() && group.received(message, limit).is_some()
        })
    }

    /// Smallest of the round trips of small datagrams, ns. Not of an end on another host: what it is told and answers
    /// takes longer than the path.
    fn round_trip(&mut self) -> Option<i64> {
        if !self.parties[..2].iter().all(|p| p.socket.is_here()) {
            return None;
        }
        let mut best: Option<Duration> = None;
        let mut missed = 0;
        let limit = LATER.1 + self.delay;
        for _ in 0..ROUND_TRIPS {
            let there = self.message(SMALL);
            let back = self.message(SMALL);
            let [ping, pong, ..] = &self.parties[..] else { return None };
            let begin = Instant::now();
            let trip = || {
                ping.socket.send(pong.address, there, false).ok()?;
                pong.socket.received(there, limit)?;
                pong.socket.send(ping.address, back, false).ok()?;
                ping.socket.received(back, limit)
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

    fn message(&mut self, octets: u64) -> ProbeMessage {
        self.sequence += 1;
        ProbeMessage { token: self.token, sequence: self.sequence, octets }
    }
}
