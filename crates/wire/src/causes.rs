//! Messages about the causes of one incident while its trial still runs.

use serde::{Deserialize, Serialize};

/// Capability in the hello of a controller that understands [`Causes`] and passes [`Absence`] on, and of an agent that
/// sends them.
pub const CAUSES: &str = "causes";

/// A time in which a message was not at the sending end, on the clock of the agent that sends it. An agent of the answering end with
/// the same clock looks for the causes on its side. On the stream, the fields are a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, i64, i64, i64)", into = "(u64, i64, i64, i64)")]
pub struct Absence {
    /// Sequence number of the message.
    pub seq: u64,
    /// Begin of the time, monotonic ns.
    pub begin_ns: i64,
    /// End of the time, monotonic ns.
    pub end_ns: i64,
    /// Time that a message usually takes, ns.
    pub usual_ns: i64,
}

impl From<(u64, i64, i64, i64)> for Absence {
    fn from((seq, begin_ns, length_ns, usual_ns): (u64, i64, i64, i64)) -> Absence {
        Absence { seq, begin_ns, end_ns: begin_ns.saturating_add(length_ns), usual_ns }
    }
}

impl From<Absence> for (u64, i64, i64, i64) {
    fn from(Absence { seq, begin_ns, end_ns, usual_ns }: Absence) -> Self {
        (seq, begin_ns, end_ns.saturating_sub(begin_ns), usual_ns)
    }
}

/// A cause: twice its number, plus 1 at the pong end; the name of what had the CPU (empty if nothing had it); and a lower bound of its
/// time, us. The crate `run` assigns the numbers.
pub type Cause = (u8, String, i64);

/// What one agent knows of the causes of an incident. On the stream, the fields are a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "CausesFields", into = "CausesFields")]
pub enum Causes {
    /// No CPU is free on which the agent could look for causes.
    NoCpu,
    /// The causes at the sending end of its worst incident since the message before.
    Sender {
        /// Sequence number of the message that was not at the sending end for the longest time; 0 if there was none.
        seq: u64,
        /// Time from the first message to the begin of the incident, ms.
        after_ms: i64,
        /// Time of the incident beyond the usual, us.
        excess_us: i64,
        /// Part of it in which the sending end had no message, us.
        elsewhere_us: i64,
        /// Causes, the largest first.
        causes: Vec<Cause>,
        /// Sum of the causes that are left out, us.
        others_us: i64,
    },
    /// The causes at the answering end, in the time of [`Absence`].
    Receiver {
        /// Sequence number of the message.
        seq: u64,
        /// Causes, the largest first.
        causes: Vec<Cause>,
        /// Sum of the causes that are left out, us.
        others_us: i64,
    },
}

/// The number of the variant of [`Causes`], then the sequence number, the times, and the causes.
type CausesFields = (u8, u64, [i64; 4], Vec<Cause>);

impl From<CausesFields> for Causes {
    fn from((variant, seq, [after_ms, excess_us, elsewhere_us, others_us], causes): CausesFields) -> Causes {
        match variant {
            1 => Causes::Sender { seq, after_ms, excess_us, elsewhere_us, causes, others_us },
            2 => Causes::Receiver { seq, causes, others_us },
            _ => Causes::NoCpu,
        }
    }
}

impl From<Causes> for CausesFields {
    fn from(causes: Causes) -> CausesFields {
        match causes {
            Causes::NoCpu => (0, 0, [0; 4], Vec::new()),
            Causes::Sender { seq, after_ms, excess_us, elsewhere_us, causes, others_us } => {
                (1, seq, [after_ms, excess_us, elsewhere_us, others_us], causes)
            }
            Causes::Receiver { seq, causes, others_us } => (2, seq, [0, 0, 0, others_us], causes),
        }
    }
}
