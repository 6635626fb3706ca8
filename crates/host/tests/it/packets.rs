//! Tests: ways of messages through the kernel, compared with delays and drops that a test plants in a network namespace of
//! its own.

use crate::interrupts::{last_cpu, own_tid, record, tracer};
use crate::rooms::{Connected, Middle, connected};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{setsockopt, sockopt};
use std::net::UdpSocket;
use std::process::Command;
use tailbound_host::monotonic_ns;
use tailbound_host::switches::{SwitchWatch, Wanted};
use tailbound_model::{Attribution, COUNTER_BITS, CpuList, HopPlace, IN_PAGES, PacketHop, Packets, Switches};

/// Bytes of a message with its IP and UDP headers; the Ethernet header that the loopback interface has comes on top.
const MESSAGE_BYTES: i64 = 1_000 + 28;
/// Rate of the token bucket, bit/s.
const RATE: i64 = 1_000_000;

/// Runs a command in the network namespace of the calling thread. Returns whether it succeeded.
pub fn command(line: &str) -> bool {
    let mut words = line.split(' ');
    let done = words.next().map(|program| Command::new(program).args(words).status());
    done.is_some_and(|status| status.is_ok_and(|status| status.success()))
}

/// Enters a network namespace of its own and opens a pair of sockets there, the first connected to the second; without
/// the rights for it the test is skipped.
fn pair() -> Option<(UdpSocket, UdpSocket)> {
    if unshare(CloneFlags::CLONE_NEWNET).is_err() || !command("ip link set lo up") {
        println!("skipped: needs root, and the program ip");
        return None;
    }
    let (sender, receiver) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    Some((sender, receiver))
}

/// Begins to follow the messages of the calling thread's sockets; skipped without the tracer and the rights for it.
fn following() -> Option<SwitchWatch> {
    let tracer = tracer();
    let tid = own_tid();
    let wanted = Wanted { level: Attribution::Packets, tracer: tracer.as_deref(), process: Some(tid) };
    let watch = SwitchWatch::open(&[tid], &CpuList::one(last_cpu()), &wanted);
    let recorder = watch.recorder().cloned();
    let has_it = recorder.as_ref().is_some_and(|r| r.level == Attribution::Packets);
    if !has_it {
        println!("skipped: {}", recorder.and_then(|r| r.instead).unwrap_or_default());
    }
    has_it.then_some(watch)
}

/// Sends a message with this number.
fn send(socket: &UdpSocket, seq: u64) {
    send_bytes(socket, seq, 1_000);
}

/// Sends a message of this size with this number.
fn send_bytes(socket: &UdpSocket, seq: u64, bytes: usize) {
    let mut message = vec![0x55; bytes];
    message[..8].copy_from_slice(&seq.to_le_bytes());
    socket.send(&message).unwrap();
}

fn packets([seen]: [Switches; 1]) -> Packets {
    let packets = seen.packets.expect("messages were followed");
    assert_eq!(packets.gaps, []);
    packets
}

fn at(packets: &Packets, seq: u64, place: HopPlace) -> &PacketHop {
    let mut found = packets.hops.iter().filter(|hop| hop.seq == seq && hop.at == place);
    let hop = found.next().unwrap_or_else(|| panic!("message {seq} was not seen as {place:?}: {packets:?}"));
    assert!(found.next().is_none(), "message {seq} was seen twice as {place:?}");
    hop
}

/// The hops of a message at this place and this device; at no device if the name is empty.
fn hops_at<'a>(packets: &'a Packets, seq: u64, place: HopPlace, device: &str) -> Vec<&'a PacketHop> {
    let name = |hop: &PacketHop| hop.device.map_or("", |at| packets.devices[usize::from(at)].name.as_str());
    packets.hops.iter().filter(|hop| hop.seq == seq && hop.at == place && name(hop) == device).collect()
}

#[test]
fn a_token_bucket_is_where_messages_wait() {
    const MESSAGES: i64 = 5;
    let Some((sender, receiver)) = pair() else { return };
    // The bucket holds one message.
    if !command(&format!("tc qdisc add dev lo root tbf rate {RATE} burst 1600 limit 1000000")) {
        return println!("skipped: tc cannot add a token bucket");
    }
    let Some(watch) = following() else { return };
    let (times, seen) = record([watch], || {
        let sent: Vec<i64> = (0..MESSAGES).map(|seq| (monotonic_ns(), send(&sender, seq as u64)).0).collect();
        let received = |_: &i64| {
            receiver.recv(&mut [0; 2_000]).unwrap();
            monotonic_ns()
        };
        let received: Vec<i64> = sent.iter().map(received).collect();
        sent.into_iter().zip(received).collect::<Vec<_>>()
    });
    let packets = packets(seen);
    for (seq, (sent, received)) in (0..).zip(&times) {
        let places =
            [HopPlace::Queued, HopPlace::Transmitted, HopPlace::Backlog, HopPlace::Received, HopPlace::InSocket];
        let hops = places.map(|place| at(&packets, seq, place));
        let hop_times = hops.map(|hop| hop.at_ns);
        assert!(hop_times.is_sorted() && *sent < hop_times[0] && hop_times[4] < *received, "{hops:?}");
        // The bucket cannot send sooner than its rate allows, with one message in advance.
        let held = hop_times[1] - hop_times[0];
        let least = (seq as i64 - 1) * MESSAGE_BYTES * 8 * 1_000_000_000 / RATE - (hop_times[0] - times[0].0);
        assert!(held >= least, "message {seq} was held for {held} ns, and must be for {least} ns");
    }
    let device = &packets.devices[usize::from(at(&packets, 0, HopPlace::Queued).device.expect("a device"))];
    assert_eq!((device.name.as_str(), device.discipline.as_deref()), ("lo", Some("tbf")));
    assert_eq!((packets.reads.len(), packets.drops.len(), packets.not_followed.len()), (MESSAGES as usize, 0, 0));
}

/// Test: the kernel keeps a large message on the loopback interface in pages of their own, where its number is not read.
#[test]
fn a_message_in_pages_is_followed_by_its_packet_buffer() {
    let Some((sender, receiver)) = pair() else { return };
    let Some(watch) = following() else { return };
    let (tid, seen) = record([watch], || {
        for seq in 0..3 {
            send_bytes(&sender, seq, 60_000);
            receiver.recv(&mut [0; 65_536]).unwrap();
        }
        own_tid()
    });
    let packets = packets(seen);
    for number in 0..3 {
        let seq = IN_PAGES << COUNTER_BITS | number;
        let places =
            [HopPlace::Queued, HopPlace::Transmitted, HopPlace::Backlog, HopPlace::Received, HopPlace::InSocket];
        let hops = places.map(|place| at(&packets, seq, place));
        assert!(hops.map(|hop| hop.at_ns).is_sorted(), "{hops:?}");
        assert_eq!((hops[0].thread, hops.map(|hop| hop.buffer)), (tid, [hops[0].buffer; 5]));
    }
    assert_eq!((packets.hops.len(), packets.not_followed.len()), (15, 0));
}

#[test]
fn a_drop_has_its_place_and_its_reason() {
    let Some((sender, receiver)) = pair() else { return };
    setsockopt(&receiver, sockopt::RcvBuf, &0).unwrap();
    let filter = command("tc qdisc add dev lo clsact");
    let Some(watch) = following() else { return };
    let ((), seen) = record([watch], || {
        // The buffer has room for some of these messages.
        (0..20).for_each(|seq| send(&sender, seq));
        // TC_ACT_SHOT.
        let drop = ["filter", "add", "dev", "lo", "egress", "bpf", "da", "bytecode", "1,6 0 0 2"];
        if filter && Command::new("tc").args(drop).status().is_ok_and(|status| status.success()) {
            send(&sender, 30);
        }
    });
    let packets = packets(seen);
    let reasons: Vec<(u64, &str)> =
        packets.drops.iter().map(|hop| (hop.seq, packets.reasons[&hop.reason.expect("a reason")].as_str())).collect();
    let (by_filter, by_socket): (Vec<_>, Vec<_>) = reasons.into_iter().partition(|(seq, _)| *seq == 30);
    assert!(!by_socket.is_empty(), "{packets:?}");
    assert!(by_socket.iter().all(|(_, reason)| *reason == "SOCKET_RCVBUFF"), "{by_socket:?}");
    let arrived = packets.hops.iter().filter(|hop| hop.at == HopPlace::InSocket).count();
    assert_eq!(arrived + by_socket.len(), 20);
    match by_filter.as_slice() {
        [(_, reason)] => assert_eq!(*reason, "TC_EGRESS"),
        _ => println!("skipped: tc cannot add a filter"),
    }
}

/// Tests messages over this IP version, in one packet and in three IP fragments, through a bridge.
fn messages_are_followed_in_fragments_too(six: bool) {
    let Some(Connected { sender, receiver, .. }) = &connected(Middle::Bridge, six, 1_500) else {
        return println!("skipped: needs root, and the program ip");
    };
    let Some(watch) = following() else { return };
    let ((), seen) = record([watch], || {
        for (seq, bytes) in [(1, 64), (2, 1_400), (3, 4_000)] {
            send_bytes(sender, seq, bytes);
            receiver.recv(&mut [0; 5_000]).unwrap();
        }
    });
    let packets = packets(seen);
    let offsets = |seq, place, device: &str| {
        hops_at(&packets, seq, place, device).iter().map(|hop| hop.offset).collect::<Vec<_>>()
    };
    // A fragment fills its packet, whose IP header has 20 bytes, or 48 with the header of fragments; its length is a multiple of 8.
    let [one, all]: [&[u16]; 2] = if six { [&[0], &[0, 1448, 2896]] } else { [&[0], &[0, 1480, 2960]] };
    for (seq, expected) in [(1, one), (2, one), (3, all)] {
        for (place, device) in [(HopPlace::Queued, "a1"), (HopPlace::Queued, "b0"), (HopPlace::Received, "b1")] {
            assert_eq!(offsets(seq, place, device), expected, "message {seq} {place:?} {device}: {packets:?}");
        }
        assert_eq!(offsets(seq, HopPlace::InSocket, ""), [0], "message {seq}: {packets:?}");
    }
    assert!(packets.not_followed.is_empty(), "{:?}", packets.not_followed);
}

#[test]
fn messages_over_ipv4_are_followed() {
    messages_are_followed_in_fragments_too(false);
}

#[test]
fn messages_over_ipv6_are_followed() {
    messages_are_followed_in_fragments_too(true);
}

/// Sends messages through a middle and returns the hops at which the middle received them and sent them on.
fn passed_on(middle: Middle) -> Option<Vec<[PacketHop; 2]>> {
    const MESSAGES: u64 = 20;
    let Some(Connected { sender, receiver, .. }) = &connected(middle, false, 1_500) else {
        println!("skipped: needs root, and the program ip");
        return None;
    };
    let watch = following()?;
    let ((), seen) = record([watch], || {
        for seq in 0..MESSAGES {
            send(sender, seq);
            receiver.recv(&mut [0; 2_000]).unwrap();
        }
    });
    let packets = packets(seen);
    let of = |seq, place, device: &str| {
        let found = hops_at(&packets, seq, place, device);
        let [hop] = found[..] else { panic!("message {seq} at {device}: {found:?}") };
        *hop
    };
    Some((0..MESSAGES).map(|seq| [of(seq, HopPlace::Received, "a0"), of(seq, HopPlace::Queued, "b0")]).collect())
}

#[test]
fn a_bridge_passes_packets_on_in_the_run_that_received_them() {
    for [received, queued] in passed_on(Middle::Bridge).into_iter().flatten() {
        assert_ne!(received.run, 0, "{received:?}");
        assert_eq!((received.cpu, received.run), (queued.cpu, queued.run));
    }
}

#[test]
fn a_program_passes_packets_on_in_no_run() {
    for [received, queued] in passed_on(Middle::Program).into_iter().flatten() {
        assert!(received.run != 0 && queued.run == 0, "{received:?} {queued:?}");
    }
}
