//! Hops of messages through the kernel: queue disciplines, devices, soft interrupts and sockets, as the agents recorded
//! them.

use crate::why::way::{Passed, Way, way};
use std::collections::BTreeMap;
use tailbound_document::Evidence;
use tailbound_model::{HopPlace, IN_PAGES, Packets, Switches, counter_of, is_unread, stream_of};

/// Hops of messages in the time span of a timeline.
#[derive(Debug, Default)]
pub(crate) struct Hops {
    /// Hops of each message in the order of time, by the number of its slot.
    messages: BTreeMap<u64, Vec<Passed>>,
    /// Hops of each datagram whose message could not be read, in the order of time, by the number of the recording and the
    /// sequence number that stands for the datagram.
    unread: BTreeMap<(usize, u64), Vec<Passed>>,
    devices: Vec<Device>,
    /// Times at which a thread had read a datagram, by thread id, in the order of time.
    reads: BTreeMap<i32, Vec<i64>>,
    /// Time spans in which hops are missing.
    gaps: Vec<(i64, i64)>,
}

/// A device that messages pass.
#[derive(Debug, PartialEq, Eq)]
struct Device {
    name: String,
    discipline: Option<String>,
}

impl Hops {
    /// The hops in the time span from `begin` to `end` that all agents recorded.
    pub fn of<'a>(seen: impl Iterator<Item = &'a Switches>, (begin, end): (i64, i64)) -> Hops {
        let mut hops = Hops::default();
        let all = seen.filter_map(|s| s.packets.as_ref()).enumerate();
        all.for_each(|(number, packets)| hops.add(number, packets, (begin, end)));
        hops.messages
            .values_mut()
            .chain(hops.unread.values_mut())
            .for_each(|of_one| of_one.sort_by_key(|passed| passed.hop.at_ns));
        hops.reads.values_mut().for_each(|times| times.sort_unstable());
        hops
    }

    fn add(&mut self, number: usize, packets: &Packets, (begin, end): (i64, i64)) {
        let within = |at_ns: i64| (begin..=end).contains(&at_ns);
        let first = self.devices.len();
        let device =
            |d: &tailbound_model::PacketDevice| Device { name: d.name.clone(), discipline: d.discipline.clone() };
        self.devices.extend(packets.devices.iter().map(device));
        for hop in packets.hops.iter().filter(|hop| within(hop.at_ns)) {
            let device = hop.device.map(|d| first + usize::from(d)).filter(|d| *d < self.devices.len());
            let passed = match is_unread(hop.seq) {
                true => self.unread.entry((number, hop.seq)).or_default(),
                false => self.messages.entry(counter_of(hop.seq)).or_default(),
            };
            passed.push(Passed { hop: *hop, device });
        }
        for read in packets.reads.iter().filter(|read| within(read.at_ns)) {
            self.reads.entry(read.thread).or_default().push(read.at_ns);
        }
        self.gaps.extend(packets.gaps.iter().copied().filter(|(from, to)| *from < end && begin < *to));
    }

    /// The way of the message of a slot that was sent after the time `from_ns` and received at the time `to_ns`, and how it is
    /// known that this is the way of the message; `None` if it was not followed. The call that sent it returned at the time
    /// `sent_ns`. If the message could not be read, it is the only datagram that could not be read and that was sent within this
    /// call: by a thread of the sender, for which `sender` says whether it is the one that called.
    pub fn way(
        &self,
        slot: u64,
        (from_ns, sent_ns, to_ns): (i64, i64, i64),
        sender: impl Fn(i32) -> Option<bool>,
    ) -> Option<(Way, Evidence)> {
        if self.gaps.iter().any(|(from, to)| *from < to_ns && from_ns < *to) {
            return None;
        }
        let on_the_way = |p: &&Passed| (from_ns..=to_ns).contains(&p.hop.at_ns);
        let chosen = |passed: &Vec<Passed>| passed.iter().filter(on_the_way).copied().collect::<Vec<_>>();
        if let Some(passed) = self.messages.get(&slot) {
            return Some((way(&chosen(passed))?, Evidence::Seen));
        }
        let is_sent = |p: &Passed| {
            p.hop.at == HopPlace::Queued && sender(p.hop.thread).is_some() && (from_ns..=sent_ns).contains(&p.hop.at_ns)
        };
        let mut candidates = self.unread.iter().filter(|(_, passed)| passed.first().is_some_and(is_sent));
        let ((_, seq), passed) = candidates.next().filter(|_| candidates.next().is_none())?;
        // The middleware may have sent something else instead, and another thread may have sent an earlier message.
        let calls = passed.first().and_then(|p| sender(p.hop.thread)).unwrap_or(false);
        let is_sure = calls && stream_of(*seq) == IN_PAGES;
        let evidence = if is_sure { Evidence::Seen } else { Evidence::Inferred };
        Some((way(&chosen(passed))?, evidence))
    }

    /// Time at which `thread` had read the last other datagram before the one that it read last between two times;
    /// `None` if it read at most one.
    pub fn read_another(&self, thread: i32, (from_ns, to_ns): (i64, i64)) -> Option<i64> {
        let times = self.reads.get(&thread)?;
        let within = &times[times.partition_point(|at| *at <= from_ns)..times.partition_point(|at| *at <= to_ns)];
        within.len().checked_sub(2).map(|other| within[other])
    }

    /// Whether `thread` read a datagram of an end between two times.
    pub fn has_read(&self, thread: i32, (from_ns, to_ns): (i64, i64)) -> bool {
        let times = self.reads.get(&thread).map_or(&[][..], Vec::as_slice);
        times.get(times.partition_point(|at| *at < from_ns)).is_some_and(|at| *at <= to_ns)
    }

    /// Name of a device, and the kind of its queue discipline.
    pub fn device(&self, index: usize) -> Option<(&str, Option<&str>)> {
        let device = self.devices.get(index)?;
        Some((&device.name, device.discipline.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::way::tests::hop;
    use tailbound_model::{COUNTER_BITS, PROTECTED, PacketHop, SocketRead};

    fn hops(packets: Packets) -> Hops {
        Hops::of([Switches { packets: Some(packets), ..Switches::default() }].iter(), (0, 1_000))
    }

    #[test]
    fn hops_of_a_time_in_which_records_were_lost_are_not_used() {
        let hop = hop(10, HopPlace::Queued, 0).hop;
        let hops = hops(Packets { gaps: vec![(50, 60)], hops: vec![hop], ..Packets::default() });
        let way = |slot, from_ns, to_ns| hops.way(slot, (from_ns, from_ns, to_ns), |_| Some(true));
        assert_eq!(way(3, 5, 100), None);
        assert!(way(3, 5, 40).is_some());
        // Another message, and another time.
        assert_eq!([way(4, 5, 40), way(3, 11, 40)], [None, None]);
    }

    #[test]
    fn the_only_datagram_that_a_call_sends_is_its_message_although_it_cannot_be_read() {
        let hop = |at_ns, at, seq| PacketHop { seq, ..hop(at_ns, at, 0).hop };
        let [first, second] = [0, 1].map(|number| IN_PAGES << COUNTER_BITS | number);
        let other = PROTECTED << COUNTER_BITS;
        let all = vec![
            hop(10, HopPlace::Queued, first),
            hop(30, HopPlace::InSocket, first),
            hop(50, HopPlace::Queued, second),
            hop(55, HopPlace::Queued, other),
            hop(70, HopPlace::InSocket, other),
        ];
        let hops = hops(Packets { hops: all, ..Packets::default() });
        let way = |from_ns, sent_ns| {
            let (way, evidence) = hops.way(3, (from_ns, sent_ns, 100), |thread| (thread == 10).then_some(true))?;
            Some((way.from_ns, way.to_ns, evidence))
        };
        assert_eq!(way(5, 20), Some((10, 30, Evidence::Seen)));
        assert_eq!(way(52, 60), Some((55, 70, Evidence::Inferred)));
        // Two datagrams, none, and one of another thread.
        assert_eq!([way(45, 60), way(80, 90)], [None, None]);
        assert_eq!(hops.way(3, (5, 20, 100), |thread| (thread != 10).then_some(true)), None);
        // A thread that did not call may have sent an earlier message.
        assert_eq!(hops.way(3, (5, 20, 100), |_| Some(false)).map(|(_, evidence)| evidence), Some(Evidence::Inferred));
    }

    #[test]
    fn the_last_read_is_that_of_the_message_itself() {
        let reads = [110, 120, 130].map(|at_ns| SocketRead { at_ns, thread: 20, port: 1 }).to_vec();
        let hops = hops(Packets { reads, ..Packets::default() });
        assert_eq!(hops.read_another(20, (100, 140)), Some(120));
        assert_eq!(hops.read_another(20, (120, 140)), None);
        assert_eq!(hops.read_another(21, (100, 140)), None);
    }
}
