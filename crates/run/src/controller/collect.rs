//! Sample memory comes in, segments go out.

use super::agent::{Agent, Lost};
use crate::hot::{Memory, MemoryKind};
use crate::store::{self, Rows, Stored};
use std::path::Path;
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;
use tailbound_host::OffsetTrack;
use tailbound_model::FlowCounts;
use tailbound_record::RecordError;
use tailbound_wire::*;
use tokio::time::Instant;

/// Rows of a segment that is closed while the trial still runs.
const SEGMENT_ROWS: u64 = 1 << 18;
/// A segment with fewer rows is closed after this long.
const SEGMENT_TIME: Duration = Duration::from_secs(60);

/// What came of one end: rows that are stored, and the octets of those behind them.
pub(super) struct Incoming {
    role: Role,
    octets: Vec<u8>,
    segments: usize,
    /// Monotonic time of slot 0, once it is known.
    pub t0_ns: i64,
    stored: Stored,
    closed: Instant,
    /// The agent was lost: rows end where it was cut off.
    cut: bool,
}

impl Incoming {
    pub fn new(role: Role) -> Incoming {
        let (stored, closed) = (Stored::default(), Instant::now());
        Incoming { role, octets: Vec::new(), segments: 0, t0_ns: 0, stored, closed, cut: false }
    }

    fn cell(&self) -> usize {
        MemoryKind::from(self.role).cell_octets()
    }

    fn push(&mut self, offset: u64, octets: &[u8]) -> Result<(), Lost> {
        if self.taken() * self.cell() as u64 + (self.octets.len() % self.cell()) as u64 != offset {
            return Err(Lost("a piece of sample memory is missing".into()));
        }
        self.octets.extend_from_slice(octets);
        Ok(())
    }

    /// Whole rows that came so far.
    fn taken(&self) -> u64 {
        self.stored.rows + (self.octets.len() / self.cell()) as u64
    }

    /// Takes what the lost agent did not send from the memory that is held here.
    fn take_held(&mut self, memory: &Memory) {
        self.octets.truncate(self.octets.len() / self.cell() * self.cell());
        self.octets.extend(memory.octets(self.taken(), memory.rows().max(self.taken())));
        self.t0_ns = memory.header().t0_ns.load(Acquire);
        self.cut = true;
    }

    /// Closes a segment if there are rows enough for one; the number of rows on disk then.
    fn close_full(&mut self, dir: &Path, order: &Order, track: &OffsetTrack) -> Result<Option<u64>, RecordError> {
        let whole = self.octets.len() / self.cell() * self.cell();
        let octets = whole.min(SEGMENT_ROWS as usize * self.cell());
        if octets == 0 || (octets < SEGMENT_ROWS as usize * self.cell() && self.closed.elapsed() < SEGMENT_TIME) {
            return Ok(None);
        }
        self.close(octets, dir, order, track)?;
        Ok(Some(self.stored.rows))
    }

    fn close(&mut self, octets: usize, dir: &Path, order: &Order, track: &OffsetTrack) -> Result<(), RecordError> {
        let rows = Rows { role: self.role, first: self.stored.rows, octets: &self.octets[..octets], cut: self.cut };
        let stored = store::store(dir, order, self.segments, rows, self.t0_ns, track)?;
        // Rows of the memory: one that was cut off by a kill is in no segment.
        self.stored.add(Stored { rows: (octets / self.cell()) as u64, ..stored });
        self.segments += 1;
        self.closed = Instant::now();
        self.octets.drain(..octets);
        Ok(())
    }

    /// Closes the last segment.
    pub fn finish(
        mut self,
        dir: &Path,
        order: &Order,
        t0_ns: Option<i64>,
        track: &OffsetTrack,
    ) -> Result<(Stored, i64), RecordError> {
        self.t0_ns = t0_ns.unwrap_or(self.t0_ns);
        if self.segments == 0 || !self.octets.is_empty() {
            self.close(self.octets.len(), dir, order, track)?;
        }
        Ok((self.stored, self.t0_ns))
    }
}

/// Takes a frame of sample memory.
pub(super) fn take(incoming: &mut [Incoming], end: u8, offset: u64, octets: &[u8]) -> Result<(), Lost> {
    let incoming = incoming.get_mut(end as usize).ok_or_else(|| Lost("memory of an unknown end".into()))?;
    incoming.push(offset, octets)
}

/// Closes the segments that are full, and tells the agent.
pub(super) async fn close_full(
    agent: &mut Agent,
    incoming: &mut [Incoming],
    dir: &Path,
    order: &Order,
    track: &OffsetTrack,
) -> Result<(), RecordError> {
    for (index, incoming) in incoming.iter_mut().enumerate() {
        while let Some(rows) = incoming.close_full(dir, order, track)? {
            // An agent that no longer listens is noticed where it is waited for.
            let _ = agent.send(Message::Stored(tailbound_wire::Stored { end: index as u8, rows })).await;
        }
    }
    Ok(())
}

/// The rest of each end's memory, as the agent sends it; of a lost agent, what is held here. What the ends counted of a
/// flow comes with it.
pub(super) async fn rest(
    agent: &mut Agent,
    incoming: &mut [Incoming],
    lost: bool,
    deadline: Instant,
) -> Vec<FlowCounts> {
    if !lost && let Ok(counts) = ask(agent, incoming, deadline).await {
        return counts;
    }
    for (memory, incoming) in agent.held.iter().zip(incoming) {
        incoming.take_held(memory);
    }
    agent.held_counts()
}

async fn ask(agent: &mut Agent, incoming: &mut [Incoming], deadline: Instant) -> Result<Vec<FlowCounts>, Lost> {
    agent.send(Message::Collect).await?;
    let mut counts = Vec::new();
    loop {
        match agent.frame(deadline).await? {
            Frame::Memory { end, offset, bytes } => take(incoming, end, offset, &bytes)?,
            Frame::Message(message) => match *message {
                Message::Collected => return Ok(counts),
                Message::Counted(counted) => counts = counted,
                // Rows that were under way when the end was through: their readings are in `done` too.
                _ => {}
            },
        }
    }
}
