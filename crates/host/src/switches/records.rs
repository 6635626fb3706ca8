//! Parser of the records in ring buffers of perf events; the layout is in perf_event_open(2), "Record layout".

use super::points::{Points, WakeFields};
use tailbound_model::{Interruption, SwitchEvent, SwitchKind};

/// Numbers of the types of records in a ring buffer of perf events (linux/perf_event.h).
const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_FORK: u32 = 7;
pub(super) const RECORD_SAMPLE: u32 = 9;
const RECORD_SWITCH: u32 = 14;
const RECORD_SWITCH_CPU_WIDE: u32 = 15;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// Length in bytes of the fields at the end of every record but samples, and at the begin of samples: pid, tid, time,
/// CPU. After them, a sample has the length of the tracepoint's data, and the data.
const TRAILER: usize = 24;
/// Length in bytes of the record of lost records before these fields. Page faults write such a record with one more field
/// at the end.
const LOST: usize = 16;

/// One record of a ring buffer of perf events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    Event(SwitchEvent),
    /// Record of a tracepoint: an interrupt begins or ends.
    Edge {
        by: Interruption,
        is_begin: bool,
        cpu: u32,
        at_ns: i64,
    },
    /// A record of a perf ring buffer: a thread has taken a new name.
    Named {
        thread: i32,
        name: String,
    },
    /// A record of a perf ring buffer: a thread was created by another thread and has inherited its name.
    Created {
        thread: i32,
        by: i32,
    },
    /// A record of a perf ring buffer: the ring buffer was full, so records before this time are missing.
    Missing {
        at_ns: i64,
        /// Number of missing records.
        records: u64,
    },
}

/// Whether this record of a context switch is about the thread that gets the CPU.
pub(super) fn is_arrival(misc: u16) -> bool {
    misc & MISC_SWITCH_OUT == 0
}

/// Parses a perf record; samples are records of `points`.
pub(super) fn parse(kind: u32, misc: u16, data: &[u8], points: &Points) -> Option<Record> {
    let id = match kind {
        RECORD_SAMPLE => 0,
        RECORD_LOST => LOST,
        _ => data.len().checked_sub(TRAILER)?,
    };
    let (thread, at_ns, cpu) = (word(data, id + 4)?, long(data, id + 8)?, word(data, id + 16)? as u32);
    let (out, preempted) = (misc & MISC_SWITCH_OUT != 0, misc & MISC_SWITCH_OUT_PREEMPT != 0);
    let event = |what| Some(Record::Event(SwitchEvent { at_ns, cpu, what }));
    match kind {
        // Only the record of the leaving thread says whether the thread was preempted.
        RECORD_SWITCH_CPU_WIDE if out => {
            event(SwitchKind::Switch { out: thread, into: word(data, 4)?, preempted, state: None, limit: None })
        }
        RECORD_SWITCH_CPU_WIDE => {
            event(SwitchKind::Switch { out: word(data, 4)?, into: thread, preempted: false, state: None, limit: None })
        }
        RECORD_SWITCH if out => event(SwitchKind::Out { thread, preempted }),
        RECORD_SWITCH => event(SwitchKind::In(thread)),
        RECORD_SAMPLE => sample(data.get(TRAILER + 4..)?, points, (thread, at_ns, cpu)),
        RECORD_COMM => {
            let name = data.get(8..id)?.split(|b| *b == 0).next()?;
            Some(Record::Named { thread: word(data, 4)?, name: String::from_utf8_lossy(name).into_owned() })
        }
        RECORD_FORK => Some(Record::Created { thread: word(data, 8)?, by: word(data, 12)? }),
        RECORD_LOST => Some(Record::Missing { at_ns, records: long(data, 8)? as u64 }),
        _ => None,
    }
}

/// Parses the data of a tracepoint that was reached in the context of `thread`.
fn sample(data: &[u8], points: &Points, (thread, at_ns, cpu): (i32, i64, u32)) -> Option<Record> {
    // The first field of every tracepoint is its id.
    let id = u16::from_ne_bytes(data.get(..2)?.try_into().ok()?);
    let event = |what| Some(Record::Event(SwitchEvent { at_ns, cpu, what }));
    if let Some((_, fields)) = points.switch.as_ref().filter(|(point, _)| *point == id) {
        let (preempted, state) = fields.state(long(data, fields.state_at)?);
        let (out, into) = (word(data, fields.out_at)?, word(data, fields.into_at)?);
        return event(SwitchKind::Switch { out, into, preempted, state, limit: None });
    }
    if let Some((_, fields)) = points.wake.filter(|(point, _)| *point == id) {
        let interrupt = WakeFields::by_interrupt(*data.get(fields.flags_at)?);
        return event(SwitchKind::Wake {
            thread: word(data, fields.thread_at)?,
            by: thread,
            interrupt,
            packet: false,
            limit: None,
        });
    }
    let (_, edge) = points.edges.iter().find(|(point, _)| *point == id)?;
    let by = (edge.kind)(word(data, edge.number_at)? as u32);
    Some(Record::Edge { by, is_begin: edge.is_begin, cpu, at_ns })
}

pub(super) fn word(data: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?))
}

pub(super) fn long(data: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_ne_bytes(data.get(at..at + 8)?.try_into().ok()?))
}
