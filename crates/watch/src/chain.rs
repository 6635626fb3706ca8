//! Chains of topics: which message caused which, how old the data of the last topic are, and how long it takes until a message of
//! the first topic has an effect.
//!
//! Definitions: the *cause* of a message is the newest message of the topic before it with the same header stamp, if both types carry
//! one and there is such a message; else the newest one that was captured before the message was written, or, if its writer has
//! another clock, before it was captured. *Age*: capture of a message of the last topic minus the time at which the message of the
//! first topic was written from which it follows. *Reaction*: the same time, counted from each message of the first topic until
//! the first message of the last topic that follows from it or from a later one.

use crate::lateness::{Lateness, range};
use std::collections::VecDeque;
use tailbound_document::{WatchedChain, WatchedHop, WatchedLateHop};
use tailbound_stats::Histogram;

/// Largest number of messages of a topic among which causes are looked for.
const MOST_KEPT: usize = 2_000;
/// Largest number of messages of the first topic whose effect is waited for.
const MOST_WAITING: usize = 10_000;
/// The oldest messages whose hops are compared with the usual.
const WORST: usize = 32;

/// A message that was captured to its end.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    /// When it was captured: ns since 1970.
    pub at_ns: i64,
    /// When it was written, on the clock of the capture.
    pub written_ns: Option<i64>,
    /// The time in its header, if its type carries one.
    pub header_ns: Option<i64>,
}

/// A message, and the message of the first topic from which it follows.
struct Kept {
    at_ns: i64,
    header_ns: Option<i64>,
    /// When the first message was written or captured, and what each hop from there took; `None` = its cause is not known.
    way: Option<(i64, Vec<i64>)>,
}

/// One hop: from one topic to the next one.
#[derive(Default)]
struct Hop {
    figures: WatchedHop,
    times: Histogram,
    /// Up to when causes were looked for at the last effect.
    last_limit_ns: Option<i64>,
}

/// A chain of topics.
pub struct Chain {
    topics: Vec<String>,
    kept: Vec<VecDeque<Kept>>,
    /// From writing to capture of the first topic, and from each topic to the next one.
    hops: Vec<Hop>,
    age: Lateness,
    reaction: Lateness,
    /// Messages of the first topic without an effect so far: when they were written or captured.
    waiting: VecDeque<i64>,
    without_effect: u64,
    /// The oldest messages of the last topic: age and the time of each hop.
    worst: Vec<(i64, Vec<i64>)>,
}

impl Chain {
    /// `topics`: at least two names, from the cause to the effect.
    pub fn new(topics: Vec<String>) -> Chain {
        let hop = |n: usize| Hop {
            figures: WatchedHop {
                from: n.checked_sub(1).map(|n| topics[n].clone()),
                to: topics[n].clone(),
                ..WatchedHop::default()
            },
            ..Hop::default()
        };
        Chain {
            kept: topics.iter().map(|_| VecDeque::new()).collect(),
            hops: (0..topics.len()).map(hop).collect(),
            topics,
            age: Lateness::new(false),
            reaction: Lateness::new(false),
            waiting: VecDeque::new(),
            without_effect: 0,
            worst: Vec::new(),
        }
    }

    /// The place of a topic in the chain, by its name on the wire or in ROS 2.
    pub fn place(&self, on_wire: &str, in_ros: Option<&str>) -> Option<usize> {
        self.topics.iter().position(|topic| topic == on_wire || Some(topic.as_str()) == in_ros)
    }

    /// The next message of a topic of the chain.
    pub fn message(&mut self, place: usize, message: &Message) {
        self.hops[place].figures.samples += 1;
        let way = match place {
            0 => {
                let begin_ns = message.written_ns.unwrap_or(message.at_ns);
                self.waits(begin_ns);
                Some((begin_ns, vec![message.at_ns - begin_ns]))
            }
            _ => self.cause(place, message),
        };
        // With another clock, the time from writing to the wire is not known.
        let is_known = place > 0 || message.written_ns.is_some();
        if let Some((_, hops)) = way.as_ref().filter(|_| is_known) {
            self.hops[place].times.record(hops[place]);
        }
        if place + 1 == self.topics.len()
            && let Some((begin_ns, hops)) = &way
        {
            self.arrives(message.at_ns, *begin_ns, hops);
        }
        let kept = &mut self.kept[place];
        if kept.len() >= MOST_KEPT {
            kept.pop_front();
        }
        kept.push_back(Kept { at_ns: message.at_ns, header_ns: message.header_ns, way });
    }

    fn waits(&mut self, begin_ns: i64) {
        if self.waiting.len() >= MOST_WAITING {
            self.waiting.pop_front();
            self.without_effect += 1;
        }
        self.waiting.push_back(begin_ns);
    }

    /// The way from the first topic to a message, by its cause; `None` if the cause is not known.
    fn cause(&mut self, place: usize, message: &Message) -> Option<(i64, Vec<i64>)> {
        let before = &self.kept[place - 1];
        let hop = &mut self.hops[place];
        let limit_ns = message.written_ns.unwrap_or(message.at_ns);
        let since_ns = hop.last_limit_ns.replace(limit_ns).unwrap_or(i64::MIN);
        // A stamp of 0 is one that the program has not set.
        let stamp_ns = message.header_ns.filter(|ns| *ns != 0);
        let has_stamp = |kept: &&Kept| stamp_ns.is_some() && kept.header_ns == stamp_ns;
        let mut with_stamp = before.iter().rev().filter(has_stamp);
        let by_header = with_stamp.next();
        let is_ambiguous = with_stamp.next().is_some();
        let found = match by_header {
            Some(kept) => {
                hop.figures.by_header += 1;
                hop.figures.ambiguous += u64::from(is_ambiguous);
                kept
            }
            None => {
                let Some(kept) = before.iter().rev().find(|kept| kept.at_ns <= limit_ns) else {
                    hop.figures.without_cause += 1;
                    return None;
                };
                hop.figures.by_time += 1;
                let since_last = before.iter().filter(|kept| (since_ns..=limit_ns).contains(&kept.at_ns)).count();
                hop.figures.ambiguous += u64::from(since_last > 1);
                kept
            }
        };
        let (begin_ns, hops) = found.way.as_ref()?;
        let mut hops = hops.clone();
        hops.push(message.at_ns - found.at_ns);
        Some((*begin_ns, hops))
    }

    /// A message of the last topic arrives that follows from a message of the first one.
    fn arrives(&mut self, at_ns: i64, begin_ns: i64, hops: &[i64]) {
        let age_ns = at_ns - begin_ns;
        self.age.record(age_ns);
        if self.worst.len() < WORST || self.worst.last().is_some_and(|(least, _)| age_ns > *least) {
            let at = self.worst.partition_point(|(age, _)| *age >= age_ns);
            self.worst.insert(at, (age_ns, hops.to_vec()));
            self.worst.truncate(WORST);
        }
        while let Some(first_ns) = self.waiting.pop_front_if(|first_ns| *first_ns <= begin_ns) {
            self.reaction.record(at_ns - first_ns);
        }
    }

    /// The figures until now.
    pub fn report(&self) -> WatchedChain {
        let hops: Vec<WatchedHop> =
            self.hops.iter().map(|hop| WatchedHop { time: range(&hop.times), ..hop.figures.clone() }).collect();
        let late_hop = self.late_hop(&hops);
        WatchedChain {
            topics: self.topics.clone(),
            age: self.age.range(false),
            reaction: self.reaction.range(false),
            without_effect: self.without_effect + self.waiting.len() as u64,
            late_hop,
            hops,
        }
    }

    /// The hop that took most beyond its median in the oldest messages of the last topic.
    fn late_hop(&self, hops: &[WatchedHop]) -> Option<WatchedLateHop> {
        let usual: Vec<i64> = hops.iter().map(|hop| hop.time.map_or(0, |time| time.p50_ns)).collect();
        let beyond = |hop: usize| self.worst.iter().map(|(_, took)| (took[hop] - usual[hop]).max(0)).sum::<i64>();
        let all: Vec<i64> = (0..hops.len()).map(beyond).collect();
        let of_all_ns: i64 = all.iter().sum();
        let (hop, beyond_ns) = all.into_iter().enumerate().max_by_key(|(_, beyond)| *beyond)?;
        (beyond_ns > 0).then(|| WatchedLateHop {
            from: hops[hop].from.clone(),
            to: hops[hop].to.clone(),
            messages: self.worst.len() as u64,
            beyond_ns,
            of_all_ns,
        })
    }
}
