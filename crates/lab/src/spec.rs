//! What a lab is asked to be.

use crate::step::{Layout, Step};
use tailbound_model::{ExistingEnd, PathSpec, PlaceSpec, TrialSpec};

/// The path and the places of a trial. Trials with an equal spec share one lab.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LabSpec {
    /// What joins the places.
    pub path: PathSpec,
    /// Where the ping end runs.
    pub ping: PlaceSpec,
    /// Where the pong end runs.
    pub pong: PlaceSpec,
}

impl From<&TrialSpec> for LabSpec {
    fn from(trial: &TrialSpec) -> LabSpec {
        LabSpec { path: trial.path.clone(), ping: trial.ping.place.clone(), pong: trial.pong.place.clone() }
    }
}

/// Ends by index: 0 is ping, 1 is pong.
pub(crate) const ENDS: [&str; 2] = ["ping", "pong"];

impl LabSpec {
    /// Whether network namespaces are made for it, which needs root or a user namespace.
    pub fn makes_namespaces(&self) -> bool {
        matches!(self.path, PathSpec::Veth { .. } | PathSpec::Bridge { .. })
    }

    /// What `up` would do, one line each: the step as a command would say it, and the privilege it takes.
    pub fn describe(&self) -> Vec<String> {
        match self.layout() {
            Layout::Made(shape) => shape.steps("tbRUN").iter().map(Step::with_privilege).collect(),
            Layout::Found(ends) => {
                let lines = ends.iter().enumerate().map(|(i, end)| {
                    let wanted = match (&end.interface, &end.address) {
                        (Some(interface), Some(address)) => format!("interface {interface} with address {address}"),
                        (Some(interface), None) => format!("interface {interface} and its first IPv4 address"),
                        (None, Some(address)) => format!("the interface with address {address}"),
                        (None, None) => "an interface that the study does not name".to_owned(),
                    };
                    let (place, privilege) = match self.place(i) {
                        PlaceSpec::ExistingNetns(name) => (format!("network namespace {name}"), "CAP_SYS_ADMIN"),
                        _ => ("this network namespace".to_owned(), "no privilege"),
                    };
                    format!("read {wanted} in {place} for {}; nothing is changed  [{privilege}]", ENDS[i])
                });
                lines.collect()
            }
        }
    }

    pub(crate) fn place(&self, end: usize) -> &PlaceSpec {
        if end == 0 { &self.ping } else { &self.pong }
    }

    pub(crate) fn layout(&self) -> Layout {
        match &self.path {
            PathSpec::Loopback => {
                let lo = ExistingEnd { interface: Some("lo".into()), address: Some("127.0.0.1".into()) };
                Layout::Found([lo.clone(), lo])
            }
            PathSpec::Existing { ping, pong } => Layout::Found([ping.clone(), pong.clone()]),
            PathSpec::Veth { mtu } => Layout::Made(crate::step::Shape { bridged: false, mtu: *mtu }),
            PathSpec::Bridge { mtu } => Layout::Made(crate::step::Shape { bridged: true, mtu: *mtu }),
        }
    }
}
