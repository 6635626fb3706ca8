//! Times at which samples were late: the latest samples of all writers, joined where they overlap.

use crate::lateness::Usual;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use tailbound_document::{HostDuring, LateTopic, WatchedIncident};
use tailbound_stats::LateRule;

/// Number of the latest samples of a writer that are kept.
const KEPT: usize = 32;
/// Largest number of incidents that are reported: those with the largest excess.
const MOST: usize = 10;
/// Late samples that are apart by less belong to one incident, ns.
const APART_NS: i64 = 1_000_000;
/// Fewer samples have no usual lateness.
const FEWEST: u64 = 20;
/// Largest number of times of the host that are kept: enough for a day.
const MOST_TIMES: usize = 1_000_000;

/// The latest samples of a writer: their lateness, and when they were captured, ns.
#[derive(Default)]
pub struct Latest(BinaryHeap<Reverse<(i64, i64)>>);

impl Latest {
    /// Adds a sample, and drops the earliest one if there are too many.
    pub fn add(&mut self, late_ns: i64, stamp_ns: i64) {
        if self.0.len() < KEPT {
            self.0.push(Reverse((late_ns, stamp_ns)));
        } else if let Some(mut least) = self.0.peek_mut().filter(|least| least.0.0 < late_ns) {
            *least = Reverse((late_ns, stamp_ns));
        }
    }
}

/// What the CPUs of the host did between two times.
#[derive(Debug, Clone, Copy)]
pub struct HostTime {
    /// Begin, ns since 1970.
    pub from_ns: i64,
    /// End, ns since 1970.
    pub to_ns: i64,
    /// Time in which CPUs had something to do, ns, of all CPUs together.
    pub busy_ns: i64,
    /// Time that a hypervisor took from them, ns.
    pub stolen_ns: i64,
    /// Time of all CPUs together, ns.
    pub all_ns: i64,
}

/// The times of the host during a capture.
#[derive(Default)]
pub struct HostTimes(Vec<HostTime>);

impl HostTimes {
    /// Adds the next time.
    pub fn add(&mut self, time: HostTime) {
        if self.0.len() < MOST_TIMES {
            self.0.push(time);
        }
    }

    /// What the CPUs did in the times that overlap with a span. Times are not divided: the resolution is the time between two readings.
    fn during(&self, from_ns: i64, to_ns: i64) -> Option<HostDuring> {
        let first = self.0.partition_point(|time| time.to_ns <= from_ns);
        let times = || self.0[first..].iter().take_while(|time| time.from_ns < to_ns);
        let all_ns: i64 = times().map(|time| time.all_ns).sum();
        let (begin, end) = (times().next()?.from_ns, times().last()?.to_ns);
        let busy: i64 = times().map(|time| time.busy_ns).sum();
        // A span that no reading covers as a whole has nothing to say.
        (begin <= from_ns && to_ns <= end && all_ns > 0).then(|| HostDuring {
            read_ns: end - begin,
            busy: busy as f64 / all_ns as f64,
            stolen_ns: times().map(|time| time.stolen_ns).sum(),
        })
    }
}

/// What is known of the lateness of a writer's samples.
pub struct OfWriter<'a> {
    /// Its topic, or its identity.
    pub name: String,
    /// What is usual for its samples.
    pub usual: Usual,
    /// Its latest samples.
    pub latest: &'a Latest,
}

struct Late {
    from_ns: i64,
    to_ns: i64,
    excess_ns: i64,
    writer: usize,
}

/// The incidents of a capture, the one with the largest excess first.
pub fn incidents(writers: &[OfWriter<'_>], host: &HostTimes) -> Vec<WatchedIncident> {
    let rules: Vec<Option<LateRule>> = writers.iter().map(|of| rule(&of.usual)).collect();
    let mut late: Vec<Late> = Vec::new();
    for (writer, (of, rule)) in writers.iter().zip(&rules).enumerate() {
        let Some(rule) = rule else { continue };
        for Reverse((late_ns, stamp_ns)) in &of.latest.0 {
            let late_ns = late_ns.saturating_sub(of.usual.zero_ns);
            if late_ns > rule.limit_ns {
                let excess_ns = late_ns - rule.median_ns;
                late.push(Late { from_ns: stamp_ns - late_ns, to_ns: *stamp_ns, excess_ns, writer });
            }
        }
    }
    late.sort_by_key(|late| late.from_ns);
    let mut groups: Vec<(i64, i64, Vec<Late>)> = Vec::new();
    for one in late {
        match groups.last_mut().filter(|(_, end_ns, _)| one.from_ns <= *end_ns + APART_NS) {
            Some((_, end_ns, group)) => {
                *end_ns = (*end_ns).max(one.to_ns);
                group.push(one);
            }
            None => groups.push((one.from_ns, one.to_ns, vec![one])),
        }
    }
    groups.sort_by_key(|(.., group)| Reverse(group.iter().map(|late| late.excess_ns).max()));
    groups.truncate(MOST);
    groups
        .into_iter()
        .map(|(begin_ns, end_ns, group)| {
            let mut topics: BTreeMap<usize, LateTopic> = BTreeMap::new();
            for late in &group {
                let median_ns = rules[late.writer].map_or(0, |rule| rule.median_ns);
                let topic = topics.entry(late.writer).or_insert_with(|| LateTopic {
                    topic: writers[late.writer].name.clone(),
                    late: 0,
                    worst_ns: 0,
                    median_ns,
                });
                topic.late += 1;
                topic.worst_ns = topic.worst_ns.max(late.excess_ns + median_ns);
            }
            let mut topics: Vec<LateTopic> = topics.into_values().collect();
            topics.sort_by_key(|topic| Reverse(topic.worst_ns));
            let host = host.during(begin_ns, end_ns);
            WatchedIncident { begin_ns, end_ns, topics, host }
        })
        .collect()
}

/// When a sample of a writer is late, by the rule of reports.
fn rule(usual: &Usual) -> Option<LateRule> {
    let Usual { count, p10_ns, p50_ns, .. } = *usual;
    (count >= FEWEST).then(|| LateRule::new((p10_ns, p50_ns), p50_ns, None))
}
