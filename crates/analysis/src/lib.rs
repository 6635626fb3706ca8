//! Computes the documents of `tailbound-document` from records.
//!
//! [`analyse`] reads the samples of a record in passes and fills a [`Report`](tailbound_document::Report).
//! [`compare_records`] and [`compare_levels`] fill a [`Comparison`](tailbound_document::Comparison), and
//! [`judge_budget`] fills a [`BudgetReport`](tailbound_document::BudgetReport). The list of sentences about the figures
//! (`findings`) remains empty: `tailbound-report` fills it. If a figure cannot be computed, the document contains the
//! reason.
//!
//! This crate measures nothing, and it knows no host, no lab and no driver: a record is enough.

mod analyse;
mod bins;
mod brief;
mod budget;
mod circumstances;
mod clock_claim;
mod clock_history;
mod clock_windows;
mod clocks;
mod coarse_buckets;
mod compare;
mod durations;
mod flow;
mod from_due;
mod gates;
mod held;
mod launch;
mod lead_time;
mod main_wait;
mod metrics;
mod movement;
mod names;
mod next_steps;
mod node_words;
mod nodes;
mod over_time;
mod overhead;
mod parallel;
mod pass_error;
mod passes;
mod path_proof;
mod patterns;
mod published;
mod range;
mod recovered_gates;
mod sample_faults;
mod series;
mod side_by_side;
mod since;
mod slot_columns;
mod stages;
mod tail_estimate;
mod tools;
mod waits;
mod warm_up;
mod why;
mod worst;

pub use analyse::analyse;
pub use brief::{Brief, brief};
pub use budget::{judge_budget, limit_lines};
pub use clocks::has_one_clock;
pub use compare::{
    CompareError, CompareOptions, NoFigure, TrialFigures, compare_levels, compare_records, figures_of_trial,
};
pub use flow::of_trial as flow_of_trial;
pub use lead_time::{LeadAdvice, NoLead, lead_times};
pub use next_steps::{allowed_cpus, shell_word};
pub use recovered_gates::{RecoveredGate, RecoveredGates, recover_gates};
pub use sample_faults::TRIALS_MISSING;
pub use series::{BETWEEN_ENDS, answered};
pub use since::since;
pub use tools::tool_report;
pub use waits::{BLOCKED_MOST_NS, Bound, Waited, blocked_limit_ns, waited};
pub use why::{Elsewhere, Machine, Running, RunningCause, RunningCauses, TrialCauses, causes_of_trial};
