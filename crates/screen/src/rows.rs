//! The writers that the screen shows, in the order of the user.

use tailbound_document::number::{count, three_digits, time};
use tailbound_document::{WatchReport, WatchedLateness, WatchedTopic, WatchedWriter};

/// A figure that does not exist for a writer.
pub const NONE: &str = "-";

/// What the rows are sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// The latest message first.
    #[default]
    Lateness,
    /// The most samples per second first.
    Rate,
    /// By the name of the topic.
    Name,
}

impl Order {
    pub fn next(self) -> Order {
        match self {
            Order::Lateness => Order::Rate,
            Order::Rate => Order::Name,
            Order::Name => Order::Lateness,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Order::Lateness => "the latest message",
            Order::Rate => "samples per second",
            Order::Name => "name",
        }
    }
}

/// A writer with its topic.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    pub topic: &'a WatchedTopic,
    pub writer: &'a WatchedWriter,
}

/// The writers whose samples were seen, in this order.
pub fn rows(report: &WatchReport, order: Order) -> Vec<Shown<'_>> {
    let of_topic = |topic| move |writer| Shown { topic, writer };
    let all = report.topics.iter().flat_map(|topic| topic.writers.iter().map(of_topic(topic)));
    let mut rows: Vec<Shown<'_>> = all.filter(|row| row.writer.samples > 0).collect();
    let latest = |row: &Shown<'_>| row.writer.lateness.as_ref().map(|late| late.range.max_ns);
    match order {
        Order::Lateness => rows.sort_by_key(|row| std::cmp::Reverse(latest(row))),
        Order::Rate => {
            rows.sort_by(|a, b| b.writer.rate_hz.unwrap_or(0.0).total_cmp(&a.writer.rate_hz.unwrap_or(0.0)));
        }
        Order::Name => rows.sort_by_key(Shown::name),
    }
    rows
}

impl Shown<'_> {
    /// The name of the topic, as ROS 2 has it if it is one of ROS 2. It is a text of others: without control characters.
    pub fn name(&self) -> String {
        self.topic
            .shown()
            .map_or_else(|| format!("unknown ({})", self.writer.guid), |name| name.replace(char::is_control, "?"))
    }

    pub fn samples(&self) -> String {
        count(self.writer.samples)
    }

    pub fn per_second(&self) -> String {
        self.writer.rate_hz.map_or(NONE.to_owned(), three_digits)
    }

    /// A figure of the lateness; `+` before a time above the fastest sample seen.
    pub fn late(&self, of: fn(&WatchedLateness) -> Option<i64>) -> String {
        let Some(late) = &self.writer.lateness else { return NONE.to_owned() };
        let mark = if late.is_above_fastest { "+" } else { "" };
        of(late).map_or(NONE.to_owned(), |ns| format!("{mark}{}", time(ns as f64)))
    }

    /// The longest time between two samples, beside what the deadline permits.
    pub fn pause(&self) -> String {
        let Some(interval) = self.writer.interval else { return NONE.to_owned() };
        let longest = time(interval.max_ns as f64);
        match self.deadline_ns() {
            Some(deadline_ns) => format!("{longest} of {}", time(deadline_ns as f64)),
            None => longest,
        }
    }

    /// Whether a pause was longer than the writer's deadline permits.
    pub fn is_over_deadline(&self) -> bool {
        let longest_ns = self.writer.interval.map(|interval| interval.max_ns);
        longest_ns.zip(self.deadline_ns()).is_some_and(|(longest_ns, deadline_ns)| longest_ns > deadline_ns)
    }

    fn deadline_ns(&self) -> Option<i64> {
        self.writer.qos.as_ref().and_then(|qos| qos.deadline_ns)
    }

    /// A number, or a dash for none.
    pub fn number(value: u64) -> String {
        if value == 0 { NONE.to_owned() } else { count(value) }
    }
}
