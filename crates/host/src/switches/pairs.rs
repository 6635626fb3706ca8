//! Pairs begin and end of the interrupts and soft interrupts of one CPU.

use std::collections::BTreeMap;
use tailbound_model::{Interruption, SwitchEvent, SwitchKind};

/// Shortest interrupt that is kept, ns. Messages are late by 50 us or more, and the soft interrupt that receives an
/// ordinary packet takes 1 to 2 us: kept, such interrupts would be most events of a trial.
const SHORTEST_NS: i64 = 2_000;
/// Maximum number of interrupts inside each other: hard in soft interrupt, in each case of several kinds. More open
/// interrupts mean that records of their ends are missing.
const DEEPEST: usize = 16;

/// Interrupts of one CPU that have begun and not ended.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    open: Vec<(Interruption, i64)>,
    /// Soft interrupts of threads that were preempted within them, by thread id. Only kernels with PREEMPT_RT preempt
    /// soft interrupts.
    preempted: BTreeMap<i32, Vec<Interruption>>,
}

impl Pairs {
    pub fn begin(&mut self, by: Interruption, at_ns: i64) {
        if self.open.len() == DEEPEST {
            self.open.clear();
        }
        self.open.push((by, at_ns));
    }

    /// Ends an interrupt. Returns the interrupt with its begin and its duration, if its begin is known and if it took
    /// long enough to be kept.
    pub fn end(&mut self, by: Interruption, cpu: u32, at_ns: i64) -> Option<SwitchEvent> {
        let index = self.open.iter().rposition(|(open, _)| *open == by)?;
        let (_, begin_ns) = self.open[index];
        // If records are missing, the ends of inner interrupts may be among them.
        self.open.truncate(index);
        interrupted(by, cpu, begin_ns, at_ns)
    }

    /// Another thread gets the CPU. A soft interrupt in which the thread `out` was preempted ends here, and begins anew
    /// when this thread gets the CPU again. Returns the interrupts that ended.
    pub fn switch(&mut self, (out, into): (i32, i32), cpu: u32, at_ns: i64) -> Vec<SwitchEvent> {
        // A hard interrupt ends before its CPU changes threads, so that the record of its end is missing.
        self.open.retain(|(by, _)| matches!(by, Interruption::Softirq(_)));
        let ended = self.open.iter().filter_map(|(by, begin_ns)| interrupted(*by, cpu, *begin_ns, at_ns)).collect();
        if !self.open.is_empty() {
            let open = self.open.drain(..).map(|(by, _)| by).collect();
            self.preempted.insert(out, open);
        }
        let resumed = self.preempted.remove(&into).unwrap_or_default();
        self.open.extend(resumed.into_iter().map(|by| (by, at_ns)));
        ended
    }

    /// Forgets all open interrupts, because records of their ends may be missing.
    pub fn forget(&mut self) {
        self.open.clear();
        self.preempted.clear();
    }
}

fn interrupted(by: Interruption, cpu: u32, begin_ns: i64, end_ns: i64) -> Option<SwitchEvent> {
    let ns = (end_ns - begin_ns).clamp(0, i64::from(u32::MAX));
    let what = SwitchKind::Interrupted { by, ns: ns as u32 };
    (ns >= SHORTEST_NS).then_some(SwitchEvent { at_ns: begin_ns, cpu, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMER: Interruption = Interruption::Vector(236);
    const NET_RX: Interruption = Interruption::Softirq(3);

    fn event(by: Interruption, at_ns: i64, ns: u32) -> SwitchEvent {
        SwitchEvent { at_ns, cpu: 1, what: SwitchKind::Interrupted { by, ns } }
    }

    #[test]
    fn an_interrupt_inside_a_soft_interrupt_is_kept_with_its_own_time() {
        let mut pairs = Pairs::default();
        pairs.begin(NET_RX, 1_000);
        pairs.begin(TIMER, 5_000);
        assert_eq!(pairs.end(TIMER, 1, 8_000), Some(event(TIMER, 5_000, 3_000)));
        assert_eq!(pairs.end(NET_RX, 1, 21_000), Some(event(NET_RX, 1_000, 20_000)));
    }

    #[test]
    fn short_interrupts_and_ends_without_begin_are_left_out() {
        let mut pairs = Pairs::default();
        pairs.begin(TIMER, 0);
        assert_eq!(pairs.end(TIMER, 1, SHORTEST_NS - 1), None);
        assert_eq!(pairs.end(NET_RX, 1, 50_000), None);
    }

    #[test]
    fn a_preempted_soft_interrupt_has_no_time_of_other_threads() {
        let mut pairs = Pairs::default();
        pairs.begin(NET_RX, 0);
        assert_eq!(pairs.switch((12, 99), 1, 10_000), [event(NET_RX, 0, 10_000)]);
        pairs.begin(TIMER, 20_000);
        assert_eq!(pairs.end(TIMER, 1, 25_000), Some(event(TIMER, 20_000, 5_000)));
        assert_eq!(pairs.switch((99, 12), 1, 90_000), []);
        assert_eq!(pairs.end(NET_RX, 1, 97_000), Some(event(NET_RX, 90_000, 7_000)));
    }

    #[test]
    fn after_missing_records_nothing_is_paired_with_an_old_begin() {
        let mut pairs = Pairs::default();
        pairs.begin(NET_RX, 0);
        pairs.forget();
        assert_eq!(pairs.end(NET_RX, 1, 1_000_000), None);
    }
}
