//! What a change answers: a cause of late messages, or a kind of loss.

use tailbound_document::{CauseWord, CausedBy, LossKind};

/// What a candidate answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answers {
    /// The candidate answers a cause of late messages.
    Cause {
        /// The answered cause.
        word: CauseWord,
        /// Name of the end whose threads were delayed.
        end: Option<String>,
        /// The thread or interrupt that had the CPU.
        by: Option<CausedBy>,
    },
    /// The candidate answers losses.
    Loss {
        /// Kind of the answered losses.
        kind: LossKind,
        /// Name of the end to which the lost messages were sent.
        end: &'static str,
    },
}
