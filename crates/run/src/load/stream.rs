//! The load `udp-stream`: UDP datagrams over the measured path, with senders at one place and a sink, which receives
//! them, at the other.
//!
//! Each datagram begins with the token of its load, so that datagrams of other programs are not counted, and with its
//! kind, flow and number. A flow starts when the sink has answered its hello. If the path does not carry the hello, the
//! load fails.

use super::{Did, Half, broken, is_over};
use nix::sys::socket::{setsockopt, sockopt};
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Barrier;
use std::time::Duration;
use tailbound_host::monotonic_ns;
use tailbound_model::*;
use tailbound_wire::StreamPath;

const HEADER: usize = 16;
const HELLO: u8 = 0;
const DATA: u8 = 1;
/// Longest time for the sink (the receiver of the datagrams) to answer the hello of a flow, ns.
const MEET_NS: i64 = 5_000_000_000;
/// Time between two checks whether a `udp-stream` load is over.
const TURN: Duration = Duration::from_millis(50);
/// Longest time for which the sink (the receiver of the datagrams) still receives after the signal to end, ns.
const DRAIN_NS: i64 = 500_000_000;
/// Size of the receive buffer of the sink (the receiver of the datagrams) in bytes. The kernel may reduce this size.
const BUFFER: usize = 4 << 20;

pub(super) fn run(half: &Half) -> Result<Did, Problem> {
    let LoadKind::UdpStream(stream) = &half.spec()?.run else {
        return Err(broken("the controller's order names a load that is not of kind `udp-stream`"));
    };
    let path = half
        .order
        .streams
        .iter()
        .find(|s| s.load == half.index)
        .ok_or_else(|| broken("the controller's order does not give the network path for the load"))?;
    let token = token(half);
    match half.part {
        LoadPart::Sends => send(path, stream, token),
        LoadPart::Receives => receive(path, token),
    }
}

/// Number at the begin of each datagram of a load. Different loads, trials and runs have different numbers.
fn token(half: &Half) -> u32 {
    let run = u32::from_str_radix(&half.order.run_id, 16).unwrap_or(0);
    run ^ ((half.order.trial as u32) << 8) ^ half.index as u32
}

fn header(token: u32, kind: u8, flow: u8, number: u64) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..4].copy_from_slice(&token.to_le_bytes());
    (bytes[4], bytes[5]) = (kind, flow);
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Reads kind, flow and number of a datagram. Returns `None` if the datagram does not belong to this load.
fn parse(bytes: &[u8], token: u32) -> Option<(u8, u8, u64)> {
    let ours = bytes.len() >= HEADER && bytes[..4] == token.to_le_bytes();
    ours.then(|| (bytes[4], bytes[5], u64::from_le_bytes(bytes[8..HEADER].try_into().unwrap_or_default())))
}

fn send(path: &StreamPath, stream: &UdpStream, token: u32) -> Result<Did, Problem> {
    let met = Barrier::new(stream.flows as usize);
    let flows = std::thread::scope(|scope| {
        let flows: Vec<_> = (0..stream.flows)
            .map(|f| {
                scope.spawn({
                    let met = &met;
                    move || flow(path, stream, token, f as u8, met)
                })
            })
            .collect();
        flows.into_iter().map(|f| f.join().unwrap_or_else(|_| Err(broken("a flow panicked")))).collect::<Vec<_>>()
    });
    let mut sum = Did {
        bytes: Some(0),
        messages: Some(0),
        late: stream.rate.period().map(|_| 0),
        refused: Some(0),
        ..Did::default()
    };
    let add = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
    for did in flows {
        let did = did?;
        sum.bytes = add(sum.bytes, did.bytes);
        sum.messages = add(sum.messages, did.messages);
        sum.refused = add(sum.refused, did.refused);
        sum.late = add(sum.late, did.late);
    }
    Ok(sum)
}

fn flow(path: &StreamPath, stream: &UdpStream, token: u32, flow: u8, met: &Barrier) -> Result<Did, Problem> {
    let meeting = || -> Result<UdpSocket, Problem> {
        let socket = UdpSocket::bind((path.from, 0)).map_err(|e| broken(format!("cannot bind {}: {e}", path.from)))?;
        let connected = socket.connect(path.to).and_then(|()| socket.set_read_timeout(Some(Duration::from_millis(20))));
        connected.map_err(|e| broken(format!("cannot send to {}: {e}", path.to)))?;
        meet(&socket, path.to, header(token, HELLO, flow, 0), token)?;
        Ok(socket)
    };
    // All flows start together. A flow that cannot start does not keep the others waiting.
    let socket = meeting();
    met.wait();
    let socket = socket?;
    let mut datagram = vec![0x5a; stream.payload.0 as usize];
    let (begin, period) = (monotonic_ns(), stream.rate.period().map(|p| p.0));
    let (mut slot, mut sent, mut late, mut refused) = (0_i64, 0_u64, 0, 0);
    while !is_over() {
        if let Some(period) = period {
            let early = begin + slot * period - monotonic_ns();
            if early > 0 {
                std::thread::sleep(Duration::from_nanos(early as u64).min(TURN));
                continue;
            }
            late += u64::from(-early >= period);
        }
        datagram[..HEADER].copy_from_slice(&header(token, DATA, flow, sent));
        match socket.send(&datagram) {
            Ok(_) => sent += 1,
            Err(_) => refused += 1,
        }
        slot += 1;
    }
    Ok(Did {
        bytes: Some(sent * stream.payload.0),
        messages: Some(sent),
        late: period.map(|_| late),
        refused: Some(refused),
        ..Did::default()
    })
}

/// Sends the first datagram (hello) of a flow until the sink, which receives the datagrams, answers.
fn meet(socket: &UdpSocket, to: SocketAddr, hello: [u8; HEADER], token: u32) -> Result<(), Problem> {
    let until = monotonic_ns() + MEET_NS;
    let mut answer = [0; HEADER];
    while !is_over() && monotonic_ns() < until {
        // The send call fails until the sink has opened its socket.
        if socket.send(&hello).is_err() {
            std::thread::sleep(Duration::from_millis(5));
        }
        if matches!(socket.recv(&mut answer), Ok(n) if parse(&answer[..n], token).is_some()) {
            return Ok(());
        }
    }
    if is_over() { Ok(()) } else { Err(broken(format!("no answer came from the sink at {to}"))) }
}

fn receive(path: &StreamPath, token: u32) -> Result<Did, Problem> {
    let socket = UdpSocket::bind(path.to).map_err(|e| broken(format!("the sink cannot bind {}: {e}", path.to)))?;
    // If the kernel gives a smaller buffer, datagrams are missing.
    let _ = setsockopt(&socket, sockopt::RcvBuf, &BUFFER);
    socket.set_read_timeout(Some(TURN)).map_err(|e| broken(e.to_string()))?;
    let mut bytes = vec![0; 1 << 16];
    let (mut received, mut sum, mut ended) = (0_u64, 0_u64, None);
    // Highest datagram number of each flow plus one. Several guests may send the same flows; each flow has a source port.
    let mut next: HashMap<SocketAddr, u64> = HashMap::new();
    loop {
        match socket.recv_from(&mut bytes) {
            Ok((n, from)) => match parse(&bytes[..n], token) {
                Some((HELLO, ..)) => drop(socket.send_to(&bytes[..HEADER], from)),
                Some((DATA, _, number)) => {
                    (received, sum) = (received + 1, sum + n as u64);
                    let next = next.entry(from).or_default();
                    *next = (*next).max(number + 1);
                }
                _ => {}
            },
            // No datagram is on its way any more.
            Err(_) if is_over() => break,
            Err(_) => {}
        }
        if is_over() && monotonic_ns() > *ended.get_or_insert_with(|| monotonic_ns() + DRAIN_NS) {
            break;
        }
    }
    let missing = next.values().sum::<u64>().saturating_sub(received);
    Ok(Did { bytes: Some(sum), messages: Some(received), missing: Some(missing), ..Did::default() })
}
