//! Captures in files: every form and kind of link gives the packets that were put into it, and damaged files give errors.

use super::wire::{FAR, PING, PONG, Peer, data, info_ts, message, writer_announced};
use super::{BEGIN, MS, US};
use tailbound_watch::{CaptureFile, CaptureFileError, Watch, read_capture};

/// Packets of a topic: when each was captured, and its bytes from the header of IP on.
fn packets(from: Peer) -> Vec<(i64, Vec<u8>)> {
    let packet =
        |at_ns: i64, submessages: &[Vec<u8>]| (BEGIN + at_ns, from.datagram(PONG, &message(from, submessages)));
    let sample = |n: i64| packet(n * MS, &[info_ts(BEGIN + n * MS - 30 * US), data(n, 100)]);
    std::iter::once(packet(0, &[writer_announced(from, "rt/chatter", "T")])).chain((1..=400).map(sample)).collect()
}

/// A number in the order of bytes of a file.
type Order = fn(u32) -> [u8; 4];

/// A file of the form pcap with nanoseconds or microseconds.
fn pcap(from: Peer, order: Order, (link, nanoseconds): (u32, bool), head: &[u8]) -> Vec<u8> {
    let (magic, unit) = if nanoseconds { (0xa1b2_3c4d, 1) } else { (0xa1b2_c3d4_u32, 1000) };
    // Version 2.4, two numbers of 16 bits.
    let version = if order(1) == 1_u32.to_le_bytes() { 0x0004_0002 } else { 0x0002_0004 };
    let mut file: Vec<u8> = [magic, version, 0, 0, 65_535, link].map(order).concat();
    for (at_ns, bytes) in packets(from) {
        let length = (head.len() + bytes.len()) as u32;
        let times = [(at_ns / 1_000_000_000) as u32, (at_ns % 1_000_000_000 / unit) as u32];
        file.extend([times[0], times[1], length, length].map(order).concat());
        file.extend(head);
        file.extend(bytes);
    }
    file
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

/// A file of the form pcapng: an interface of Ethernet with nanoseconds, which sent its packets.
fn pcapng(from: Peer) -> Vec<u8> {
    let section = [0x1a2b_3c4d_u32, 1, u32::MAX, u32::MAX].map(u32::to_le_bytes).concat();
    // Option 9: the resolution of times, as a power of ten.
    let interface = [vec![1, 0, 0, 0, 0, 0, 4, 0], vec![9, 0, 1, 0, 9, 0, 0, 0], vec![0; 4]].concat();
    let mut file = [block(0x0a0d_0d0a, &section), block(1, &interface)].concat();
    for (at_ns, bytes) in packets(from) {
        let mut data = [&[2; 12][..], &[8, 0], &bytes].concat();
        let length = data.len() as u32;
        data.resize(data.len().next_multiple_of(4), 0);
        let head = [0, (at_ns >> 32) as u32, at_ns as u32, length, length].map(u32::to_le_bytes).concat();
        // Option 2: flags; outbound.
        file.extend(block(6, &[head, data, vec![2, 0, 4, 0, 2, 0, 0, 0], vec![0; 4]].concat()));
    }
    file
}

fn read(file: &[u8]) -> Result<(CaptureFile, tailbound_document::WatchReport), CaptureFileError> {
    let mut watch = Watch::new("a file".into(), BEGIN, Default::default());
    let found = read_capture(std::io::Cursor::new(file.to_vec()), |packet| watch.packet(packet))?;
    Ok((found, watch.report(found.span_ns.1, 0, Default::default())))
}

#[test]
fn every_form_and_link_gives_the_same_samples() {
    let ethernet = [&[2; 12][..], &[8, 0]].concat();
    let vlan = [&[2; 12][..], &[0x81, 0, 0, 10, 8, 0]].concat();
    let any = [&[0, 4, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0][..], &[8, 0]].concat();
    let any_2 = [&[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 4, 6][..], &[0; 8]].concat();
    let little: Order = u32::to_le_bytes;
    // Of packets with an address of the loopback network, the host is known.
    for (from, is_here) in [(PING, true), (FAR, false)] {
        let pcap = |link, nanoseconds, head: &[u8]| pcap(from, little, (link, nanoseconds), head);
        for (what, file) in [
            ("microseconds", pcap(1, false, &ethernet)),
            ("nanoseconds", pcap(1, true, &ethernet)),
            ("big-endian", self::pcap(from, u32::to_be_bytes, (1, true), &ethernet)),
            ("a tag of a VLAN", pcap(1, true, &vlan)),
            ("IP alone", pcap(101, true, &[])),
            ("loopback of BSD", pcap(0, true, &[2, 0, 0, 0])),
            ("all interfaces", pcap(113, true, &any)),
            ("all interfaces, second version", pcap(276, true, &any_2)),
            ("pcapng", pcapng(from)),
        ] {
            the_packets_are_in(what, &file, is_here);
        }
    }
}

fn the_packets_are_in(what: &str, file: &[u8], is_here: bool) {
    let (found, report) = read(file).unwrap_or_else(|e| panic!("{what}: {e}"));
    let expected = CaptureFile {
        packets: 401,
        span_ns: (BEGIN, BEGIN + 400 * MS),
        of_unknown_links: 0,
        without_time: 0,
        of_any_interface: if what == "all interfaces" { 401 } else { 0 },
        is_cut: false,
    };
    assert_eq!(found, expected, "{what}");
    let writer = &report.topics[0].writers[0];
    assert_eq!(report.topics[0].ros_topic.as_deref(), Some("/chatter"), "{what}");
    assert_eq!((writer.samples, writer.is_here), (400, is_here), "{what}");
    // A packet that was sent by the host that captured it has the clock of the capture.
    let late = writer.lateness.as_ref().unwrap();
    let planted = if is_here { 30 * US } else { 0 };
    let microsecond = if what == "microseconds" { 1000 } else { 1 };
    assert!((late.range.p50_ns - planted).abs() <= planted / 100 + microsecond, "{what}: {late:?}");
    assert_eq!(late.is_above_fastest, !is_here, "{what}");
}

/// Test: a file has packets of all programs; those of TCP are of zenoh only from and to its ports.
#[test]
fn packets_of_other_programs_are_not_those_of_zenoh() {
    let tcp = |port: u16| {
        let mut packet = PING.datagram(PONG, &[0; 40]);
        packet[9] = 6;
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        packet
    };
    let mut watch = Watch::new("a file".into(), BEGIN, Default::default());
    for (index, port) in [22, 443, 7447, 50_000].into_iter().enumerate() {
        let stamp_ns = BEGIN + index as i64;
        watch.packet(tailbound_watch::Seen { stamp_ns, interface: 1, is_sent: true, bytes: &tcp(port) });
    }
    assert_eq!(watch.report(BEGIN, 0, Default::default()).zenoh_packets, 1);
}

/// Test: a file that ends anywhere gives an error, or the packets before this place.
#[test]
fn a_file_that_is_cut_gives_what_was_before() {
    for whole in [pcap(PING, u32::to_le_bytes, (101, true), &[]), pcapng(PING)] {
        let mut last = 0;
        for length in (0..whole.len()).step_by(37) {
            match read(&whole[..length]) {
                Ok((found, _)) => {
                    assert!(found.packets >= last && found.packets < 401, "{length}: {found:?}");
                    last = found.packets;
                }
                Err(error) => assert!(length < 400, "{length}: {error}"),
            }
        }
        assert!(last > 390, "{last}");
    }
}

#[test]
fn what_is_no_capture_is_refused() {
    let unknown = pcap(PING, u32::to_le_bytes, (147, true), &[]);
    let empty = &pcap(PING, u32::to_le_bytes, (1, true), &[])[..24];
    let all = [&b""[..], b"topics:\n  - a\n and so on, which is longer than a header\n", empty, &unknown];
    let texts = all.map(|file| read(file).unwrap_err().to_string());
    assert_eq!(
        texts,
        [
            "this is no capture in the form pcap or pcapng",
            "this is no capture in the form pcap or pcapng",
            "the capture has no packets",
            "the packets have a kind of link that is not known here (147)"
        ]
    );
}
