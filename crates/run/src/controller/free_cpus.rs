//! The CPUs of the host of an agent that no end of the trial can use.

use std::collections::BTreeSet;
use tailbound_model::{CpuList, EndSpec, HandOff, PlaceSpec, RoleScheduling, TrialSpec};

/// Those of `cpus`, the CPUs of an agent at the place `own`, that no end of the trial can use. There is none if an end or a guest on
/// the same machine can use any CPU.
pub(super) fn free(spec: &TrialSpec, own: &PlaceSpec, cpus: &CpuList) -> CpuList {
    let mut free = cpus.0.clone();
    for end in [&spec.ping, &spec.pong] {
        match used(end, own) {
            Some(used) => free.retain(|cpu| !used.contains(cpu)),
            None => free.clear(),
        }
    }
    if let HandOff::Thread { cpus: Some(second) } = spec.measure.hand_off() {
        free.retain(|cpu| !second.0.contains(cpu));
    }
    CpuList(free)
}

/// CPUs of the machine of the place `own` that an end can use; `None` = any CPU.
fn used(end: &EndSpec, own: &PlaceSpec) -> Option<BTreeSet<u32>> {
    if end.place == *own || !end.place.is_remote() && !own.is_remote() {
        return end.scheduling.cpus.as_ref().map(|_| end.scheduling.named_cpus());
    }
    let threads: &[RoleScheduling] = match &end.place {
        PlaceSpec::Vm(guest) if !own.is_remote() => &guest.vcpu_threads,
        PlaceSpec::Domain(guest) if !own.is_remote() => &guest.vcpu_threads,
        _ => return Some(BTreeSet::new()),
    };
    let cpus: Option<Vec<&CpuList>> = threads.iter().map(|thread| thread.cpus.as_ref()).collect();
    let cpus = cpus.filter(|cpus| !cpus.is_empty())?;
    Some(cpus.into_iter().flat_map(|cpus| cpus.0.iter().copied()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The free CPUs among 0 to 3, for an agent at the place of an end.
    fn free_of(study: &str, at_ping: bool) -> String {
        let text = format!("study: s\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 200 }} }}\ndriver: udp\n{study}");
        let plan = tailbound_study::load_str("s.yaml", &text, Path::new(""), &[]).unwrap_or_else(|e| panic!("{e}"));
        let spec = &plan.conditions[0].spec;
        let own = if at_ping { &spec.ping.place } else { &spec.pong.place };
        free(spec, own, &CpuList((0..4).collect())).to_string()
    }

    #[test]
    fn a_cpu_is_free_if_every_end_on_the_machine_has_other_cpus() {
        assert_eq!(free_of("ends: { ping: { cpus: \"0\" }, pong: { cpus: \"1-2\" } }\n", true), "3");
        assert_eq!(free_of("ends: { ping: { cpus: \"0\" } }\n", true), "");
        assert_eq!(free_of("", false), "");
    }

    #[test]
    fn an_end_on_another_machine_uses_no_cpu_of_this_one_but_its_guest_does() {
        let study =
            |place: &str| format!("ends: {{ ping: {{ cpus: \"0\", place: process }}, pong: {{ place: {place} }} }}\n");
        let ssh = study("{ ssh: { host: one, address: 192.0.2.1 } }");
        assert_eq!([true, false].map(|at_ping| free_of(&ssh, at_ping)), ["1-3", ""]);
        assert_eq!(free_of(&study("{ vm: {} }"), true), "");
        assert_eq!(free_of(&study("{ vm: { vcpu_threads: [{ cpus: \"1\" }] } }"), true), "2-3");
    }
}
