//! Drains the sample rings while the trial runs. Rows that will not change any more are sent to the controller. The
//! agent keeps a copy of these rows until the controller has them on disk.

use crate::connection::Connection;
use crate::hot::Memory;
use crate::live_collect::{DRAIN_PERIOD_NS, settle_ns};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use tailbound_host as host;
use tailbound_host::OffsetTrack;
use tailbound_model::TrialSpec;
use tailbound_wire::*;

/// Largest number of bytes of sample memory that one frame to the controller contains.
const PIECE: usize = 1 << 20;

/// Progress in draining the ring of sample memory of one end.
#[derive(Default)]
struct End {
    /// Number of rows of samples that were sent to the controller: rows with a lower number were sent.
    sent: u64,
    /// Number of rows of samples that the controller has stored on disk: rows with a lower number are stored.
    stored: u64,
    /// Bytes of the rows of samples that were sent to the controller and are not on disk yet.
    kept: Vec<u8>,
}

/// Drains the rings of sample memory of all ends of a trial.
pub(super) struct Drain {
    ends: Vec<End>,
    settle_ns: i64,
    readings: usize,
    pub next_ns: i64,
}

impl Drain {
    pub fn new(spec: &TrialSpec, ends: usize) -> Drain {
        let ends = (0..ends).map(|_| End::default()).collect();
        Drain { ends, settle_ns: settle_ns(spec), readings: 0, next_ns: host::monotonic_ns() + DRAIN_PERIOD_NS }
    }

    /// Sends the rows of samples that the previous call claimed, and claims the rows that became final since that call.
    /// After the claim of a row, an answer to its message comes too late. A whole drain period passes between the claim
    /// and the sending, so that a thread that looked at the row before the claim has finished with the row. `drained` gets
    /// the index of the end, the number of the first row that is sent, and the bytes of the rows.
    pub fn turn(
        &mut self,
        memories: &[(OwnedFd, Memory)],
        track: &OffsetTrack,
        controller: &mut Connection,
        drained: &mut dyn FnMut(usize, u64, &[u8]),
    ) -> io::Result<()> {
        let now = host::monotonic_ns();
        self.next_ns = now + DRAIN_PERIOD_NS;
        let mut clock = track.readings()[self.readings..].to_vec();
        self.readings = track.readings().len();
        for (index, (end, (_, memory))) in self.ends.iter_mut().zip(memories).enumerate() {
            let header = memory.header();
            if header.ended_early.load(Relaxed) != 0 {
                continue;
            }
            let claimed = header.drained.claimed.load(Relaxed);
            if claimed > end.sent || !clock.is_empty() {
                let t0_ns = header.t0_ns.load(Acquire);
                // Clock readings belong to the host, not to an end: the first message carries them for all ends.
                let draining = Draining { end: index as u8, t0_ns, clock: std::mem::take(&mut clock) };
                controller.send(Message::Draining(draining))?;
                let bytes = memory.bytes(end.sent, claimed);
                drained(index, end.sent, &bytes);
                send(controller, index as u8, end.sent, memory, &bytes)?;
                end.kept.extend_from_slice(&bytes);
                memory.release(end.sent, claimed);
                end.sent = claimed;
            }
            header.drained.claimed.store(memory.settled(claimed, u64::MAX, now - self.settle_ns), Release);
        }
        Ok(())
    }

    /// Lets the senders end the trial early: their rings are not drained any more, and the sender of a full ring ends.
    pub fn end_early(memories: &[(OwnedFd, Memory)]) {
        for (_, memory) in memories.iter().filter(|(_, memory)| !memory.sender().is_empty()) {
            // A ring that was full before has ended the trial for another reason.
            if memory.header().dropped.load(Relaxed) == 0 {
                memory.header().ended_early.store(1, Release);
            }
        }
    }

    /// Frees the copies of rows of samples that the controller has on disk now.
    pub fn stored(&mut self, stored: Stored, memories: &[(OwnedFd, Memory)]) {
        let index = stored.end as usize;
        if let (Some(end), Some((_, memory))) = (self.ends.get_mut(index), memories.get(index)) {
            let rows = stored.rows.clamp(end.stored, end.sent);
            end.kept.drain(..memory.bytes_of(rows - end.stored));
            end.stored = rows;
        }
    }

    /// Sends all rows of samples that are still in the rings to the controller.
    pub fn rest(&self, memories: &[(OwnedFd, Memory)], controller: &mut Connection) -> io::Result<()> {
        for (index, (end, (_, memory))) in self.ends.iter().zip(memories).enumerate() {
            let bytes = memory.bytes(end.sent, memory.rows());
            send(controller, index as u8, end.sent, memory, &bytes)?;
        }
        Ok(())
    }

    /// Number of the first row of samples that may not be on disk, and the bytes of this row and of all later rows.
    pub fn unsaved(&self, index: usize, memory: &Memory) -> (u64, Vec<u8>) {
        let end = &self.ends[index];
        let mut bytes = end.kept.clone();
        bytes.extend(memory.bytes(end.sent, memory.rows()));
        (end.stored, bytes)
    }
}

fn send(controller: &mut Connection, end: u8, first: u64, memory: &Memory, bytes: &[u8]) -> io::Result<()> {
    let begin = memory.bytes_of(first) as u64;
    for (piece, bytes) in bytes.chunks(PIECE).enumerate() {
        let offset = begin + (piece * PIECE) as u64;
        controller.send_frame(&Frame::Memory { end, offset, bytes: bytes.to_vec() })?;
    }
    Ok(())
}
