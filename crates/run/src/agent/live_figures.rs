//! Round trips of a trial that still runs, read from the sample memory once a second, if the controller asks for them.

use super::late_messages::is_sender;
use crate::hot::Memory;
use crate::live_collect::settle_ns;
use crate::store::{self, Rows};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Acquire;
use tailbound_host as host;
use tailbound_record::RunningFigures;
use tailbound_wire::{Figures, Order};

/// Largest number of rows of samples that are read at a time, so that reading takes a few milliseconds at most. At higher
/// rates the figures are of earlier messages.
const MOST_ROWS: u64 = 50_000;

/// Round trips of the first sending end of an agent.
#[derive(Default)]
pub(super) struct LiveFigures {
    /// Number of rows of samples that were added.
    rows: u64,
    running: RunningFigures,
}

impl LiveFigures {
    /// Adds the rows of samples that have an answer, or can no longer get one. Returns the round trips so far; `None` if the
    /// agent has no sending end, or its rows are in a ring (`collect: live`), from which they disappear.
    pub fn look(&mut self, order: &Order, memories: &[(OwnedFd, Memory)]) -> Option<Figures> {
        if order.ring.is_some() {
            return None;
        }
        let (index, (_, memory)) = memories.iter().enumerate().find(|(index, _)| is_sender(order, *index))?;
        let now_ns = host::monotonic_ns();
        let settled_ns = now_ns - settle_ns(&order.spec);
        let until = memory.settled(self.rows, MOST_ROWS, now_ns);
        let bytes = memory.bytes(self.rows, until);
        let all = Rows { role: order.ends[index].role, first: self.rows, bytes: &bytes, cut: false };
        let LiveFigures { rows, running } = self;
        store::any_sender_row(order, all, memory.header().t0_ns.load(Acquire), &mut |row| {
            let is_final = running.add(row, settled_ns);
            *rows += u64::from(is_final);
            !is_final
        });
        let of = self.running.so_far();
        let ns = |time: Option<i64>| time.unwrap_or(0);
        (of.messages > 0).then(|| Figures {
            messages: of.messages,
            lost: of.lost,
            p50_ns: ns(of.p50_ns),
            p99_ns: ns(of.p99_ns),
            max_ns: ns(of.max_ns),
        })
    }
}
