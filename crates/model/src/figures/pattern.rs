//! Patterns of the effect of a load on the communication of a trial.

use serde::{Deserialize, Serialize};

/// Pattern of the effect of a load on the communication of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Pattern "discovery starved": the ends never found each other, or found each other only long after they were
    /// opened.
    DiscoveryStarved,
    /// Pattern "publish blocked": a send call took long.
    PublishBlocked,
    /// Pattern "sender starved": the publishing thread waited for a CPU, according to context switches at that time.
    SenderStarved,
    /// Pattern "main thread blocked": the publishing thread stopped between its send calls, and no context switches
    /// show that it waited for a CPU. In most cases the thread waited for a lock.
    MainThreadBlocked,
    /// Pattern "total time longer": the trial took longer than its schedule, and no send call was the cause.
    TotalTimeLonger,
    /// Pattern "messages lost": messages were lost or not sent.
    MessagesLost,
    /// Pattern "answers late": answers took long, and none of the other patterns was found.
    AnswersLate,
    /// Pattern "no effect": none of the other patterns was found.
    NoEffect,
}

impl Pattern {
    /// All patterns of effects of a load, the most serious pattern first.
    pub const ALL: [Pattern; 8] = [
        Pattern::DiscoveryStarved,
        Pattern::PublishBlocked,
        Pattern::SenderStarved,
        Pattern::MainThreadBlocked,
        Pattern::TotalTimeLonger,
        Pattern::MessagesLost,
        Pattern::AnswersLate,
        Pattern::NoEffect,
    ];

    /// Name in words of the pattern of a load's effect, for example `sender starved`.
    pub fn words(self) -> &'static str {
        match self {
            Pattern::DiscoveryStarved => "discovery starved",
            Pattern::PublishBlocked => "publish blocked",
            Pattern::SenderStarved => "sender starved",
            Pattern::MainThreadBlocked => "main thread blocked",
            Pattern::MessagesLost => "messages lost",
            Pattern::AnswersLate => "answers late",
            Pattern::TotalTimeLonger => "total time longer",
            Pattern::NoEffect => "no effect",
        }
    }
}
