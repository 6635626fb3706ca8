//! What a study asks for at the interface by which an end sends, in the place of its queue discipline: gates, traffic classes, or
//! launch times.

use crate::error::{LabError, lack};
use crate::failure::failed;
use crate::netns::{NetNs, run_in};
use crate::step::{At, Room, Step};
use crate::{gates, launch, shaping};
use std::sync::OnceLock;
use tailbound_model::{GatesSpec, LaunchSpec, MergeLayer, Problem, ShapingFact, ShapingSpec};

/// What a study asks for at an interface, in the place of its queue discipline.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// Gates, and launch times of the messages of one class.
    Gates(&'a GatesSpec, Option<LaunchSpec>),
    Shaping(&'a ShapingSpec),
    Launch(LaunchSpec),
}

/// The interface by which an end sends: its network namespace, its name, and the name of the end.
pub(crate) type SendsBy<'a> = (&'a NetNs, &'a str, &'static str);

impl Wanted<'_> {
    /// The key of the study, and the kind of the queue discipline at the root of the interface.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Wanted::Gates(..) => ("gates", gates::KIND),
            Wanted::Shaping(_) => ("shaping", shaping::CLASSES),
            Wanted::Launch(_) => ("launch", launch::ABOVE),
        }
    }

    /// Number of transmit queues that the interface needs.
    pub fn queues(self) -> u16 {
        let classes = match self {
            Wanted::Gates(gates, _) => gates.queues(),
            Wanted::Shaping(shaping) => shaping.queues().iter().sum(),
            Wanted::Launch(_) => launch::QUEUES,
        };
        classes.max(2)
    }

    /// Whether a queue discipline of the user may be replaced.
    pub fn replaces(self) -> bool {
        match self {
            Wanted::Gates(gates, _) => gates.replace,
            Wanted::Shaping(shaping) => shaping.replace,
            Wanted::Launch(launch) => launch.replace,
        }
    }

    /// Why this kernel cannot do it; `None` = it can.
    pub fn lack(self) -> Option<Problem> {
        match self {
            Wanted::Gates(_, launch) => gates::problem().or_else(|| launch.and_then(|_| launch::problem(true))),
            Wanted::Shaping(shaping) => shaping::problem(!shaping.credits.is_empty()),
            Wanted::Launch(_) => launch::problem(false),
        }
    }

    /// What is done at an interface, as commands for `--dry-run`.
    pub fn command(self, name: &str) -> String {
        match self {
            Wanted::Gates(gates, launch) => {
                let preempts = gates.preemptible() != 0;
                let merge = preempts.then(|| merge_command(name, MergeLayer::ALL));
                let below =
                    launch.map(|launch| launch::command_below(name, gates, &launch)).filter(|text| !text.is_empty());
                merge.into_iter().chain([gates::command(name, gates)]).chain(below).collect::<Vec<_>>().join("; ")
            }
            Wanted::Shaping(shaping) => shaping::command_of(name, shaping),
            Wanted::Launch(launch) => launch::command(name, &launch),
        }
    }

    /// Sets it, with this handle, and compares it with what the kernel reports. `second_ns`: the second to which the schedules of the lab
    /// refer.
    ///
    /// # Errors
    /// The kernel or a driver refuses, or reports something else.
    pub async fn put(
        self,
        (netns, name, end): SendsBy<'_>,
        (second_ns, handle): (&OnceLock<i64>, u32),
    ) -> Result<(), LabError> {
        let (at, name) = (At { room: Room::End(end), name: name.to_owned() }, name.to_owned());
        match self {
            Wanted::Gates(gates, launch) => {
                let put = gates::put(netns, name, gates, gates::Start { second_ns, handle, launch }).await;
                put.map_err(|reason| failed(&Step::Gates { at, gates: gates.clone(), launch }, reason))
            }
            Wanted::Shaping(shaping) => {
                let asked = asked_of(shaping, (netns, &name, end)).map_err(|lack| LabError::Lacks(vec![lack]))?;
                let put = shaping::put(netns, name, (asked.clone(), handle)).await;
                put.map_err(|reason| failed(&Step::Shaping { at, shaping: asked }, reason))
            }
            Wanted::Launch(launch) => {
                let put = launch::put(netns, name, (launch, handle)).await;
                put.map_err(|reason| failed(&Step::Launch { at, launch }, reason))
            }
        }
    }
}

/// The shaping that an interface should have, from its MTU and its speed.
pub(crate) fn asked_of(shaping: &ShapingSpec, (netns, name, end): SendsBy<'_>) -> Result<ShapingFact, Problem> {
    let of_job = name.to_owned();
    let facts = run_in(netns, move || tailbound_host::interface_facts(&of_job)).and_then(|task| task.join()?);
    let failed = |error| {
        lack(format!("{name} ({end}) cannot be read: {error}"), "run as root (CAP_NET_ADMIN and CAP_SYS_ADMIN)")
    };
    let facts = facts.map_err(failed)?;
    shaping::asked_of(shaping, (name, end), facts.mtu, &facts.speed_mbit_s)
}

/// Settings of frame preemption as a command for an interface.
pub(crate) fn merge_command(name: &str, layer: MergeLayer) -> String {
    format!("ethtool --set-mm {name} {layer}")
}
