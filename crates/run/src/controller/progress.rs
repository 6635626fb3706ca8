//! Events that a run reports to its caller as they happen.

use std::time::Duration;
use tailbound_document::CauseWord;
use tailbound_model::{Counter, Nanos, Warning};
use tailbound_record::FiguresSoFar;

/// An event that a run reports to its caller.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ProgressEvent<'a> {
    /// Event: the run begins.
    Began {
        /// Number of trials in the run.
        trials: usize,
        /// Expected time of all measurements of the run together.
        estimate: Nanos,
    },
    /// Event: the run waits before its first trial.
    Waiting {
        /// What the run waits for, as text.
        what: &'a str,
    },
    /// Event: a lab is being built.
    Lab {
        /// Description of the lab that is being built: its path and host settings as text.
        what: &'a str,
    },
    /// Event: a trial begins.
    Trial {
        /// Position of the trial in the order of trials, from 0.
        number: usize,
        /// Levels of the condition of the trial that begins, as text.
        what: &'a str,
        /// Expected time of the trial that begins.
        estimate: Nanos,
    },
    /// Event: the agents of the trial that runs have reported its late messages so far. A trial of more than a minute has
    /// such an event every 30 s, unless its study asks for no causes.
    SoFar(&'a LateSoFar),
    /// Event: an agent has reported the round trips of the trial that runs, once a second if the caller of the run asks for
    /// this.
    Figures {
        /// Time since the begin of the measurement.
        after: Duration,
        /// Round trips so far, in buckets of a histogram.
        figures: FiguresSoFar,
    },
    /// Event: a trial has ended.
    TrialDone {
        /// Position of the trial in the order of trials, from 0.
        number: usize,
        /// Id of the ended trial, whose samples are stored now.
        trial: usize,
        /// Number of slots of the ended trial that were answered.
        answered: u64,
        /// Number of slots of the ended trial that were scheduled.
        scheduled: u64,
    },
    /// Event: the run has raised a new warning.
    Warned(&'a Warning),
}

/// Late and lost messages of a trial that still runs. These figures are preliminary: what is late is decided by the messages so far,
/// and by all messages after the trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LateSoFar {
    /// Time since the begin of the measurement.
    pub after: Duration,
    /// Number of incidents that have ended.
    pub incidents: u64,
    /// Number of late messages in these incidents.
    pub late: u64,
    /// Number of messages without an answer in these incidents.
    pub lost: u64,
    /// Time from the first message to the begin of the worst incident.
    pub worst_after: Nanos,
    /// Time of the worst incident beyond the usual; 0 = no message was late.
    pub worst_excess: Nanos,
    /// Kernel counters that moved during incidents, each with the name of the agent that read the counter.
    pub moved: Vec<(Counter, String)>,
    /// Causes of the worst incident that ended since the causes of the event before were looked for, if an agent found some.
    pub causes: Option<KnownCauses>,
    /// Whether an agent looks for no causes, because no CPU is free for it.
    pub no_free_cpu: bool,
}

/// Causes of an incident of a trial that still runs, each with a lower bound of its time. The report finds all of them after the
/// trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownCauses {
    /// Time from the first message to the begin of the incident.
    pub after: Nanos,
    /// Time of the incident beyond the usual.
    pub excess: Nanos,
    /// Causes, at most three, the largest first.
    pub causes: Vec<KnownCause>,
    /// Time of causes that are left out.
    pub others: Nanos,
    /// Time in which the sending end had no message, if no agent looked for causes at the other end.
    pub not_seen: Nanos,
}

/// A cause of late messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCause {
    /// Word for the cause.
    pub cause: CauseWord,
    /// Name of the end to which the time belongs.
    pub end: String,
    /// Name of the program, thread or interrupt that had the CPU, if one had and its name is known.
    pub by: Option<String>,
    /// Lower bound of the time.
    pub time: Nanos,
}

/// Receives the events of a run, on the thread of the controller, never on a measured thread.
pub trait Progress {
    /// Receives an event of the run: the run calls this function for each event.
    fn event(&mut self, event: ProgressEvent<'_>);
}

/// A receiver of the events of a run that ignores all of them.
impl Progress for () {
    fn event(&mut self, _: ProgressEvent<'_>) {}
}
