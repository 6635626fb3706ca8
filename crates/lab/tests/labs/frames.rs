//! Ethernet frames that the tests write to the ports of guests and read from them.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};
use tailbound_lab::wiring::{Plug, Wiring};

/// Length in bytes of the `virtio_net_hdr` before each frame. All its bytes are zero: no checksum must be completed,
/// and the packet is one segment.
const HEADER: usize = 10;
pub const PORT: u16 = 7;
const WITHIN: Duration = Duration::from_secs(10);

/// The interface of a guest, used by a test in place of QEMU.
pub enum Wire {
    Tap(Vec<File>),
    Datagram(UnixDatagram),
}

impl Wire {
    pub fn of(plug: Plug) -> Wire {
        match plug {
            Plug::Tap { fds, .. } => Wire::Tap(fds.into_iter().map(File::from).collect()),
            Plug::Datagram { local, .. } => {
                let socket = UnixDatagram::bind(local).unwrap();
                socket.set_nonblocking(true).unwrap();
                Wire::Datagram(socket)
            }
            Plug::Device(device) => panic!("{device} is not a wire"),
        }
    }

    pub fn queues(&self) -> usize {
        match self {
            Wire::Tap(files) => files.len(),
            Wire::Datagram(_) => 1,
        }
    }

    pub fn send(&self, frame: &[u8]) {
        match self {
            Wire::Tap(files) => {
                let whole = [&[0; HEADER], frame].concat();
                assert_eq!((&files[0]).write(&whole).unwrap(), whole.len());
            }
            Wire::Datagram(socket) => assert_eq!(socket.send(frame).unwrap(), frame.len()),
        }
    }

    /// Returns the next frame of any queue; `None` if no frame arrives within 20 ms.
    fn next(&self) -> Option<Vec<u8>> {
        let fds: Vec<&dyn Source> = match self {
            Wire::Tap(files) => files.iter().map(|file| file as &dyn Source).collect(),
            Wire::Datagram(socket) => vec![socket],
        };
        let mut wanted: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)).collect();
        poll(&mut wanted, PollTimeout::from(20u8)).unwrap();
        let ready = wanted.iter().position(|fd| fd.any() == Some(true))?;
        Some(fds[ready].take())
    }

    /// Returns the first frame for which `is_meant` is true; `None` if no frame arrives within 20 ms.
    pub fn receive(&self, is_meant: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        while let Some(frame) = self.next() {
            if is_meant(&frame) {
                return Some(frame);
            }
        }
        None
    }
}

/// Opens the network interfaces of two guests as QEMU would, so that a test can exchange frames between the guests. If
/// the interfaces are Unix sockets, they are connected to each other after both sockets were made.
pub fn wires(plugs: [Plug; 2]) -> [Wire; 2] {
    let remotes = [0, 1].map(|end: usize| match &plugs[end] {
        Plug::Datagram { remote, .. } => Some(remote.clone()),
        Plug::Tap { .. } | Plug::Device(_) => None,
    });
    let wires = plugs.map(Wire::of);
    for (wire, remote) in wires.iter().zip(remotes) {
        if let (Wire::Datagram(socket), Some(remote)) = (wire, remote) {
            socket.connect(remote).unwrap();
        }
    }
    wires
}

trait Source: AsFd {
    fn take(&self) -> Vec<u8>;
}

impl Source for File {
    fn take(&self) -> Vec<u8> {
        let mut buffer = vec![0; 70_000];
        let length = (&mut &*self).read(&mut buffer).unwrap();
        let header: Vec<u8> = buffer.drain(..HEADER).collect();
        // The first byte has a flag for a checksum that is still to be completed; the second byte is not zero for
        // segments.
        assert_eq!((header[0] & 1, header[1]), (0, 0), "the frame is whole");
        buffer.truncate(length - HEADER);
        buffer
    }
}

impl Source for UnixDatagram {
    fn take(&self) -> Vec<u8> {
        let mut buffer = vec![0; 70_000];
        let length = self.recv(&mut buffer).unwrap();
        buffer.truncate(length);
        buffer
    }
}

/// Sends a frame repeatedly until `to` receives a frame for which `is_meant` is true, and returns the received frame.
/// Repetition is needed because new interfaces may drop the first frames.
pub fn exchange(from: &Wire, frame: &[u8], to: &Wire, is_meant: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let end = Instant::now() + WITHIN;
    loop {
        from.send(frame);
        if let Some(found) = to.receive(&is_meant) {
            return found;
        }
        assert!(Instant::now() < end, "a frame of {} bytes did not arrive within 10 s", frame.len());
    }
}

fn sum(words: &[u8]) -> u32 {
    words.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
}

/// Folds a sum into 16 bits (Internet checksum of RFC 1071).
fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Sum over the pseudo header, the UDP header and the data; 0xffff if the checksum in the UDP header is right.
fn of_udp(from: Ipv4Addr, to: Ipv4Addr, udp: &[u8]) -> u16 {
    folded(sum(&from.octets()) + sum(&to.octets()) + 17 + udp.len() as u32 + sum(udp))
}

/// A multicast group, and the hardware address of the group (RFC 1112).
pub const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
pub const GROUP_MAC: [u8; 6] = [1, 0, 0x5e, 0x7f, 0, 1];

/// Makes a frame with a UDP datagram over IPv4 whose IP packet has `ip_length` bytes, with its checksums.
pub fn datagram(from: usize, to: usize, to_mac: [u8; 6], ip_length: usize) -> Vec<u8> {
    udp(from, Wiring::address(to), to_mac, ip_length)
}

pub fn udp(from: usize, target: Ipv4Addr, to_mac: [u8; 6], ip_length: usize) -> Vec<u8> {
    let source = Wiring::address(from);
    let mut ip = vec![0x45, 0];
    ip.extend((ip_length as u16).to_be_bytes());
    ip.extend([0, 1, 0x40, 0, 64, 17, 0, 0]);
    ip.extend(source.octets().iter().chain(&target.octets()));
    let check = !folded(sum(&ip));
    ip[10..12].copy_from_slice(&check.to_be_bytes());
    let length = ip_length - 20;
    let mut udp: Vec<u8> = [PORT, PORT, length as u16, 0].iter().flat_map(|word| word.to_be_bytes()).collect();
    udp.extend((0..length - 8).map(|i| i as u8));
    let check = !of_udp(source, target, &udp);
    udp[6..8].copy_from_slice(&check.to_be_bytes());
    [&to_mac[..], &Wiring::mac(from), &[8, 0], &ip, &udp].concat()
}

/// Returns the data of a UDP datagram from one end to an address, if the frame contains such a datagram; its checksum
/// must be right.
pub fn data(frame: &[u8], from: usize, target: Ipv4Addr) -> Option<Vec<u8>> {
    let source = Wiring::address(from);
    let is_meant = frame.get(12..14)? == [8, 0]
        && frame.get(23) == Some(&17)
        && frame.get(26..30)? == source.octets()
        && frame.get(30..34)? == target.octets();
    if !is_meant {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    let udp = &frame[34..14 + length];
    assert_eq!(of_udp(source, target, udp), 0xffff, "the checksum of {} bytes is right", udp.len());
    Some(udp[8..].to_vec())
}

/// Makes an ARP request: who has the address of end `to`?
pub fn question(from: usize, to: usize) -> Vec<u8> {
    let mut arp = vec![0xff; 6];
    arp.extend(Wiring::mac(from));
    arp.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    arp.extend(Wiring::mac(from));
    arp.extend(Wiring::address(from).octets());
    arp.extend([0; 6]);
    arp.extend(Wiring::address(to).octets());
    arp.resize(60, 0);
    arp
}

/// Returns the hardware address of end `of`, if the frame is the ARP answer of this end.
pub fn answer(frame: &[u8], of: usize) -> Option<[u8; 6]> {
    let is_answer = frame.get(12..14)? == [8, 6] && frame.get(20..22)? == [0, 2];
    (is_answer && frame.get(28..32)? == Wiring::address(of).octets()).then(|| frame[22..28].try_into().unwrap())
}
