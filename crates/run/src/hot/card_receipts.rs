//! The times at which the network card of an end received its samples, kept until the end of the trial.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize};
use tailbound_model::NO_TIME;

/// Memory for the times at which the network card received samples. All of it is allocated and touched before the trial.
#[derive(Debug)]
pub struct CardReceipts {
    cells: Box<[Receipt]>,
    /// Number of samples with such a time, also those for which there is no cell.
    stamped: AtomicUsize,
}

#[derive(Debug)]
struct Receipt {
    seq: AtomicU64,
    /// Time of the clock of the card, ns; [`NO_TIME`] = the cell is not written.
    card_ns: AtomicI64,
}

/// Largest number of times that are kept: 64 MB.
const MOST: usize = 4 << 20;

impl CardReceipts {
    /// Makes memory for the times of this number of samples, at most 4,194,304.
    pub fn new(samples: u64) -> Self {
        let samples = usize::try_from(samples).unwrap_or(MOST).min(MOST);
        let cell = || Receipt { seq: AtomicU64::new(0), card_ns: AtomicI64::new(NO_TIME) };
        CardReceipts { cells: (0..samples).map(|_| cell()).collect(), stamped: AtomicUsize::new(0) }
    }

    /// Keeps the time of a sample, ns of the clock of the card; 0 = the card has not stamped the sample.
    #[inline]
    pub fn add(&self, seq: u64, card_ns: i64) {
        if card_ns == 0 {
            return;
        }
        if let Some(cell) = self.cells.get(self.stamped.fetch_add(1, Relaxed)) {
            cell.seq.store(seq, Relaxed);
            cell.card_ns.store(card_ns, Release);
        }
    }

    /// The sequence numbers and times (ns) of the samples so far, in the order in which they came.
    pub fn kept(&self) -> impl Iterator<Item = (u64, i64)> {
        let times = self.cells.iter().map(|cell| (cell.card_ns.load(Acquire), cell));
        times.filter(|(ns, _)| *ns != NO_TIME).map(|(ns, cell)| (cell.seq.load(Relaxed), ns))
    }

    /// Number of times that were not kept, because there were too many.
    pub fn left_out(&self) -> u64 {
        self.stamped.load(Relaxed).saturating_sub(self.cells.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_kept_in_their_order_and_those_without_room_are_counted() {
        let receipts = CardReceipts::new(3);
        assert_eq!((receipts.kept().count(), receipts.left_out()), (0, 0));
        for (seq, ns) in [(7, 70), (8, 0), (9, 90), (7, 71), (10, 100), (11, 110)] {
            receipts.add(seq, ns);
        }
        assert_eq!(receipts.kept().collect::<Vec<_>>(), [(7, 70), (9, 90), (7, 71)]);
        assert_eq!(receipts.left_out(), 2);
    }
}
