//! Receives sample memory from the agents and writes the rows of samples into the record as segments (files of
//! samples).

use super::agent::Agent;
use super::agent_protocol::Lost;
use crate::hot::{Memory, MemoryKind};
use crate::store::{self, Rows, Stored};
use std::path::Path;
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;
use tailbound_host::OffsetTrack;
use tailbound_model::{FlowCounts, UntilCondition};
use tailbound_record::RecordError;
use tailbound_wire::*;
use tokio::time::Instant;

/// Number of rows of samples in a full segment, which is closed while the trial still runs.
const SEGMENT_ROWS: u64 = 1 << 18;
/// Time after which a segment (file of samples) is closed even if the segment is not full.
const SEGMENT_TIME: Duration = Duration::from_secs(60);

/// Rows of samples of one end: a summary of the stored rows, and the bytes received after these rows.
pub(super) struct Incoming {
    role: Role,
    bytes: Vec<u8>,
    segments: usize,
    /// Number of rows that were compared with the condition at which the run ends.
    compared: u64,
    /// Monotonic time at which slot 0 is due, ns; 0 = not known yet.
    pub t0_ns: i64,
    stored: Stored,
    closed: Instant,
    /// True if the agent was lost, so that the rows of samples end where the trial was cut off.
    cut: bool,
}

impl Incoming {
    pub fn new(role: Role) -> Incoming {
        let (stored, closed) = (Stored::default(), Instant::now());
        Incoming { role, bytes: Vec::new(), segments: 0, compared: 0, t0_ns: 0, stored, closed, cut: false }
    }

    fn cell(&self) -> usize {
        MemoryKind::from(self.role).cell_bytes()
    }

    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Lost> {
        if self.received() * self.cell() as u64 + (self.bytes.len() % self.cell()) as u64 != offset {
            return Err(Lost::BadMemory("a piece of sample memory is missing"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Number of complete rows of samples received from the agent so far.
    fn received(&self) -> u64 {
        self.stored.rows + (self.bytes.len() / self.cell()) as u64
    }

    /// True if one of the rows that were received since the last call fulfils the condition.
    fn fulfils(&mut self, order: &Order, condition: &UntilCondition) -> bool {
        let (first, received) = (self.compared.max(self.stored.rows), self.received());
        self.compared = received;
        let range = [first, received].map(|row| (row - self.stored.rows) as usize * self.cell());
        let rows = Rows { role: self.role, first, bytes: &self.bytes[range[0]..range[1]], cut: false };
        MemoryKind::from(self.role) == MemoryKind::Sender
            && store::any_sender_row(order, rows, self.t0_ns, &mut |row| condition.fulfilled_by(row).is_some())
    }

    /// Reads the rows of samples that a lost agent did not send from the sample memory that the controller has mapped.
    fn take_mapped(&mut self, memory: &Memory) {
        self.bytes.truncate(self.bytes.len() / self.cell() * self.cell());
        self.bytes.extend(memory.bytes(self.received(), memory.rows().max(self.received())));
        self.t0_ns = memory.header().t0_ns.load(Acquire);
        self.cut = true;
    }

    /// Writes and closes a segment if there are enough rows or enough time has passed. Returns the number of rows on
    /// disk, or `None` if no segment was closed.
    fn close_full(&mut self, dir: &Path, order: &Order, track: &OffsetTrack) -> Result<Option<u64>, RecordError> {
        let whole = self.bytes.len() / self.cell() * self.cell();
        let bytes = whole.min(SEGMENT_ROWS as usize * self.cell());
        if bytes == 0 || (bytes < SEGMENT_ROWS as usize * self.cell() && self.closed.elapsed() < SEGMENT_TIME) {
            return Ok(None);
        }
        self.close(bytes, dir, order, track)?;
        Ok(Some(self.stored.rows))
    }

    fn close(&mut self, bytes: usize, dir: &Path, order: &Order, track: &OffsetTrack) -> Result<(), RecordError> {
        let rows = Rows { role: self.role, first: self.stored.rows, bytes: &self.bytes[..bytes], cut: self.cut };
        let stored = store::store(dir, order, self.segments, rows, self.t0_ns, track)?;
        // These are rows of the memory; a row that was cut off by a kill is in no segment.
        self.stored.add(Stored { rows: (bytes / self.cell()) as u64, ..stored });
        self.segments += 1;
        self.closed = Instant::now();
        self.bytes.drain(..bytes);
        Ok(())
    }

    /// Writes and closes the last segment (file of samples) of an end. Returns the summary of all rows of samples, and
    /// the time at which slot 0 was due.
    pub fn finish(
        mut self,
        dir: &Path,
        order: &Order,
        t0_ns: Option<i64>,
        track: &OffsetTrack,
    ) -> Result<(Stored, i64), RecordError> {
        self.t0_ns = t0_ns.unwrap_or(self.t0_ns);
        if self.segments == 0 || !self.bytes.is_empty() {
            self.close(self.bytes.len(), dir, order, track)?;
        }
        Ok((self.stored, self.t0_ns))
    }
}

/// Adds a received piece of sample memory to the rows of samples of its end.
pub(super) fn take(incoming: &mut [Incoming], end: u8, offset: u64, bytes: &[u8]) -> Result<(), Lost> {
    let incoming =
        incoming.get_mut(end as usize).ok_or(Lost::BadMemory("sample memory of an unknown end was received"))?;
    incoming.push(offset, bytes)
}

/// True if one of the senders' rows that were received since the last call fulfils the condition at which the run ends.
pub(super) fn fulfilled(incoming: &mut [Incoming], order: &Order, condition: &UntilCondition) -> bool {
    // Every end is looked at, so that no row is looked at twice.
    let mut found = false;
    for end in incoming.iter_mut().filter(|end| end.t0_ns != 0) {
        found |= end.fulfils(order, condition);
    }
    found
}

/// Closes the segments (files of samples) that are full, and reports the stored rows to the agent.
pub(super) async fn close_full(
    agent: &mut Agent,
    incoming: &mut [Incoming],
    dir: &Path,
    order: &Order,
    track: &OffsetTrack,
) -> Result<(), RecordError> {
    for (index, incoming) in incoming.iter_mut().enumerate() {
        while let Some(rows) = incoming.close_full(dir, order, track)? {
            // The code that waits for an answer notices that the agent no longer reads.
            let _ = agent.send(Message::Stored(tailbound_wire::Stored { end: index as u8, rows })).await;
        }
    }
    Ok(())
}

/// Receives the rest of each end's sample memory, and returns the flow counts of the ends. If the agent is lost, both
/// are read from the memory that the controller has mapped.
pub(super) async fn rest(
    agent: &mut Agent,
    incoming: &mut [Incoming],
    lost: bool,
    deadline: Instant,
) -> Vec<FlowCounts> {
    if !lost && let Ok(counts) = request(agent, incoming, deadline).await {
        return counts;
    }
    for (memory, incoming) in agent.samples.iter().zip(incoming) {
        incoming.take_mapped(memory);
    }
    agent.mapped_counts()
}

async fn request(agent: &mut Agent, incoming: &mut [Incoming], deadline: Instant) -> Result<Vec<FlowCounts>, Lost> {
    agent.send(Message::Collect).await?;
    let mut counts = Vec::new();
    loop {
        match agent.frame(deadline).await? {
            Frame::Memory { end, offset, bytes } => take(incoming, end, offset, &bytes)?,
            Frame::Message(message) => match *message {
                Message::Collected => return Ok(counts),
                Message::Counted(counted) => counts = counted,
                // These are `draining` messages for rows that were sent before `done`, and `done` contains their clock
                // readings too.
                _ => {}
            },
        }
    }
}
