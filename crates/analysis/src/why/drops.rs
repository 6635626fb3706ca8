//! Time spans in which the kernel counted dropped datagrams at an end, from the counters that its agent read.

use std::collections::BTreeMap;
use tailbound_model::{Counter, Switches};

/// A datagram that was dropped this long after its message was due was counted with the message, ns. Drops follow the
/// send call at once; the time also covers the wait for that call.
const AFTER_DUE_NS: i64 = 20_000_000;

/// The counters of dropped datagrams that explain a loss.
const EXPLAINING: [Counter; 2] = [Counter::SocketBufferDrops, Counter::ReassemblyFailures];

/// Time spans in which drops were counted, by the end.
#[derive(Debug, Default)]
pub(crate) struct Drops(BTreeMap<&'static str, Vec<(Counter, i64, i64)>>);

impl Drops {
    pub fn of(seen: &[Switches]) -> Drops {
        let spans = |end| {
            let of_end = seen.iter().filter(move |s| s.ends.iter().any(|e| e == end));
            let series = of_end.flat_map(|s| &s.counters).filter(|c| EXPLAINING.contains(&c.counter));
            series.flat_map(|c| c.moves.iter().map(|m| (c.counter, m.from_ns, m.to_ns))).collect()
        };
        Drops(["ping", "pong"].into_iter().map(|end| (end, spans(end))).collect())
    }

    /// The counter that moved at this end when a message that was due at this time was lost.
    pub fn explain(&self, end: &str, due_ns: i64) -> Option<Counter> {
        let moved = |(_, from, to): &&(Counter, i64, i64)| *from < due_ns + AFTER_DUE_NS && due_ns <= *to;
        self.0.get(end)?.iter().find(moved).map(|(counter, ..)| *counter)
    }
}

/// The reason of a loss in words.
pub(crate) fn reason(counter: Counter, end: &str) -> String {
    match counter {
        Counter::ReassemblyFailures => {
            format!("the kernel of the {end} end discarded fragments of datagrams that stayed incomplete")
        }
        _ => format!("a receive buffer of the {end} end was full, so that the kernel dropped datagrams"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{CounterMove, CounterSeries};

    #[test]
    fn a_loss_belongs_to_the_counter_that_moved_when_it_was_due() {
        let moves = vec![CounterMove { from_ns: 100_000_000, to_ns: 150_000_000, by: 3 }];
        let series = CounterSeries {
            counter: Counter::SocketBufferDrops,
            of: String::new(),
            moves,
            longest_step_ns: 50_000_000,
        };
        let seen = Switches { ends: vec!["pong".into()], counters: vec![series], ..Switches::default() };
        let drops = Drops::of(&[seen]);
        let full = Some(Counter::SocketBufferDrops);
        assert_eq!([90_000_000, 150_000_000].map(|due| drops.explain("pong", due)), [full, full]);
        assert_eq!([70_000_000, 151_000_000].map(|due| drops.explain("pong", due)), [None, None]);
        assert_eq!(drops.explain("ping", 120_000_000), None);
    }
}
