//! Messages by the phase at which they were sent in a cycle, and the parts of the cycle in which no message passes.

use super::delays::Delays;

/// Number of messages with neighbouring phases that are compared with each other.
const NEIGHBOURS: usize = 10;
/// Probability with which messages that found their gate open look as if it had been closed; by it, the number of messages is
/// chosen that must wait one after another.
const MISTAKEN: f64 = 1e-9;

/// When a message was sent, and for how much longer than the fastest one it was on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    /// Begin of the send call after the reference time, ns.
    pub sent_ns: f64,
    /// Time beyond the shortest way, ns.
    pub wait_ns: f64,
}

/// A message in the cycle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    /// Time of the send call after the begin of the cycle, ns.
    pub phase_ns: f64,
    /// Time beyond the shortest way, ns.
    pub wait_ns: f64,
    /// Number of the cycle, from the reference time on.
    pub cycle: i64,
}

impl Point {
    /// Receipt after the begin of the cycle, less the shortest way: when the fastest message would have been sent that arrived at
    /// the same time.
    pub fn passed_ns(&self) -> f64 {
        self.phase_ns + self.wait_ns
    }
}

/// Messages by their phase in a cycle.
#[derive(Debug)]
pub(super) struct Folded {
    cycle_ns: f64,
    points: Vec<Point>,
    /// Wait up to which a message has certainly passed without waiting for its gate, except shortly before the gate opens, ns.
    soon_ns: f64,
}

/// A part of the cycle in which no message passes soon, between two messages that did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed {
    /// Number of the last message before.
    pub last: usize,
    /// Number of the first message after, as for [`Folded::at`].
    pub next: usize,
}

impl Folded {
    /// Messages in a cycle of this length; at least one.
    pub fn of(messages: &[Message], cycle_ns: f64) -> Folded {
        let point = |message: &Message| {
            let cycle = (message.sent_ns / cycle_ns).floor();
            let phase_ns = message.sent_ns - cycle * cycle_ns;
            Point { phase_ns, wait_ns: message.wait_ns, cycle: cycle as i64 }
        };
        let mut points: Vec<Point> = messages.iter().map(point).collect();
        points.sort_by(|a, b| a.phase_ns.total_cmp(&b.phase_ns));
        let soon_ns = (2.0 * median_excess_ns(&points)).max(cycle_ns / 1_000.0).max(1_000.0);
        Folded { cycle_ns, points, soon_ns }
    }

    pub fn cycle_ns(&self) -> f64 {
        self.cycle_ns
    }

    pub fn soon_ns(&self) -> f64 {
        self.soon_ns
    }

    /// The message with this number in the order of phases; after the last one, the first ones follow, a cycle later.
    pub fn at(&self, number: usize) -> Point {
        let (later, number) = (number / self.points.len(), number % self.points.len());
        let point = self.points[number];
        Point { phase_ns: point.phase_ns + later as f64 * self.cycle_ns, cycle: point.cycle - later as i64, ..point }
    }

    /// Longest part of the cycle in which no message was sent, ns.
    pub fn largest_gap_ns(&self) -> f64 {
        (0..self.points.len()).map(|n| self.at(n + 1).phase_ns - self.at(n).phase_ns).fold(0.0, f64::max)
    }

    /// The parts of the cycle in which the gate is closed, in the order of time. Elsewhere, a message is as likely to pass soon
    /// as the messages show.
    pub fn closed(&self) -> Vec<Closed> {
        let passes: Vec<usize> = (0..self.points.len()).filter(|n| self.points[*n].wait_ns <= self.soon_ns).collect();
        let next = passes.iter().skip(1).copied().chain(passes.first().map(|first| first + self.points.len()));
        let between: Vec<Closed> = passes.iter().zip(next).map(|(last, next)| Closed { last: *last, next }).collect();
        let waiting = |part: &Closed| part.next - part.last - 1;
        let longer =
            |least: f64| between.iter().copied().filter(|part| waiting(part) as f64 >= least).collect::<Vec<_>>();
        let least = |late: f64| MISTAKEN.ln() / late.ln();
        let first = longer(least(0.5));
        let waits: usize = first.iter().map(waiting).sum();
        let open = (self.points.len() - waits).max(1);
        let late = (open.saturating_sub(passes.len()) + 1) as f64 / (open + 1) as f64;
        longer(least(late.clamp(0.1, 0.9)))
    }

    /// For each of these messages, the difference between its wait and the explanation by these closed parts, ns.
    pub fn unexplained_ns(&self, closed: &[Closed], messages: &[Message]) -> Vec<f64> {
        let span = |part: &Closed| {
            let mut passed_ns: Vec<f64> = (part.last + 1..part.next).map(|n| self.at(n).passed_ns()).collect();
            let middle = passed_ns.len() / 2;
            (self.at(part.last).phase_ns, *passed_ns.select_nth_unstable_by(middle, f64::total_cmp).1)
        };
        let spans: Vec<(f64, f64)> = closed.iter().map(span).collect();
        let of = |message: &Message| {
            let phase_ns = message.sent_ns.rem_euclid(self.cycle_ns);
            // The last part can end in the next cycle.
            let mut waits = spans.iter().flat_map(|span| [(*span, phase_ns), (*span, phase_ns + self.cycle_ns)]);
            let wait = waits.find(|((closes_ns, opens_ns), ns)| closes_ns < ns && ns <= opens_ns);
            wait.map_or(message.wait_ns, |((_, opens_ns), ns)| (ns + message.wait_ns - opens_ns).abs())
        };
        messages.iter().map(of).collect()
    }

    /// The delays of the messages that found their gate open.
    pub fn delays(&self, closed: &[Closed]) -> Delays {
        let mut is_open = vec![true; self.points.len()];
        for part in closed {
            let waiting = part.last + 1..part.next;
            let opens_ns = waiting.clone().map(|n| self.at(n).passed_ns()).fold(f64::INFINITY, f64::min);
            let until = waiting.end + self.points.len();
            let shut = (waiting.start..until).take_while(|n| *n < waiting.end || self.at(*n).phase_ns < opens_ns);
            shut.for_each(|n| is_open[n % self.points.len()] = false);
        }
        let open = self.points.iter().zip(is_open).filter(|(_, is_open)| *is_open);
        Delays::of(open.map(|(point, _)| point.wait_ns).collect())
    }
}

/// Median of the times by which messages waited longer than messages with neighbouring phases, whether these were sent or passed
/// alike, ns.
fn median_excess_ns(points: &[Point]) -> f64 {
    let mut excess_ns = Vec::with_capacity(points.len());
    for near in points.chunks(NEIGHBOURS) {
        let least = |of: fn(&Point) -> f64| near.iter().map(of).fold(f64::INFINITY, f64::min);
        let (wait_ns, passed_ns) = (least(|point| point.wait_ns), least(Point::passed_ns));
        excess_ns.extend(near.iter().map(|point| (point.wait_ns - wait_ns).min(point.passed_ns() - passed_ns)));
    }
    let middle = excess_ns.len() / 2;
    *excess_ns.select_nth_unstable_by(middle, f64::total_cmp).1
}
