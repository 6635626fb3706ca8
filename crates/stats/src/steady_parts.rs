//! Parts of a trial in each of which the difference between two clocks is one line, if a clock was stepped or changed its
//! speed in between.
//!
//! Messages are joined, in the order in which they were sent, to at most [`MOST_SPANS`] spans. The longest runs of spans that
//! one line fits are searched twice: from the begin of the trial to its end, and from the end to the begin. Both searches
//! find the same number of changes, which is the least number that explains the messages. If there were no more, change
//! number n lies no later than the first search finds it, and no earlier than the second search finds it. (The search is the
//! greedy solution for the fewest points that meet all of a set of intervals: here, of all runs of messages that no line
//! fits.) A message that was on its way during a change may have one time from before it and one from after it.

use crate::two_clocks::{ClockBounds, NoBounds, TwoClocks};

/// Largest number of spans. If more are needed, each two neighbours are joined.
const MOST_SPANS: usize = 4_096;
/// Number of messages in a span, until spans have to be joined.
const FIRST_SPAN: u64 = 8;

/// Times of one message and its answer, ns: those of the end A in the clock of A, those of the end B in the clock of B.
/// `None` if it did not happen.
#[derive(Debug, Clone, Copy)]
pub struct ClockMessage {
    /// The message was sent by A at this time or later.
    pub sent_a_ns: i64,
    /// The message arrived at B at this time or earlier.
    pub arrived_b_ns: Option<i64>,
    /// By the clock of B, the end that answers: the answer was sent at this time or later.
    pub answered_b_ns: Option<i64>,
    /// By the clock of A, the end that asks: the answer arrived at this time or earlier.
    pub received_a_ns: Option<i64>,
}

/// Messages that were sent one after another.
#[derive(Debug, Clone)]
struct Span {
    clocks: TwoClocks,
    messages: u64,
    /// Times at which the end A sent the first and the last message, by its own clock, ns.
    sent_ns: (i64, i64),
    /// Latest time of the messages and their answers, clock of A, ns.
    until_ns: i64,
}

/// Collects the messages of a trial, in the order in which they were sent.
#[derive(Debug, Clone, Default)]
pub struct SteadySearch {
    spans: Vec<Span>,
    /// Number of messages in each span but the last.
    per_span: u64,
}

/// One reading of clock B between two readings of clock A, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// Time of clock A before clock B was read.
    pub before_a_ns: i64,
    /// Time of clock B.
    pub clock_b_ns: i64,
    /// Time of clock A after clock B was read.
    pub after_a_ns: i64,
}

/// The difference between two clocks over a trial, in which the clocks may have been steady or not.
#[derive(Debug, Clone, PartialEq)]
pub struct SteadyParts {
    parts: Vec<Part>,
    changes: Vec<ClockChange>,
    messages: u64,
    /// When the first message was sent, clock of A, ns.
    begin_ns: i64,
}

#[derive(Debug, Clone, PartialEq)]
struct Part {
    /// Times at which the end A sent the first and the last message, by its own clock, ns.
    sent_ns: (i64, i64),
    bounds: ClockBounds,
}

/// A time span within which one of two clocks was stepped or changed its speed, once or more often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockChange {
    /// When the first message was sent whose times are not converted, clock of A, ns.
    pub from_ns: i64,
    /// When the first message afterwards was sent, less 1 ns, or when the last answer arrived, clock of A, ns.
    pub to_ns: i64,
    /// Number of messages whose times are not converted.
    pub messages: u64,
    /// The smallest change of the offset (B minus A) that the bounds before and after the change permit, ns; 0 if they
    /// permit that it did not change, or if nothing is known on one side.
    pub least_ns: i64,
    /// Smallest and largest change of the offset (B minus A), ns, that the bounds before and after permit at a time from
    /// `from_ns` to `to_ns`; `None` if nothing is known on one side. A change of the rate alone permits 0.
    pub step_ns: Option<[i64; 2]>,
    /// Smallest and largest change of the rate of B by clock A, ns per s, rounded outwards, that the bounds before and after
    /// permit; `None` if nothing is known on one side.
    pub rate_change_ns_per_s: Option<[i64; 2]>,
}

impl Span {
    fn of(message: &ClockMessage) -> Span {
        let sent = message.sent_a_ns;
        let mut span = Span { clocks: TwoClocks::default(), messages: 0, sent_ns: (sent, sent), until_ns: sent };
        span.add(message);
        span
    }

    fn add(&mut self, message: &ClockMessage) {
        let sent = message.sent_a_ns;
        if let Some(arrived) = message.arrived_b_ns {
            self.clocks.there(sent, arrived);
        }
        if let (Some(answered), Some(received)) = (message.answered_b_ns, message.received_a_ns) {
            self.clocks.back(answered, received);
        }
        self.messages += 1;
        self.sent_ns.1 = sent;
        self.until_ns = self.until_ns.max(sent).max(message.received_a_ns.unwrap_or(sent));
    }

    fn join(&mut self, later: Span) {
        self.clocks.join(&later.clocks);
        self.messages += later.messages;
        self.sent_ns.1 = later.sent_ns.1;
        self.until_ns = self.until_ns.max(later.until_ns);
    }
}

impl SteadySearch {
    /// Adds the next message.
    pub fn add(&mut self, message: &ClockMessage) {
        self.add_to(FIRST_SPAN, message);
    }

    /// Adds the next reading of a clock. There are few of them, so that each reading is a span.
    pub fn add_reading(&mut self, reading: &ClockReading) {
        let message = ClockMessage {
            sent_a_ns: reading.before_a_ns,
            arrived_b_ns: Some(reading.clock_b_ns),
            answered_b_ns: Some(reading.clock_b_ns),
            received_a_ns: Some(reading.after_a_ns),
        };
        self.add_to(1, &message);
    }

    fn add_to(&mut self, per_span: u64, message: &ClockMessage) {
        self.per_span = self.per_span.max(per_span);
        match self.spans.last_mut() {
            Some(span) if span.messages < self.per_span => span.add(message),
            _ => {
                // So that the memory does not grow with the number of messages.
                self.spans.iter_mut().next_back().into_iter().for_each(|span| span.clocks.reduce());
                if self.spans.len() >= MOST_SPANS {
                    self.halve();
                }
                self.spans.push(Span::of(message));
            }
        }
    }

    /// Joins each two neighbours.
    fn halve(&mut self) {
        let mut joined: Vec<Span> = Vec::with_capacity(MOST_SPANS);
        for (n, span) in std::mem::take(&mut self.spans).into_iter().enumerate() {
            match joined.last_mut().filter(|_| n % 2 == 1) {
                Some(before) => before.join(span),
                None => joined.push(span),
            }
        }
        self.spans = joined;
        self.per_span *= 2;
    }

    /// Finds the parts of the trial in which the clocks were steady.
    ///
    /// # Errors
    /// There are messages in one direction only.
    pub fn finish(mut self) -> Result<SteadyParts, NoBounds> {
        self.spans.iter_mut().for_each(|span| span.clocks.reduce());
        let spans = &self.spans;
        let messages = spans.iter().map(|span| span.messages).sum();
        let begin_ns = spans.first().map_or(0, |span| span.sent_ns.0);
        let not_fitting = self.ends_of_runs((0..spans.len()).collect());
        if not_fitting.is_empty() {
            let bounds = self.bounds(0..spans.len())?;
            let ends = spans.first().zip(spans.last()).ok_or(NoBounds::OneWay)?;
            let sent_ns = (ends.0.sent_ns.0, ends.1.sent_ns.1);
            return Ok(SteadyParts { parts: vec![Part { sent_ns, bounds }], changes: Vec::new(), messages, begin_ns });
        }
        let mut from_the_end = self.ends_of_runs((0..spans.len()).rev().collect());
        from_the_end.reverse();
        let windows = from_the_end.into_iter().zip(not_fitting).map(|(from, to)| self.with_flights(from.min(to), to));
        let (parts, changes) = self.split(&joined(windows));
        Ok(SteadyParts { parts, changes, messages, begin_ns })
    }

    /// The spans, in this order, at which a run of spans that one line fits ends, because the line does not fit this span. The
    /// next run begins after this span.
    fn ends_of_runs(&self, order: Vec<usize>) -> Vec<usize> {
        let mut ends = Vec::new();
        let mut run = TwoClocks::default();
        for n in order {
            run.join(&self.spans[n].clocks);
            if run.bounds() == Err(NoBounds::Crossed) {
                ends.push(n);
                run = TwoClocks::default();
            }
        }
        ends
    }

    /// The first and the last span with a message that was on its way at any time of the spans `from` to `to`.
    fn with_flights(&self, from: usize, to: usize) -> (usize, usize) {
        let begin = self.spans[from].sent_ns.0;
        let end = self.spans[..=to].iter().map(|span| span.until_ns).max().unwrap_or(begin);
        let first = self.spans[..from].iter().position(|span| span.until_ns >= begin).unwrap_or(from);
        let last = self.spans[to..].iter().take_while(|span| span.sent_ns.0 <= end).count() + to - 1;
        (first, last.max(to))
    }

    fn bounds(&self, spans: std::ops::Range<usize>) -> Result<ClockBounds, NoBounds> {
        let mut all = TwoClocks::default();
        self.spans[spans].iter().for_each(|span| all.join(&span.clocks));
        all.bounds()
    }

    /// The parts between the windows, and the changes within them. A part in which one direction has no message has no
    /// bounds, and belongs to the change before it, or to the one after it.
    fn split(&self, windows: &[(usize, usize)]) -> (Vec<Part>, Vec<ClockChange>) {
        let mut between = Vec::new();
        let mut begin = 0;
        for (from, to) in windows.iter().copied().chain([(self.spans.len(), self.spans.len())]) {
            if begin < from
                && let Ok(bounds) = self.bounds(begin..from)
            {
                between.push((begin, from, bounds));
            }
            begin = to + 1;
        }
        let mut changes = Vec::new();
        let mut begin = 0;
        let mut before: Option<&ClockBounds> = None;
        let ends = between.iter().map(|(from, to, bounds)| (*from, *to, Some(bounds)));
        for (from, to, bounds) in ends.chain([(self.spans.len(), self.spans.len(), None)]) {
            if begin < from {
                changes.push(self.change(begin..from, before, bounds));
            }
            (begin, before) = (to, bounds);
        }
        let part = |(from, to, bounds): (usize, usize, ClockBounds)| {
            let sent_ns = (self.spans[from].sent_ns.0, self.spans[to - 1].sent_ns.1);
            Part { sent_ns, bounds }
        };
        (between.into_iter().map(part).collect(), changes)
    }

    fn change(
        &self,
        spans: std::ops::Range<usize>,
        before: Option<&ClockBounds>,
        after: Option<&ClockBounds>,
    ) -> ClockChange {
        let next = self.spans.get(spans.end).map(|span| span.sent_ns.0 - 1);
        let spans = &self.spans[spans];
        let from_ns = spans.iter().map(|span| span.sent_ns.0).min().unwrap_or(0);
        let to_ns = next.or(spans.iter().map(|span| span.until_ns).max()).unwrap_or(from_ns);
        let both = before.zip(after);
        let least_ns = both.map_or(0, |(before, after)| {
            // The least change of the offset is concave in the moment of the change, so that it is smallest at an end.
            let [first, last] = [from_ns, to_ns].map(|ns| least_between(before.offset_ns(ns), after.offset_ns(ns)));
            if first.signum() != last.signum() { 0 } else { std::cmp::min_by_key(first, last, |ns| ns.unsigned_abs()) }
        });
        let step_ns = both.map(|(before, after)| {
            // As above, both limits are at an end.
            let steps = [from_ns, to_ns].map(|ns| difference(before.offset_ns(ns), after.offset_ns(ns)));
            [steps[0][0].min(steps[1][0]), steps[0][1].max(steps[1][1])]
        });
        let rate_change_ns_per_s = both.map(|(before, after)| {
            let ([low, high], [next_low, next_high]) = (before.drift_ns_per_s(), after.drift_ns_per_s());
            [(next_low - high).floor() as i64, (next_high - low).ceil() as i64]
        });
        let messages = spans.iter().map(|span| span.messages).sum();
        ClockChange { from_ns, to_ns, messages, least_ns, step_ns, rate_change_ns_per_s }
    }
}

/// The smallest and the largest difference between a value of the first range and one of the second, ns.
fn difference([low, high]: [i64; 2], [next_low, next_high]: [i64; 2]) -> [i64; 2] {
    [next_low.wrapping_sub(high), next_high.wrapping_sub(low)]
}

/// The smallest change, ns, from a value between the first two to a value between the other two.
fn least_between([low, high]: [i64; 2], [next_low, next_high]: [i64; 2]) -> i64 {
    let [up, down] = difference([low, high], [next_low, next_high]);
    if up > 0 { up } else { down.min(0) }
}

/// Joins windows that touch or overlap. The windows are in the order of their begin.
fn joined(windows: impl Iterator<Item = (usize, usize)>) -> Vec<(usize, usize)> {
    let mut joined: Vec<(usize, usize)> = Vec::new();
    for (from, to) in windows {
        match joined.last_mut() {
            Some(last) if from <= last.1 + 1 => *last = (last.0.min(from), last.1.max(to)),
            _ => joined.push((from, to)),
        }
    }
    joined
}

impl SteadyParts {
    /// The bounds of the difference between the clocks for a message that was sent at this time of clock A (ns). `None` if
    /// one of the clocks may have changed around this time.
    pub fn at(&self, sent_a_ns: i64) -> Option<&ClockBounds> {
        let after = self.parts.partition_point(|part| part.sent_ns.1 < sent_a_ns);
        self.parts.get(after).filter(|part| part.sent_ns.0 <= sent_a_ns).map(|part| &part.bounds)
    }

    /// The bounds of the difference between the clocks, if one line fits the whole trial.
    pub fn whole(&self) -> Option<&ClockBounds> {
        self.parts.first().filter(|_| self.changes.is_empty()).map(|part| &part.bounds)
    }

    /// The same with bounds that hold for the whole trial, in place of [`SteadyParts::whole`].
    pub fn with_whole(&self, bounds: ClockBounds) -> SteadyParts {
        let parts = self.parts.first().map(|part| Part { bounds, ..*part }).into_iter().collect();
        SteadyParts { parts, ..self.clone() }
    }

    /// The steady parts: the times at which their first and last messages were sent by clock A (ns), and their bounds.
    pub fn parts(&self) -> impl Iterator<Item = ((i64, i64), &ClockBounds)> {
        self.parts.iter().map(|part| (part.sent_ns, &part.bounds))
    }

    /// When the first message was sent, clock of A, ns.
    pub fn begin_ns(&self) -> i64 {
        self.begin_ns
    }

    /// The time spans within which one of the clocks changed, in the order of time.
    pub fn changes(&self) -> &[ClockChange] {
        &self.changes
    }

    /// Share of the messages that were sent while the clocks were steady.
    pub fn steady_share(&self) -> f64 {
        let changed: u64 = self.changes.iter().map(|change| change.messages).sum();
        1.0 - changed as f64 / self.messages.max(1) as f64
    }
}
