//! What becomes of the priority of the messages behind the interfaces of the user by which they are sent.

use tailbound_gates::{SendingInterface, priority_behind, priority_of_messages};
use tailbound_host::interface::InterfaceFacts;
use tailbound_lab::LabSpec;
use tailbound_model::{Severity, TrialSpec, Warning};

/// Warnings and notes about the priority of the messages of a trial behind the interfaces of the user by which they are sent on this
/// host. Below a VLAN or macvlan, the interface that carries it counts too.
pub fn priorities_behind(spec: &TrialSpec) -> Vec<Warning> {
    let priority = priority_of_messages(spec);
    if priority == 0 {
        return Vec::new();
    }
    let found = LabSpec::from(spec).user_interfaces().into_iter().filter_map(|(end, facts)| {
        let has_gates = if end == "ping" { spec.ping.gates.is_some() } else { spec.pong.gates.is_some() };
        let found = match &facts {
            Ok(facts) => of_interface(facts, has_gates, priority),
            Err(problem) => {
                let what = format!("what becomes of the priority {priority} is not known: {}", problem.what);
                Some(Warning::new("interface_unknown", Severity::Note, what, problem.remedy.clone()))
            }
        };
        found.map(|warning| warning.at_end(end))
    });
    found.collect()
}

fn of_interface(facts: &InterfaceFacts, has_gates: bool, priority: u8) -> Option<Warning> {
    let own = (&facts.name, &facts.kind);
    let mut all = std::iter::once(own).chain(facts.below.iter().map(|(name, kind)| (name, kind)));
    all.find_map(|(name, kind)| {
        let kind = kind.as_deref().unwrap_or("device");
        priority_behind(SendingInterface { name, kind, has_gates }, priority)
    })
}
