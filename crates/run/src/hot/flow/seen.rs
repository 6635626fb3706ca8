//! Which counters of a flow have come: a ring of bits behind the highest.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Counters that are remembered behind the highest, of all publishers together.
const REACH: u64 = 1 << 22;

/// What a counter is to those that came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Beyond all: so many were passed over.
    Next {
        /// Passed over.
        missing: u64,
    },
    /// It was passed over before.
    Late,
    /// It came before.
    Duplicate,
    /// Too far behind to tell.
    Stale,
}

/// Written by one thread.
pub struct Seen {
    /// One beyond the highest.
    next: AtomicU64,
    /// A power of two of them.
    bits: Box<[AtomicU64]>,
}

impl Seen {
    /// One for each publisher; the more they are, the less is remembered of each.
    pub fn of(publishers: u32) -> Box<[Seen]> {
        let words = REACH / 64 / u64::from(publishers.max(1)).next_power_of_two();
        // Written, not only reserved: no page fault later.
        let bits = || (0..words).map(|_| AtomicU64::new(u64::MAX)).collect();
        (0..publishers).map(|_| Seen { next: AtomicU64::new(0), bits: bits() }).collect()
    }

    fn reach(&self) -> u64 {
        self.bits.len() as u64 * 64
    }

    /// A counter came.
    #[inline]
    pub fn see(&self, counter: u64) -> Sight {
        let next = self.next.load(Relaxed);
        let (word, bit) = self.at(counter);
        let old = word.load(Relaxed);
        if counter >= next {
            let missing = counter - next;
            if missing > 0 {
                self.forget(next, missing);
            }
            word.store(word.load(Relaxed) | bit, Relaxed);
            self.next.store(counter + 1, Relaxed);
            return Sight::Next { missing };
        }
        if next - counter > self.reach() {
            return Sight::Stale;
        }
        if old & bit != 0 {
            return Sight::Duplicate;
        }
        word.store(old | bit, Relaxed);
        Sight::Late
    }

    #[inline]
    fn at(&self, counter: u64) -> (&AtomicU64, u64) {
        (&self.bits[(counter / 64) as usize & (self.bits.len() - 1)], 1 << (counter % 64))
    }

    /// The bits of counters that are passed over become zero, a word at a time where whole words are.
    #[cold]
    fn forget(&self, from: u64, missing: u64) {
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

    /// Against a set that remembers everything.
    #[test]
    fn it_tells_what_a_set_would_tell() {
        as_a_set(1);
        as_a_set(3);
    }

    fn as_a_set(publishers: u32) {
        let all_seen = Seen::of(publishers);
        let (seen, mut all, mut next) = (all_seen.last().unwrap(), BTreeSet::new(), 0u64);
        let reach = seen.reach();
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut told = [0u32; 4];
        for step in 0..400_000 {
            let counter = match random(10) {
                0 => next.saturating_sub(random(200)),
                1 => next + random(500),
                2 if step % 1000 == 0 => next + random(3 * reach),
                3 if step % 100 == 0 => next.saturating_sub(random(2 * reach)),
                _ => next,
            };
            let expected = if counter >= next {
                Sight::Next { missing: counter - next }
            } else if next - counter > reach {
                Sight::Stale
            } else if all.contains(&counter) {
                Sight::Duplicate
            } else {
                Sight::Late
            };
            assert_eq!(seen.see(counter), expected, "step {step}, counter {counter}, next {next}");
            told[match expected {
                Sight::Next { .. } => 0,
                Sight::Late => 1,
                Sight::Duplicate => 2,
                Sight::Stale => 3,
            }] += 1;
            all.insert(counter);
            next = next.max(counter + 1);
        }
        assert!(told.iter().all(|n| *n > 100), "{told:?}");
    }
}
