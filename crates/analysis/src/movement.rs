//! Finds what moved the times on the ways of a trial slowly: a phase that sweeps through a cycle, or a wrong clock.
//!
//! Input: the samples of a trial. Output: the medians of consecutive parts of the trial in both directions, and what they show.

use tailbound_document::{MovementKind, MovementReport};
use tailbound_model::NO_TIME;
use tailbound_record::SlotBatch;
use tailbound_stats::{Movement, WaySpan, movement};

/// Largest number of parts into which a trial is divided.
const SPANS: u64 = 240;

/// Collects the medians of consecutive parts of a trial.
#[derive(Debug)]
pub(crate) struct Spans {
    slots_per_span: u64,
    slots: u64,
    due_ns: Option<i64>,
    /// Times on the way out and back of the part that is not complete yet, ns.
    ways_ns: [Vec<i64>; 2],
    found: Vec<WaySpan>,
}

impl Spans {
    /// For a trial with this number of slots, without the warm-up.
    pub fn new(slots: u64) -> Spans {
        // Without a known number of slots, nothing can be divided.
        let slots_per_span = if slots == 0 { u64::MAX } else { slots.div_ceil(SPANS) };
        Spans { slots_per_span, slots: 0, due_ns: None, ways_ns: [Vec::new(), Vec::new()], found: Vec::new() }
    }

    /// Adds the next slots, without those of the warm-up. The columns of both ways and the due times are needed.
    pub fn add(&mut self, batch: &SlotBatch) {
        let is_time = |ns: &i64| *ns != NO_TIME;
        for i in (0..batch.len()).filter(|i| !batch.warm_up[*i]) {
            let way = |sent: &[i64], received: &[i64]| {
                let time = |column: &[i64]| column.get(i).copied().filter(is_time);
                Some(time(received)?.saturating_sub(time(sent)?))
            };
            self.ways_ns[0].extend(way(&batch.send_begin_ns, &batch.echo_in_ns));
            self.ways_ns[1].extend(way(&batch.echo_begin_ns, &batch.receive_ns));
            self.due_ns = self.due_ns.or_else(|| batch.intended_ns.get(i).copied().filter(is_time));
            self.slots += 1;
            if self.slots.is_multiple_of(self.slots_per_span) {
                self.end();
            }
        }
    }

    fn end(&mut self) {
        let medians = self.ways_ns.each_mut().map(|ways_ns| {
            let middle = ways_ns.len() / 2;
            let median = (!ways_ns.is_empty()).then(|| *ways_ns.select_nth_unstable(middle).1 as f64);
            ways_ns.clear();
            median
        });
        if let (Some(at_ns), [Some(out_ns), Some(back_ns)]) = (self.due_ns.take(), medians) {
            self.found.push(WaySpan { at_ns: at_ns as f64, out_ns, back_ns });
        }
    }

    /// What moved the times on the ways of this trial. The last part of the trial is left out if it is not complete.
    pub fn finish(self, trial: usize, one_clock: bool) -> Option<MovementReport> {
        let kind = match movement(&self.found, one_clock)? {
            Movement::PhaseSweep { out, ppm, worst_wait_ns, ramps } => MovementKind::PhaseSweep {
                leg: out.map_or("round_trip", |out| if out { "out" } else { "back" }).to_owned(),
                ppm,
                worst_wait_ns: worst_wait_ns as i64,
                ramps: ramps as u64,
            },
            Movement::ClockError { moved_ns, ppm, sum_moved_ns } => {
                MovementKind::ClockError { moved_ns: moved_ns as i64, ppm, sum_moved_ns: sum_moved_ns as i64 }
            }
        };
        Some(MovementReport { trial, kind })
    }
}
