//! Runs of messages of a trial that missed their limit: late ones and lost ones.
//!
//! Input: messages in the order of their due times, times in ns. The memory does not grow with the number of messages.

/// Runs, windows and recovery of messages that missed their limit, in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misses {
    m: u32,
    /// Whether each of the last `k` messages was missed; the next message replaces the one at `next`.
    window: Vec<bool>,
    next: usize,
    missed_in_window: u32,
    run: u64,
    on_time: u64,
    first_due_ns: Option<i64>,
    /// Due time of the first message of the current run of messages on time, ns; of the last message if it was missed.
    reached_ns: i64,
    /// Number of messages of the trial.
    pub messages: u64,
    /// Largest number of consecutive messages that were late or lost.
    pub longest_run: u64,
    /// Number of windows of `k` consecutive messages of which more than `m` were late or lost.
    pub violated_windows: u64,
    /// Longest time from the due time of a first late or lost message to the due time of the first of `k` consecutive
    /// messages that were on time, ns; `None` if nothing was missed, or if the trial never recovered.
    pub longest_recovery_ns: Option<i64>,
}

impl Misses {
    /// Counts windows of `k` messages of which at most `m` may miss their limit. A `k` of 0 counts as 1.
    pub fn new(m: u32, k: u32) -> Misses {
        Misses {
            m,
            window: vec![false; k.max(1) as usize],
            next: 0,
            missed_in_window: 0,
            run: 0,
            on_time: 0,
            first_due_ns: None,
            reached_ns: 0,
            messages: 0,
            longest_run: 0,
            violated_windows: 0,
            longest_recovery_ns: None,
        }
    }

    /// Adds the next message of the trial, in the order of due times.
    pub fn offer(&mut self, due_ns: i64, missed: bool) {
        self.messages += 1;
        let left = std::mem::replace(&mut self.window[self.next], missed);
        self.next = (self.next + 1) % self.window.len();
        self.missed_in_window = self.missed_in_window + u32::from(missed) - u32::from(left);
        self.violated_windows += u64::from(self.windows() > 0 && self.missed_in_window > self.m);
        if missed {
            self.run += 1;
            self.longest_run = self.longest_run.max(self.run);
            self.on_time = 0;
            self.reached_ns = due_ns;
            self.first_due_ns.get_or_insert(due_ns);
            return;
        }
        self.run = 0;
        if self.on_time == 0 {
            self.reached_ns = due_ns;
        }
        self.on_time += 1;
        if self.on_time == self.window.len() as u64
            && let Some(first) = self.first_due_ns.take()
        {
            self.longest_recovery_ns = self.longest_recovery_ns.max(Some(self.reached_ns - first));
        }
    }

    /// Number of windows of `k` consecutive messages in the trial; windows overlap.
    pub fn windows(&self) -> u64 {
        (self.messages + 1).saturating_sub(self.window.len() as u64)
    }

    /// If the trial ended before `k` consecutive messages were on time: a time in ns that the recovery takes at least,
    /// however the messages after the trial would have been.
    pub fn unrecovered_ns(&self) -> Option<i64> {
        Some(self.reached_ns - self.first_due_ns?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn of(slots: i64, missed: &[i64], (m, k): (u32, u32)) -> Misses {
        let mut misses = Misses::new(m, k);
        (0..slots).for_each(|slot| misses.offer(slot * MS, missed.contains(&slot)));
        misses
    }

    #[test]
    fn runs_of_misses_windows_and_recovery_are_counted() {
        // Slots 3, 4 and 6 are missed; four messages in a row are on time from slot 7 on.
        let misses = of(12, &[3, 4, 6], (1, 4));
        assert_eq!((misses.longest_run, misses.longest_recovery_ns, misses.unrecovered_ns()), (2, Some(4 * MS), None));
        // Windows that end at slots 4 to 7 hold two or three missed messages.
        assert_eq!((misses.violated_windows, misses.windows()), (4, 9));
    }

    #[test]
    fn a_trial_that_ends_too_early_has_a_shortest_possible_recovery() {
        assert_eq!(of(13, &[12], (1, 4)).unrecovered_ns(), Some(0), "the next message may be on time");
        assert_eq!(of(13, &[9, 12], (1, 4)).unrecovered_ns(), Some(3 * MS));
        // Slots 11 and 12 are on time; if two more follow, the trial had recovered at slot 11.
        assert_eq!(of(13, &[5, 10], (1, 4)).unrecovered_ns(), Some(MS), "slots 6 to 9 end the first recovery");
        assert_eq!(of(13, &[5, 8], (1, 4)).unrecovered_ns(), None, "slots 9 to 12 are on time");
        assert_eq!(of(13, &[8, 10], (1, 4)).unrecovered_ns(), Some(3 * MS));
    }

    #[test]
    fn a_window_may_be_longer_than_the_trial_and_longer_than_a_word() {
        assert_eq!((of(3, &[0, 1, 2], (0, 4)).windows(), of(3, &[0, 1, 2], (0, 4)).violated_windows), (0, 0));
        let all: Vec<i64> = (0..300).step_by(50).collect();
        // Each of the 201 windows of 100 messages holds two of the messages that are 50 apart.
        assert_eq!(of(300, &all, (1, 100)).violated_windows, 201);
        assert_eq!(of(300, &all, (2, 100)).violated_windows, 0);
        assert_eq!(of(10, &[4], (0, 1)).violated_windows, 1);
    }
}
