//! Feeds packets of which everything is known: writers, samples, retransmissions, replays, fragments and losses.

mod also;
mod budget;
mod calls;
mod chain;
mod compare;
mod file;
mod incidents;
mod study;
mod trace;
mod wire;

use tailbound_document::{WatchReport, WatchedProtocol, WatchedWriter};
use tailbound_watch::{Seen, Watch};
use wire::{
    FAR, PING, PONG, Peer, data, data_of, fragment, gap, heartbeat, info_dst, info_ts, message, nack, nack_fragments,
    writer_announced,
};

const US: i64 = 1_000;
const MS: i64 = 1_000 * US;
const SECOND: i64 = 1_000 * MS;
/// When the captures of these tests begin, ns since 1970.
const BEGIN: i64 = 1_796_000_000 * SECOND;

/// A capture at the loopback interface: each packet is seen when it is sent, and when it is received.
struct Loopback {
    watch: Watch,
    end_ns: i64,
}

impl Loopback {
    fn new() -> Loopback {
        Loopback { watch: Watch::new("loopback".into(), BEGIN, Default::default()), end_ns: BEGIN }
    }

    /// A packet at a time after the begin.
    fn packet(&mut self, after_ns: i64, bytes: &[u8]) {
        self.end_ns = BEGIN + after_ns;
        for is_sent in [true, false] {
            let stamp_ns = self.end_ns + if is_sent { 0 } else { 2 * US };
            self.watch.packet(Seen { stamp_ns, interface: 1, is_sent, bytes });
        }
    }

    fn send(&mut self, after_ns: i64, from: Peer, to: Peer, submessages: &[Vec<u8>]) {
        self.packet(after_ns, &from.datagram(to, &message(from, submessages)));
    }

    /// The report at the end, two seconds after the last packet.
    fn report(&self) -> WatchReport {
        self.watch.report(self.end_ns + 2 * SECOND, 0, Default::default())
    }
}

fn only_writer(report: &WatchReport) -> &WatchedWriter {
    assert_eq!(report.topics.len(), 1, "{:?}", report.topics);
    assert_eq!(report.topics[0].writers.len(), 1, "{:?}", report.topics);
    &report.topics[0].writers[0]
}

/// Test: samples, their rate and lateness, and the names that were announced; copies are no packets.
#[test]
fn samples_are_counted_once_with_their_lateness() {
    let mut all = Loopback::new();
    all.send(0, PING, PONG, &[writer_announced(PING, "rt/chatter", "std_msgs::msg::dds_::String_")]);
    for n in 1..=1000 {
        let sent = n * MS;
        // Written 30 us before the packet is sent; every hundredth one 5 ms before.
        let late = if n % 100 == 0 { 5 * MS } else { 30 * US };
        all.send(sent, PING, PONG, &[info_ts(BEGIN + sent - late), data(n, 100)]);
    }
    let report = all.report();
    assert_eq!((report.packets, report.copies, report.participants), (1001, 1001, 1));
    let topic = &report.topics[0];
    assert_eq!((topic.topic.as_deref(), topic.ros_topic.as_deref()), (Some("rt/chatter"), Some("/chatter")));
    let writer = only_writer(&report);
    assert_eq!((writer.samples, writer.bytes, writer.without_time), (1000, Some((100, 100)), 0));
    assert!((writer.rate_hz.unwrap() - 1000.0).abs() < 1e-6, "{:?}", writer.rate_hz);
    let late = writer.lateness.as_ref().unwrap();
    assert!(!late.is_above_fastest && writer.is_here);
    let near = |found: i64, planted: i64| (planted..=planted + planted / 100 + 2).contains(&found);
    assert!(near(late.range.p50_ns, 30 * US) && near(late.range.p99_ns.unwrap(), 30 * US), "{late:?}");
    assert!(near(late.range.max_ns, 5 * MS) && near(late.range.min_ns, 30 * US), "{late:?}");
    assert_eq!(writer.protocol, WatchedProtocol::default());
    let qos = writer.qos.as_ref().unwrap();
    assert_eq!(
        (qos.reliability.as_str(), qos.durability.as_str(), qos.deadline_ns),
        ("reliable", "transient-local", Some(200 * MS))
    );
}

/// Test: a sample that a reader asks for and gets is no new sample, and has no lateness of its own.
#[test]
fn what_is_sent_again_is_counted_apart() {
    let mut all = Loopback::new();
    all.send(0, PONG, PING, &[info_dst(PING), nack(1, &[], 1)]);
    for n in 1..=20 {
        all.send(n * MS, PING, PONG, &[info_ts(BEGIN + n * MS - 50 * US), data(n, 64), heartbeat(1, n, n as u32)]);
    }
    // Samples 3 and 7 were lost on the way; one of them is sent with the same bytes as before, the other one to one reader.
    all.send(21 * MS, PONG, PING, &[info_dst(PING), nack(3, &[3, 7], 2)]);
    all.send(22 * MS, PING, PONG, &[info_ts(BEGIN + 3 * MS - 50 * US), data(3, 64)]);
    all.send(23 * MS, PING, PONG, &[info_dst(PONG), info_ts(BEGIN + 7 * MS - 50 * US), data_of(7, 64, PONG)]);
    all.send(24 * MS, PONG, PING, &[info_dst(PING), nack(21, &[], 3)]);
    let report = all.report();
    let writer = only_writer(&report);
    assert_eq!(writer.samples, 20);
    assert!(writer.lateness.as_ref().unwrap().range.max_ns <= 51 * US, "{:?}", writer.lateness);
    let expected =
        WatchedProtocol { again: 2, requested: 2, heartbeats: 20, acknowledgements: 3, ..Default::default() };
    assert_eq!(writer.protocol, expected);
}

/// Test: what a reader asks for and never acknowledges is lost; what the writer says it no longer has is given up.
#[test]
fn only_what_is_known_to_be_lost_is_called_lost() {
    let mut all = Loopback::new();
    all.send(0, PONG, PING, &[info_dst(PING), nack(1, &[], 1)]);
    for n in (1..=10).filter(|n| *n != 4) {
        all.send(n * MS, PING, PONG, &[info_ts(BEGIN + n * MS), data(n, 64)]);
    }
    all.send(11 * MS, PONG, PING, &[info_dst(PING), nack(2, &[2, 5, 9], 2)]);
    all.send(12 * MS, PING, PONG, &[info_dst(PONG), gap(5, 6)]);
    all.send(13 * MS, PONG, PING, &[info_dst(PING), nack(9, &[9], 3)]);
    let report = all.report();
    let protocol = only_writer(&report).protocol;
    // Sample 2 was acknowledged, 5 was given up, 9 was never acknowledged; 4 was not seen, which alone does not mean lost.
    assert_eq!((protocol.requested, protocol.given_up, protocol.lost, protocol.numbers_not_seen), (3, 1, 1, 1));
}

/// Test: history that a writer sends to a reader that joins later has no lateness.
#[test]
fn replays_to_late_readers_are_apart() {
    let mut all = Loopback::new();
    for n in 1..=5 {
        all.send(n * MS, PING, PONG, &[info_ts(BEGIN + n * MS - 40 * US), data(n, 64)]);
    }
    let late = Peer { port: 7413, prefix: 9, ..PONG };
    for n in 1..=5 {
        let at = 3600 * SECOND + n * MS;
        all.send(at, PING, late, &[info_dst(late), info_ts(BEGIN + n * MS - 40 * US), data_of(n, 64, late)]);
    }
    all.send(3601 * SECOND, PING, PONG, &[info_ts(BEGIN + 3601 * SECOND - 40 * US), data(6, 64)]);
    all.send(3601 * SECOND + 20 * US, PING, late, &[info_ts(BEGIN + 3601 * SECOND - 40 * US), data(6, 64)]);
    let report = all.report();
    let writer = only_writer(&report);
    assert_eq!((writer.samples, writer.protocol.replayed, writer.protocol.again), (6, 5, 0));
    assert!(writer.lateness.as_ref().unwrap().range.max_ns <= 41 * US, "{:?}", writer.lateness);
}

/// Test: a writer sent its sample hours ago, and a reader joins while nothing else is sent: no lateness of hours. On the host of the
/// writer its time says so, elsewhere its heartbeat.
#[test]
fn history_is_no_late_sample() {
    let mut all = Loopback::new();
    let source = BEGIN - 7200 * SECOND;
    all.send(MS, PING, PONG, &[info_ts(source), data(1, 64)]);
    let report = all.report();
    let writer = only_writer(&report);
    assert_eq!((writer.samples, writer.protocol.replayed, writer.lateness.is_none()), (0, 1, true));
    let mut watch = Watch::new("eth0".into(), BEGIN, Default::default());
    let mut receive = |at: i64, from: Peer, to: Peer, submessages: &[Vec<u8>]| {
        let bytes = from.datagram(to, &message(from, submessages));
        watch.packet(Seen { stamp_ns: BEGIN + at, interface: 2, is_sent: false, bytes: &bytes });
    };
    receive(0, PING, PONG, &[heartbeat(1, 3, 1)]);
    receive(MS, PONG, PING, &[info_dst(PING), nack(1, &[1, 2, 3], 1)]);
    for n in 1..=3 {
        receive(2 * MS + n, PING, PONG, &[info_dst(PONG), info_ts(source), data_of(n, 64, PONG)]);
    }
    receive(5 * MS, PONG, PING, &[info_dst(PING), nack(4, &[], 2)]);
    receive(6 * MS, PING, PONG, &[info_ts(BEGIN + 6 * MS - 80 * US), data(4, 64)]);
    let report = watch.report(BEGIN + SECOND, 0, Default::default());
    let writer = only_writer(&report);
    assert_eq!((writer.samples, writer.protocol.replayed, writer.protocol.requested), (1, 3, 0));
    assert_eq!(writer.lateness.as_ref().unwrap().range.count, 1);
}

/// Test: the same sample from two interfaces of a host is one sample, and not sent again.
#[test]
fn samples_from_two_interfaces_are_one() {
    let mut all = Loopback::new();
    for n in 1..=10 {
        for host in [1, 3] {
            let from = Peer { host, ..PING };
            all.send(n * MS + i64::from(host) * US, from, PONG, &[info_ts(BEGIN + n * MS - 20 * US), data(n, 64)]);
        }
    }
    let report = all.report();
    let writer = only_writer(&report);
    assert_eq!((writer.samples, writer.protocol), (10, WatchedProtocol::default()));
}

/// Test: what the writer says to one reader does not concern the others.
#[test]
fn a_gap_for_one_reader_leaves_the_requests_of_others() {
    let mut all = Loopback::new();
    let other = Peer { host: 4, prefix: 4, ..PONG };
    for reader in [PONG, other] {
        all.send(0, reader, PING, &[info_dst(PING), nack(1, &[], 1)]);
    }
    for n in 1..=10 {
        all.send(n * MS, PING, PONG, &[info_ts(BEGIN + n * MS), data(n, 64)]);
    }
    for reader in [PONG, other] {
        all.send(11 * MS, reader, PING, &[info_dst(PING), nack(5, &[5], 2)]);
    }
    all.send(12 * MS, PING, other, &[info_dst(other), gap(1, 8)]);
    let protocol = only_writer(&all.report()).protocol;
    assert_eq!((protocol.requested, protocol.given_up, protocol.lost), (2, 1, 1));
}

/// Test: one sample to several readers, one after the other, is one sample.
#[test]
fn several_destinations_are_one_sample() {
    let mut all = Loopback::new();
    let others = [PONG, Peer { port: 7413, ..PONG }, Peer { port: 7415, ..PONG }];
    for n in 1..=10 {
        for (index, to) in others.into_iter().enumerate() {
            let at = n * MS + index as i64 * 10 * US;
            all.send(at, PING, to, &[info_ts(BEGIN + n * MS - 20 * US), data(n, 64)]);
        }
    }
    // A sample in two fragments, all of them to one reader and then to the next one.
    for (index, to) in others.into_iter().enumerate() {
        for part in 1..=2 {
            let at = 20 * MS + index as i64 * 10 * US + i64::from(part) * US;
            all.send(at, PING, to, &[info_ts(BEGIN + 20 * MS - 10 * US), fragment(11, part, 2000)]);
        }
    }
    let report = all.report();
    let writer = only_writer(&report);
    assert_eq!((writer.samples, writer.protocol), (11, WatchedProtocol { fragments: 2, ..Default::default() }));
    assert!(writer.lateness.as_ref().unwrap().range.max_ns <= 21 * US, "the first destination counts");
}

/// Test: the lateness of a sample in fragments ends with the last fragment; fragments that are sent again are counted.
#[test]
fn fragments_end_with_the_last_one() {
    let mut all = Loopback::new();
    all.send(0, PONG, PING, &[info_dst(PING), nack(1, &[], 1)]);
    let source = BEGIN + MS - 10 * US;
    for index in 1..=4 {
        all.send(MS + i64::from(index) * 100 * US, PING, PONG, &[info_ts(source), fragment(1, index, 4000)]);
    }
    // Of the second sample, fragment 2 was lost on the way.
    for index in 1..=4 {
        all.send(
            5 * MS + i64::from(index) * 100 * US,
            PING,
            PONG,
            &[info_ts(source + 4 * MS), fragment(2, index, 4000)],
        );
    }
    all.send(6 * MS, PONG, PING, &[info_dst(PING), nack_fragments(2)]);
    all.send(7 * MS, PING, PONG, &[info_dst(PONG), info_ts(source + 4 * MS), fragment(2, 2, 4000)]);
    let report = all.report();
    let writer = only_writer(&report);
    assert_eq!((writer.samples, writer.protocol.fragments, writer.protocol.again), (2, 8, 1));
    assert_eq!(writer.bytes, Some((3996, 3996)));
    let range = writer.lateness.as_ref().unwrap().range;
    assert!((410 * US..=414 * US).contains(&range.min_ns) && range.max_ns <= 414 * US, "{range:?}");
    assert_eq!((writer.protocol.unfinished, range.count), (0, 2));
}

/// Test: the samples of a datagram in IP fragments are complete with the last fragment of IP.
#[test]
fn ip_fragments_end_with_the_last_one() {
    let mut all = Loopback::new();
    let whole = message(PING, &[info_ts(BEGIN + MS), data(1, 4000)]);
    for (index, packet) in PING.ip_fragments(PONG, &whole).iter().enumerate() {
        all.packet(2 * MS + index as i64 * 50 * US, packet);
    }
    // The first fragment of another one was not seen.
    all.packet(5 * MS, &PING.ip_fragments(PONG, &message(PING, &[data(2, 4000)]))[1]);
    let report = all.report();
    let writer = only_writer(&report);
    assert_eq!((writer.samples, writer.lateness.as_ref().unwrap().range.max_ns), (1, MS + 100 * US));
    assert_eq!(report.unread.fragments_alone, 1);
}

/// Test: samples from elsewhere have a lateness above the fastest one, whatever the clocks say.
#[test]
fn samples_from_elsewhere_are_above_the_fastest() {
    let mut watch = Watch::new("eth0".into(), BEGIN, Default::default());
    for n in 1..=500 {
        let (late, away) = (if n == 77 { 900 * US } else { 100 * US }, 7_200 * SECOND);
        let bytes = FAR.datagram(PONG, &message(FAR, &[info_ts(BEGIN + n * MS - late - away), data(n, 64)]));
        watch.packet(Seen { stamp_ns: BEGIN + n * MS, interface: 2, is_sent: false, bytes: &bytes });
    }
    let report = watch.report(BEGIN + SECOND, 0, Default::default());
    let writer = only_writer(&report);
    let late = writer.lateness.as_ref().unwrap();
    assert!(late.is_above_fastest && !writer.is_here);
    assert_eq!((late.range.min_ns, late.range.max_ns), (0, 800 * US));
}

/// Test: samples without a time have no lateness, and broken submessages are counted, not followed.
#[test]
fn what_cannot_be_read_is_counted() {
    let mut all = Loopback::new();
    all.send(MS, PING, PONG, &[data(1, 64)]);
    let mut broken = heartbeat(5, 1, 1);
    all.send(2 * MS, PING, PONG, &[broken.clone()]);
    broken.truncate(12);
    (broken[2], broken[3]) = (8, 0);
    all.send(3 * MS, PING, PONG, &[broken]);
    all.send(4 * MS, PING, PONG, &[vec![0x33, 1, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8]]);
    let report = all.report();
    let writer = only_writer(&report);
    assert_eq!((writer.samples, writer.without_time, writer.lateness.is_none()), (1, 1, true));
    assert_eq!((report.unread.malformed, report.unread.protected), (2, 1));
    assert!(report.warnings.iter().any(|warning| warning.contains("encrypted or signed")), "{:?}", report.warnings);
}

/// Test: the first 256 bytes of a packet are enough for the figures of samples. What is behind a long sample is not known, and is
/// counted.
#[test]
fn the_first_bytes_are_enough() {
    let figures = |cut: usize| {
        let mut watch = Watch::new("lo".into(), BEGIN, Default::default());
        for n in 1..=50 {
            let submessages = [info_ts(BEGIN + n * MS - 10 * US), data(n, 8000), heartbeat(1, n, n as u32)];
            let bytes = PING.datagram(PONG, &message(PING, &submessages));
            let bytes = &bytes[..bytes.len().min(cut)];
            watch.packet(Seen { stamp_ns: BEGIN + n * MS, interface: 1, is_sent: true, bytes });
        }
        watch.report(BEGIN + SECOND, 0, Default::default())
    };
    let (whole, cut) = (figures(usize::MAX), figures(256));
    let of = |report: &WatchReport| {
        let writer = only_writer(report);
        (writer.samples, writer.bytes, writer.lateness.clone())
    };
    assert_eq!(of(&whole), of(&cut));
    assert_eq!((cut.unread.malformed, cut.unread.behind_copied, whole.unread.behind_copied), (0, 50, 0));
}

/// Test: a capture that missed packets says so.
#[test]
fn missed_packets_are_a_warning() {
    let report = Watch::new("lo".into(), BEGIN, Default::default()).report(BEGIN + SECOND, 17, Default::default());
    assert!(report.warnings[0].contains("missing: 17"), "{:?}", report.warnings);
}
