//! The way of one message through the kernel, from its hops.
//!
//! A message can be in several datagrams (its parts), and a datagram in several IP packets (its fragments). The message is
//! followed by the packet that arrived last, because nobody can use the message before that.

use tailbound_model::{HopPlace, PacketHop};

/// A hop of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passed {
    pub hop: PacketHop,
    /// Index of the device in the list of devices of a timeline.
    pub device: Option<usize>,
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

/// What had a message between two of its hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The message was at this place.
    At(Place),
    /// A part of the message had arrived, and its rest was at this place.
    Rest(Place),
    /// A packet with the message did not arrive, until the message was sent again.
    SentAgain,
    /// The kernel, or a program, between two places that do not follow each other.
    Between,
}

/// A place of a message in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The queue discipline of a device; with the index of the device.
    Discipline(Option<usize>),
    /// The way from the driver of a device to the device that received the message; with the index of the first device.
    Device(Option<usize>),
    /// The soft interrupt that receives packets on a CPU, or the wait for it; with the index of the device that received
    /// the message.
    Receive { cpu: u32, device: Option<usize> },
}

/// The way of a message with these hops, in the order of time. If the message was sent several times, the packets count
/// that reached a socket first.
pub(super) fn way(all: &[Passed]) -> Option<Way> {
    let last = last_hop(all)?;
    let (part, until) = (all[last].hop.part, &all[..=last]);
    let of_datagram: Vec<Passed> = until.iter().filter(|p| p.hop.part == part).copied().collect();
    // The datagram is complete when its last fragment arrives.
    let offset = of_datagram.iter().rev().find(|p| !is_end(p)).map_or(0, |p| p.hop.offset);
    let of_packet: Vec<Passed> = of_datagram.iter().filter(|p| p.hop.offset == offset || is_end(p)).copied().collect();
    let first = of_datagram.iter().find(|p| p.hop.at == HopPlace::Queued)?;
    let chain = last_packet(&of_packet, first)?;
    let (begin, end) = (chain.first()?, chain.last()?);
    // The first fragment of the datagram that arrived.
    let is_sent = |p: &&Passed| is_sent(p, first) && p.hop.at_ns <= begin.hop.at_ns;
    let sent_ns = of_datagram.iter().filter(is_sent).map(|p| p.hop.at_ns).max();
    let original =
        sent_ns.and_then(|sent_ns| original(until, first, sent_ns)).filter(|at| Some(at.hop.at_ns) < sent_ns);
    let mut steps = Vec::new();
    if let (Some(original), Some(sent_ns)) = (original, sent_ns) {
        steps.push((original.hop.at_ns, sent_ns, Step::SentAgain));
        steps.push((sent_ns, begin.hop.at_ns, Step::Between));
    }
    steps.extend(chain.windows(2).map(|pair| (pair[0].hop.at_ns, pair[1].hop.at_ns, step(&pair[0], &pair[1]))));
    let begun_ns = sent_ns.unwrap_or(begin.hop.at_ns);
    let arrived_ns = arrived(until, &chain, begun_ns);
    let start = original.unwrap_or(begin);
    Some(Way {
        sender: start.hop.thread,
        from_ns: start.hop.at_ns,
        to_ns: end.hop.at_ns,
        in_socket: is_end(end),
        steps: steps.into_iter().flat_map(|step| divided(step, arrived_ns)).collect(),
    })
}

fn is_end(passed: &Passed) -> bool {
    passed.hop.at == HopPlace::InSocket
}

/// Whether a hop is the first one of a datagram, at the same device as the hop `first`.
fn is_sent(passed: &Passed, first: &Passed) -> bool {
    passed.hop.at == HopPlace::Queued && passed.hop.offset == 0 && passed.device == first.device
}

/// Index of the hop with which the message was complete: of each part the datagram counts that reached a socket first.
fn last_hop(all: &[Passed]) -> Option<usize> {
    let is_first = |at: &usize| !all[..*at].iter().any(|p| is_end(p) && p.hop.part == all[*at].hop.part);
    let mut ends = (0..all.len()).filter(|at| is_end(&all[*at]));
    ends.rfind(is_first).or_else(|| all.len().checked_sub(1))
}

/// If the datagram that was sent at the time `sent_ns` repeats an earlier one: the hop at which the earlier one was sent. A
/// sender sends the parts of a message in the order of their numbers, so that a part repeats an earlier one if its number is not
/// larger than all numbers before it.
fn original<'a>(all: &'a [Passed], first: &Passed, sent_ns: i64) -> Option<&'a Passed> {
    let part = first.hop.part;
    let earlier = || all.iter().filter(|p| is_sent(p, first) && p.hop.at_ns < sent_ns);
    let same_form = |p: &Passed| (p.hop.part == 0) == (part == 0);
    earlier().any(|p| same_form(p) && p.hop.part >= part).then_some(())?;
    earlier()
        .filter(|p| same_form(p) && p.hop.part <= part)
        .min_by_key(|p| (std::cmp::Reverse(p.hop.part), p.hop.at_ns))
}

/// The time at which the first packet of the message arrived; `None` if only the last one is known to have arrived. IP fragments
/// wait in the kernel for the rest of their datagram, which was sent at the time `sent_ns`; datagrams wait in the middleware
/// for the rest of their message.
fn arrived(until: &[Passed], chain: &[Passed], sent_ns: i64) -> Option<i64> {
    let last = chain.iter().rev().find(|p| p.hop.at == HopPlace::Received)?;
    let is_other = |p: &&Passed| match p.hop.part == last.hop.part {
        true => p.hop.offset != last.hop.offset && p.hop.at_ns >= sent_ns,
        false => true,
    };
    let there = until.iter().filter(|p| p.hop.at == HopPlace::Received && p.device == last.device);
    there.filter(is_other).map(|p| p.hop.at_ns).min()
}

/// A step, divided at the time at which a part of the message had arrived.
fn divided((from_ns, to_ns, step): (i64, i64, Step), arrived_ns: Option<i64>) -> Vec<(i64, i64, Step)> {
    let mut spans = match (step, arrived_ns) {
        (Step::At(place), Some(at_ns)) => {
            let at_ns = at_ns.clamp(from_ns, to_ns);
            vec![(from_ns, at_ns, step), (at_ns, to_ns, Step::Rest(place))]
        }
        _ => vec![(from_ns, to_ns, step)],
    };
    spans.retain(|(from_ns, to_ns, _)| from_ns < to_ns);
    spans
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
    let received = Step::At(Place::Receive { cpu: to.hop.cpu, device: from.device });
    match (from.hop.at, to.hop.at) {
        (HopPlace::Queued, HopPlace::Transmitted) => Step::At(Place::Discipline(from.device)),
        (HopPlace::Transmitted, HopPlace::Backlog | HopPlace::Received) => Step::At(Place::Device(from.device)),
        (HopPlace::Backlog, HopPlace::Received) => received,
        // The socket has a packet within the run that received the packet.
        (HopPlace::Received, HopPlace::InSocket) => received,
        (HopPlace::Received, _) if are_of_one_run(&from.hop, &to.hop) => received,
        // A program can have received the packet and sent it on, for example a switch outside the kernel, or the kernel kept
        // the packet, for example until it knew the address of the next device.
        _ => Step::Between,
    }
}

/// Whether both hops happened in one run of soft interrupts, so that no program had the message between them.
fn are_of_one_run(from: &PacketHop, to: &PacketHop) -> bool {
    from.run != 0 && (from.cpu, from.run) == (to.cpu, to.run)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A hop of message 3 on CPU 1, by thread 10.
    pub fn hop(at_ns: i64, at: HopPlace, device: usize) -> Passed {
        let run = if matches!(at, HopPlace::Received | HopPlace::InSocket) { at_ns as u32 } else { 0 };
        let hop = PacketHop {
            at_ns,
            seq: 3,
            at,
            cpu: 1,
            thread: 10,
            buffer: 7,
            device: None,
            offset: 0,
            part: 0,
            run,
            reason: None,
        };
        Passed { hop, device: (at != HopPlace::InSocket).then_some(device) }
    }

    fn later(passed: &Passed, ns: i64) -> Passed {
        let run = if passed.hop.run == 0 { 0 } else { passed.hop.run + ns as u32 };
        Passed { hop: PacketHop { at_ns: passed.hop.at_ns + ns, run, ..passed.hop }, ..*passed }
    }

    fn in_order(hops: impl IntoIterator<Item = Passed>) -> Vec<Passed> {
        let mut all: Vec<Passed> = hops.into_iter().collect();
        all.sort_by_key(|p| p.hop.at_ns);
        all
    }

    /// Hops of a message through a bridge, which queues the message in the run that received it.
    fn through_a_bridge() -> [Passed; 8] {
        let mut hops = [
            (10, HopPlace::Queued, 0),
            (11, HopPlace::Transmitted, 0),
            (12, HopPlace::Backlog, 1),
            (15, HopPlace::Received, 1),
            (16, HopPlace::Queued, 2),
            (90, HopPlace::Transmitted, 2),
            (92, HopPlace::Received, 3),
            (95, HopPlace::InSocket, 3),
        ]
        .map(|(at_ns, at, device)| hop(at_ns, at, device));
        hops[4].hop.run = hops[3].hop.run;
        hops
    }

    fn received(device: usize) -> Step {
        Step::At(Place::Receive { cpu: 1, device: Some(device) })
    }

    const HELD: Place = Place::Discipline(Some(2));

    #[test]
    fn the_steps_of_a_message_through_a_bridge_add_up() {
        let way = way(&through_a_bridge()).expect("a way");
        assert_eq!((way.sender, way.from_ns, way.to_ns, way.in_socket), (10, 10, 95, true));
        let expected = [
            (10, 11, Step::At(Place::Discipline(Some(0)))),
            (11, 12, Step::At(Place::Device(Some(0)))),
            (12, 15, received(1)),
            (15, 16, received(1)),
            (16, 90, Step::At(HELD)),
            (90, 92, Step::At(Place::Device(Some(2)))),
            (92, 95, received(3)),
        ];
        assert_eq!(way.steps, expected);
    }

    #[test]
    fn the_time_until_a_message_was_sent_again_is_a_step() {
        let lost = [hop(1, HopPlace::Queued, 0), hop(2, HopPlace::Transmitted, 0)];
        let all = [&lost[..], &through_a_bridge()].concat();
        let found = way(&all).expect("a way");
        assert_eq!((found.from_ns, found.steps.len(), found.steps[0]), (1, 8, (1, 10, Step::SentAgain)));
        // Without a socket, the way ends at the last hop.
        let found = way(&all[..6]).expect("a way");
        assert_eq!((found.to_ns, found.in_socket), (15, false));
    }

    #[test]
    fn of_two_packets_on_their_way_the_one_counts_that_arrives_first() {
        // The second packet is sent while the first one is in the token bucket, and stays behind it.
        let first = through_a_bridge();
        let mut second: Vec<Passed> = first[..5].iter().map(|p| later(p, 50)).collect();
        second.iter_mut().for_each(|p| p.hop.buffer = 8);
        let way = way(&in_order(first.into_iter().chain(second))).expect("a way");
        assert_eq!((way.from_ns, way.to_ns, way.steps.len()), (10, 95, 7));
        assert!(way.steps.contains(&(16, 90, Step::At(HELD))), "{way:?}");
    }

    /// Test: a switch outside the kernel receives the packet and sends another packet with the message. The switch can be
    /// fast, on the same CPU, and its packet can be in the same buffer. A bridge that floods copies the packet.
    #[test]
    fn a_program_that_passes_a_packet_on_is_no_soft_interrupt() {
        let mut from = hop(20, HopPlace::Received, 0);
        from.hop.run = 4;
        let between = |at, buffer, cpu, run| {
            let mut to = hop(25, at, 1);
            (to.hop.buffer, to.hop.cpu, to.hop.run) = (buffer, cpu, run);
            step(&from, &to)
        };
        for at in [HopPlace::Queued, HopPlace::Backlog] {
            assert_eq!([between(at, 7, 1, 4), between(at, 8, 1, 4)], [received(0); 2]);
            for (cpu, run) in [(1, 0), (1, 5), (0, 4)] {
                assert_eq!(between(at, 7, cpu, run), Step::Between, "{at:?} {cpu} {run:?}");
            }
        }
        from.hop.run = 0;
        let mut to = hop(25, HopPlace::Queued, 1);
        to.hop.run = 0;
        assert_eq!(step(&from, &to), Step::Between);
    }

    /// A message in two IP fragments, of which the token bucket holds the second one.
    fn fragments() -> Vec<Passed> {
        let [first, mut second] = [through_a_bridge(), through_a_bridge()].map(|hops| hops[..7].to_vec());
        for (from, p) in first.iter().zip(&mut second) {
            *p = later(from, if from.hop.at_ns < 90 { 5 } else { 300 });
            (p.hop.offset, p.hop.buffer) = (1480, 8);
        }
        second[4].hop.run = second[3].hop.run;
        let mut end = hop(400, HopPlace::InSocket, 3);
        end.hop.buffer = 8;
        in_order(first.into_iter().chain(second).chain([end]))
    }

    #[test]
    fn the_last_fragment_that_arrives_counts_and_waits_for_the_rest() {
        let found = way(&fragments()).expect("a way");
        assert_eq!((found.from_ns, found.to_ns, found.in_socket), (15, 400, true));
        let expected = [
            (21, 92, Step::At(HELD)),
            (92, 390, Step::Rest(HELD)),
            (390, 392, Step::Rest(Place::Device(Some(2)))),
            (392, 400, Step::Rest(Place::Receive { cpu: 1, device: Some(3) })),
        ];
        assert_eq!(found.steps[4..], expected);
        // The message was sent alone, and again in a datagram with fragments.
        let alone = [hop(1, HopPlace::Queued, 0), hop(2, HopPlace::Transmitted, 0)];
        let found = way(&[&alone[..], &fragments()].concat()).expect("a way");
        assert_eq!(found.steps[..2], [(1, 10, Step::SentAgain), (10, 15, Step::Between)]);
        assert_eq!(found.steps[6..], expected[..]);
    }

    /// A datagram with these parts of a message, whose first hop is at the time `at_ns`.
    fn datagram(part: u32, at_ns: i64) -> [Passed; 8] {
        through_a_bridge().map(|p| {
            let mut p = later(&p, at_ns - 10);
            (p.hop.part, p.hop.buffer) = (part, at_ns as u32);
            p
        })
    }

    #[test]
    fn a_message_in_several_datagrams_is_followed_by_the_last_one() {
        let all = in_order([datagram(1, 10), datagram(11, 40), datagram(21, 60)].concat());
        let found = way(&all).expect("a way");
        // The first datagram is received at 92, and the last one is in the socket at 145.
        assert_eq!((found.from_ns, found.to_ns, found.in_socket), (60, 145, true));
        let rest = (92, 140, Step::Rest(HELD));
        assert!(found.steps.contains(&(66, 92, Step::At(HELD))) && found.steps.contains(&rest), "{found:?}");
        // The first datagram can also be the last one that arrives.
        let mut held = datagram(1, 10);
        held[5..].iter_mut().for_each(|p| *p = later(p, 500));
        let found = way(&in_order([held, datagram(11, 40)].concat())).expect("a way");
        assert_eq!((found.from_ns, found.to_ns), (10, 595));
        assert!(found.steps.contains(&(122, 590, Step::Rest(HELD))), "{found:?}");
    }

    #[test]
    fn parts_that_are_sent_again_are_recognised_by_their_number() {
        // The second datagram is lost, and its parts are sent again, some of them with other parts.
        let lost = &datagram(11, 40)[..3];
        let sent = [&datagram(1, 10)[..], lost, &datagram(21, 60)].concat();
        for (again, original_ns) in [(11, 40), (13, 40), (3, 10)] {
            let all = in_order([&sent[..], &datagram(again, 700)].concat());
            let found = way(&all).expect("a way");
            assert_eq!((found.from_ns, found.to_ns), (original_ns, 785), "{again}");
            assert_eq!(found.steps[0], (original_ns, 700, Step::SentAgain));
        }
        // A datagram whose copy arrives later was complete with the first one.
        let all = in_order([&datagram(1, 10)[..], &datagram(11, 40), &datagram(11, 700)].concat());
        assert_eq!(way(&all).map(|found| (found.from_ns, found.to_ns)), Some((40, 125)));
    }
}
