//! Why messages were lost: single messages that the kernel was seen to drop, and time spans in which it counted dropped
//! datagrams at an end, from the counters that its agent read.

use std::collections::BTreeMap;
use tailbound_document::LossKind;
use tailbound_gates::LaunchGate;
use tailbound_model::{
    Counter, CounterMove, CounterSeries, LaunchRefusal, PacketHop, Packets, StreamFact, Switches, TrialSpec,
    counter_of, is_unread,
};
use tailbound_record::{EndRecord, TrialRecord};

/// A datagram that was dropped this long after its message was due was counted with the message, ns. Drops follow the
/// send call at once; the time also covers the wait for that call.
const AFTER_DUE_NS: i64 = 20_000_000;

/// Counters at the end to which a message was sent, which explain its loss.
const OF_RECEIVER: [Counter; 4] =
    [Counter::SocketBufferDrops, Counter::ReassemblyFailures, Counter::InterfaceReceiveDrops, Counter::BacklogDrops];
/// Counters at the end that sent a message, which explain its loss.
const OF_SENDER: [Counter; 1] = [Counter::InterfaceSendDrops];

/// Why a message was lost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// The kernel was seen to drop the message at this device (empty: at a socket), for this reason.
    Dropped { device: String, why: String },
    /// This counter moved when the message was lost, of this interface (empty: of no interface).
    Counted(Counter, String),
    /// The kernel of the ping refused the launch time of the message.
    Launch(LaunchRefusal),
    /// The launch time of the message is in no window of its gate.
    OutsideWindow,
    /// The gate for the packets that the receiving end receives dropped at least as many packets as messages were lost.
    Policed(PoliceReason),
}

/// Why a gate for received packets dropped packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PoliceReason {
    /// It was closed.
    Closed,
    /// The bytes of an open entry had passed.
    Overfull,
    /// Some packets for one reason, some for the other.
    Either,
}

/// Drops that were seen or counted, for each end.
#[derive(Debug, Default)]
pub(crate) struct Drops {
    /// Time spans in which drops were counted at an end.
    counted: BTreeMap<&'static str, Vec<Counted>>,
    /// Drops of messages that an end sent, by the number of the slot: their times and reasons.
    seen: BTreeMap<(&'static str, u64), Vec<(i64, Reason)>>,
    /// Slots of the ping whose launch times its kernel refused.
    launches: BTreeMap<u64, LaunchRefusal>,
    /// The gates of the ping that refuse launch times, and the time from the due time of a message (monotonic ns) to its launch time (ns
    /// of CLOCK_TAI).
    launch_gate: Option<(LaunchGate, i64)>,
    /// Number of packets that the gate of each policed end dropped, and why.
    policed: BTreeMap<&'static str, (u64, PoliceReason)>,
}

/// A time span in which a counter moved.
#[derive(Debug)]
struct Counted {
    counter: Counter,
    /// Name of the interface; empty if the counter belongs to none.
    of: String,
    from_ns: i64,
    to_ns: i64,
}

impl Drops {
    pub fn of(seen: &[Switches]) -> Drops {
        let explains = |counter| OF_RECEIVER.contains(&counter) || OF_SENDER.contains(&counter);
        let counted = |c: &CounterSeries, m: &CounterMove| Counted {
            counter: c.counter,
            of: c.of.clone(),
            from_ns: m.from_ns,
            to_ns: m.to_ns,
        };
        let spans = |end| {
            let of_end = seen.iter().filter(move |s| s.ends.iter().any(|e| e == end));
            let series = of_end.flat_map(|s| &s.counters).filter(|c| explains(c.counter));
            series.flat_map(|c| c.moves.iter().map(move |m| counted(c, m))).collect()
        };
        let counted = ["ping", "pong"].into_iter().map(|end| (end, spans(end))).collect();
        let mut drops = Drops { counted, ..Drops::default() };
        for end in ["ping", "pong"] {
            let of_end = seen.iter().filter(|s| s.ends.iter().any(|e| e == end));
            of_end.filter_map(|s| s.packets.as_ref()).for_each(|packets| drops.add(end, packets));
        }
        drops
    }

    /// Adds what the record of a trial says of messages that were not carried: launch times that the kernel of the ping refused or
    /// that no window contains, and packets that the gates of a receiver dropped.
    pub fn with_trial(self, done: &TrialRecord, spec: Option<&TrialSpec>) -> Drops {
        let drops = self.with_launches(done.stream.as_ref()).with_policed(&done.ends);
        if let Some(spec) = spec { drops.with_launch_gate(done, spec) } else { drops }
    }

    /// Adds the launch times that the kernel of the ping refused.
    pub fn with_launches(mut self, stream: Option<&StreamFact>) -> Drops {
        let refused = stream.map_or(&[][..], |stream| &stream.refused);
        self.launches = refused.iter().map(|refused| (refused.slot, refused.why)).collect();
        self
    }

    /// Adds the gates of the ping, which refuse launch times outside of their windows.
    pub fn with_launch_gate(mut self, done: &TrialRecord, spec: &TrialSpec) -> Drops {
        let launch_after_ns = || Some(done.stream.as_ref()?.ahead_ns + spec.stream?.launch?.lead.0);
        let ping = done.path.as_ref().and_then(|path| path.ends.iter().find(|end| end.end == "ping"));
        self.launch_gate = ping.and_then(|ping| LaunchGate::of(ping, spec)).zip(launch_after_ns());
        self
    }

    /// Adds what the gates for received packets of a trial dropped.
    pub fn with_policed(mut self, ends: &BTreeMap<String, EndRecord>) -> Drops {
        let dropped = |end| {
            let fact = ends.get(end)?.police.as_ref()?;
            let why = match fact.overfull {
                0 => PoliceReason::Closed,
                overfull if overfull < fact.dropped => PoliceReason::Either,
                _ => PoliceReason::Overfull,
            };
            Some((end, (fact.dropped, why)))
        };
        self.policed = ["ping", "pong"].into_iter().filter_map(dropped).collect();
        self
    }

    /// Number of packets that the gate of an end dropped, and why; `None` = the end is not policed.
    pub fn policed(&self, end: &str) -> Option<(u64, PoliceReason)> {
        self.policed.get(end).copied()
    }

    /// The reason if the kernel of the ping refused the launch time of this slot, which was due at this time.
    pub fn refused(&self, slot: u64, due_ns: Option<i64>) -> Option<Reason> {
        // taprio reports no launch times that it refuses: it drops the message before etf could.
        let is_outside =
            || self.launch_gate.as_ref().zip(due_ns).is_some_and(|((gate, after_ns), due)| !gate.takes(due + after_ns));
        let reported = self.launches.get(&slot).map(|why| Reason::Launch(*why));
        reported.or_else(|| is_outside().then_some(Reason::OutsideWindow))
    }

    fn add(&mut self, end: &'static str, packets: &Packets) {
        // Of a datagram that could not be read, the message is not known.
        for drop in packets.drops.iter().filter(|drop| !is_unread(drop.seq)) {
            let at = (end, counter_of(drop.seq));
            self.seen.entry(at).or_default().push((drop.at_ns, dropped(drop, packets)));
        }
    }

    /// The reason why the message of a slot was lost, which `sender` sent to `receiver` and which was due at this time.
    /// The last time counts if the message was sent several times.
    pub fn of_message(&self, slot: u64, (sender, receiver): (&'static str, &str), due_ns: i64) -> Option<Reason> {
        if let (true, Some(reason)) = (sender == "ping", self.refused(slot, None)) {
            return Some(reason);
        }
        let seen = self.seen.get(&(sender, slot)).into_iter().flatten().filter(|(at_ns, _)| *at_ns >= due_ns);
        let last = seen.max_by_key(|(at_ns, _)| *at_ns).map(|(_, reason)| reason.clone());
        last.or_else(|| self.explain((receiver, &OF_RECEIVER), due_ns))
            .or_else(|| self.explain((sender, &OF_SENDER), due_ns))
    }

    /// The first of `counters` of an end that increased when a message that was due at the time `due_ns` was lost.
    fn explain(&self, (end, counters): (&str, &[Counter]), due_ns: i64) -> Option<Reason> {
        let at_the_time = |c: &&Counted| c.from_ns < due_ns + AFTER_DUE_NS && due_ns <= c.to_ns;
        let moved = || self.counted.get(end).into_iter().flatten().filter(at_the_time);
        let of = |counter: &Counter| moved().find(|c| c.counter == *counter);
        counters.iter().find_map(of).map(|c| Reason::Counted(c.counter, c.of.clone()))
    }
}

/// The reason of a drop that was seen.
fn dropped(drop: &PacketHop, packets: &Packets) -> Reason {
    // Packets for a socket still have the device that received them.
    let at_socket = |why: &str| why.starts_with("SOCKET_");
    let number = drop.reason.unwrap_or_default();
    let why = packets.reasons.get(&number).cloned().unwrap_or_else(|| format!("number {number}"));
    let device = drop.device.and_then(|index| packets.devices.get(usize::from(index)));
    let device = device.filter(|_| !at_socket(&why)).map(|device| device.name.clone()).unwrap_or_default();
    Reason::Dropped { device, why }
}

/// The kind of the reason of a loss.
pub(crate) fn kind(reason: &Reason) -> LossKind {
    match reason {
        Reason::Dropped { why, .. } if why == "SOCKET_RCVBUFF" => LossKind::SocketBuffer,
        Reason::Dropped { device, .. } if device.is_empty() => LossKind::Other,
        Reason::Dropped { .. } => LossKind::Device,
        Reason::Launch(_) | Reason::OutsideWindow => LossKind::Launch,
        Reason::Policed(_) => LossKind::Policed,
        Reason::Counted(Counter::ReassemblyFailures, _) => LossKind::Fragments,
        Reason::Counted(Counter::InterfaceReceiveDrops, _) => LossKind::InterfaceReceive,
        Reason::Counted(Counter::InterfaceSendDrops, _) => LossKind::InterfaceSend,
        Reason::Counted(Counter::BacklogDrops, _) => LossKind::Backlog,
        Reason::Counted(..) => LossKind::SocketBuffer,
    }
}

/// The reason of a loss in words. `end`: the end to which the message was sent.
pub(crate) fn words(reason: &Reason, end: &str) -> String {
    match reason {
        Reason::Dropped { why, .. } if why == "SOCKET_RCVBUFF" => {
            format!("a receive buffer of the {end} end was full, so that the kernel dropped the datagram ({why})")
        }
        Reason::Dropped { device, why } if device.is_empty() => format!("the kernel dropped the datagram ({why})"),
        Reason::Dropped { device, why } => {
            format!("the kernel dropped the datagram at the device `{device}` ({why})")
        }
        Reason::Launch(LaunchRefusal::Invalid) => {
            "the kernel of the ping end refused the launch time, which had passed when the message reached the queue (etf)".into()
        }
        Reason::Launch(LaunchRefusal::Missed) => {
            "the launch time passed while the message waited in the queue of the ping end (etf)".into()
        }
        Reason::OutsideWindow => {
            "the gate of the ping end was not open at the launch time of the message, so that the kernel dropped it (taprio)".into()
        }
        Reason::Policed(why) => {
            let why = match why {
                PoliceReason::Closed => "was closed",
                PoliceReason::Overfull => "had passed the bytes of its entry",
                PoliceReason::Either => "was closed, or had passed the bytes of its entry",
            };
            format!("the gate for packets that the {end} end receives {why} (policing)")
        }
        Reason::Counted(Counter::ReassemblyFailures, _) => {
            format!("the kernel of the {end} end discarded fragments of datagrams that stayed incomplete")
        }
        Reason::Counted(Counter::InterfaceReceiveDrops, name) => {
            format!("the interface `{name}` of the {end} end dropped packets that it had received")
        }
        Reason::Counted(Counter::InterfaceSendDrops, name) => {
            let sender = if end == "pong" { "ping" } else { "pong" };
            format!("the interface `{name}` of the {sender} end dropped packets that it should have sent")
        }
        Reason::Counted(Counter::BacklogDrops, _) => {
            format!("the backlog of a CPU of the {end} end was full, so that the kernel dropped packets")
        }
        Reason::Counted(..) => {
            format!("a receive buffer of the {end} end was full, so that the kernel dropped datagrams")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{HopPlace, PacketDevice, RefusedLaunch};

    /// Counters of an end, each of which moved between these times (ms).
    fn at(end: &str, counters: &[(Counter, &str, i64, i64)]) -> Switches {
        let one = |&(counter, of, from_ms, to_ms): &(Counter, &str, i64, i64)| CounterSeries {
            counter,
            of: of.to_owned(),
            moves: vec![CounterMove { from_ns: from_ms * 1_000_000, to_ns: to_ms * 1_000_000, by: 3 }],
            longest_step_ns: 50_000_000,
            complete_from_ns: None,
        };
        Switches { ends: vec![end.into()], counters: counters.iter().map(one).collect(), ..Switches::default() }
    }

    #[test]
    fn a_loss_belongs_to_the_counter_that_moved_when_it_was_due() {
        let drops = Drops::of(&[at("pong", &[(Counter::SocketBufferDrops, "", 100, 150)])]);
        let of = |ends, due_ns| drops.of_message(1, ends, due_ns);
        let full = Some(Reason::Counted(Counter::SocketBufferDrops, String::new()));
        let out = ("ping", "pong");
        assert_eq!([90_000_000, 150_000_000].map(|due| of(out, due)), [full.clone(), full]);
        assert_eq!([70_000_000, 151_000_000].map(|due| of(out, due)), [None, None]);
        assert_eq!(of(("pong", "ping"), 120_000_000), None);
    }

    #[test]
    fn a_refused_launch_time_is_the_reason_before_all_others() {
        let refused = RefusedLaunch { slot: 4, why: LaunchRefusal::Missed };
        let stream = StreamFact { refused: vec![refused], ..StreamFact::default() };
        let full = at("pong", &[(Counter::SocketBufferDrops, "", 100, 150)]);
        let drops = Drops::of(&[full]).with_launches(Some(&stream));
        let reason = |slot, ends| drops.of_message(slot, ends, 120_000_000).map(|reason| words(&reason, "pong"));
        let missed = "the launch time passed while the message waited in the queue of the ping end (etf)";
        assert_eq!(reason(4, ("ping", "pong")).as_deref(), Some(missed));
        assert_eq!(drops.refused(4, None), Some(Reason::Launch(LaunchRefusal::Missed)));
        assert!(reason(5, ("ping", "pong")).is_some_and(|text| text.contains("receive buffer")));
        assert_eq!((reason(4, ("pong", "ping")), drops.refused(5, None)), (None, None));
    }

    #[test]
    fn interfaces_drop_what_their_end_sends_or_receives() {
        let (send, receive) = (Counter::InterfaceSendDrops, Counter::InterfaceReceiveDrops);
        let ping = at("ping", &[(send, "eth0", 100, 150), (receive, "eth0", 200, 250)]);
        let pong = at("pong", &[(Counter::BacklogDrops, "", 300, 350), (send, "eth1", 400, 450)]);
        let drops = Drops::of(&[ping, pong]);
        let words_at = |(sender, receiver), due_ms: i64| {
            let reason = drops.of_message(1, (sender, receiver), due_ms * 1_000_000);
            reason.map(|reason| words(&reason, receiver))
        };
        let (out, back) = (("ping", "pong"), ("pong", "ping"));
        let some = |text: &str| Some(text.to_owned());
        let sent = some("the interface `eth0` of the ping end dropped packets that it should have sent");
        assert_eq!([words_at(out, 120), words_at(back, 120)], [sent, None]);
        let received = some("the interface `eth0` of the ping end dropped packets that it had received");
        assert_eq!([words_at(out, 220), words_at(back, 220)], [None, received]);
        let backlog = some("the backlog of a CPU of the pong end was full, so that the kernel dropped packets");
        assert_eq!([words_at(out, 320), words_at(back, 320)], [backlog, None]);
        let answer = some("the interface `eth1` of the pong end dropped packets that it should have sent");
        assert_eq!([words_at(out, 420), words_at(back, 420)], [None, answer]);
    }

    #[test]
    fn a_drop_that_was_seen_belongs_to_its_message() {
        let hop = |seq, at_ns, reason| PacketHop {
            at_ns,
            seq,
            at: HopPlace::Dropped,
            cpu: 0,
            thread: 1,
            buffer: 1,
            device: Some(0),
            offset: 0,
            part: 0,
            run: 0,
            reason: Some(reason),
        };
        let device = PacketDevice { name: "port1".into(), namespace: 1, discipline: None };
        let packets = Packets {
            devices: vec![device],
            drops: vec![hop(3, 100, 40), hop(4, 110, 6), hop(5, 120, 99)],
            reasons: [(40, "TC_EGRESS".to_owned()), (6, "SOCKET_RCVBUFF".to_owned())].into(),
            ..Packets::default()
        };
        let drops = Drops::of(&[Switches { ends: vec!["ping".into()], packets: Some(packets), ..Switches::default() }]);
        let of = |slot, due_ns| drops.of_message(slot, ("ping", "pong"), due_ns).map(|reason| words(&reason, "pong"));
        let expected = [
            "the kernel dropped the datagram at the device `port1` (TC_EGRESS)",
            "a receive buffer of the pong end was full, so that the kernel dropped the datagram (SOCKET_RCVBUFF)",
            "the kernel dropped the datagram at the device `port1` (number 99)",
        ];
        assert_eq!([3, 4, 5].map(|slot| of(slot, 50)), expected.map(|text| Some(text.to_owned())));
        // Another message, a drop before the message was due, and an answer.
        assert_eq!([of(6, 50), of(3, 101)], [None, None]);
        assert_eq!(drops.of_message(3, ("pong", "ping"), 50), None);
    }
}
