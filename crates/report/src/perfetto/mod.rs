//! The trace of a record: its messages, incidents and recorded events of the kernel as a file for the viewer Perfetto
//! (<https://ui.perfetto.dev>).
//!
//! Input: a record, and its report, which has the incidents. Output: packets of the schema in `schema.rs`, one after the
//! other. No figure is computed here. Times are those of the ping's CLOCK_MONOTONIC, to which times of other clocks are
//! converted (`machines.rs`). What the record does not know is left out, and a sentence says so.

mod kernel;
mod lanes;
mod machines;
mod messages;
mod names;
mod packets;
mod schema;
mod spans;
mod trial;
mod wakes;
mod words;

use crate::perfetto::machines::CpuNumbers;
use crate::perfetto::packets::Packets;
use crate::perfetto::trial::TrialTrace;
use std::collections::BTreeSet;
use std::io::{self, Write};
use tailbound_analysis::has_one_clock;
use tailbound_document::{ConditionReport, Report};
use tailbound_model::{Flow, Problem, Switches};
use tailbound_record::Record;

/// Error: there is no trace of a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Error: the record has no trial with this id.
    NoTrial {
        /// Id of the trial that was requested.
        asked: usize,
        /// Ids of the trials of the record.
        trials: Vec<usize>,
    },
    /// Error: Tailbound has no messages of this trial, or of any trial if no trial was requested.
    NoMessages(Option<usize>),
}

tailbound_model::display_as_problem!(TraceError);

impl TraceError {
    /// Returns what is wrong, and what the user can do.
    pub fn problem(&self) -> Problem {
        match self {
            TraceError::NoTrial { asked, trials } => {
                let has = |trial: usize| trials.contains(&trial);
                let remedy = match (trials.iter().min(), trials.iter().max()) {
                    (Some(only), Some(last)) if only == last => format!("the record has trial {only} only"),
                    (Some(first), Some(last)) if (*first..=*last).all(has) => {
                        format!("the record has the trials {first} to {last}")
                    }
                    (Some(_), Some(_)) => {
                        let all: Vec<String> = trials.iter().map(ToString::to_string).collect();
                        format!("the record has the trials {}", all.join(", "))
                    }
                    _ => "the record has no trials".to_owned(),
                };
                Problem::new("no_trial", format!("the record has no trial {asked}"), remedy)
            }
            TraceError::NoMessages(trial) => {
                let of = trial.map_or("the record".to_owned(), |id| format!("trial {id}"));
                let what = format!("{of} has no messages with answers, so that there is no trace of it");
                Problem::new("no_trace", what, "use a record of a driver and of a measure with round trips")
            }
        }
    }
}

/// Ids of trials, with their conditions.
type Trials<'a> = Vec<(usize, &'a ConditionReport)>;

/// The trace of some trials of a record, before it is written.
pub struct Perfetto<'a> {
    record: &'a Record,
    report: &'a Report,
    trials: Trials<'a>,
    cpus: CpuNumbers,
}

impl<'a> Perfetto<'a> {
    /// The trace of these trials, or of all trials with recorded events if `trials` is empty; if no trial has any, of all
    /// trials. `report` is the report of the record.
    ///
    /// # Errors
    /// A trial does not exist or has no messages with answers.
    pub fn of(record: &'a Record, report: &'a Report, trials: &[usize]) -> Result<Perfetto<'a>, TraceError> {
        let (trials, cpus) = chosen(record, report, trials)?;
        Ok(Perfetto { record, report, trials, cpus })
    }

    /// Writes the trace packet by packet. Returns sentences about what the trace does not have, and about times that were
    /// converted from another clock; if a file of the record
    /// is damaged, one of them says so, and the trace has the rest.
    ///
    /// # Errors
    /// The output refuses the trace.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<Vec<String>> {
        let mut packets = Packets::new(out);
        let first = self.trials.first().and_then(|(id, _)| self.record.manifest.trials.iter().find(|t| t.id == *id));
        packets.begin(first.and_then(|t| t.t0_ns).unwrap_or(0), release(self.record, self.report))?;
        let (mut notes, mut pids) = (Vec::new(), BTreeSet::new());
        for (id, condition) in &self.trials {
            notes.extend(TrialTrace::read(self.record, condition, *id, &self.cpus).write(&mut packets, &mut pids)?);
        }
        Ok(notes)
    }
}

/// The trials to be written, with their conditions, in the order of their ids, and the numbers of their CPUs.
fn chosen<'a>(record: &Record, report: &'a Report, trials: &[usize]) -> Result<(Trials<'a>, CpuNumbers), TraceError> {
    let plan = &record.manifest.plan;
    let has_answers = |c: &&ConditionReport| {
        c.tool.is_none() && plan.conditions[c.id].spec.measure.flow().is_none_or(Flow::has_answers)
    };
    let of = |c: &'a ConditionReport| c.trial_ids.iter().map(move |id| (*id, c));
    let all: Vec<_> = report.conditions.iter().filter(has_answers).flat_map(of).collect();
    let mut cpus = CpuNumbers::default();
    // Adds the CPUs of the trial too, because there can be many events: they are read only once.
    let mut has_events = |id: usize| {
        let seen: Vec<Switches> = record.switches(id).into_iter().flatten().collect();
        cpus.add(&seen, has_one_clock(record, id));
        seen.iter().any(|seen| !seen.events.is_empty())
    };
    let mut chosen = Vec::new();
    for asked in trials {
        if !plan.trials.iter().any(|trial| trial.id == *asked) {
            let trials = plan.trials.iter().map(|trial| trial.id).collect();
            return Err(TraceError::NoTrial { asked: *asked, trials });
        }
        let found = all.iter().find(|(id, _)| id == asked).ok_or(TraceError::NoMessages(Some(*asked)))?;
        has_events(*asked);
        chosen.push(*found);
    }
    if trials.is_empty() {
        let used = |(id, c): &(usize, &ConditionReport)| {
            c.used_trial_ids.contains(id) || record.manifest.is_kept_for_incidents(*id)
        };
        chosen = all.iter().copied().filter(used).filter(|(id, _)| has_events(*id)).collect();
        if chosen.is_empty() {
            chosen = all.into_iter().filter(used).collect();
        }
    }
    chosen.sort_by_key(|(id, _)| *id);
    chosen.dedup_by_key(|(id, _)| *id);
    if chosen.is_empty() { Err(TraceError::NoMessages(None)) } else { Ok((chosen, cpus)) }
}

/// Release of the kernel of the ping's host, if the record has it.
fn release(record: &Record, report: &Report) -> Option<String> {
    let host = record.manifest.trials.iter().find_map(|trial| Some(trial.ends.get("ping")?.host.as_str()))?;
    let facts = &report.facts.iter().find(|facts| facts.host == host)?.facts;
    facts.iter().find(|fact| fact.key == "kernel.release")?.value.as_str().map(str::to_owned)
}
