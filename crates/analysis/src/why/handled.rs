//! The times in which executors handled messages.

use crate::why::stamps::Stamps;
use tailbound_model::Metric;

/// Begin and end of the handling of messages, monotonic ns of the sender, in the order of time.
type Spans = Vec<(i64, i64)>;

/// What the executors of a trial handled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handled {
    /// Whether one thread is the executor of both ends.
    is_one_thread: bool,
    /// Send calls of the ping, with their messages.
    sent: Spans,
    /// Times from the receipt of a message at the pong to the end of the send call for its answer.
    answered: Spans,
}

impl Handled {
    /// What the executors handled: begin and end of the send calls of the ping, and of the handling at the pong.
    pub fn of(is_one_thread: bool, [mut sent, mut answered]: [Spans; 2]) -> Handled {
        sent.sort_unstable();
        answered.sort_unstable();
        Handled { is_one_thread, sent, answered }
    }

    /// The times between two times in which the executor of `end` handled other messages than `own`, which is in the leg `leg`.
    /// A sender that cannot send because of its own previous send call waits for this call, and not for an executor.
    pub fn others(&self, (end, leg): (&str, Metric), (from_ns, to_ns): (i64, i64), own: &Stamps) -> Spans {
        let is_ping = end == "ping";
        let lists = [
            (&self.sent, Some(own.send_ns), (is_ping || self.is_one_thread) && leg != Metric::SendLateness),
            (&self.answered, own.echo.map(|[into, ..]| into), !is_ping || self.is_one_thread),
        ];
        let mut spans = Spans::new();
        for (all, own_ns, _) in lists.into_iter().filter(|(.., counts)| *counts) {
            let first = all.partition_point(|(_, until)| *until <= from_ns);
            let within = all[first..].iter().take_while(|(begin, _)| *begin < to_ns);
            let others = within.filter(|(begin, _)| Some(*begin) != own_ns);
            spans.extend(others.map(|(begin, until)| ((*begin).max(from_ns), (*until).min(to_ns))));
        }
        spans.sort_unstable();
        spans
    }
}
