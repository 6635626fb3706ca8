//! Sums up what the ordinary messages of a condition spend their time on.

use crate::why::ledger::Recorded;
use crate::why::share::Key;
use crate::why::threads::Threads;
use crate::why::words;
use std::collections::BTreeMap;
use tailbound_document::{CauseWord, CausedBy, UsualPart, UsualReport};

/// What a part of the time was spent on, with the names of threads in place of their ids.
type Named = (CauseWord, &'static str, &'static str, Option<String>, Option<CausedBy>);

/// Sums over ordinary messages whose events were recorded, of one or more trials.
#[derive(Debug, Default)]
pub(crate) struct UsualSums {
    messages: u64,
    total_ns: i64,
    parts: BTreeMap<Named, i64>,
}

/// The program of a thread, so that the many threads of a program are one part.
fn program(by: CausedBy) -> CausedBy {
    let name = by.process.unwrap_or(by.name);
    CausedBy { name, process: None, tid: None, policy: None, ..by }
}

impl UsualSums {
    /// The sums of one trial.
    pub fn of(recorded: &Recorded, threads: &Threads) -> UsualSums {
        let mut sums = UsualSums { messages: recorded.messages, total_ns: recorded.total_ns, parts: BTreeMap::new() };
        for (Key { cause, leg, end, thread, by, .. }, ns) in &recorded.shares {
            let name = thread.and_then(|tid| threads.name(tid));
            *sums.parts.entry((*cause, words::leg_key(*leg), end, name, by.clone().map(program))).or_default() += ns;
        }
        sums
    }

    /// Adds the sums of another trial.
    pub fn add(&mut self, other: UsualSums) {
        self.messages += other.messages;
        self.total_ns += other.total_ns;
        for (key, ns) in other.parts {
            *self.parts.entry(key).or_default() += ns;
        }
    }

    /// The means; `None` if there is no message.
    pub fn report(self) -> Option<UsualReport> {
        let messages = i64::try_from(self.messages).ok().filter(|n| *n > 0)?;
        let part = |((cause, leg, end, thread, by), ns): (Named, i64)| UsualPart {
            cause,
            leg: leg.to_owned(),
            end: Some(end.to_owned()).filter(|end| !end.is_empty()),
            thread,
            by,
            mean_ns: ns / messages,
        };
        let known_ns: i64 = self.parts.values().sum();
        let mut parts: Vec<UsualPart> = self.parts.into_iter().map(part).filter(|part| part.mean_ns > 0).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.mean_ns));
        let unexplained_ns = ((self.total_ns - known_ns) / messages).max(0);
        Some(UsualReport { messages: self.messages, mean_ns: self.total_ns / messages, parts, unexplained_ns })
    }
}
