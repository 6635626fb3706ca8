//! Other delays than the wait for the gate, as they occurred: the share of the messages that was delayed for longer than a time.

/// Delays of messages that found their gate open.
#[derive(Debug)]
pub(super) struct Delays(Vec<f64>);

impl Delays {
    /// From these delays, ns, in any order.
    pub(super) fn of(mut delays_ns: Vec<f64>) -> Delays {
        delays_ns.sort_by(f64::total_cmp);
        Delays(delays_ns)
    }

    /// Share of the messages that are delayed for longer than this time, ns, rounded up as if one more message had been.
    pub(super) fn longer(&self, than_ns: f64) -> f64 {
        if than_ns <= 0.0 {
            return 1.0;
        }
        let within = self.0.partition_point(|ns| *ns <= than_ns);
        (self.0.len() - within + 1) as f64 / (self.0.len() + 1) as f64
    }

    /// The shortest time, ns, that at least one of `number` messages is not delayed for longer, with the probability
    /// 1 - `missed`.
    pub(super) fn least_of(&self, number: usize, missed: f64) -> f64 {
        let share = missed.powf(1.0 / number.max(1) as f64);
        let at = self.0.partition_point(|ns| self.longer(*ns) > share);
        self.0.get(at).or(self.0.last()).copied().unwrap_or(f64::INFINITY)
    }

    /// Time, ns, that half of the messages are delayed for at most.
    pub(super) fn median(&self) -> f64 {
        self.least_of(1, 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::Delays;

    #[test]
    fn shares_and_times_fit_each_other() {
        let delays = Delays::of((1..=99).map(f64::from).collect());
        assert_eq!([0.0, 50.0, 98.5, 1_000.0].map(|ns| delays.longer(ns)), [1.0, 0.5, 0.02, 0.01]);
        // One of two messages is delayed for up to 50 ns with the probability 1 - 0.5^2.
        assert_eq!(delays.least_of(2, 0.25), 50.0);
        assert_eq!(delays.least_of(1, 0.001), 99.0);
    }
}
