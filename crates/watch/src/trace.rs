//! Reads a trace of `ros2_tracing`, as lines that `babeltrace2` printed, and gives its calls.
//!
//! The events and their members have the names of tracetools, Foxy to Rolling: `rclcpp_publish`, `rcl_publish` and `rmw_publish` publish,
//! `rmw_take` takes, `callback_start` and `callback_end` execute; what is initialised gives names.

use crate::calls::{Call, CallKind, Calls};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use tailbound_document::WatchedCalls;

/// What is known of a trace.
#[derive(Default)]
pub struct Trace {
    calls: Calls,
    /// Names of topics, by process and handle: of rcl, of the middleware, of rclcpp, or of a callback.
    names: HashMap<(u64, u64), String>,
    threads: HashMap<(u64, u64), Thread>,
    counts: TraceCounts,
    first_ns: Option<i64>,
    last_ns: i64,
}

/// Numbers of events of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceCounts {
    /// Events of ROS 2.
    pub events: u64,
    /// Lines with an event of ROS 2 that could not be read.
    pub unread: u64,
    /// Events without the process and thread that they belong to.
    pub without_thread: u64,
    /// Messages that were published, taken or executed, and whose topic is not known, because its initialisation is not in the trace.
    pub without_topic: u64,
    /// Length of the trace, ns.
    pub length_ns: i64,
}

/// What a thread does.
#[derive(Default)]
struct Thread {
    /// The message that it publishes.
    publishing: Option<Publishing>,
    /// Callbacks that have begun: their handle, and when.
    callbacks: Vec<(u64, i64)>,
}

#[derive(Clone)]
struct Publishing {
    message: u64,
    begin_ns: i64,
    topic: Option<String>,
    source_ns: Option<i64>,
    /// Whether the calls have it: it has reached the middleware.
    is_known: bool,
}

/// Why a trace gives no calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTrace {
    /// It has no event of ROS 2.
    Empty,
    /// No event says which process and thread it belongs to.
    WithoutThreads,
}

impl fmt::Display for NoTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoTrace::Empty => "the trace has no event of ROS 2 (provider `ros2`)",
            NoTrace::WithoutThreads => "no event of the trace says which process and thread it belongs to",
        })
    }
}

impl Trace {
    /// A message of a topic was captured on the wire.
    pub fn on_wire(&mut self, topic: &str, source_ns: i64, stamp_ns: i64) {
        self.calls.on_wire(topic, source_ns, stamp_ns);
    }

    /// Takes the next line that `babeltrace2 --clock-seconds` printed. Returns the time of its event, ns since 1970.
    pub fn line(&mut self, line: &str) -> Option<i64> {
        let (head, rest) = line.split_once(" ros2:")?;
        let Some((at_ns, (name, members))) = time_of(head).zip(rest.split_once(": ")) else {
            self.counts.unread += 1;
            return None;
        };
        self.counts.events += 1;
        let event = Event { at_ns, name: name.to_owned(), members: members_of(members) };
        self.last_ns = at_ns;
        self.first_ns.get_or_insert(at_ns);
        let (Some(process), Some(thread)) = (event.number("vpid"), event.number("vtid")) else {
            self.counts.without_thread += 1;
            return Some(at_ns);
        };
        self.event(&event, process, thread);
        self.calls.settle(at_ns);
        Some(at_ns)
    }

    /// All lines were read.
    ///
    /// # Errors
    /// There was nothing to read in them.
    pub fn end(mut self) -> Result<(WatchedCalls, TraceCounts), NoTrace> {
        if self.counts.events == 0 {
            return Err(NoTrace::Empty);
        }
        if self.counts.without_thread == self.counts.events {
            return Err(NoTrace::WithoutThreads);
        }
        let last_ns = self.last_ns;
        for ((process, thread), state) in std::mem::take(&mut self.threads) {
            if let Some(publishing) = state.publishing {
                self.ended(&publishing, last_ns, process, thread);
            }
        }
        self.calls.end();
        self.counts.length_ns = self.first_ns.map_or(0, |first_ns| last_ns - first_ns);
        Ok((self.calls.report(), self.counts))
    }

    fn event(&mut self, event: &Event, process: u64, thread: u64) {
        let handle = |member: &str| event.number(member).map(|handle| (process, handle));
        // The call that publishes has ended before the thread does something else.
        let goes_on = event.name.ends_with("_publish");
        if !goes_on && let Some(publishing) = self.thread(process, thread).publishing.take() {
            self.ended(&publishing, event.at_ns, process, thread);
        }
        match event.name.as_str() {
            "rcl_publisher_init" | "rcl_subscription_init" => {
                let Some(topic) = event.text("topic_name") else { return };
                let members =
                    ["publisher_handle", "rmw_publisher_handle", "subscription_handle", "rmw_subscription_handle"];
                self.names.extend(members.into_iter().filter_map(handle).map(|handle| (handle, topic.to_owned())));
            }
            "rclcpp_subscription_init" => self.same(handle("subscription_handle"), handle("subscription")),
            "rclcpp_subscription_callback_added" => {
                // Older versions name the handle of rcl here.
                self.same(handle("subscription").or(handle("subscription_handle")), handle("callback"));
            }
            "rclcpp_publish" | "rcl_publish" | "rmw_publish" => self.publishes(event, process, thread),
            "rmw_take" if event.number("taken") == Some(1) => {
                let topic = handle("rmw_subscription_handle").and_then(|handle| self.names.get(&handle)).cloned();
                let source_ns = event.number("source_timestamp").map(|ns| ns as i64).filter(|ns| *ns > 0);
                let at_ns = event.at_ns;
                self.call(event, CallKind::Take { source_ns }, topic, (process, thread), (at_ns, at_ns));
            }
            "callback_start" => {
                let callback = event.number("callback").unwrap_or(0);
                self.thread(process, thread).callbacks.push((callback, event.at_ns));
            }
            "callback_end" => {
                let callback = event.number("callback").unwrap_or(0);
                let callbacks = &mut self.thread(process, thread).callbacks;
                let Some(at) = callbacks.iter().rposition(|(begun, _)| *begun == callback) else { return };
                let (_, begin_ns) = callbacks.remove(at);
                // Callbacks of timers and services have no topic.
                if let Some(topic) = self.names.get(&(process, callback)).cloned() {
                    self.call(event, CallKind::Execute, Some(topic), (process, thread), (begin_ns, event.at_ns));
                }
            }
            _ => {}
        }
    }

    /// The second handle belongs to the topic of the first one.
    fn same(&mut self, known: Option<(u64, u64)>, new: Option<(u64, u64)>) {
        let Some((known, new)) = known.zip(new) else { return };
        if let Some(topic) = self.names.get(&known).cloned() {
            self.names.insert(new, topic);
        }
    }

    /// A layer publishes: each layer passes the message to the next one.
    fn publishes(&mut self, event: &Event, process: u64, thread: u64) {
        let message = event.number("message").unwrap_or(0);
        let of = |member: &str| self.names.get(&(process, event.number(member)?)).cloned();
        let topic = of("publisher_handle").or_else(|| of("rmw_publisher_handle"));
        let source_ns = event.number("timestamp").map(|ns| ns as i64).filter(|ns| *ns > 0);
        let state = self.thread(process, thread);
        let is_new = state.publishing.as_ref().is_none_or(|of| of.message != message || of.is_known);
        let before = if is_new { state.publishing.take() } else { None };
        let publishing = state.publishing.get_or_insert(Publishing {
            message,
            begin_ns: event.at_ns,
            topic: None,
            source_ns: None,
            is_known: false,
        });
        publishing.topic = publishing.topic.take().or(topic);
        publishing.source_ns = publishing.source_ns.or(source_ns);
        let now = (event.name == "rmw_publish").then(|| {
            publishing.is_known = true;
            publishing.clone()
        });
        if let Some(before) = before {
            self.ended(&before, event.at_ns, process, thread);
        }
        if let Some(now) = now {
            self.published(&now, i64::MAX, process, thread);
        }
    }

    /// The call that publishes ended before `end_ns`.
    fn ended(&mut self, of: &Publishing, end_ns: i64, process: u64, thread: u64) {
        match &of.topic {
            _ if !of.is_known => self.published(of, end_ns, process, thread),
            Some(topic) => self.calls.ended(topic, of.begin_ns, end_ns),
            None => {}
        }
    }

    /// A message was published by a call that ended before `end_ns`.
    fn published(&mut self, of: &Publishing, end_ns: i64, process: u64, thread: u64) {
        let Some(topic) = &of.topic else {
            self.counts.without_topic += 1;
            return;
        };
        let (process, thread) = (process.to_string(), thread as i32);
        let kind = CallKind::Publish { source_ns: of.source_ns, has_end: false };
        self.calls.call(&Call { kind, process: &process, thread, topic, begin_ns: of.begin_ns, end_ns });
    }

    fn call(
        &mut self,
        event: &Event,
        kind: CallKind,
        topic: Option<String>,
        (process, thread): (u64, u64),
        (begin_ns, end_ns): (i64, i64),
    ) {
        let Some(topic) = topic else {
            self.counts.without_topic += 1;
            return;
        };
        let process = format!("{} ({process})", event.text("procname").unwrap_or("process"));
        self.calls.call(&Call { kind, process: &process, thread: thread as i32, topic: &topic, begin_ns, end_ns });
    }

    fn thread(&mut self, process: u64, thread: u64) -> &mut Thread {
        self.threads.entry((process, thread)).or_default()
    }
}

/// An event of a trace.
struct Event {
    at_ns: i64,
    name: String,
    members: BTreeMap<String, String>,
}

impl Event {
    fn text(&self, member: &str) -> Option<&str> {
        self.members.get(member).map(String::as_str)
    }

    fn number(&self, member: &str) -> Option<u64> {
        let text = self.text(member)?;
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    }
}

/// The time at the begin of a line, `[SECONDS.NANOSECONDS]`, ns since 1970.
fn time_of(head: &str) -> Option<i64> {
    let (seconds, digits) = head.strip_prefix('[')?.split_once(']')?.0.split_once('.')?;
    let (seconds, digits): (i64, i64) = (seconds.parse().ok()?, digits.get(..9)?.parse().ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(digits)
}

/// The members in `{ a = 1, b = "two" }, { c = 0x3 }`. Members of arrays have their numbers as names, and are not asked for.
fn members_of(text: &str) -> BTreeMap<String, String> {
    let mut members = BTreeMap::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" = ") {
        let name = before.rsplit([' ', '{', ',']).next().unwrap_or_default();
        let value;
        (value, rest) = match after.strip_prefix('"') {
            Some(quoted) => unquoted(quoted),
            None => {
                let end = after.find([',', ' ']).unwrap_or(after.len());
                (after[..end].to_owned(), &after[end..])
            }
        };
        members.insert(name.to_owned(), value);
    }
    members
}

/// A text up to its closing quote, and what follows.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => value.push(character),
        }
    }
    (value, "")
}
