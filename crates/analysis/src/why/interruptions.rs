//! Interrupts within a time span.

use crate::why::course::Piece;
use crate::why::share::{Share, whole};
use crate::why::threads::Threads;
use crate::why::timeline::InterruptSpan;
use tailbound_document::{CauseWord, CausedBy, Evidence};
use tailbound_model::Interruption;

/// The vectors of x86 by which a CPU interrupts another one (`arch/x86/include/asm/irq_vectors.h`), with the names of their
/// tracepoints. The vector `irq_work` is not among them, because a CPU interrupts itself by it.
const CALLS: [(u32, &str); 3] = [(0xfd, "reschedule"), (0xfc, "call_function"), (0xfb, "call_function_single")];

/// The share of an interrupt that had a CPU for the whole time of a part.
pub(crate) fn interrupted(part: &Piece, cpu: u32, by: Interruption, threads: &Threads) -> Share {
    let call = |vector| CALLS.iter().find(|(one, _)| *one == vector).filter(|_| threads.kernel(cpu).is_x86);
    let (cause, name) = match by {
        Interruption::Irq(number) => (CauseWord::Irq, format!("irq {number}")),
        Interruption::Vector(number) => match call(number) {
            Some((_, name)) => (CauseWord::Ipi, (*name).to_owned()),
            None => (CauseWord::Irq, format!("vector {number}")),
        },
        Interruption::Softirq(number) => (CauseWord::Softirq, softirq(number)),
    };
    whole(part, cause, Some(cpu), Some(CausedBy::named(name)), Evidence::Seen)
}

/// Name of a soft interrupt, in the order of `/proc/softirqs`.
fn softirq(number: u32) -> String {
    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    NAMES.get(number as usize).map_or_else(|| format!("soft interrupt {number}"), |name| (*name).to_owned())
}

/// Divides a time span by the interrupts in it. At each instant the interrupt that began last counts, so that an
/// interrupt inside a soft interrupt counts once.
pub(crate) fn divide(from_ns: i64, to_ns: i64, spans: &[InterruptSpan]) -> Vec<(i64, i64, Option<Interruption>)> {
    let mut parts = Vec::new();
    let mut open: Vec<&InterruptSpan> = Vec::new();
    let mut at = from_ns;
    let mut until = |at: &mut i64, to: i64, by: Option<Interruption>| {
        if *at < to {
            parts.push((*at, to, by));
            *at = to;
        }
    };
    for span in spans {
        while let Some(inner) = open.last().filter(|inner| inner.to_ns <= span.from_ns) {
            until(&mut at, inner.to_ns, Some(inner.by));
            open.pop();
        }
        until(&mut at, span.from_ns, open.last().map(|s| s.by));
        open.push(span);
    }
    while let Some(inner) = open.pop() {
        until(&mut at, inner.to_ns, Some(inner.by));
    }
    until(&mut at, to_ns, None);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::course::Doing;
    use crate::why::kernels::Kernel;
    use tailbound_model::Metric;

    fn cause_of(is_x86: bool, by: Interruption) -> (CauseWord, String) {
        let threads = Threads::of_tasks(&[]).of_kernels([Kernel { is_x86, ..Kernel::default() }; 3]);
        let what = Doing::Ran { cpu: 1 };
        let part = Piece { from_ns: 100, to_ns: 200, leg: Metric::Out, end: "ping", thread: 20, what };
        let share = interrupted(&part, 1, by, &threads);
        assert_eq!((share.low_ns, share.high_ns, share.evidence), (100, 100, Evidence::Seen));
        (share.key.cause, share.key.by.map_or(String::new(), |by| by.name))
    }

    #[test]
    fn a_call_from_another_cpu_has_a_known_vector_on_x86() {
        for (vector, name) in [(253, "reschedule"), (252, "call_function"), (251, "call_function_single")] {
            assert_eq!(cause_of(true, Interruption::Vector(vector)), (CauseWord::Ipi, name.to_owned()));
        }
        // The vectors of the timer, and of work for which a CPU interrupts itself.
        for vector in [0xec, 0xf6] {
            assert_eq!(cause_of(true, Interruption::Vector(vector)), (CauseWord::Irq, format!("vector {vector}")));
        }
        assert_eq!(cause_of(true, Interruption::Irq(253)), (CauseWord::Irq, "irq 253".to_owned()));
        // Another architecture, or a record that does not name the architecture.
        assert_eq!(cause_of(false, Interruption::Vector(253)), (CauseWord::Irq, "vector 253".to_owned()));
    }

    #[test]
    fn interrupts_inside_each_other_count_once() {
        let span = |from_ns, to_ns, by| InterruptSpan { from_ns, to_ns, by };
        let (soft, irq) = (Interruption::Softirq(3), Interruption::Irq(7));
        let parts = divide(0, 100, &[span(10, 60, soft), span(20, 30, irq), span(40, 45, irq), span(80, 90, irq)]);
        let expected = [
            (0, 10, None),
            (10, 20, Some(soft)),
            (20, 30, Some(irq)),
            (30, 40, Some(soft)),
            (40, 45, Some(irq)),
            (45, 60, Some(soft)),
            (60, 80, None),
            (80, 90, Some(irq)),
            (90, 100, None),
        ];
        assert_eq!(parts, expected);
    }
}
