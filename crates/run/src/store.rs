//! From sample memory to the record: used by the controller, and by an agent whose controller disappeared.

use std::path::Path;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use tailbound_host::OffsetTrack;
use tailbound_model::*;
use tailbound_record::{EchoCells, RecordError, RecordWriter, SenderCells, SlotClock, write_echoes, write_slots};

/// What was stored of one end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub rows: u64,
    pub answered: u64,
    /// Widest conversion of a kernel stamp, ns; `None` = no stamp was converted.
    pub clock_width_ns: Option<i64>,
    /// Stamps that could not be converted.
    pub unconverted: u64,
}

/// The slot clock of an order.
pub(crate) fn slot_clock(spec: &TrialSpec, warm_up: u64, t0_ns: i64) -> SlotClock {
    let Measure::PingPong(p) = &spec.measure;
    SlotClock { stream: 0, t0_ns, period_ns: spec.rate.period().map(|n| n.0), warm_up, timeout_ns: p.timeout.0 }
}

/// Converts stamps and keeps account of how well that went.
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

/// Writes the ping side's cells as segment 0.
pub(crate) fn store_sender(
    dir: &Path,
    trial: usize,
    cells: &[SenderCell],
    clock: SlotClock,
    track: &OffsetTrack,
) -> Result<Stored, RecordError> {
    let converter = converter(track);
    let convert = |t| converter.convert(t);
    let mut stored = Stored::default();
    let rows = SenderCells::new(cells, 0, clock, &convert);
    let counted = rows.rows().inspect(|r| {
        stored.rows += 1;
        stored.answered += u64::from(r.receive_ns != NO_TIME);
    });
    write_slots(&RecordWriter::segment_path(dir, trial, "ping", 0), trial, counted)?;
    converter.account(&mut stored);
    Ok(stored)
}

/// Writes the pong side's cells as segment 0.
pub(crate) fn store_echoes(
    dir: &Path,
    trial: usize,
    cells: &[EchoCell],
    track: &OffsetTrack,
) -> Result<Stored, RecordError> {
    let converter = converter(track);
    let rows = EchoCells::rows(cells, &|t| converter.convert(t));
    write_echoes(&RecordWriter::segment_path(dir, trial, "pong", 0), trial, &rows)?;
    let mut stored = Stored { rows: rows.len() as u64, ..Stored::default() };
    converter.account(&mut stored);
    Ok(stored)
}
