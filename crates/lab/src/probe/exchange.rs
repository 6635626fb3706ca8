//! Part of the path check: sends datagrams of several sizes and checks which of them arrive.

use super::probe_socket::ProbeSocket;
use super::side::Side;
use crate::datagram_socket::random;
use crate::spec::LabSpec;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tailbound_model::{PathFacts, PathSpec, ProbeMessage};

/// Length of the IPv4 and UDP headers without options, in bytes.
const HEADERS: u64 = 28;
/// Size of the largest UDP payload that IPv4 allows, in bytes.
const MAX_DATAGRAM: u64 = 65_507;
/// Sizes of the datagrams that are tried in addition to sizes around the MTU, in bytes.
const SIZES: [u64; 3] = [8192, 60_000, MAX_DATAGRAM];
const SMALL: u64 = 64;
/// Number of attempts and time limit for the first datagram, which must wait for ARP: ARP sends three requests, one
/// second apart.
const FIRST: (u32, Duration) = (11, Duration::from_millis(200));
/// Number of attempts and time limit for each datagram after the first.
const LATER: (u32, Duration) = (3, Duration::from_millis(70));
const ROUND_TRIPS: usize = 20;

struct Party {
    name: &'static str,
    sends: bool,
    socket: ProbeSocket,
    address: SocketAddr,
    interface: String,
    mtu: u64,
}

/// The sockets of all ends for the path check, used by one thread.
pub(super) struct Exchange {
    parties: Vec<Party>,
    multicast: Option<(ProbeSocket, SocketAddr)>,
    /// Delay of the path that the study requests; it is added to every time limit for a datagram.
    delay: Duration,
    token: u64,
    sequence: u64,
}

impl Exchange {
    pub fn new(
        sockets: Vec<(ProbeSocket, SocketAddr)>,
        (sides, spec): (&[Side], &LabSpec),
        multicast: Option<(ProbeSocket, SocketAddr)>,
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

    /// Sends all datagrams of the path check and adds the results to `facts`.
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
                    "multicast does not arrive from ping ({}) at pong ({}): discovery by multicast will find no peer; give the \
                     driver the addresses of its peers",
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

    /// For every end but the first two: sends one small datagram in each direction between this end and the first end with
    /// which it communicates.
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
            "no datagram arrives from {} ({} on {}) at {} ({} on {}): {reason}; check routes and firewall rules at \
             both ends",
            a.name,
            a.address.ip(),
            a.interface,
            b.name,
            b.address.ip(),
            b.interface
        )
    }

    /// Finds the size of the largest datagram that arrived, and whether all datagrams above the MTU arrived.
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
                    "datagrams of {} do not arrive from {} at {} ({how} at MTU {}): {why}",
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
        let refused = |error: io::Error| format!("the kernel refuses to send the datagram ({error})");
        let tries = (tries.0, tries.1 + self.delay);
        for _ in 0..tries.0 {
            let message = self.message(size);
            self.parties[from].socket.send(target, message, whole).map_err(refused)?;
            if self.parties[to].socket.received(message, tries.1).is_some() {
                return Ok(());
            }
        }
        Err(format!("{} were sent, but none arrived within {} ms", tries.0, tries.1.as_millis()))
    }

    fn multicast(&mut self, (group, target): &(ProbeSocket, SocketAddr)) -> bool {
        let (tries, limit) = (LATER.0, LATER.1 + self.delay);
        (0..tries).any(|_| {
            let message = self.message(SMALL);
            let sent = self.parties[0].socket.send(*target, message, false);
            sent.is_ok() && group.received(message, limit).is_some()
        })
    }

    /// Measures the shortest round trip of small datagrams in ns. The result is `None` if an end is on another host,
    /// because the requests to the other host and its answers take longer than the datagrams on the path.
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

    fn message(&mut self, size: u64) -> ProbeMessage {
        self.sequence += 1;
        ProbeMessage { token: self.token, sequence: self.sequence, bytes: size }
    }
}
