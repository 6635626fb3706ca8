//! The CPUs of the host of an agent that no end of the trial can use.

use std::collections::BTreeSet;
use tailbound_model::{CpuList, EndSpec, HandOff, PlaceSpec, RoleScheduling, TrialSpec};

/// The CPUs among `cpus`, which an agent at the place `own` may use, that no end of the trial can use. There is none if an end or a
/// guest on the same machine can use any CPU.
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
    let threads: Vec<&RoleScheduling> = match &end.place {
        // The threads of neighbours can use any CPU.
        PlaceSpec::Vm(guest) if !own.is_remote() && guest.neighbours > 0 => return None,
        // The emulator or vhost carries the packets.
        PlaceSpec::Vm(guest) if !own.is_remote() => {
            guest.vcpu_threads.iter().chain([&guest.emulator]).chain(&guest.vhost).collect()
        }
        PlaceSpec::Domain(guest) if !own.is_remote() => guest.vcpu_threads.iter().collect(),
        _ => return Some(BTreeSet::new()),
    };
    let cpus: Option<Vec<&CpuList>> = threads.into_iter().map(|thread| thread.cpus.as_ref()).collect();
    let cpus = cpus.filter(|cpus| !cpus.is_empty())?;
    Some(cpus.into_iter().flat_map(|cpus| cpus.0.iter().copied()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use tailbound_model::VmSpec;

    /// A trial whose ends have these CPUs.
    fn spec(ends: &str) -> TrialSpec {
        let text = format!("study: s\nquestion: q\nmeasure: {{ ping-pong: {{ slots: 200 }} }}\ndriver: udp\n{ends}");
        let plan = tailbound_study::load_str("s.yaml", &text, Path::new(""), &[]).unwrap_or_else(|e| panic!("{e}"));
        plan.conditions[0].spec.clone()
    }

    /// The free CPUs among 0 to 3.
    fn free_of(spec: &TrialSpec, own: &PlaceSpec) -> String {
        free(spec, own, &CpuList((0..4).collect())).to_string()
    }

    #[test]
    fn a_cpu_is_free_if_every_end_on_the_machine_has_other_cpus() {
        let here = |ends: &str| {
            let spec = spec(ends);
            free_of(&spec, &spec.ping.place)
        };
        assert_eq!(here("ends: { ping: { cpus: \"0\" }, pong: { cpus: \"1-2\" } }\n"), "3");
        assert_eq!(here("ends: { ping: { cpus: \"0\" } }\n"), "");
        assert_eq!(here(""), "");
    }

    #[test]
    fn an_end_on_another_machine_uses_no_cpu_of_this_one_but_its_guest_does() {
        let mut spec = spec("ends: { ping: { cpus: \"0\" }, pong: { cpus: \"1\" } }\n");
        let on = |cpu: u32| RoleScheduling { policy: None, cpus: Some(CpuList::one(cpu)) };
        let guest = |vcpu: Option<u32>, emulator: Option<u32>, vhost: Option<u32>, neighbours: u32| {
            let (vcpu_threads, emulator) = (vcpu.map(on).into_iter().collect(), emulator.map(on).unwrap_or_default());
            let vhost = vhost.map(on);
            PlaceSpec::Vm(Box::new(VmSpec { vcpu_threads, emulator, vhost, neighbours, ..VmSpec::default() }))
        };
        let guests = [
            (guest(None, None, None, 0), ""),
            (guest(Some(2), None, None, 0), ""),
            (guest(Some(2), Some(2), None, 0), "1,3"),
            (guest(Some(2), Some(2), Some(3), 0), "1"),
            (guest(Some(2), Some(2), None, 1), ""),
        ];
        for (guest, at_ping) in guests {
            spec.pong.place = guest;
            let free = [&spec.ping.place, &spec.pong.place].map(|own| free_of(&spec, own));
            assert_eq!(free, [at_ping, "0,2-3"]);
        }
    }
}
