//! Computes on which CPUs a plan measures, which CPUs are left for Tailbound itself, and where measured threads share
//! CPUs.

use super::conditions::{possible, with_conditions};
use std::collections::BTreeSet;
use tailbound_model::*;

/// CPUs on which a real-time load may keep all other threads from running.
pub(super) fn starved(spec: &TrialSpec) -> BTreeSet<u32> {
    let loads = spec.loads.iter().filter(|l| is_here(spec, l) && l.scheduling.policy.is_some_and(|p| p.starves()));
    loads.filter_map(|l| l.scheduling.cpus.as_ref()).flat_map(|c| &c.0).copied().collect()
}

/// CPUs for the controller, the agents and draining: the CPUs to which no end and no load of the plan is pinned. If
/// there is no such CPU, this is the last CPU without a real-time load.
pub(super) fn housekeeping(plan: &Plan, allowed: &[u32]) -> CpuList {
    let spare = spare(plan, allowed);
    if !spare.is_empty() {
        return CpuList(spare);
    }
    let starved: BTreeSet<u32> = plan.conditions.iter().flat_map(|c| starved(&c.spec)).collect();
    let last = allowed.iter().rfind(|cpu| !starved.contains(cpu)).or(allowed.last());
    last.map_or_else(CpuList::default, |c| CpuList::one(*c))
}

/// CPUs of another host for everything on that host that is not measured.
pub(super) fn housekeeping_of(named: &BTreeSet<u32>, allowed: &[u32]) -> CpuList {
    let spare: BTreeSet<u32> = allowed.iter().copied().filter(|cpu| !named.contains(cpu)).collect();
    match spare.is_empty() {
        true => allowed.last().map_or_else(CpuList::default, |cpu| CpuList::one(*cpu)),
        false => CpuList(spare),
    }
}

/// CPUs to which ends and loads are pinned at the place of an end. If both ends share the place, these are the CPUs of
/// both ends.
pub(super) fn named_cpus_at(spec: &TrialSpec, ping: bool) -> BTreeSet<u32> {
    let place = if ping { &spec.ping.place } else { &spec.pong.place };
    let ends = [("ping", &spec.ping), ("pong", &spec.pong)].into_iter().filter(|(_, end)| end.place == *place);
    let of_end = |(name, end): (&'static str, &EndSpec)| {
        let loads = spec.loads.iter().filter(move |l| l.at == name).filter_map(|l| l.scheduling.cpus.clone());
        end.scheduling.named_cpus().into_iter().chain(loads.flat_map(|c| c.0)).collect::<Vec<u32>>()
    };
    ends.flat_map(of_end).collect()
}

/// True if the load runs on the host of the controller.
pub(super) fn is_here(spec: &TrialSpec, load: &LoadSpec) -> bool {
    let end = if load.at == "ping" { &spec.ping } else { &spec.pong };
    load.of_neighbours().is_none() && !end.place.is_remote()
}

/// CPUs to which no end and no load of the plan is pinned.
pub(super) fn spare(plan: &Plan, allowed: &[u32]) -> BTreeSet<u32> {
    let mut rest: BTreeSet<u32> = allowed.iter().copied().collect();
    for c in plan.conditions.iter().filter(|c| c.not_possible.is_none()) {
        let second = match c.spec.measure.hand_off() {
            HandOff::Thread { cpus: Some(cpus) } => Some(cpus),
            _ => None,
        };
        let ends = [&c.spec.ping, &c.spec.pong].into_iter().filter(|end| !end.place.is_remote());
        let ends = ends.flat_map(|end| end.scheduling.named_cpus());
        let places = [&c.spec.ping.place, &c.spec.pong.place];
        // The second thread of an end in a guest runs on CPUs of that guest.
        let second = second.into_iter().filter(|_| places.iter().any(|place| !place.is_remote()));
        let second = second.flat_map(|c| &c.0).copied();
        let guests = places.into_iter().flat_map(guest_threads).filter_map(|threads| threads.cpus.as_ref());
        let ends = ends.chain(guests.flat_map(|cpus| cpus.0.iter().copied()));
        let loads = c.spec.loads.iter().filter(|l| is_here(&c.spec, l)).filter_map(|l| l.scheduling.cpus.as_ref());
        for cpu in ends.chain(second).chain(loads.flat_map(|c| &c.0).copied()) {
            rest.remove(&cpu);
        }
    }
    rest
}

/// Scheduling that the study asks for threads of a virtual machine on this host.
fn guest_threads(place: &PlaceSpec) -> Vec<&RoleScheduling> {
    match place {
        PlaceSpec::Vm(guest) => guest.vcpu_threads.iter().chain(&guest.vhost).collect(),
        PlaceSpec::Domain(domain) => domain.vcpu_threads.iter().collect(),
        _ => Vec::new(),
    }
}

/// Reason why the figures of a plan say nothing about speed: there are more measured threads than CPUs that these
/// threads may use. `None` = there are enough CPUs.
pub(super) fn functional_only(plan: &Plan, allowed: &[u32]) -> Option<String> {
    let found = possible(plan).filter_map(|c| Some((c.id, crowded(&c.spec, allowed)?)));
    let (concerned, reasons): (Vec<usize>, Vec<String>) = found.unzip();
    Some(with_conditions(plan, reasons.first()?, &concerned))
}

fn crowded(spec: &TrialSpec, allowed: &[u32]) -> Option<String> {
    let (receive, hand_off) = (spec.measure.receive(), spec.measure.hand_off());
    let scripted = spec.driver.options.get("clock").is_some_and(|c| c == "scripted");
    let one_thread = scripted || spec.arrangement.is_some_and(|a| a.executors == 1);
    let ends = (spec.measure.publishers() + spec.measure.subscribers()) as usize;
    let far = spec.ping.place.is_remote() || spec.pong.place.is_remote();
    if far && spec.ping.place != spec.pong.place {
        return crowded_apart(spec, allowed).or_else(|| crowded_by_guests(spec, allowed));
    }
    let threads = if one_thread { 1 } else { ends + 2 * usize::from(*hand_off != HandOff::None) };
    let ends = [&spec.ping.scheduling, &spec.pong.scheduling];
    let mut cpus: BTreeSet<u32> = ends.iter().flat_map(|s| s.named_cpus()).collect();
    if let HandOff::Thread { cpus: Some(second) } = hand_off {
        cpus.extend(&second.0);
    }
    if ends.iter().any(|s| s.cpus.is_none()) {
        cpus.extend(allowed);
    }
    if threads > cpus.len() {
        let plural = if cpus.len() == 1 { "" } else { "s" };
        return Some(format!("{threads} measured threads share {} CPU{plural}", cpus.len()));
    }
    (receive == ReceiveMode::Spin && spec.rate != Rate::Max && cpus.len() < 3)
        .then(|| format!("spinning receive threads and senders share {} CPUs", cpus.len()))
}

/// If the ends are on different hosts, each end has the CPUs of its own host: returns the reason why measured threads
/// of one end share CPUs. The CPUs of another host are known to this function only if the study names them.
fn crowded_apart(spec: &TrialSpec, allowed: &[u32]) -> Option<String> {
    let (second, own) = match spec.measure.hand_off() {
        HandOff::None => (0, None),
        HandOff::Thread { cpus } => (1, cpus.as_ref()),
    };
    let sides = [(&spec.ping, "ping", spec.measure.publishers()), (&spec.pong, "pong", spec.measure.subscribers())];
    sides.into_iter().find_map(|(end, name, ends)| {
        if spec.measure.flow().is_some_and(|flow| flow.apart) {
            return None;
        }
        let mut cpus = end.scheduling.named_cpus();
        cpus.extend(own.iter().flat_map(|list| list.0.iter().copied()));
        if end.scheduling.cpus.is_none() {
            if end.place.is_remote() {
                return None;
            }
            cpus.extend(allowed);
        }
        let threads = ends as usize + second;
        let plural = if cpus.len() == 1 { "" } else { "s" };
        (threads > cpus.len())
            .then(|| format!("{threads} measured threads of the {name} end share {} CPU{plural}", cpus.len()))
    })
}

/// Reason why virtual CPUs of guests share CPUs: the virtual CPUs, together with the ends on this host, are more than
/// the CPUs of this host.
fn crowded_by_guests(spec: &TrialSpec, allowed: &[u32]) -> Option<String> {
    let guests: Vec<&VmSpec> = [&spec.ping.place, &spec.pong.place]
        .into_iter()
        .filter_map(|place| match place {
            PlaceSpec::Vm(guest) => Some(&**guest),
            _ => None,
        })
        .collect();
    let vcpus: usize = guests.iter().map(|guest| guest.vcpus as usize).sum();
    let here = [&spec.ping, &spec.pong].into_iter().filter(|end| !end.place.is_remote()).count();
    let pinned =
        |guest: &&&VmSpec| !guest.vcpu_threads.is_empty() && guest.vcpu_threads.iter().all(|t| t.cpus.is_some());
    let mut cpus: BTreeSet<u32> = guests
        .iter()
        .filter(pinned)
        .flat_map(|guest| &guest.vcpu_threads)
        .filter_map(|t| t.cpus.as_ref())
        .flat_map(|cpus| cpus.0.iter().copied())
        .collect();
    if here > 0 || !guests.iter().all(|guest| pinned(&guest)) {
        cpus.extend(allowed);
    }
    let with_ends = if here > 0 {
        format!(" and {here} measured thread{}", if here == 1 { "" } else { "s" })
    } else {
        String::new()
    };
    (vcpus > 0 && vcpus + here > cpus.len())
        .then(|| format!("{vcpus} virtual CPUs{with_ends} share {} CPUs of this host", cpus.len()))
}
