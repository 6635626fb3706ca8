//! Sample memory comes in, segments go out.

use super::agent::{Agent, Lost};
use crate::hot::Memory;
use crate::store::{self, Stored};
use std::path::Path;
use std::sync::atomic::Ordering::Acquire;
use tailbound_host::OffsetTrack;
use tailbound_model::*;
use tailbound_record::{RecordError, SenderCells};
use tailbound_wire::*;
use tokio::time::Instant;

/// A type whose all-zero and any-bits forms are valid: the cells.
pub(super) trait Cell: Sized {}
impl Cell for SenderCell {}
impl Cell for EchoCell {}

/// Octets as cells; a last torn cell is dropped.
fn cells<T: Cell>(bytes: &[u8]) -> Vec<T> {
    let n = bytes.len() / size_of::<T>();
    let mut out: Vec<T> = Vec::with_capacity(n);
    // SAFETY: room for `n` cells; cells are atomics of whole numbers, for which all bits are valid.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.as_mut_ptr().cast::<u8>(), n * size_of::<T>());
        out.set_len(n);
    }
    out
}

/// The memory of each end of an agent, as it sends it; of a lost agent, what is held here.
pub(super) async fn memories(agent: &mut Agent, ends: &[Role], lost: bool, deadline: Instant) -> Vec<Vec<u8>> {
    if !lost && let Ok(memories) = ask(agent, ends.len(), deadline).await {
        return memories;
    }
    agent.held.iter().zip(ends).map(|(memory, role)| memory.octets_of_rows(rows(memory, *role)).to_vec()).collect()
}

fn rows(memory: &Memory, role: Role) -> u64 {
    let counted = memory.header().rows.load(Acquire);
    match role {
        Role::Ping if counted == 0 => SenderCells::turned_to(memory.sender()) as u64,
        _ => counted,
    }
}

/// Monotonic time of slot 0, of an agent that can no longer tell.
pub(super) fn held_t0(agent: &Agent) -> i64 {
    agent.held.iter().map(|m| m.header().t0_ns.load(Acquire)).max().unwrap_or(0)
}

async fn ask(agent: &mut Agent, ends: usize, deadline: Instant) -> Result<Vec<Vec<u8>>, Lost> {
    agent.send(Message::Collect).await?;
    let mut memories = vec![Vec::new(); ends];
    loop {
        match agent.frame(deadline).await? {
            Frame::Memory { end, offset, bytes } => {
                let memory = memories.get_mut(end as usize).ok_or_else(|| Lost("memory of an unknown end".into()))?;
                if memory.len() as u64 != offset {
                    return Err(Lost("a piece of sample memory is missing".into()));
                }
                memory.extend_from_slice(&bytes);
            }
            Frame::Message(m) if *m == Message::Collected => return Ok(memories),
            Frame::Message(_) => {}
        }
    }
}

/// Writes one end's segment.
pub(super) fn store(
    dir: &Path,
    order: &Order,
    role: Role,
    bytes: &[u8],
    t0_ns: i64,
    track: &OffsetTrack,
) -> Result<Stored, RecordError> {
    match role {
        Role::Ping => {
            let clock = store::slot_clock(&order.spec, order.warm_up, t0_ns);
            store::store_sender(dir, order.trial, &cells(bytes), clock, track)
        }
        Role::Pong => store::store_echoes(dir, order.trial, &cells(bytes), track),
    }
}

/// All slots of a trial whose ends never met: scheduled, not sent.
pub(super) fn store_not_sent(dir: &Path, order: &Order) -> Result<Stored, RecordError> {
    let cells: Vec<SenderCell> = (0..order.slots).map(|_| SenderCell::default()).collect();
    let mut clock = store::slot_clock(&order.spec, order.warm_up, 0);
    clock.period_ns = None;
    store::store_sender(dir, order.trial, &cells, clock, &OffsetTrack::new())
}
