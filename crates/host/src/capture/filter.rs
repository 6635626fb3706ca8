//! Which packets the kernel copies, and how many bytes of each: a program for the packet filter of the kernel (classic BPF).
//!
//! Copied are packets of UDP that begin with an RTPS message, later fragments of packets of UDP, and the headers of packets
//! from and to the ports of zenoh. Of samples of discovery, more bytes are copied: they have the names of topics and types.

use libc::{
    BPF_A, BPF_ABS, BPF_ALU, BPF_B, BPF_H, BPF_IMM, BPF_IND, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K,
    BPF_LD, BPF_LDX, BPF_LEN, BPF_MSH, BPF_RET, BPF_RSH, BPF_SUB, BPF_W, BPF_X,
};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Number of bytes that are copied of a packet, from the header of IP on.
pub const COPIED: u32 = 256;
/// The same for a message that begins with discovery, or with the acknowledgement of a reader.
pub const COPIED_OF_DISCOVERY: u32 = 4096;
/// The same for packets of which only the headers matter.
const COPIED_OF_HEADERS: u32 = 64;

const UDP: u32 = libc::IPPROTO_UDP as u32;
/// Ports of zenoh: of its links, and of its scouting.
const ZENOH: u32 = 7447;
const ZENOH_SCOUTING: u32 = 7446;

/// Place of the first submessage behind the header of UDP, which is followed by the header of the message.
const SUBMESSAGES: u32 = 8 + 20;
/// The kind of submessage ACKNACK.
const ACKNOWLEDGEMENT: u32 = 0x06;
/// Kinds of submessages with a sample, and with numbers of samples (HEARTBEAT, GAP), each with the place of the last byte of
/// the writer.
const SAMPLES: ([u32; 2], u32) = ([0x15, 0x16], 15);
const PROTOCOL: ([u32; 2], u32) = ([0x07, 0x08], 11);
/// Kinds of submessages that come before: INFO_TS and INFO_DST, with their lengths.
const TIMESTAMP: (u32, u32) = (0x09, 12);
const DESTINATION: (u32, u32) = (0x0e, 16);
/// The bits in the last byte of a writer that say that it is one of discovery.
const OF_DISCOVERY: u32 = 0xc0;
/// Packets with fewer bytes behind the header of IP are copied as a whole, so that no load below is behind their end.
const SHORT: u32 = SUBMESSAGES + DESTINATION.1 + TIMESTAMP.1 + SAMPLES.1 + 1;

/// Places to which instructions jump. The numbers of [`Target::Submessage`] and [`Target::Writer`] are places behind the header
/// of UDP.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Next,
    First,
    Version6,
    First6,
    Transport,
    Udp,
    Rtps,
    Submessage(u32),
    Writer(u32),
    Return(u32),
}
use Target::{First, First6, Next, Return, Rtps, Submessage, Transport, Udp, Version6, Writer};

/// An instruction, or the place to which others jump.
#[derive(Clone, Copy)]
enum Line {
    Here(Target),
    Do(u32, u32),
    /// Jumps to the first place if the condition holds for the number, and to the second one if not.
    If(u32, u32, Target, Target),
    Go(Target),
}
use Line::{Do, Go, Here, If};

fn program() -> Vec<Line> {
    let nothing = Return(0);
    // Register X has the place of the header of UDP or TCP.
    let mut lines = vec![
        Do(BPF_LD | BPF_B | BPF_ABS, 0),
        Do(BPF_ALU | BPF_RSH | BPF_K, 4),
        If(BPF_JEQ, 6, Version6, Next),
        If(BPF_JEQ, 4, Next, nothing),
        Do(BPF_LDX | BPF_B | BPF_MSH, 0),
        Do(BPF_LD | BPF_H | BPF_ABS, 6),
        If(BPF_JSET, 0x1fff, Next, First),
        Do(BPF_LD | BPF_B | BPF_ABS, 9),
        If(BPF_JEQ, UDP, Return(COPIED_OF_HEADERS), nothing), // a later fragment
        Here(First),
        Do(BPF_LD | BPF_B | BPF_ABS, 9),
        Go(Transport),
        Here(Version6),
        Do(BPF_LDX | BPF_W | BPF_IMM, 40),
        Do(BPF_LD | BPF_B | BPF_ABS, 6),
        If(BPF_JEQ, libc::IPPROTO_FRAGMENT as u32, Next, Transport),
        // The header of fragments: the next header, and the place of the fragment.
        Do(BPF_LDX | BPF_W | BPF_IMM, 48),
        Do(BPF_LD | BPF_H | BPF_ABS, 42),
        If(BPF_JSET, 0xfff8, Next, First6),
        Do(BPF_LD | BPF_B | BPF_ABS, 40),
        If(BPF_JEQ, UDP, Return(COPIED_OF_HEADERS), nothing),
        Here(First6),
        Do(BPF_LD | BPF_B | BPF_ABS, 40),
        Here(Transport),
        If(BPF_JEQ, UDP, Udp, Next),
        If(BPF_JEQ, libc::IPPROTO_TCP as u32, Next, nothing),
    ];
    let of_zenoh = [0, 2].into_iter().flat_map(|port| {
        let headers = Return(COPIED_OF_HEADERS);
        let load = Do(BPF_LD | BPF_H | BPF_IND, port);
        [load, If(BPF_JEQ, ZENOH, headers, Next), If(BPF_JEQ, ZENOH_SCOUTING, headers, Next)]
    });
    lines.extend(of_zenoh.clone().chain([Go(nothing), Here(Udp), Do(BPF_LD | BPF_W | BPF_IND, 8)]));
    lines.push(If(BPF_JEQ, u32::from_be_bytes(*b"RTPS"), Rtps, Next));
    lines.extend(of_zenoh.chain([Go(nothing), Here(Rtps)]));
    lines.push(Do(BPF_LD | BPF_W | BPF_LEN, 0));
    lines.push(Do(BPF_ALU | BPF_SUB | BPF_X, 0));
    lines.push(If(BPF_JGE, SHORT, Next, Return(COPIED)));
    let first = SUBMESSAGES;
    let (timed, meant) = (first + TIMESTAMP.1, first + DESTINATION.1);
    let both = meant + TIMESTAMP.1;
    let orders = [
        (first, &[(TIMESTAMP.0, timed), (DESTINATION.0, meant)][..]),
        (timed, &[]),
        (meant, &[(TIMESTAMP.0, both)]),
        (both, &[]),
    ];
    for (at, before) in orders {
        lines.extend([Here(Submessage(at)), Do(BPF_LD | BPF_B | BPF_IND, at)]);
        let of_kinds = |kinds: &'static [u32], writer: u32| {
            kinds.iter().map(move |kind| If(BPF_JEQ, *kind, Writer(at + writer), Next))
        };
        lines.extend(of_kinds(&SAMPLES.0, SAMPLES.1).chain(of_kinds(&PROTOCOL.0, PROTOCOL.1)));
        // Answers of many readers in one message: an acknowledgement behind the copied bytes would be missing.
        lines.push(If(BPF_JEQ, ACKNOWLEDGEMENT, Return(COPIED_OF_DISCOVERY), Next));
        lines.extend(before.iter().map(|(kind, then)| If(BPF_JEQ, *kind, Submessage(*then), Next)));
        lines.push(Go(Return(COPIED)));
    }
    // All jumps go forwards: the writers come last.
    let writers = orders.iter().flat_map(|(at, _)| [at + PROTOCOL.1, at + SAMPLES.1]);
    for at in BTreeSet::from_iter(writers) {
        lines.extend([Here(Writer(at)), Do(BPF_LD | BPF_B | BPF_IND, at)]);
        // Both bits are set: neither one alone.
        lines.push(Do(BPF_ALU | BPF_RSH | BPF_K, OF_DISCOVERY.trailing_zeros()));
        let is = OF_DISCOVERY >> OF_DISCOVERY.trailing_zeros();
        lines.push(If(BPF_JEQ, is, Return(COPIED_OF_DISCOVERY), Return(COPIED)));
    }
    let ends = [0, COPIED_OF_HEADERS, COPIED, COPIED_OF_DISCOVERY];
    lines.extend(ends.into_iter().flat_map(|bytes| [Here(Return(bytes)), Do(BPF_RET | BPF_K, bytes)]));
    lines
}

/// The instructions of the kernel. All jumps go forwards, by at most 255 instructions.
fn instructions() -> Vec<libc::sock_filter> {
    let lines = program();
    let is_instruction = |line: &&Line| !matches!(line, Here(_));
    let place = |target: Target| {
        let at = lines.iter().position(|line| matches!(line, Here(here) if *here == target));
        lines[..at.unwrap_or(lines.len())].iter().filter(is_instruction).count()
    };
    let of_line = |(index, line): (usize, &Line)| {
        let distance = |target: Target| match target {
            Next => 0,
            target => place(target) - index - 1,
        };
        let (code, jt, jf, k) = match *line {
            Do(code, k) => (code, 0, 0, k),
            If(test, k, then, otherwise) => (BPF_JMP | test | BPF_K, distance(then), distance(otherwise), k),
            Go(target) => (BPF_JMP | BPF_JA, 0, 0, distance(target) as u32),
            Here(_) => (BPF_RET | BPF_A, 0, 0, 0),
        };
        libc::sock_filter { code: code as u16, jt: jt as u8, jf: jf as u8, k }
    };
    lines.iter().filter(is_instruction).enumerate().map(of_line).collect()
}

/// Gives a socket the filter.
pub(super) fn attach(socket: &OwnedFd) -> io::Result<()> {
    let mut filter = instructions();
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let (at, length) = ((&raw const program).cast(), size_of_val(&program) as libc::socklen_t);
    // SAFETY: the program and its instructions live until the call has returned.
    super::done(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, at, length) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::FromRawFd;

    /// Runs the filter in the kernel: a pair of sockets, of which one has it. Returns the number of copied bytes.
    fn copied(packet: &[u8]) -> usize {
        let mut pair = [0; 2];
        // SAFETY: the kernel writes two descriptors into this array.
        super::super::done(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, pair.as_mut_ptr()) }).unwrap();
        // SAFETY: the call above has made these descriptors, and nothing else owns them.
        let [from, to] = pair.map(|raw| unsafe { OwnedFd::from_raw_fd(raw) });
        attach(&to).unwrap();
        nix::unistd::write(&from, packet).unwrap();
        let mut bytes = [0; 8192];
        // A datagram of which the filter copies nothing is not there.
        let flags = nix::sys::socket::MsgFlags::MSG_DONTWAIT;
        nix::sys::socket::recv(to.as_raw_fd(), &mut bytes, flags).unwrap_or(0)
    }

    /// A packet of UDP over IP, with an RTPS message of submessages (kind, body) and 6,000 bytes.
    fn packet(version: u8, submessages: &[(u8, &[u8])]) -> Vec<u8> {
        let mut packet = match version {
            4 => {
                let mut header = vec![0; 24];
                (header[0], header[9]) = (0x46, 17); // with one option
                header
            }
            _ => {
                let mut header = vec![0; 40];
                (header[0], header[6]) = (0x60, 17);
                header
            }
        };
        packet.extend([0; 8]);
        packet.extend(b"RTPS\x02\x03\x01\x10");
        packet.extend([7; 12]);
        for (kind, body) in submessages {
            packet.extend([*kind, 1, body.len() as u8, 0]);
            packet.extend(*body);
        }
        packet.resize(6000, 0);
        packet
    }

    const DATA: &[u8] = &[0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 1, 0, 0, 0];
    const DISCOVERY: &[u8] = &[0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 3, 0xc2, 0, 0, 0, 0, 1, 0, 0, 0];

    #[test]
    fn discovery_is_copied_further_than_samples_of_applications() {
        let (timestamp, destination) = ((9, &[0; 8][..]), (14, &[0; 12][..]));
        for version in [4, 6] {
            for before in [&[][..], &[timestamp], &[destination], &[destination, timestamp]] {
                let with = |last| copied(&packet(version, &[before, &[last]].concat()));
                assert_eq!(with((0x15, DATA)), COPIED as usize, "{version} {before:?}");
                assert_eq!(with((0x15, DISCOVERY)), COPIED_OF_DISCOVERY as usize, "{version} {before:?}");
                // Readers and writers are 4 bytes before their place in a sample.
                assert_eq!(with((0x07, &DISCOVERY[4..])), COPIED_OF_DISCOVERY as usize, "{version} {before:?}");
                assert_eq!(with((0x07, &DATA[4..])), COPIED as usize, "{version} {before:?}");
                assert_eq!(with((0x06, &DATA[4..])), COPIED_OF_DISCOVERY as usize, "{version} {before:?}");
                assert_eq!(with((0x01, DISCOVERY)), COPIED as usize, "{version} {before:?}");
            }
        }
    }

    #[test]
    fn short_messages_are_whole_and_other_packets_are_not_there() {
        let whole = packet(4, &[(0x15, DATA)]);
        for length in 24 + 8 + 4..200 {
            assert_eq!(copied(&whole[..length]), length, "cut at {length}");
        }
        let mut other = whole.clone();
        other[32..36].copy_from_slice(b"HTTP");
        assert_eq!(copied(&other), 0);
        other[26..28].copy_from_slice(&7447u16.to_be_bytes());
        assert_eq!(copied(&other), COPIED_OF_HEADERS as usize, "zenoh");
        other[9] = 6;
        assert_eq!(copied(&other), COPIED_OF_HEADERS as usize, "zenoh over TCP");
        (other[9], other[7]) = (17, 20);
        assert_eq!(copied(&other), COPIED_OF_HEADERS as usize, "a later fragment");
        other[9] = 1;
        assert_eq!(copied(&other), 0, "a later fragment of another protocol");
        assert_eq!(copied(&[0x20; 100]), 0, "not IP");
    }

    #[test]
    fn fragments_of_version_6_are_those_of_version_4() {
        let whole = packet(6, &[(0x15, DATA)]);
        let with = |next: u8, place: u16| {
            let mut packet = [&whole[..40], &[17, 0, 0, 0, 0, 0, 0, 9], &whole[40..]].concat();
            (packet[6], packet[40]) = (44, next);
            packet[42..44].copy_from_slice(&place.to_be_bytes());
            copied(&packet)
        };
        assert_eq!(with(17, 1), COPIED as usize, "the first fragment");
        assert_eq!(with(17, 1480), COPIED_OF_HEADERS as usize, "a later fragment");
        assert_eq!((with(58, 1), with(58, 1480)), (0, 0), "another protocol");
    }
}
