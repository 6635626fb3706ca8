//! What the plan of a study needs that this machine may not have: other machines, programs, drivers.

use crate::failure::Failure;
use tailbound_lab::LabSpec;
use tailbound_model::{Nanos, PlaceSpec, Plan};
use tailbound_run::controller;

/// Where the ends of a study run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    OneMachine,
    Isolated,
    SeveralMachines,
}

impl Group {
    /// Title of the group in the list of studies.
    pub fn title(self) -> &'static str {
        match self {
            Group::OneMachine => "On this machine",
            Group::Isolated => "In containers and virtual machines of this machine",
            Group::SeveralMachines => "With other machines",
        }
    }
}

/// What a study needs.
#[derive(Debug)]
pub struct Needs {
    /// Expected length of the study; `None` = it cannot be planned here.
    pub length: Option<Nanos>,
    /// Number of conditions; 0 = the study cannot be planned here.
    pub conditions: usize,
    /// Number of conditions whose drivers and tools are there.
    pub possible: usize,
    /// What is missing, or has to be provided, each as a sentence without a subject or as a reason.
    pub lacks: Vec<String>,
    pub group: Group,
}

/// The needs of a study, from its plan or the reason why it has none.
pub fn of(plan: &Result<Plan, Failure>, text: &str) -> Needs {
    let plan = match plan {
        Ok(plan) => plan,
        Err(failure) => {
            let lacks = vec![failure.first_line()];
            // Without a plan, the text says where the ends would run.
            let is_isolated = ["vm:", "place: vm", "container"].iter().any(|word| text.contains(word));
            let group = if is_isolated { Group::Isolated } else { Group::OneMachine };
            return Needs { length: None, conditions: 0, possible: 0, lacks, group };
        }
    };
    let mut lacks: Vec<String> = Vec::new();
    let mut group = Group::OneMachine;
    for spec in plan.conditions.iter().map(|c| &c.spec) {
        for place in [&spec.ping.place, &spec.pong.place] {
            let (of, need) = of_place(place);
            group = if of as u8 > group as u8 { of } else { group };
            lacks.extend(need.map(str::to_owned).filter(|need| !lacks.contains(need)));
        }
    }
    // Other reasons are limits of drivers, which every machine has.
    let is_missing = |reason: &String| {
        ["install", "there is no program", "this host has no"].iter().any(|word| reason.contains(word))
    };
    let reasons = plan.conditions.iter().filter_map(|c| c.not_possible.clone()).filter(is_missing);
    let of_labs = plan.conditions.iter().filter(|c| c.not_possible.is_none() && group == Group::OneMachine);
    let of_labs = of_labs.flat_map(|c| LabSpec::from(&c.spec).check()).map(|lack| lack.what);
    for lack in reasons.chain(of_labs) {
        if !lacks.contains(&lack) {
            lacks.push(lack);
        }
    }
    lacks.truncate(3);
    Needs {
        length: Some(controller::expected_time(plan)),
        conditions: plan.conditions.len(),
        possible: plan.conditions.iter().filter(|c| c.not_possible.is_none()).count(),
        lacks,
        group,
    }
}

/// The group of a place, and what it needs.
fn of_place(place: &PlaceSpec) -> (Group, Option<&'static str>) {
    match place {
        PlaceSpec::Ssh(_) => (Group::SeveralMachines, Some("needs a second host that ssh reaches")),
        PlaceSpec::Domain(_) => (Group::Isolated, Some("needs a libvirt domain")),
        PlaceSpec::Pod(_) if cfg!(feature = "pods") => (Group::SeveralMachines, Some("needs a Kubernetes cluster")),
        PlaceSpec::Pod(_) => (
            Group::SeveralMachines,
            Some("needs a Kubernetes cluster, and a build of Tailbound with the feature `pods`"),
        ),
        PlaceSpec::Vm(_) => (Group::Isolated, Some("needs QEMU (package qemu-system-x86)")),
        PlaceSpec::Container(_) => (Group::Isolated, Some("needs podman or containerd, and an image of Tailbound")),
        _ => (Group::OneMachine, None),
    }
}
