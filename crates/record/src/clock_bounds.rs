//! Bounds of the differences between clocks of a trial: of its two ends, from the times of its messages, and of the ping and
//! the host of its guest, from readings.

use crate::{Columns, Record, RecordError, SlotBatch};
use tailbound_model::{ClockReading, NO_TIME};
use tailbound_stats::{ClockBounds, ClockMessage, NoBounds, SteadyParts, SteadySearch, TwoClocks};

impl Record {
    /// Computes the bounds of the difference between the clock of the ping (clock A) and the clock of the pong (clock B)
    /// from all messages of a trial, for each part of the trial in which both clocks were steady; or returns the reason why
    /// there are no bounds. The memory does not grow with the number of messages.
    ///
    /// # Errors
    /// A segment is damaged.
    pub fn clock_bounds(&self, trial: usize) -> Result<Result<SteadyParts, NoBounds>, RecordError> {
        let mut search = SteadySearch::default();
        self.scan(trial, &Columns::of_clocks(), &mut |batch| {
            (0..batch.len()).filter_map(|row| message(batch, row)).for_each(|message| search.add(&message));
        })?;
        Ok(search.finish())
    }
}

/// Computes the bounds of the difference between the clock of the ping (clock A) and the clock of the host of its guest (clock B)
/// from readings of both.
///
/// # Errors
/// There are no readings, or no two steady clocks can have given them.
pub fn bounds_of_readings(readings: &[ClockReading]) -> Result<ClockBounds, NoBounds> {
    let mut clocks = TwoClocks::default();
    for reading in readings {
        clocks.back(reading.before_ns, reading.other_ns);
        clocks.there(reading.other_ns, reading.after_ns);
    }
    clocks.bounds()
}

/// The times of a message that was sent.
fn message(batch: &SlotBatch, row: usize) -> Option<ClockMessage> {
    let time = |column: &[i64]| Some(column[row]).filter(|time| *time != NO_TIME);
    Some(ClockMessage {
        sent_a_ns: time(&batch.send_begin_ns)?,
        arrived_b_ns: time(&batch.echo_in_ns),
        // Not the end of the call: an answer may arrive before the call that sends it has returned.
        answered_b_ns: time(&batch.echo_begin_ns),
        received_a_ns: time(&batch.receive_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_before_and_after_a_trial_bound_the_clock_of_the_host_in_between() {
        // The clock of the host is ahead by 5 s, and faster by 20 ppm. A reading takes 2 ms; the other clock is read at any time in
        // between.
        let host_ns = |ping_ns: i64| ping_ns + 5_000_000_000 + ping_ns / 50_000;
        let reading = |(n, at_ns): (i64, i64)| {
            let (before_ns, after_ns) =
                (host_ns(at_ns - n % 7 * 250_000), host_ns(at_ns + 2_000_000 - n % 5 * 400_000));
            ClockReading { before_ns, other_ns: at_ns, after_ns }
        };
        let times = (0..20).chain(5_000..5_020).map(|n| (n, n * 2_000_000));
        let bounds = bounds_of_readings(&times.map(reading).collect::<Vec<_>>()).expect("bounds");
        for at_ns in [0, 3_000_000_000, 10_000_000_000] {
            let [low, high] = bounds.offset_ns(at_ns);
            let true_ns = host_ns(at_ns) - at_ns;
            assert!(low <= true_ns && true_ns <= high && high - low < 900_000, "{low} {true_ns} {high}");
        }
        assert_eq!(bounds_of_readings(&[]), Err(NoBounds::OneWay));
    }
}
