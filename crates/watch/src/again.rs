//! Which of the newest numbers were seen: sequence numbers of samples.

use std::collections::VecDeque;

/// Number of the newest numbers that are remembered; what is below counts as seen.
const REMEMBERED: i64 = 4096;
/// How far before the first number a number may lie.
const BEFORE_FIRST: i64 = 64;

/// The numbers from a first one on, and which of the newest were seen.
#[derive(Debug, Default)]
pub struct Numbers {
    /// The smallest number that was seen; 0 = none.
    first: i64,
    /// The largest number that was seen.
    highest: i64,
    /// One bit per number, in words of 64; the last bit of the last word is the largest number that has room.
    words: VecDeque<u64>,
    /// The number of the first bit.
    base: i64,
    /// How many different numbers were seen.
    count: u64,
}

/// What a number is to the ones before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Larger than all before.
    Newest,
    /// Smaller than the largest one, and not seen before.
    Late,
    /// Seen before, or too old to be remembered.
    Again,
}

impl Numbers {
    /// Remembers a number, and says what it is to the ones before.
    pub fn see(&mut self, number: i64) -> Found {
        if self.count == 0 {
            // Numbers shortly before the first one may follow: its predecessor was lost, and is sent again.
            (self.first, self.base) = (number, number.saturating_sub(BEFORE_FIRST).max(1));
        }
        if number < self.base {
            return Found::Again;
        }
        let found = if self.count == 0 || number > self.highest { Found::Newest } else { Found::Late };
        if number - self.base >= self.words.len() as i64 * 64 + REMEMBERED {
            // Far beyond: nothing of what is remembered is near.
            self.words.clear();
            self.base = number;
        }
        while number - self.base >= self.words.len() as i64 * 64 {
            self.words.push_back(0);
        }
        while self.words.len() as i64 * 64 > REMEMBERED + 64 {
            self.words.pop_front();
            self.base += 64;
        }
        let bit = (number - self.base) as usize;
        let Some(word) = self.words.get_mut(bit / 64) else { return Found::Again };
        let mask = 1 << (bit % 64);
        if *word & mask != 0 {
            return Found::Again;
        }
        *word |= mask;
        self.count += 1;
        self.highest = self.highest.max(number);
        self.first = self.first.min(number);
        found
    }

    /// The smallest number that was seen; 0 = none.
    pub fn first(&self) -> i64 {
        self.first
    }

    /// The largest number that was seen; 0 = none.
    pub fn highest(&self) -> i64 {
        self.highest
    }

    /// How many numbers between the first and the largest one were not seen.
    pub fn not_seen(&self) -> u64 {
        if self.count == 0 { 0 } else { (self.highest - self.first + 1) as u64 - self.count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_are_new_late_or_seen() {
        let mut numbers = Numbers::default();
        let found: Vec<Found> = [7, 8, 10, 9, 9, 7, 3, 12].map(|n| numbers.see(n)).into();
        use Found::*;
        assert_eq!(found, [Newest, Newest, Newest, Late, Again, Again, Late, Newest]);
        assert_eq!((numbers.highest(), numbers.not_seen()), (12, 4));
    }

    /// Compares with a set of all numbers, for steps that go back less than is remembered.
    #[test]
    fn long_sequences_are_counted_exactly() {
        let (mut numbers, mut all, mut at, mut random) = (Numbers::default(), BTreeSet::new(), 1_i64, 1_u64);
        for _ in 0..200_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            at += (random >> 60) as i64 / 5;
            let number = (at - (random >> 40) as i64 % 3_000).max(1);
            if number >= *all.first().unwrap_or(&number) {
                let is_new = all.insert(number);
                assert_eq!(numbers.see(number) == Found::Again, !is_new, "{number}");
            }
        }
        let (first, last) = (all.first().unwrap(), all.last().unwrap());
        assert_eq!(numbers.not_seen(), (last - first + 1) as u64 - all.len() as u64);
    }

    #[test]
    fn a_jump_forgets_what_was_before() {
        let mut numbers = Numbers::default();
        numbers.see(1);
        assert_eq!(numbers.see(i64::MAX / 2), Found::Newest);
        assert_eq!(numbers.see(2), Found::Again, "too old");
        assert_eq!(numbers.words.len(), 1);
    }
}
