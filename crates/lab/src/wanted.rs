//! What a study asks for at an interface of the user in the place of its queue discipline: gates, or traffic classes.

use crate::{gates, shaping};
use tailbound_model::{GatesSpec, MergeLayer, ShapingSpec};

/// What a study asks for at an interface of the user, in the place of its queue discipline.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'a> {
    Gates(&'a GatesSpec),
    Shaping(&'a ShapingSpec),
}

impl Wanted<'_> {
    /// The key of the study, and the kind of the queue discipline at the root of the interface.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Wanted::Gates(_) => ("gates", gates::KIND),
            Wanted::Shaping(_) => ("shaping", shaping::CLASSES),
        }
    }

    /// Number of transmit queues that the interface needs.
    pub fn queues(self) -> u16 {
        let classes = match self {
            Wanted::Gates(gates) => gates.queues(),
            Wanted::Shaping(shaping) => shaping.queues().iter().sum(),
        };
        classes.max(2)
    }

    /// Whether a queue discipline of the user may be replaced.
    pub fn replaces(self) -> bool {
        match self {
            Wanted::Gates(gates) => gates.replace,
            Wanted::Shaping(shaping) => shaping.replace,
        }
    }

    /// What is done at an interface, as commands for `--dry-run`.
    pub fn command(self, name: &str) -> String {
        match self {
            Wanted::Gates(gates) if gates.preemptible() == 0 => gates::command(name, gates),
            Wanted::Gates(gates) => {
                format!("{}; {}", merge_command(name, MergeLayer::ALL), gates::command(name, gates))
            }
            Wanted::Shaping(shaping) => shaping::command_of(name, shaping),
        }
    }
}

/// Settings of frame preemption as a command for an interface.
pub(crate) fn merge_command(name: &str, layer: MergeLayer) -> String {
    format!("ethtool --set-mm {name} {layer}")
}
