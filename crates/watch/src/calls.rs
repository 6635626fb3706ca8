//! Calls with which programs of ROS 2 publish, take and execute messages: which call published the message that another one took, and
//! when it was on the wire between them.
//!
//! A message that is taken has the source timestamp that its writer gave it. The call that published it is the one for the same topic
//! during which the writer gave this time.

use crate::lateness::Lateness;
use crate::waits::{Wait, Waits};
use std::collections::{BTreeMap, HashMap, VecDeque};
use tailbound_document::{CalledMessage, CalledPart, CalledTaker, CalledTopic, CalledWait, WatchedCalls, WatchedRange};

/// How long a call waits until it is looked at, ns: calls and packets are read one after the other.
const WAIT_NS: i64 = 500_000_000;
/// How long calls that publish, and captured messages, are remembered, ns.
const REMEMBERED_NS: i64 = 10_000_000_000;
/// Largest number of calls that publish, and of captured messages, that are remembered for a topic.
const MOST_REMEMBERED: usize = 65_536;
/// Largest number of calls that are running at the same time for a topic.
const MOST_AT_ONCE: usize = 64;
/// Difference of the clocks of calls and of source timestamps, ns.
const SLACK_NS: i64 = 1_000;
/// A source timestamp passes the wire in units of 2^-32 s.
const ROUNDED_NS: i64 = 1;
/// Largest number of topics, and of processes for a topic.
const MOST: usize = 1_000;
/// Largest number of threads whose last message is remembered.
const MOST_THREADS: usize = 10_000;
/// Number of the latest messages that are shown for a process.
const LATEST: usize = 5;

/// What a call did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind<'a> {
    /// It published a message.
    Publish {
        /// Source timestamp of the message, ns since 1970, if it is known.
        source_ns: Option<i64>,
        /// Whether the call ended at `end_ns`, and not before it.
        has_end: bool,
    },
    /// It took a message.
    Take {
        /// Source timestamp of the message, ns since 1970, if the middleware gives one.
        source_ns: Option<i64>,
    },
    /// A thread of the process was ready and waited for a CPU, from begin to end.
    Waited {
        /// Name of the thread that had the CPU longest meanwhile.
        by: &'a str,
        /// For how much of the wait, ns; 0 = it is not known who had it.
        by_ns: i64,
    },
    /// It executed a subscription: the one of the topic, or, without a topic, the one whose message the thread took last.
    Execute,
}

/// A call of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// What it did.
    pub kind: CallKind<'a>,
    /// Name and id of its process.
    pub process: &'a str,
    /// Its thread.
    pub thread: i32,
    /// Name of the topic in ROS 2; can be empty for [`CallKind::Execute`]. [`CallKind::Waited`]: name of the thread.
    pub topic: &'a str,
    /// When it began, ns since 1970; [`CallKind::Execute`]: when the message was taken, or when the callback began.
    pub begin_ns: i64,
    /// When it ended, ns since 1970.
    pub end_ns: i64,
}

/// All calls since the begin.
#[derive(Default)]
pub struct Calls {
    topics: BTreeMap<String, Topic>,
    /// Calls that take and execute, which wait until the packets before them were read.
    waiting: VecDeque<Waiting>,
    /// The message that each thread took last.
    threads: HashMap<(String, i32), Taken>,
    waits: Waits,
    /// Whether waits for a CPU are recorded.
    has_waits: bool,
    lost: u64,
}

/// What a call did that takes or executes.
#[derive(Clone, Copy)]
enum Did {
    Take { source_ns: Option<i64> },
    Execute,
}

struct Waiting {
    did: Did,
    process: String,
    thread: i32,
    topic: String,
    begin_ns: i64,
    end_ns: i64,
}

#[derive(Default)]
struct Topic {
    published: u64,
    publish: Option<Lateness>,
    /// Calls that published, by their begin.
    calls: BTreeMap<i64, Published>,
    /// Captured messages: by source timestamp, when they were captured.
    wire: BTreeMap<i64, i64>,
    takers: BTreeMap<String, Taker>,
}

/// A call that published.
#[derive(Debug, Clone)]
struct Published {
    end_ns: i64,
    /// The source timestamp of the message, if it is known.
    source_ns: Option<i64>,
    /// The process that published it.
    process: String,
}

#[derive(Default)]
struct Taker {
    taken: u64,
    matched: u64,
    ambiguous: u64,
    publish_to_take: Times,
    publish_to_wire: Times,
    wire_to_take: Times,
    take_to_callback: Times,
    callback: Times,
    latest: Vec<Message>,
}

/// A distribution that may have no values.
#[derive(Default)]
struct Times(Option<Lateness>);

impl Times {
    fn record(&mut self, time_ns: i64) {
        self.0.get_or_insert_with(|| Lateness::new(false)).record(time_ns);
    }

    fn range(&self) -> Option<WatchedRange> {
        self.0.as_ref()?.range(false)
    }
}

/// The way of a message whose call to publish was found.
#[derive(Debug, Clone)]
struct Message {
    source_ns: i64,
    published_ns: i64,
    wire_ns: Option<i64>,
    taken_ns: i64,
    callback: Option<Callback>,
    /// The process that published it.
    publisher: String,
    /// The longest waits for a CPU in its parts, in their order; empty until the message is one of the latest.
    waits: Vec<Option<CalledWait>>,
}

/// The execution of a subscription.
#[derive(Debug, Clone, Copy)]
struct Callback {
    begin_ns: i64,
    end_ns: i64,
    thread: i32,
}

/// Whose waits for a CPU count for a part of a message.
enum Whose {
    Publisher,
    Taker,
    Both,
    /// Of the taker, this thread.
    Thread(i32),
}

/// A part of a message: its name, when it began and ended, and whose waits count for it.
struct Span {
    name: &'static str,
    begin_ns: i64,
    end_ns: i64,
    whose: Whose,
}

impl Span {
    fn longest(&self, waits: &Waits, publisher: &str, taker: &str) -> Option<CalledWait> {
        let (processes, only) = match self.whose {
            Whose::Publisher => (vec![publisher], None),
            Whose::Taker => (vec![taker], None),
            Whose::Both => (vec![publisher, taker], None),
            Whose::Thread(thread) => (vec![taker], Some(thread)),
        };
        waits.longest(&processes, (self.begin_ns, self.end_ns), only)
    }
}

impl Message {
    /// Its parts, in their order.
    fn spans(&self) -> impl Iterator<Item = Span> + use<> {
        let span = |name, begin_ns, end_ns, whose| Span { name, begin_ns, end_ns, whose };
        let mut spans = match self.wire_ns {
            None => vec![span("publish to take", self.published_ns, self.taken_ns, Whose::Both)],
            Some(wire_ns) => vec![
                span("publish to wire", self.published_ns, wire_ns, Whose::Publisher),
                span("wire to take", wire_ns, self.taken_ns, Whose::Taker),
            ],
        };
        if let Some(Callback { begin_ns, end_ns, thread }) = self.callback {
            if begin_ns > self.taken_ns {
                spans.push(span("take to callback", self.taken_ns, begin_ns, Whose::Taker));
            }
            spans.push(span("callback", begin_ns, end_ns, Whose::Thread(thread)));
        }
        spans.into_iter()
    }

    fn whole_ns(&self) -> i64 {
        self.callback.map_or(self.taken_ns, |callback| callback.end_ns) - self.published_ns
    }
}

/// The message that a thread took last.
struct Taken {
    topic: String,
    at_ns: i64,
    message: Option<Message>,
}

impl Calls {
    /// A message of a topic was captured on the wire.
    pub fn on_wire(&mut self, topic: &str, source_ns: i64, stamp_ns: i64) {
        if let Some(topic) = self.topic(topic) {
            topic.wire.entry(source_ns).or_insert(stamp_ns);
            forget(&mut topic.wire, source_ns);
        }
    }

    /// Number of calls that were not recorded, since the begin.
    pub fn lost(&mut self, lost: u64) {
        self.lost = lost;
    }

    /// Waits for a CPU are recorded, so that parts without one have none.
    pub fn with_waits(mut self) -> Calls {
        self.has_waits = true;
        self
    }

    /// Takes the next call. Calls of one thread come in their order.
    pub fn call(&mut self, call: &Call<'_>) {
        let did = match call.kind {
            CallKind::Take { source_ns } => Did::Take { source_ns },
            CallKind::Execute => Did::Execute,
            CallKind::Waited { by, by_ns } => {
                let Call { process, thread, topic, begin_ns, end_ns, .. } = *call;
                let (name, by) = (topic.to_owned(), by.to_owned());
                return self.waits.add(process, Wait { thread, name, by, by_ns, begin_ns, end_ns });
            }
            CallKind::Publish { source_ns, has_end } => {
                let Some(topic) = self.topic(call.topic) else { return };
                topic.published += 1;
                if has_end {
                    topic.publish.get_or_insert_with(|| Lateness::new(false)).record(call.end_ns - call.begin_ns);
                }
                let published = Published { end_ns: call.end_ns, source_ns, process: call.process.to_owned() };
                topic.calls.insert(call.begin_ns, published);
                return forget(&mut topic.calls, call.begin_ns);
            }
        };
        self.waiting.push_back(Waiting {
            did,
            process: call.process.to_owned(),
            thread: call.thread,
            topic: call.topic.to_owned(),
            begin_ns: call.begin_ns,
            end_ns: call.end_ns,
        });
    }

    /// The call that published at `begin_ns`, whose end was not known, ended before `end_ns`.
    pub fn ended(&mut self, topic: &str, begin_ns: i64, end_ns: i64) {
        if let Some(published) = self.topics.get_mut(topic).and_then(|topic| topic.calls.get_mut(&begin_ns)) {
            published.end_ns = end_ns;
        }
    }

    /// Looks at the calls before `now_ns` (ns since 1970), all packets and calls until which were read.
    pub fn settle(&mut self, now_ns: i64) {
        while let Some(call) = self.waiting.pop_front_if(|call| call.end_ns + WAIT_NS <= now_ns) {
            self.look(call);
        }
    }

    /// Looks at all calls that wait.
    pub fn end(&mut self) {
        while let Some(call) = self.waiting.pop_front() {
            self.look(call);
        }
        let threads = std::mem::take(&mut self.threads);
        for ((process, _), taken) in threads {
            self.finish(&process, taken, None);
        }
    }

    fn look(&mut self, call: Waiting) {
        let thread = (call.process.clone(), call.thread);
        let before = self.threads.remove(&thread);
        let Did::Take { source_ns } = call.did else {
            return self.executed(&call, &thread.0, before);
        };
        if let Some(before) = before {
            self.finish(&thread.0, before, None);
        }
        let Some(topic) = self.topic(&call.topic).filter(|topic| topic.has_room(&thread.0)) else { return };
        let found: Vec<(i64, Published)> = source_ns.map(|source_ns| topic.calls_at(source_ns)).unwrap_or_default();
        // A message that was taken before it was on the wire came another way.
        let wire_ns = source_ns.and_then(|at| topic.wire_at(at)).filter(|wire_ns| *wire_ns <= call.end_ns);
        let taker = topic.takers.entry(thread.0.clone()).or_default();
        taker.taken += 1;
        if let Some(wire_ns) = wire_ns {
            taker.wire_to_take.record(call.end_ns - wire_ns);
        }
        let message = match (&found[..], source_ns) {
            ([(published_ns, published)], Some(source_ns)) => {
                taker.matched += 1;
                taker.publish_to_take.record(call.end_ns - published_ns);
                if let Some(wire_ns) = wire_ns {
                    taker.publish_to_wire.record(wire_ns - published_ns);
                }
                Some(Message {
                    source_ns,
                    published_ns: *published_ns,
                    wire_ns,
                    taken_ns: call.end_ns,
                    callback: None,
                    publisher: published.process.clone(),
                    waits: Vec::new(),
                })
            }
            ([], _) | (_, None) => None,
            _ => {
                taker.ambiguous += 1;
                None
            }
        };
        if self.threads.len() < MOST_THREADS {
            self.threads.insert(thread, Taken { topic: call.topic, at_ns: call.end_ns, message });
        }
    }

    /// A subscription was executed; `taken`: the message that the thread took last.
    fn executed(&mut self, call: &Waiting, process: &str, taken: Option<Taken>) {
        let is_other = |taken: &Taken| !call.topic.is_empty() && taken.topic != call.topic;
        match taken {
            Some(taken) if !is_other(&taken) => {
                let Waiting { begin_ns, end_ns, thread, .. } = *call;
                self.finish(process, taken, Some(Callback { begin_ns, end_ns, thread }));
            }
            taken => {
                if let Some(taken) = taken {
                    self.finish(process, taken, None);
                }
                // A message that stayed within the process.
                if !call.topic.is_empty()
                    && let Some(topic) = self.topic(&call.topic).filter(|topic| topic.has_room(process))
                {
                    let taker = topic.takers.entry(process.to_owned()).or_default();
                    taker.callback.record(call.end_ns - call.begin_ns);
                }
            }
        }
    }

    /// All is known of a message that was taken.
    fn finish(&mut self, process: &str, taken: Taken, callback: Option<Callback>) {
        let topic = self.topics.get_mut(&taken.topic);
        let Some(taker) = topic.and_then(|topic| topic.takers.get_mut(process)) else { return };
        if let Some(Callback { begin_ns, end_ns, .. }) = callback {
            taker.callback.record(end_ns - begin_ns);
            taker.take_to_callback.record(begin_ns - taken.at_ns);
        }
        let Some(message) = taken.message else { return };
        let mut message = Message { callback, ..message };
        let least_ns = taker.latest.last().map_or(i64::MIN, Message::whole_ns);
        if taker.latest.len() >= LATEST && message.whole_ns() <= least_ns {
            return;
        }
        // Waits are remembered for a while only.
        message.waits = message.spans().map(|span| span.longest(&self.waits, &message.publisher, process)).collect();
        taker.latest.push(message);
        taker.latest.sort_by_key(|message| std::cmp::Reverse(message.whole_ns()));
        taker.latest.truncate(LATEST);
    }

    /// A topic, with a new entry if there is room.
    fn topic(&mut self, name: &str) -> Option<&mut Topic> {
        if !self.topics.contains_key(name) {
            if self.topics.len() >= MOST {
                return None;
            }
            self.topics.insert(name.to_owned(), Topic::default());
        }
        self.topics.get_mut(name)
    }

    /// What is known until now.
    pub fn report(&self) -> WatchedCalls {
        let used = self.topics.iter().filter(|(_, topic)| topic.published > 0 || !topic.takers.is_empty());
        let topics = used.map(|(name, topic)| CalledTopic {
            topic: shown(name),
            publish: topic.publish.as_ref().and_then(|times| times.range(false)),
            published: topic.published,
            takers: topic.takers.iter().map(|(process, taker)| taker.report(process)).collect(),
        });
        WatchedCalls { topics: topics.collect(), lost: self.lost, has_waits: self.has_waits }
    }
}

impl Topic {
    fn has_room(&self, process: &str) -> bool {
        self.takers.len() < MOST || self.takers.contains_key(process)
    }

    /// The calls during which a writer gave this source timestamp.
    fn calls_at(&self, source_ns: i64) -> Vec<(i64, Published)> {
        let within = |slack_ns: i64| -> Vec<(i64, Published)> {
            let before = self.calls.range(..=source_ns + slack_ns).rev().take(MOST_AT_ONCE);
            let is_it = |call: &Published| match call.source_ns {
                Some(known_ns) => (known_ns - source_ns).abs() <= ROUNDED_NS,
                None => call.end_ns.saturating_add(slack_ns) >= source_ns,
            };
            before.filter(|(_, call)| is_it(call)).map(|(begin_ns, call)| (*begin_ns, call.clone())).collect()
        };
        let found = within(0);
        if found.is_empty() { within(SLACK_NS) } else { found }
    }

    fn wire_at(&self, source_ns: i64) -> Option<i64> {
        let mut near = self.wire.range(source_ns - ROUNDED_NS..=source_ns + ROUNDED_NS);
        near.next().map(|(_, stamp_ns)| *stamp_ns)
    }
}

impl Taker {
    fn report(&self, process: &str) -> CalledTaker {
        CalledTaker {
            process: shown(process),
            taken: self.taken,
            matched: self.matched,
            ambiguous: self.ambiguous,
            publish_to_take: self.publish_to_take.range(),
            wire_to_take: self.wire_to_take.range(),
            callback: self.callback.range(),
            latest: self.latest.iter().map(|message| self.message(message)).collect(),
        }
    }

    fn message(&self, message: &Message) -> CalledMessage {
        let median_ns = |name: &str| {
            let times = match name {
                "publish to wire" => &self.publish_to_wire,
                "wire to take" => &self.wire_to_take,
                "publish to take" => &self.publish_to_take,
                "take to callback" => &self.take_to_callback,
                _ => &self.callback,
            };
            times.range().filter(|range| range.count > 1).map(|range| range.p50_ns)
        };
        let part = |(span, wait): (Span, &Option<CalledWait>)| CalledPart {
            name: span.name.to_owned(),
            time_ns: span.end_ns - span.begin_ns,
            median_ns: median_ns(span.name),
            wait: wait.clone().map(|wait| CalledWait {
                thread: shown(&wait.thread),
                by: wait.by.as_deref().map(shown),
                ..wait
            }),
        };
        CalledMessage { source_ns: message.source_ns, parts: message.spans().zip(&message.waits).map(part).collect() }
    }
}

/// A name of others must not change a terminal.
fn shown(name: &str) -> String {
    name.replace(char::is_control, " ")
}

/// Forgets what is too old, or too much.
fn forget<T>(remembered: &mut BTreeMap<i64, T>, now_ns: i64) {
    let is_old = |(at_ns, _): (&i64, &T)| *at_ns < now_ns - REMEMBERED_NS;
    while remembered.len() > MOST_REMEMBERED || remembered.first_key_value().is_some_and(is_old) {
        remembered.pop_first();
    }
}
