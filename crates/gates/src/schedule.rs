//! Gate schedules, and the times of a cycle at which the gate of a traffic class is open.

/// A gate schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Entries of the gate control list, in their order; not empty, and each longer than 0 ns.
    pub entries: Vec<Entry>,
    /// Time after which the schedule repeats, ns; 0 = the sum of the entries.
    pub cycle_ns: u64,
}

/// An entry of a gate control list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// One bit for each traffic class: whether its gate is open.
    pub gates: u32,
    /// Time for which the entry is in force, ns.
    pub interval_ns: u64,
}

/// What happens if the entries are shorter than the cycle. If they are longer, the cycle cuts the list off in both cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Linux begins with the first entry again, so that the schedule repeats after the sum of the entries (`advance_sched` in
    /// net/sched/sch_taprio.c).
    Kernel,
    /// The last entry remains in force until the cycle ends (IEEE 802.1Q, 8.6.9.2).
    Standard,
}

/// The times at which the gate of a class is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    /// Time after which the windows repeat, ns.
    pub cycle_ns: u64,
    /// Begin and end of each window, ns after the begin of a cycle, in the order of time and apart from each other. The last
    /// window may end in the next cycle. A gate that never closes has one window as long as the cycle.
    pub open: Vec<(u64, u64)>,
}

impl Schedule {
    fn sum_ns(&self) -> u64 {
        self.entries.iter().map(|entry| entry.interval_ns).sum()
    }

    /// Whether the entries last longer or shorter than the cycle.
    pub fn differs(&self) -> bool {
        self.cycle_ns != 0 && self.cycle_ns != self.sum_ns()
    }

    /// The times at which the gate of `class` is open.
    pub fn windows(&self, class: u32, rule: Rule) -> Windows {
        let sum_ns = self.sum_ns();
        let cycle_ns = match self.cycle_ns {
            0 => sum_ns,
            cycle_ns if rule == Rule::Kernel => cycle_ns.min(sum_ns),
            cycle_ns => cycle_ns,
        };
        let mut open: Vec<(u64, u64)> = Vec::new();
        let mut at_ns = 0;
        for (number, entry) in self.entries.iter().enumerate() {
            let is_last = number + 1 == self.entries.len();
            let end_ns = if is_last { cycle_ns } else { (at_ns + entry.interval_ns).min(cycle_ns) };
            if at_ns < end_ns && entry.gates >> class & 1 == 1 {
                match open.last_mut() {
                    Some((_, close)) if *close == at_ns => *close = end_ns,
                    _ => open.push((at_ns, end_ns)),
                }
            }
            at_ns = end_ns;
        }
        // A window that ends with the cycle goes on if the next cycle begins with an open gate.
        if let [(0, first), .., (_, last)] = open[..]
            && last == cycle_ns
        {
            open.remove(0);
            open.iter_mut().rev().take(1).for_each(|(_, close)| *close = cycle_ns + first);
        }
        Windows { cycle_ns, open }
    }
}

impl Schedule {
    /// Whether `taprio` takes a frame of `class` whose launch time is `at_ns` after the begin of a cycle and that needs the wire for
    /// `wire_ns`: within one entry of the list that opens the gate, without its first nanosecond, also if the gate is open before or
    /// after the entry (`find_entry_to_transmit` in net/sched/sch_taprio.c). It drops all others.
    pub fn takes_launch(&self, class: u32, at_ns: u64, wire_ns: u64) -> bool {
        let cycle_ns = if self.cycle_ns == 0 { self.sum_ns() } else { self.cycle_ns };
        let mut begin_ns = 0;
        self.entries.iter().any(|entry| {
            let end_ns = (begin_ns + entry.interval_ns).min(cycle_ns);
            let is_within = begin_ns < at_ns && at_ns + wire_ns < end_ns;
            begin_ns = end_ns;
            is_within && entry.gates >> class & 1 == 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(cycle_ns: u64, entries: &[(u32, u64)]) -> Schedule {
        let entries = entries.iter().map(|&(gates, interval_ns)| Entry { gates, interval_ns }).collect();
        Schedule { entries, cycle_ns }
    }

    /// The windows of class 0.
    fn open(schedule: &Schedule, rule: Rule) -> (u64, Vec<(u64, u64)>) {
        let Windows { cycle_ns, open } = schedule.windows(0, rule);
        (cycle_ns, open)
    }

    #[test]
    fn neighbouring_entries_and_cycles_are_one_window() {
        let list = schedule(0, &[(1, 10), (3, 20), (2, 30), (1, 40)]);
        assert_eq!(open(&list, Rule::Kernel), (100, vec![(60, 130)]));
        assert_eq!(list.windows(1, Rule::Kernel).open, [(10, 60)]);
        assert_eq!(list.windows(2, Rule::Kernel).open, []);
        let always = schedule(0, &[(1, 10), (3, 20)]);
        assert_eq!(open(&always, Rule::Standard), (30, vec![(0, 30)]));
    }

    #[test]
    fn entries_shorter_than_the_cycle_restart_in_the_kernel_and_extend_the_last_one_in_the_standard() {
        let list = schedule(100, &[(2, 10), (1, 20)]);
        assert_eq!(open(&list, Rule::Kernel), (30, vec![(10, 30)]));
        assert_eq!(open(&list, Rule::Standard), (100, vec![(10, 100)]));
        assert!(list.differs());
    }

    #[test]
    fn entries_longer_than_the_cycle_are_cut_off() {
        let list = schedule(25, &[(2, 10), (1, 20), (3, 5)]);
        for rule in [Rule::Kernel, Rule::Standard] {
            assert_eq!(open(&list, rule), (25, vec![(10, 25)]));
        }
        assert!(list.differs());
    }

    #[test]
    fn the_kernel_takes_launch_times_strictly_within_one_entry() {
        let list = schedule(0, &[(1, 1_000), (3, 1_000), (2, 2_000)]);
        let taken = |class, at_ns| list.takes_launch(class, at_ns, 100);
        assert_eq!([0, 1, 899, 900, 999].map(|at| taken(0, at)), [false, true, true, false, false]);
        // Both entries open the gate of class 0, and the frame would cross the border between them.
        assert_eq!([1_000, 1_001, 1_899, 1_900, 2_500].map(|at| taken(0, at)), [false, true, true, false, false]);
        assert_eq!(
            [999, 1_001, 1_950, 2_001, 3_899, 3_900].map(|at| taken(1, at)),
            [false, true, false, true, true, false]
        );
        // The cycle cuts the list off, or the entries end before it.
        let cut = Schedule { cycle_ns: 1_500, ..list.clone() };
        assert_eq!([1_399, 1_400].map(|at| cut.takes_launch(0, at, 100)), [true, false]);
        let short = Schedule { cycle_ns: 9_000, ..list };
        assert!(!short.takes_launch(0, 5_001, 100) && short.takes_launch(0, 1_001, 100));
    }
}
