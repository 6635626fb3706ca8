//! Ways of messages through the kernel: queue disciplines, devices, soft interrupts and sockets, from the hops that the
//! agents recorded.

use std::collections::BTreeMap;
use tailbound_model::{HopPlace, PacketHop, Packets, Switches, counter_of};

/// Hops of messages in the time span of a timeline.
#[derive(Debug, Default)]
pub(crate) struct Hops {
    /// Hops of each message in the order of time, by the number of its slot.
    messages: BTreeMap<u64, Vec<Passed>>,
    devices: Vec<Device>,
    /// Times at which a thread had read a datagram, by thread id, in the order of time.
    reads: BTreeMap<i32, Vec<i64>>,
    /// Time spans in which hops are missing.
    gaps: Vec<(i64, i64)>,
}

/// A hop of a message.
#[derive(Debug, Clone, Copy)]
struct Passed {
    hop: PacketHop,
    /// Index of the device in [`Hops::devices`].
    device: Option<usize>,
}

/// A device that messages pass.
#[derive(Debug, PartialEq, Eq)]
struct Device {
    name: String,
    discipline: Option<String>,
}

/// What had a message between two of its hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The queue discipline of a device; with the index of the device.
    Discipline(Option<usize>),
    /// A device, from its driver to the device that received the message; with the index of the first device.
    Device(Option<usize>),
    /// The soft interrupt that receives packets on this CPU, or the wait for it.
    Receive { cpu: u32 },
    /// A packet with the message did not arrive, until the message was sent again.
    SentAgain,
    /// The kernel between two places that do not follow each other.
    Between,
}

/// The way of one message through the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Way {
    /// Thread that gave the message to the first device.
    pub sender: i32,
    /// Time at which the message reached the first device, ns.
    pub from_ns: i64,
    /// Time of the last hop, ns.
    pub to_ns: i64,
    /// Whether the message was in a socket at the last hop.
    pub in_socket: bool,
    /// Begin and end of each step, in the order of time.
    pub steps: Vec<(i64, i64, Step)>,
}

impl Hops {
    /// The hops in the time span from `begin` to `end` that all agents recorded.
    pub fn of(seen: &[Switches], (begin, end): (i64, i64)) -> Hops {
        let mut hops = Hops::default();
        seen.iter().filter_map(|s| s.packets.as_ref()).for_each(|packets| hops.add(packets, (begin, end)));
        hops.messages.values_mut().for_each(|of_one| of_one.sort_by_key(|passed| passed.hop.at_ns));
        hops.reads.values_mut().for_each(|times| times.sort_unstable());
        hops
    }

    fn add(&mut self, packets: &Packets, (begin, end): (i64, i64)) {
        let within = |at_ns: i64| (begin..=end).contains(&at_ns);
        let first = self.devices.len();
        let device =
            |d: &tailbound_model::PacketDevice| Device { name: d.name.clone(), discipline: d.discipline.clone() };
        self.devices.extend(packets.devices.iter().map(device));
        for hop in packets.hops.iter().filter(|hop| within(hop.at_ns)) {
            let device = hop.device.map(|d| first + usize::from(d)).filter(|d| *d < self.devices.len());
            self.messages.entry(counter_of(hop.seq)).or_default().push(Passed { hop: *hop, device });
        }
        for read in packets.reads.iter().filter(|read| within(read.at_ns)) {
            self.reads.entry(read.thread).or_default().push(read.at_ns);
        }
        self.gaps.extend(packets.gaps.iter().copied().filter(|(from, to)| *from < end && begin < *to));
    }

    /// The way of the message of a slot that was sent after the time `from_ns` and received at the time `to_ns`; `None`
    /// if it was not followed. If the message was sent several times, the packet counts that reached a socket first.
    pub fn way(&self, slot: u64, (from_ns, to_ns): (i64, i64)) -> Option<Way> {
        if self.gaps.iter().any(|(from, to)| *from < to_ns && from_ns < *to) {
            return None;
        }
        let all = self.messages.get(&slot)?.iter();
        let on_the_way = |p: &&Passed| (from_ns..=to_ns).contains(&p.hop.at_ns);
        let all: Vec<Passed> = all.filter(on_the_way).copied().collect();
        let is_end = |p: &Passed| p.hop.at == HopPlace::InSocket;
        let end = all.iter().position(is_end).unwrap_or(all.len().saturating_sub(1));
        // The datagram is complete when its last fragment arrives.
        let offset = all[..end.min(all.len())].last().map_or(0, |last| last.hop.offset);
        let of_fragment = |p: &&Passed| p.hop.offset == offset || is_end(p);
        let chain: Vec<Passed> = all.get(..=end)?.iter().filter(of_fragment).copied().collect();
        let first = all.iter().find(|p| p.hop.at == HopPlace::Queued)?;
        let chain = last_packet(&chain, first)?;
        let (begin, last) = (chain.first()?, chain.last()?);
        // The first fragment of the datagram that arrived: the message was sent again if it is not the first one of all.
        let is_sent = |p: &&Passed| p.hop.at == HopPlace::Queued && p.device == first.device && p.hop.offset == 0;
        let sent_ns = all.iter().filter(is_sent).map(|p| p.hop.at_ns).filter(|at| *at <= begin.hop.at_ns).max();
        let sent_ns = sent_ns.filter(|sent| first.hop.at_ns < *sent);
        let again = sent_ns.map(|sent| (first.hop.at_ns, sent, Step::SentAgain));
        let between = sent_ns.map(|sent| (sent, begin.hop.at_ns, Step::Between)).filter(|(from, to, _)| from < to);
        let start = if sent_ns.is_some() { first } else { begin };
        let steps = chain.windows(2).map(|pair| (pair[0].hop.at_ns, pair[1].hop.at_ns, step(&pair[0], &pair[1])));
        Some(Way {
            sender: start.hop.thread,
            from_ns: start.hop.at_ns,
            to_ns: last.hop.at_ns,
            in_socket: is_end(last),
            steps: again.into_iter().chain(between).chain(steps).collect(),
        })
    }

    /// Time at which `thread` had read the last other datagram before the one that it read last between two times;
    /// `None` if it read at most one.
    pub fn read_another(&self, thread: i32, (from_ns, to_ns): (i64, i64)) -> Option<i64> {
        let times = self.reads.get(&thread)?;
        let within = &times[times.partition_point(|at| *at <= from_ns)..times.partition_point(|at| *at <= to_ns)];
        within.len().checked_sub(2).map(|other| within[other])
    }

    /// Name of a device, and the kind of its queue discipline.
    pub fn device(&self, index: usize) -> Option<(&str, Option<&str>)> {
        let device = self.devices.get(index)?;
        Some((&device.name, device.discipline.as_deref()))
    }
}

/// The hops of the packet with the last hop, from the device of the hop `first` on. Several packets with the same message
/// can be on their way at the same time.
fn last_packet(chain: &[Passed], first: &Passed) -> Option<Vec<Passed>> {
    let sent = |p: &Passed| p.hop.at == HopPlace::Queued && p.device == first.device;
    let buffer = chain.last()?.hop.buffer;
    let own: Vec<Passed> = chain.iter().filter(|p| p.hop.buffer == buffer).copied().collect();
    // A device that copies packets (a bridge that floods) changes their buffers.
    let all = if own.iter().any(&sent) { own } else { chain.to_vec() };
    let from = all.iter().rposition(sent)?;
    Some(all[from..].to_vec())
}

/// What had a message between two consecutive hops.
fn step(from: &Passed, to: &Passed) -> Step {
    match (from.hop.at, to.hop.at) {
        (HopPlace::Queued, HopPlace::Transmitted) => Step::Discipline(from.device),
        (HopPlace::Transmitted, HopPlace::Backlog | HopPlace::Received) => Step::Device(from.device),
        (HopPlace::Backlog, HopPlace::Received) => Step::Receive { cpu: to.hop.cpu },
        // The socket has a packet within the run that received the packet.
        (HopPlace::Received, HopPlace::InSocket) => Step::Receive { cpu: to.hop.cpu },
        (HopPlace::Received, _) if are_of_one_run(&from.hop, &to.hop) => Step::Receive { cpu: to.hop.cpu },
        // A program can have received the packet and sent it on, for example a switch outside the kernel, or the kernel kept
        // the packet, for example until it knew the address of the next device.
        _ => Step::Between,
    }
}

/// Whether both hops happened in one run of soft interrupts, so that no program had the message between them.
fn are_of_one_run(from: &PacketHop, to: &PacketHop) -> bool {
    from.run.is_some() && (from.cpu, from.run) == (to.cpu, to.run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{PacketDevice, SocketRead};

    fn hop(at_ns: i64, at: HopPlace, device: u16, offset: u16) -> PacketHop {
        let device = (at != HopPlace::InSocket).then_some(device);
        let run = matches!(at, HopPlace::Received | HopPlace::InSocket).then_some(at_ns as u32);
        PacketHop { at_ns, seq: 3, at, cpu: 1, thread: 10, buffer: 7, device, offset, run, reason: None }
    }

    fn hops(all: &[PacketHop]) -> Hops {
        let device = |name: &str, kind: Option<&str>| PacketDevice {
            name: name.into(),
            namespace: 1,
            discipline: kind.map(str::to_owned),
        };
        let devices = vec![device("veth0", None), device("port1", Some("tbf"))];
        let reads = [110, 120, 130].map(|at_ns| SocketRead { at_ns, thread: 20, port: 1 }).to_vec();
        let packets = Packets { devices, hops: all.to_vec(), reads, ..Packets::default() };
        Hops::of(&[Switches { packets: Some(packets), ..Switches::default() }], (0, 1_000))
    }

    /// Hops of a message through a bridge, which queues the message in the run that received it.
    fn through_a_bridge(offset: u16) -> [PacketHop; 8] {
        let mut hops = THROUGH_A_BRIDGE.map(|(at_ns, at, device)| hop(at_ns, at, device, offset));
        hops[4].run = hops[3].run;
        hops
    }

    const THROUGH_A_BRIDGE: [(i64, HopPlace, u16); 8] = [
        (10, HopPlace::Queued, 0),
        (11, HopPlace::Transmitted, 0),
        (12, HopPlace::Backlog, 1),
        (15, HopPlace::Received, 1),
        (16, HopPlace::Queued, 1),
        (90, HopPlace::Transmitted, 1),
        (92, HopPlace::Received, 0),
        (95, HopPlace::InSocket, 0),
    ];

    #[test]
    fn the_steps_of_a_message_through_a_bridge_add_up() {
        let all = through_a_bridge(0);
        let way = hops(&all).way(3, (5, 200)).expect("a way");
        assert_eq!((way.sender, way.from_ns, way.to_ns, way.in_socket), (10, 10, 95, true));
        let expected = [
            (10, 11, Step::Discipline(Some(0))),
            (11, 12, Step::Device(Some(0))),
            (12, 15, Step::Receive { cpu: 1 }),
            (15, 16, Step::Receive { cpu: 1 }),
            (16, 90, Step::Discipline(Some(1))),
            (90, 92, Step::Device(Some(1))),
            (92, 95, Step::Receive { cpu: 1 }),
        ];
        assert_eq!(way.steps, expected);
        assert_eq!(hops(&all).device(1), Some(("port1", Some("tbf"))));
        // Another message, and another time.
        assert_eq!(hops(&all).way(4, (5, 200)), None);
        assert_eq!(hops(&all).way(3, (96, 200)), None);
    }

    #[test]
    fn the_time_until_a_message_was_sent_again_is_a_step() {
        let lost = [hop(1, HopPlace::Queued, 0, 0), hop(2, HopPlace::Transmitted, 0, 0)];
        let all = [&lost[..], &through_a_bridge(0)].concat();
        let way = hops(&all).way(3, (0, 200)).expect("a way");
        assert_eq!((way.from_ns, way.steps.len(), way.steps[0]), (1, 8, (1, 10, Step::SentAgain)));
        // Without a socket, the way ends at the last hop.
        let way = hops(&all[..6]).way(3, (0, 200)).expect("a way");
        assert_eq!((way.to_ns, way.in_socket), (15, false));
    }

    #[test]
    fn of_two_packets_on_their_way_the_one_counts_that_arrives_first() {
        // The second packet is sent while the first one is in the token bucket, and stays behind it.
        let first = through_a_bridge(0);
        let second = first[..5].iter().map(|hop| PacketHop { buffer: 8, at_ns: hop.at_ns + 50, ..*hop });
        let all: Vec<PacketHop> = first.into_iter().chain(second).collect();
        let way = hops(&all).way(3, (5, 200)).expect("a way");
        assert_eq!((way.from_ns, way.to_ns, way.steps.len()), (10, 95, 7));
        assert!(way.steps.contains(&(16, 90, Step::Discipline(Some(1)))), "{way:?}");
    }

    /// Test: a switch outside the kernel receives the packet and sends another packet with the message. The switch can be
    /// fast, on the same CPU, and its packet can be in the same buffer. A bridge that floods copies the packet.
    #[test]
    fn a_program_that_passes_a_packet_on_is_no_soft_interrupt() {
        let received = PacketHop { run: Some(4), ..hop(20, HopPlace::Received, 0, 0) };
        let between = |at, buffer, cpu, run| {
            let sent = PacketHop { buffer, cpu, run, ..hop(25, at, 1, 0) };
            step(&Passed { hop: received, device: Some(0) }, &Passed { hop: sent, device: Some(1) })
        };
        for at in [HopPlace::Queued, HopPlace::Backlog] {
            assert_eq!(between(at, 7, 1, Some(4)), Step::Receive { cpu: 1 });
            assert_eq!(between(at, 8, 1, Some(4)), Step::Receive { cpu: 1 });
            for (cpu, run) in [(1, None), (1, Some(5)), (0, Some(4))] {
                assert_eq!(between(at, 7, cpu, run), Step::Between, "{at:?} {cpu} {run:?}");
            }
        }
    }

    #[test]
    fn the_last_fragment_that_arrives_counts() {
        let of = |offset: u16, later: i64| {
            THROUGH_A_BRIDGE[..7].iter().map(move |(at_ns, at, device)| hop(at_ns + later, *at, *device, offset))
        };
        let all: Vec<PacketHop> = of(0, 0).chain(of(1480, 20)).chain([hop(120, HopPlace::InSocket, 0, 0)]).collect();
        let way = hops(&all).way(3, (0, 200)).expect("a way");
        assert_eq!((way.from_ns, way.to_ns, way.steps.len()), (30, 120, 7));
        // The message was sent alone, and again in a datagram with fragments.
        let alone = [hop(1, HopPlace::Queued, 0, 0), hop(2, HopPlace::Transmitted, 0, 0)];
        let way = hops(&[&alone[..], &all[..]].concat()).way(3, (0, 200)).expect("a way");
        assert_eq!(way.steps[..2], [(1, 10, Step::SentAgain), (10, 30, Step::Between)]);
    }

    #[test]
    fn hops_of_a_time_in_which_records_were_lost_are_not_used() {
        let packets =
            Packets { gaps: vec![(50, 60)], hops: vec![hop(10, HopPlace::Queued, 0, 0)], ..Packets::default() };
        let hops = Hops::of(&[Switches { packets: Some(packets), ..Switches::default() }], (0, 1_000));
        assert_eq!(hops.way(3, (5, 100)), None);
        assert!(hops.way(3, (5, 40)).is_some());
    }

    #[test]
    fn the_last_read_is_that_of_the_message_itself() {
        let hops = hops(&[]);
        assert_eq!(hops.read_another(20, (100, 140)), Some(120));
        assert_eq!(hops.read_another(20, (120, 140)), None);
        assert_eq!(hops.read_another(21, (100, 140)), None);
    }
}
