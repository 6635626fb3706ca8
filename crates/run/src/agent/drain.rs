//! Draining a ring while the trial runs: rows that will not change any more go to the controller, and stay here until
//! it has them on disk.

use crate::hot::Memory;
use crate::live::{TURN_NS, settle_ns};
use crate::pipe::Connection;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use tailbound_host as host;
use tailbound_host::OffsetTrack;
use tailbound_model::TrialSpec;
use tailbound_wire::*;

/// Octets of one memory frame.
const PIECE: usize = 1 << 20;

/// What has been drained of one end.
#[derive(Default)]
struct End {
    /// Rows below went to the controller.
    sent: u64,
    /// Rows below are on disk.
    stored: u64,
    /// Rows in between.
    kept: Vec<u8>,
}

/// The drains of a trial's ends.
pub(super) struct Drain {
    ends: Vec<End>,
    settle_ns: i64,
    readings: usize,
    pub next_ns: i64,
}

impl Drain {
    pub fn new(spec: &TrialSpec, ends: usize) -> Drain {
        let ends = (0..ends).map(|_| End::default()).collect();
        Drain { ends, settle_ns: settle_ns(spec), readings: 0, next_ns: host::monotonic_ns() + TURN_NS }
    }

    /// Sends what the last turn claimed, and claims what has settled since. A whole turn lies between: whoever had looked
    /// at a row before it was claimed is through with it.
    pub fn turn(
        &mut self,
        memories: &[(OwnedFd, Memory)],
        track: &OffsetTrack,
        controller: &mut Connection,
    ) -> io::Result<()> {
        let now = host::monotonic_ns();
        self.next_ns = now + TURN_NS;
        let mut clock = track.readings()[self.readings..].to_vec();
        self.readings = track.readings().len();
        for (index, (end, (_, memory))) in self.ends.iter_mut().zip(memories).enumerate() {
            let header = memory.header();
            let claimed = header.drained.claimed.load(Relaxed);
            if claimed > end.sent || !clock.is_empty() {
                let (index, t0_ns) = (index as u8, header.t0_ns.load(Acquire));
                // Readings belong to the host, not to an end: the first frame carries them for all.
                let draining = Draining { end: index, t0_ns, clock: std::mem::take(&mut clock) };
                controller.send(Message::Draining(draining))?;
                let octets = memory.octets(end.sent, claimed);
                send(controller, index, end.sent, memory, &octets)?;
                end.kept.extend_from_slice(&octets);
                memory.release(end.sent, claimed);
                end.sent = claimed;
            }
            header.drained.claimed.store(memory.settled(claimed, now - self.settle_ns), Release);
        }
        Ok(())
    }

    /// The controller has these rows on disk.
    pub fn stored(&mut self, stored: Stored, memories: &[(OwnedFd, Memory)]) {
        let index = stored.end as usize;
        if let (Some(end), Some((_, memory))) = (self.ends.get_mut(index), memories.get(index)) {
            let rows = stored.rows.clamp(end.stored, end.sent);
            end.kept.drain(..memory.octets_of(rows - end.stored));
            end.stored = rows;
        }
    }

    /// Sends all that is still in the memory.
    pub fn rest(&self, memories: &[(OwnedFd, Memory)], controller: &mut Connection) -> io::Result<()> {
        for (index, (end, (_, memory))) in self.ends.iter().zip(memories).enumerate() {
            let octets = memory.octets(end.sent, memory.rows());
            send(controller, index as u8, end.sent, memory, &octets)?;
        }
        Ok(())
    }

    /// Rows that may not be on disk yet, and the number of the first.
    pub fn unsaved(&self, index: usize, memory: &Memory) -> (u64, Vec<u8>) {
        let end = &self.ends[index];
        let mut octets = end.kept.clone();
        octets.extend(memory.octets(end.sent, memory.rows()));
        (end.stored, octets)
    }
}

fn send(controller: &mut Connection, end: u8, first: u64, memory: &Memory, octets: &[u8]) -> io::Result<()> {
    let begin = memory.octets_of(first) as u64;
    for (piece, bytes) in octets.chunks(PIECE).enumerate() {
        let offset = begin + (piece * PIECE) as u64;
        controller.send_frame(&Frame::Memory { end, offset, bytes: bytes.to_vec() })?;
    }
    Ok(())
}
