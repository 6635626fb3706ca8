//! Writes the rows of samples from the sample memory into the record, for the controller and for an agent whose
//! controller has disappeared.

use crate::hot::MemoryKind;
use std::path::Path;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use tailbound_host::OffsetTrack;
use tailbound_model::*;
use tailbound_record::{
    EchoCells, RecordError, RecordWriter, SenderCells, SlotClock, stored_rows, write_echoes, write_slots,
};
use tailbound_wire::{Order, Role};

/// Consecutive rows of samples of one end, as bytes of the sample memory.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub role: Role,
    /// Number of the first of these rows of samples.
    pub first: u64,
    pub bytes: &'a [u8],
    /// True if the trial was cut off after these rows of samples.
    pub cut: bool,
}

/// Summary of the rows of samples that were stored for one end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub rows: u64,
    /// Number of stored slots whose message was sent.
    pub sent: u64,
    pub answered: u64,
    /// Largest uncertainty of a converted kernel timestamp, ns; `None` = no timestamp was converted.
    pub clock_width_ns: Option<i64>,
    /// Number of kernel timestamps that could not be converted to monotonic time.
    pub unconverted: u64,
}

impl Stored {
    /// Adds the summary of another segment (file of samples) of the same end to this summary.
    pub fn add(&mut self, other: Stored) {
        self.rows += other.rows;
        self.sent += other.sent;
        self.answered += other.answered;
        self.clock_width_ns = self.clock_width_ns.max(other.clock_width_ns);
        self.unconverted += other.unconverted;
    }
}

/// A type of cell in the sample memory. Every combination of bits is a valid cell.
trait Cell: Sized {}
impl Cell for SenderCell {}
impl Cell for EchoCell {}

/// Copies bytes of sample memory into cells of their type. If the last cell is incomplete, it is dropped.
fn cells<T: Cell>(bytes: &[u8]) -> Vec<T> {
    let n = bytes.len() / size_of::<T>();
    let mut out: Vec<T> = Vec::with_capacity(n);
    // SAFETY: the vector has room for `n` cells; cells are atomic integers, for which all bits are valid.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.as_mut_ptr().cast::<u8>(), n * size_of::<T>());
        out.set_len(n);
    }
    out
}

/// The slots of a trial that was cut off, without the last slots, whose answers could still have arrived: it is unknown
/// whether the messages of those last slots were lost.
fn without_unsettled(cells: &[SenderCell], timeout_ns: i64) -> &[SenderCell] {
    let end = cells.iter().map(|c| c.wake_ns.load(Relaxed)).max().unwrap_or(0);
    let unsettled = |c: &SenderCell| {
        let begin = c.send_begin_ns.load(Relaxed);
        c.receive_ns.load(Relaxed) == 0 && begin != 0 && begin > end - timeout_ns
    };
    let last = cells.iter().rposition(|c| !unsettled(c)).map_or(0, |i| i + 1);
    &cells[..last]
}

/// Writes rows of samples of one end into the record as segment (file of samples) `number`. Returns a summary of the
/// rows.
pub(crate) fn store(
    dir: &Path,
    order: &Order,
    number: usize,
    rows: Rows<'_>,
    t0_ns: i64,
    track: &OffsetTrack,
) -> Result<Stored, RecordError> {
    let path = RecordWriter::segment_path(dir, order.trial, rows.role.word(), number);
    match rows.role {
        Role::Ping | Role::Publisher(_) => {
            let clock = slot_clock(&order.spec, order.warm_up, t0_ns);
            let cells = cells(rows.bytes);
            let cells = if rows.cut { without_unsettled(&cells, clock.timeout_ns) } else { &cells };
            store_sender(&path, order.trial, cells, rows.first, clock, track)
        }
        Role::Pong | Role::Further(_) => store_echoes(&path, order.trial, &cells(rows.bytes), track),
    }
}

/// True if `wanted` is true for one of these rows of samples of a sending end.
pub(crate) fn any_sender_row(
    order: &Order,
    rows: Rows<'_>,
    t0_ns: i64,
    wanted: &mut dyn FnMut(&SenderRow) -> bool,
) -> bool {
    let clock = slot_clock(&order.spec, order.warm_up, t0_ns);
    let cells = cells(rows.bytes);
    // Kernel timestamps are not needed.
    let convert = |_| NO_TIME;
    SenderCells::new(&cells, rows.first, clock, &convert).rows().any(|row| wanted(&row))
}

/// The rows of a receiving end in these bytes of its sample memory, without kernel timestamps.
pub(crate) fn echo_rows(bytes: &[u8]) -> Vec<EchoRow> {
    EchoCells::rows(&cells(bytes), &|_| NO_TIME)
}

/// Writes those rows of samples of one end that are not in the record yet, as the next segment.
pub(crate) fn rescue(
    dir: &Path,
    order: &Order,
    rows: Rows<'_>,
    t0_ns: i64,
    track: &OffsetTrack,
) -> Result<(), RecordError> {
    let (number, stored) = stored_rows(dir, order.trial, rows.role.word())?;
    let skip = stored.saturating_sub(rows.first) as usize * MemoryKind::from(rows.role).cell_bytes();
    let bytes = rows.bytes.get(skip..).unwrap_or_default();
    if !bytes.is_empty() {
        store(dir, order, number, Rows { first: rows.first.max(stored), bytes, ..rows }, t0_ns, track)?;
    }
    Ok(())
}

/// Parameters from which the due times and the outcomes of the slots of a trial are computed.
fn slot_clock(spec: &TrialSpec, warm_up: u64, t0_ns: i64) -> SlotClock {
    let every = spec.measure.flow().and_then(Flow::row_every).unwrap_or(1) as i64;
    let period_ns = spec.rate.period().map(|n| n.0.saturating_mul(every));
    SlotClock { stream: 0, t0_ns, period_ns, warm_up, timeout_ns: spec.measure.timeout().0 }
}

/// Converts kernel timestamps to the monotonic clock, and counts timestamps that cannot be converted.
struct Converter<'a> {
    track: &'a OffsetTrack,
    width: AtomicI64,
    unconverted: AtomicI64,
}

impl Converter<'_> {
    fn convert(&self, realtime_ns: i64) -> i64 {
        match self.track.convert(realtime_ns) {
            Some((monotonic, width)) => {
                self.width.fetch_max(width, Relaxed);
                monotonic
            }
            None => {
                self.unconverted.fetch_add(1, Relaxed);
                NO_TIME
            }
        }
    }

    fn account(&self, stored: &mut Stored) {
        let width = self.width.load(Relaxed);
        stored.clock_width_ns = (width >= 0).then_some(width);
        stored.unconverted = self.unconverted.load(Relaxed) as u64;
    }
}

fn converter(track: &OffsetTrack) -> Converter<'_> {
    Converter { track, width: AtomicI64::new(-1), unconverted: AtomicI64::new(0) }
}

/// Writes the cells of sample memory of a sending end into the record; `cells[0]` is slot `first`.
fn store_sender(
    path: &Path,
    trial: usize,
    cells: &[SenderCell],
    first: u64,
    clock: SlotClock,
    track: &OffsetTrack,
) -> Result<Stored, RecordError> {
    let converter = converter(track);
    let convert = |t| converter.convert(t);
    let mut stored = Stored::default();
    let rows = SenderCells::new(cells, first, clock, &convert);
    let counted = rows.rows().inspect(|r| {
        stored.rows += 1;
        stored.sent += u64::from(r.outcome != Outcome::NotSent);
        stored.answered += u64::from(r.receive_ns != NO_TIME);
    });
    write_slots(path, trial, counted)?;
    converter.account(&mut stored);
    Ok(stored)
}

/// Writes the cells of sample memory of a receiving end into the record.
fn store_echoes(path: &Path, trial: usize, cells: &[EchoCell], track: &OffsetTrack) -> Result<Stored, RecordError> {
    let converter = converter(track);
    let rows = EchoCells::rows(cells, &|t| converter.convert(t));
    write_echoes(path, trial, &rows)?;
    let mut stored = Stored { rows: rows.len() as u64, ..Stored::default() };
    converter.account(&mut stored);
    Ok(stored)
}

/// Writes all slots of a trial whose ends never found each other, with the outcome "not sent". Stop-and-wait with a
/// duration has only its warm-up and first slot; a trial that counts loops has a slot for each.
pub(crate) fn store_not_sent(dir: &Path, order: &Order) -> Result<Stored, RecordError> {
    let mut clock = slot_clock(&order.spec, order.warm_up, 0);
    clock.period_ns = None;
    let loops = order.spec.measure.loops();
    let slots = match (order.duration_ns, loops) {
        (Some(_), _) => order.warm_up + 1,
        (None, Some(loops)) => order.warm_up + loops,
        (None, None) => order.slots,
    };
    let nothing = [SenderCell::default()];
    let rows = (0..slots).flat_map(|slot| SenderCells::new(&nothing, slot, clock, &|t| t).rows().last());
    write_slots(&RecordWriter::segment_path(dir, order.trial, Role::Ping.word(), 0), order.trial, rows)?;
    Ok(Stored { rows: slots, ..Stored::default() })
}
