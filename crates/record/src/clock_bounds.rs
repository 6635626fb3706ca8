//! Bounds of the difference between the clocks of the two ends of a trial, from the times of its messages.

use crate::{Columns, Record, RecordError, SlotBatch};
use tailbound_model::NO_TIME;
use tailbound_stats::{ClockBounds, NoBounds, TwoClocks};

/// Reason why the difference between the clocks of the two ends of a trial has no bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoClockBounds {
    /// Kind of the reason.
    pub why: NoBounds,
    /// The first message whose times are not possible within the bounds of the clock difference that follow from the
    /// earlier messages: time of the message after slot 0, and smallest possible distance from the bounds, both in ns.
    pub parted: Option<(i64, i64)>,
}

impl Record {
    /// Computes the bounds of the difference between the clock of the ping (clock A) and the clock of the pong (clock B)
    /// from all messages of a trial, or returns the reason why there are no bounds. The memory does not grow with the
    /// number of messages.
    ///
    /// # Errors
    /// A segment is damaged.
    pub fn clock_bounds(&self, trial: usize) -> Result<Result<ClockBounds, NoClockBounds>, RecordError> {
        let mut two = TwoClocks::default();
        let mut parted = None;
        let t0 = self.manifest.trials.iter().find(|t| t.id == trial).and_then(|t| t.t0_ns).filter(|t0| *t0 != 0);
        let mut begin = t0;
        self.scan(trial, &Columns::of_clocks(), &mut |batch| {
            begin = begin.or_else(|| batch.send_begin_ns.iter().copied().find(|t| *t != NO_TIME));
            if parted.is_none() {
                let before = two.clone();
                feed(&mut two, batch, 0..batch.len());
                if crossed(&mut two) {
                    parted = Some(moment(before, batch, begin.unwrap_or(0)));
                }
            }
        })?;
        Ok(match parted {
            Some(parted) => Err(NoClockBounds { why: NoBounds::Crossed, parted }),
            None => two.bounds().map_err(|why| NoClockBounds { why, parted: None }),
        })
    }
}

fn feed(two: &mut TwoClocks, batch: &SlotBatch, rows: std::ops::Range<usize>) {
    for i in rows {
        let [sent, came] = [batch.send_begin_ns[i], batch.echo_in_ns[i]];
        if sent != NO_TIME && came != NO_TIME {
            two.there(sent, came);
        }
        // An answer may arrive before the call that sends it has returned.
        let [answered, received] = [batch.echo_begin_ns[i], batch.receive_ns[i]];
        if answered != NO_TIME && received != NO_TIME {
            two.back(answered, received);
        }
    }
}

fn crossed(two: &mut TwoClocks) -> bool {
    two.bounds() == Err(NoBounds::Crossed)
}

/// Finds, by bisection, the first message in a batch of rows whose times are not possible within the bounds of the
/// clock difference that follow from the earlier messages. Returns the time from `begin` until this message was sent,
/// and its distance from the bounds, both in ns.
fn moment(before: TwoClocks, batch: &SlotBatch, begin: i64) -> Option<(i64, i64)> {
    let first = |rows: usize| {
        let mut two = before.clone();
        feed(&mut two, batch, 0..rows);
        two
    };
    let (mut fits, mut not) = (0, batch.len());
    while not - fits > 1 {
        let middle = fits + (not - fits) / 2;
        if crossed(&mut first(middle)) { not = middle } else { fits = middle }
    }
    let i = not.checked_sub(1)?;
    let sent = batch.send_begin_ns[i];
    let by = first(fits).bounds().ok().and_then(|bounds| {
        let beyond = |difference: i64, [low, high]: [i64; 2]| [low - difference, difference - high];
        let came = batch.echo_in_ns[i].wrapping_sub(sent);
        let [short, _] = beyond(came, bounds.offset_ns(sent));
        let received = batch.receive_ns[i];
        let [_, long] = match received != NO_TIME && batch.echo_begin_ns[i] != NO_TIME {
            true => beyond(batch.echo_begin_ns[i].wrapping_sub(received), bounds.offset_ns(received)),
            false => [0, 0],
        };
        Some(short.max(long)).filter(|by| *by > 0)
    });
    (sent != NO_TIME).then(|| (sent - begin, by.unwrap_or(0)))
}
