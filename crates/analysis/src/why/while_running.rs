//! The causes of one incident of a trial that still runs, as far as the agent of one end knows them.
//!
//! Input: the samples of the incident and of ordinary messages, the threads and the recorded events of this agent. Output: lower bounds
//! of times by cause, and the longest time in which the other end or the network had a message. What the agent of this end cannot
//! know has no cause here. The report finds the causes again after the trial, from the samples and events of all ends.

use crate::circumstances::threads_of_table;
use crate::why::conduct::Conduct;
use crate::why::kernels::Kernel;
use crate::why::ledger::{Entry, Ledger, Timelines, Usual};
use crate::why::other_clock::Pong;
use crate::why::share::Circumstances;
use crate::why::stamps::Stamps;
use crate::why::sums::Sum;
use crate::why::threads::Threads;
use std::collections::BTreeMap;
use tailbound_document::{CauseWord, ThreadReport};
use tailbound_model::{EchoRow, NO_TIME, Switches, ThreadTable, TrialSpec, counter_of};
use tailbound_record::{KeptRow, WorstIncident};
use tailbound_stats::{Incident, IncidentFinder, LateRule};

/// A cause with a smaller part of the excess is left out.
const LEAST_SHARE: f64 = 0.01;

/// What the agent of an end knows of a trial that runs.
#[derive(Debug)]
pub struct Running<'a> {
    /// The trial.
    pub spec: &'a TrialSpec,
    /// The threads of the measuring process of the agent.
    pub threads: &'a ThreadTable,
    /// The events that the agent recorded around the messages.
    pub seen: &'a Switches,
    /// Whether the kernel is a real-time kernel.
    pub is_real_time: bool,
}

/// A lower bound of the time of an incident with one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningCause {
    /// Word for the cause.
    pub cause: CauseWord,
    /// Name of the end to which the time belongs.
    pub end: &'static str,
    /// Name of the program, thread or interrupt that had the CPU, if one had.
    pub by: Option<String>,
    /// Lower bound, ns.
    pub ns: i64,
}

/// A time in which a message was not at the sending end: the other end or the network had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elsewhere {
    /// Sequence number of the message.
    pub seq: u64,
    /// Begin of the time, ns.
    pub begin_ns: i64,
    /// End of the time, ns.
    pub end_ns: i64,
    /// Time that a message usually takes, ns, which is to be subtracted from each cause.
    pub usual_ns: i64,
}

/// The causes that one agent knows of an incident.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunningCauses {
    /// Causes, the largest first.
    pub causes: Vec<RunningCause>,
    /// Part of the excess in which the sending end had no message, ns.
    pub elsewhere_ns: i64,
    /// The longest time of one message in it.
    pub longest: Option<Elsewhere>,
}

impl Running<'_> {
    /// The causes at the sending end of its worst incident. `ordinary`: messages that were on time, from which the usual is known.
    pub fn of_sender(&self, worst: &WorstIncident, ordinary: &[KeptRow]) -> RunningCauses {
        let launch_ns = Conduct::of_spec(self.spec).launch_ns;
        let of_row = |kept: &KeptRow| of_row(kept, launch_ns);
        let messages = worst.rows.iter().filter_map(|(row, kept)| Some((*row, of_row(kept)?))).collect();
        let usual: Vec<Stamps> = ordinary.iter().filter_map(of_row).collect();
        let pong = Pong::NotFollowed("the trial still runs".to_owned());
        let ledger = self.ledger(&worst.incident, (&messages, &usual), worst.median_ns, &pong);
        let excess_ns = worst.incident.excess_ns;
        let elsewhere = || ledger.entries.iter().filter(|entry| entry.key.cause == CauseWord::Network);
        let spans = elsewhere().flat_map(|entry| &entry.spans);
        let longest = spans.max_by_key(|(begin, end)| end - begin).and_then(|&(begin_ns, end_ns)| {
            let holds = |kept: &&KeptRow| kept.row.send_begin_ns <= begin_ns && end_ns <= kept.row.receive_ns;
            // Of several messages in this time, the oldest one is followed.
            let kept = worst.rows.values().find(holds)?;
            Some(Elsewhere { seq: kept.row.seq, begin_ns, end_ns, usual_ns: worst.median_ns })
        });
        let elsewhere_ns = elsewhere().map(|entry| entry.low_ns).sum();
        RunningCauses { causes: causes(&ledger.entries, excess_ns), elsewhere_ns, longest }
    }

    /// The causes at the answering end in a time in which the sending end had no message. `echo` is the row of this message.
    pub fn of_receiver(&self, asked: &Elsewhere, echo: &EchoRow) -> RunningCauses {
        let Elsewhere { seq, begin_ns, end_ns, usual_ns } = *asked;
        let times = [echo.in_ns, echo.begin_ns, echo.end_ns];
        if times.contains(&NO_TIME) || echo.in_ns < begin_ns || end_ns < begin_ns {
            return RunningCauses::default();
        }
        let stamps = Stamps {
            slot: counter_of(seq),
            due_ns: begin_ns,
            leaves_ns: begin_ns,
            send_ns: begin_ns,
            sent_ns: begin_ns,
            previous_sent_ns: None,
            received_ns: end_ns.max(echo.end_ns),
            echo: Some(times),
            receivers: [echo.in_thread.and_then(|thread| i32::try_from(thread).ok()), None],
        };
        let mut finder = IncidentFinder::new(LateRule { median_ns: 0, limit_ns: -1, round_trip_ns: 0 }, 1);
        finder.answered(0, begin_ns, end_ns - begin_ns);
        let Some(incident) = finder.finish().worst.pop() else { return RunningCauses::default() };
        let ledger = self.ledger(&incident, (&[(0, stamps)].into(), &[]), 0, &Pong::SameClock);
        let mut entries = ledger.entries;
        entries.retain(|entry| entry.key.end == "pong");
        // The whole time that a message usually takes is more than what it usually spends on one cause.
        entries.iter_mut().for_each(|entry| entry.low_ns = (entry.low_ns - usual_ns).max(0));
        RunningCauses { causes: causes(&entries, end_ns - begin_ns), ..RunningCauses::default() }
    }

    fn ledger(
        &self,
        incident: &Incident,
        (messages, ordinary): (&BTreeMap<u64, Stamps>, &[Stamps]),
        median_ns: i64,
        pong: &Pong,
    ) -> Ledger {
        let seen = std::slice::from_ref(self.seen);
        let tables: [ThreadReport; 1] = [threads_of_table(0, self.threads.clone(), self.spec)];
        let kernel = Kernel {
            is_real_time: self.is_real_time,
            has_irq_threads: self.is_real_time,
            is_x86: cfg!(target_arch = "x86_64"),
            ..Kernel::default()
        };
        let threads = Threads::of(&tables, 0, seen, pong);
        let threads = threads.of_conduct(Conduct::of_spec(self.spec)).of_kernels([kernel; 3]);
        let incidents = [(incident.begin_ns, incident.end_ns)];
        let known = Circumstances { threads: &threads, seen, incidents: &incidents, guests: &[] };
        let timelines = Timelines::of(seen);
        let usual = Usual::of(ordinary.iter(), &timelines, &known);
        let ledger = Ledger::of(incident, messages, &timelines, &known, (&usual, median_ns));
        ledger.finished(&[], incident.excess_ns)
    }
}

/// The times of a message, which is due by `launch_ns` before it may leave.
fn of_row(kept: &KeptRow, launch_ns: i64) -> Option<Stamps> {
    let KeptRow { row, previous_sent_ns } = kept;
    let time = |ns: i64| (ns != NO_TIME).then_some(ns);
    let send_ns = time(row.send_begin_ns)?;
    let due_ns = time(row.intended_ns).unwrap_or(send_ns);
    Some(Stamps {
        slot: counter_of(row.seq),
        due_ns,
        leaves_ns: due_ns + launch_ns,
        send_ns,
        sent_ns: time(row.send_end_ns).unwrap_or(send_ns),
        previous_sent_ns: time(*previous_sent_ns),
        received_ns: time(row.receive_ns)?,
        echo: None,
        receivers: [None, row.receive_thread.and_then(|thread| i32::try_from(thread).ok())],
    })
}

/// Sums of the lower bounds by cause and program, the largest first, without words that only say where the time passed.
fn causes(entries: &[Entry], excess_ns: i64) -> Vec<RunningCause> {
    let mut sums: BTreeMap<Sum, i64> = BTreeMap::new();
    // What a writer waits for depends on its QoS settings, which are known after the trial.
    let is_known =
        |word: CauseWord| word.explains() && !matches!(word, CauseWord::UserLock | CauseWord::WriterThrottled);
    for entry in entries.iter().filter(|entry| is_known(entry.key.cause)) {
        *sums.entry(Sum::of(&entry.key)).or_default() += entry.low_ns;
    }
    // A kernel thread that waited would need a second name.
    sums.retain(|sum, ns| {
        let has_carrier = sum.by.as_ref().is_some_and(|by| by.carrier.is_some());
        *ns > 0 && *ns as f64 >= excess_ns as f64 * LEAST_SHARE && !has_carrier
    });
    let cause =
        |(sum, ns): (Sum, i64)| RunningCause { cause: sum.cause, end: sum.end, by: sum.by.map(|by| by.name), ns };
    let mut causes: Vec<RunningCause> = sums.into_iter().map(cause).collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
    causes
}
