//! Records which messages of a flow were received, by the counters in their sequence numbers, in a ring of bits that
//! ends at the highest received counter.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A subscriber remembers which messages were received for this number of message counters below the highest one that
/// was received, for all publishers together.
const REACH: u64 = 1 << 22;

/// Result of comparing the counter in a received message with the counters received before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterStatus {
    /// The counter of the received message is higher than all counters received before.
    Next {
        /// Number of counters between this counter and the highest counter received before.
        missing: u64,
    },
    /// The counter was missing until now: a higher counter was received earlier.
    OutOfOrder,
    /// The message is a duplicate: a message with the same counter was received before.
    Duplicate,
    /// The counter is so far below the highest counter that it is unknown whether it was received before.
    Stale,
}

/// The message counters received from one publisher. One thread writes them.
pub struct Received {
    /// Highest counter received from the publisher, plus one.
    next: AtomicU64,
    /// One bit for each counter, set if the counter was received. The number of words is a power of two.
    bits: Box<[AtomicU64]>,
}

impl Received {
    /// Creates one instance of `Received` for each publisher. If there are more publishers, fewer counters of each
    /// publisher are remembered.
    pub fn by_publisher(publishers: u32) -> Box<[Received]> {
        let words = REACH / 64 / u64::from(publishers.max(1)).next_power_of_two();
        // Not zero: each page is written now, so that no page fault happens later.
        let bits = || (0..words).map(|_| AtomicU64::new(u64::MAX)).collect();
        (0..publishers).map(|_| Received { next: AtomicU64::new(0), bits: bits() }).collect()
    }

    fn reach(&self) -> u64 {
        self.bits.len() as u64 * 64
    }

    /// Records that a message was received if its counter is the next after the highest one received before; otherwise
    /// records nothing and returns false.
    #[inline]
    pub fn record_next(&self, counter: u64) -> bool {
        if counter != self.next.load(Relaxed) {
            return false;
        }
        let (word, bit) = self.at(counter);
        word.store(word.load(Relaxed) | bit, Relaxed);
        self.next.store(counter + 1, Relaxed);
        true
    }

    /// Records that a message with this counter was received. Returns the result of comparing the counter with the
    /// counters received before.
    pub fn record(&self, counter: u64) -> CounterStatus {
        let next = self.next.load(Relaxed);
        let (word, bit) = self.at(counter);
        let old = word.load(Relaxed);
        if counter >= next {
            let missing = counter - next;
            if missing > 0 {
                self.clear(next, missing);
            }
            word.store(word.load(Relaxed) | bit, Relaxed);
            self.next.store(counter + 1, Relaxed);
            return CounterStatus::Next { missing };
        }
        if next - counter > self.reach() {
            return CounterStatus::Stale;
        }
        if old & bit != 0 {
            return CounterStatus::Duplicate;
        }
        word.store(old | bit, Relaxed);
        CounterStatus::OutOfOrder
    }

    #[inline]
    fn at(&self, counter: u64) -> (&AtomicU64, u64) {
        (&self.bits[(counter / 64) as usize & (self.bits.len() - 1)], 1 << (counter % 64))
    }

    /// Clears the bits of counters that were not received, a whole word at a time where possible.
    #[cold]
    fn clear(&self, from: u64, missing: u64) {
        let (mut counter, end) = (from + missing.saturating_sub(self.reach()), from + missing);
        while counter < end {
            let (word, bit) = self.at(counter);
            if counter % 64 == 0 && end - counter >= 64 {
                word.store(0, Relaxed);
                counter += 64;
            } else {
                word.store(word.load(Relaxed) & !bit, Relaxed);
                counter += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Tests that the ring of received counters agrees with a set that remembers every counter.
    #[test]
    fn the_ring_agrees_with_a_set() {
        as_a_set(1);
        as_a_set(3);
    }

    fn as_a_set(publishers: u32) {
        let of_all = Received::by_publisher(publishers);
        let (received, mut all, mut next) = (of_all.last().unwrap(), BTreeSet::new(), 0u64);
        let reach = received.reach();
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut counts = [0u32; 4];
        for step in 0..400_000 {
            let counter = match random(10) {
                0 => next.saturating_sub(random(200)),
                1 => next + random(500),
                2 if step % 1000 == 0 => next + random(3 * reach),
                3 if step % 100 == 0 => next.saturating_sub(random(2 * reach)),
                _ => next,
            };
            let expected = if counter >= next {
                CounterStatus::Next { missing: counter - next }
            } else if next - counter > reach {
                CounterStatus::Stale
            } else if all.contains(&counter) {
                CounterStatus::Duplicate
            } else {
                CounterStatus::OutOfOrder
            };
            let recorded = received.record_next(counter);
            let status = if recorded { CounterStatus::Next { missing: 0 } } else { received.record(counter) };
            assert_eq!(status, expected, "step {step}, counter {counter}, next {next}");
            counts[match expected {
                CounterStatus::Next { .. } => 0,
                CounterStatus::OutOfOrder => 1,
                CounterStatus::Duplicate => 2,
                CounterStatus::Stale => 3,
            }] += 1;
            all.insert(counter);
            next = next.max(counter + 1);
        }
        assert!(counts.iter().all(|n| *n > 100), "{counts:?}");
    }
}
