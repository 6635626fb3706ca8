//! Does the plan fit this machine and these drivers? Asked before anything is made.

use super::remote::{DriverFiles, guest_lack};
use super::{RunError, tool};
use crate::hot::{Memory, MemoryKind};
use crate::live::ring_cells;
use crate::measure::DriverSource;
use crate::vendor;
use std::collections::{BTreeMap, BTreeSet};
use tailbound_lab::LabSpec;
use tailbound_model::*;
use tailbound_study::nearest;

/// Marks conditions that a driver cannot run as not possible; an error when none is left, or a driver cannot be had.
///
/// # Errors
/// A driver that is not found, or a plan of which nothing can run.
pub fn check_drivers(plan: &mut Plan, drivers: DriverSource) -> Result<(), RunError> {
    let mut found = BTreeMap::new();
    for condition in plan.conditions.iter().filter(|c| c.not_possible.is_none()) {
        for name in condition.spec.drivers().filter(|d| d.tool.is_none()).map(|d| &d.name) {
            if found.contains_key(name) {
                continue;
            }
            let driver = drivers(name).map_err(|e| {
                RunError::new(
                    ExitCode::BadInput,
                    format!("driver `{name}`: {e}"),
                    "`tailbound driver list` shows what can be used",
                )
            })?;
            found.insert(name.clone(), driver);
        }
    }
    let mut first = None;
    for condition in &mut plan.conditions {
        let of_driver = |spec: TrialSpec| impossible(&spec, found.get(&spec.driver.name)?.description());
        let reason = match condition.spec.has_tool() {
            true => tool::impossible(&condition.spec),
            false => of_each_end(&condition.spec).find_map(of_driver),
        };
        if let Some(reason) = reason.filter(|_| condition.not_possible.is_none()) {
            first.get_or_insert_with(|| reason.clone());
            condition.not_possible = Some(reason);
        }
    }
    let possible: Vec<bool> = plan.conditions.iter().map(|c| c.not_possible.is_none()).collect();
    plan.trials.retain(|t| possible[t.condition]);
    for (id, trial) in plan.trials.iter_mut().enumerate() {
        trial.id = id;
    }
    if plan.trials.is_empty() {
        let reason = first.or_else(|| plan.conditions.iter().find_map(|c| c.not_possible.clone()));
        let text = format!("no condition of the study can be run: {}", reason.unwrap_or_else(|| "it has none".into()));
        return Err(RunError::new(ExitCode::BadInput, text, ""));
    }
    Ok(())
}

/// Why a driver cannot run a trial; `None` = it can, or the driver cannot be had, which is another error.
pub fn driver_limit(spec: &TrialSpec, drivers: DriverSource) -> Option<String> {
    if spec.has_tool() {
        return tool::impossible(spec);
    }
    of_each_end(spec).find_map(|spec| impossible(&spec, drivers(&spec.driver.name).ok()?.description()))
}

/// The trial as the driver of each end sees it.
fn of_each_end(spec: &TrialSpec) -> impl Iterator<Item = TrialSpec> {
    std::iter::once(spec.clone()).chain(spec.pong_driver.is_some().then(|| spec.of_pong()))
}

/// The ends that have the driver which this view of the trial names.
fn ends_of(spec: &TrialSpec) -> impl Iterator<Item = &EndSpec> {
    let of_pong = spec.pong_driver.as_ref().is_none_or(|d| *d == spec.driver);
    let of_ping = spec.pong_driver.is_none() || !of_pong;
    [(of_ping, &spec.ping), (of_pong, &spec.pong)].into_iter().filter_map(|(has, end)| has.then_some(end))
}

fn impossible(spec: &TrialSpec, driver: &tailbound_driver::Description) -> Option<String> {
    let limit = driver.limits.max_payload_bytes;
    if spec.message_octets() > limit && spec.message_octets() > spec.payload.0 {
        let packed = Octets(spec.message_octets());
        return Some(format!("a message of {packed} is beyond the limit of driver {}, {limit} B", driver.name));
    }
    if spec.payload.0 > limit {
        return Some(format!("payload {} is beyond the limit of driver {}, {limit} B", spec.payload, driver.name));
    }
    if let Some(reason) = super::flow::lack(spec, driver) {
        return Some(reason);
    }
    if let Some(reason) = super::discovery::lack(spec, driver) {
        return Some(reason);
    }
    let (receive, hand_off) = (spec.measure.receive(), spec.measure.hand_off());
    let mode = crate::measure::driver_mode(receive);
    if !driver.receives(mode) {
        let has: Vec<_> = driver.receive_modes.iter().map(|m| m.name()).collect();
        return Some(format!(
            "driver {} has no receive mode `{}`; it has {}",
            driver.name,
            mode.name(),
            has.join(", ")
        ));
    }
    if spec.participants_of_session() > 1 && driver.option("participants").is_none() {
        return Some(format!(
            "driver {} has one participant for each session: two in one process cannot share it",
            driver.name
        ));
    }
    let scripted = spec.driver.options.get("clock").is_some_and(|c| c == "scripted");
    let one_thread = receive == ReceiveMode::Listener || spec.arrangement.is_some_and(|a| a.executors == 1);
    if scripted && spec.measure.flow().is_some() {
        return Some("a scripted clock stands still while a flow is sent as fast as it goes".into());
    }
    if scripted && (!one_thread || *hand_off != HandOff::None) {
        return Some("a scripted clock runs on one thread: receive mode listener or one executor, no hand_off".into());
    }
    if scripted && spec.collect == Collect::Live {
        return Some("a scripted clock outruns `collect: live`, which drains by the machine's clock".into());
    }
    if let Some(reason) = spec.loads.iter().find_map(|load| topic_lack(load, driver, scripted)) {
        return Some(reason);
    }
    if let Some(reason) =
        [&spec.ping, &spec.pong].into_iter().find_map(|end| roles_lack(&end.scheduling, &spec.measure, driver))
    {
        return Some(reason);
    }
    if let Some(reason) = ends_of(spec).find_map(|end| vendor::lack(&end.scheduling, &spec.driver, driver)) {
        return Some(reason);
    }
    let known: Vec<&str> = driver.options.iter().map(|o| o.key.as_str()).collect();
    if let Some(key) = spec.driver.options.keys().find(|k| !known.contains(&k.as_str())) {
        let near = nearest(key, known.iter().copied()).map_or_else(String::new, |n| format!("did you mean `{n}`? "));
        return Some(format!("driver {} has no option `{key}`; {near}it has {}", driver.name, known.join(" ")));
    }
    if let Some(reason) = driver.options.iter().find_map(|o| wrong_value(o, spec.driver.options.get(&o.key)?)) {
        return Some(format!("driver {}: {reason}", driver.name));
    }
    let policies: Vec<&str> = driver.qos.iter().map(|q| q.policy.as_str()).collect();
    if let Some(key) = spec.qos.keys().find(|k| !policies.contains(&k.as_str())) {
        let has = if policies.is_empty() { "none".into() } else { policies.join(" ") };
        let near = nearest(key, policies.iter().copied()).map_or_else(String::new, |n| format!("did you mean `{n}`? "));
        return Some(format!("driver {} has no QoS policy `{key}`; {near}it has {has}", driver.name));
    }
    let refused = |q: &&tailbound_driver::QosPolicy| {
        !q.open_ended && spec.qos.get(&q.policy).is_some_and(|value| !q.values.contains(value))
    };
    if let Some(q) = driver.qos.iter().find(refused) {
        let (value, has) = (&spec.qos[&q.policy], q.values.join(", "));
        return Some(format!("driver {} does not have {} `{value}`; it has {has}", driver.name, q.policy));
    }
    None
}

/// What keeps a driver from carrying a topic beside the measured ones.
fn topic_lack(load: &LoadSpec, driver: &tailbound_driver::Description, scripted: bool) -> Option<String> {
    let LoadKind::Topic(topic) = &load.run else { return None };
    let (name, limit) = (&driver.name, driver.limits.max_payload_bytes);
    if scripted {
        return Some(format!("the load `{}` runs in real time, and the clock of the trial is scripted", load.run));
    }
    if topic.payload.0 > limit {
        return Some(format!("the load `{}` is beyond the limit of driver {name}, {limit} B", load.run));
    }
    if !driver.receives(tailbound_driver::ReceiveMode::Block) {
        return Some(format!("the load `{}` is received by a blocking thread, and driver {name} has none", load.run));
    }
    None
}

/// What is wrong with the value of an option, as far as its type tells; the driver itself may refuse more.
fn wrong_value(option: &tailbound_driver::DriverOption, value: &str) -> Option<String> {
    use tailbound_driver::OptionType;
    let wanted = match option.kind {
        OptionType::Integer if value.trim().parse::<i64>().is_err() => "a whole number".to_owned(),
        OptionType::Number if value.trim().parse::<f64>().is_err() => "a number".to_owned(),
        OptionType::Bool if !matches!(value, "on" | "off") => "`on` or `off`".to_owned(),
        OptionType::Enum if !option.values.iter().any(|v| v == value) => {
            format!("one of {}", option.values.join(", "))
        }
        _ => return None,
    };
    Some(format!("option `{}` is `{value}`; it wants {wanted}", option.key))
}

/// A role that no thread of this driver and this measure has.
fn roles_lack(asked: &Scheduling, measure: &Measure, driver: &tailbound_driver::Description) -> Option<String> {
    let mut has = vec!["main", MIDDLEWARE, "other"];
    has.extend(driver.roles.iter().map(|r| r.role.as_str()));
    if matches!(measure.receive(), ReceiveMode::Block | ReceiveMode::Spin) {
        has.push("receive");
    }
    if *measure.hand_off() != HandOff::None {
        has.push("processing");
    }
    let role = asked.roles.keys().find(|role| !has.contains(&role.as_str()))?;
    has.sort_unstable();
    has.dedup();
    Some(format!("no thread of driver {} has the role `{role}` here; there are {}", driver.name, has.join(", ")))
}

/// What this machine lacks for the labs, the settings, the memory and the guests of the plan. Guests take a moment: what they
/// boot is made, and `driver_files` are the drivers in it.
pub fn not_fit(plan: &Plan, driver_files: DriverFiles) -> Option<RunError> {
    for condition in plan.conditions.iter().filter(|c| c.not_possible.is_none()) {
        if let Some(lack) = LabSpec::from(&condition.spec).check().into_iter().next() {
            return Some(RunError::new(ExitCode::MachineNotFit, lack.what, lack.mend));
        }
        if let Some(error) = tool::lack(&condition.spec).or_else(|| load_lack(&condition.spec)) {
            return Some(error);
        }
        if let Some(error) = super::knobs::lack(&condition.spec) {
            return Some(error);
        }
        if let Some(error) = memory_lack(&condition.spec).or_else(|| drain_lack(plan, &condition.spec)) {
            return Some(error);
        }
    }
    guest_lack(plan, driver_files)
}

/// A program that is not there, and real-time loads on every CPU.
fn load_lack(spec: &TrialSpec) -> Option<RunError> {
    for load in spec.loads.iter().filter(|load| is_here(spec, load)) {
        if let LoadKind::Command(words) = &load.run
            && let Some(program) = words.first().filter(|program| !is_program(program))
        {
            let text = format!("the load `{}` cannot be started: there is no program `{program}`", load.run);
            return Some(RunError::new(ExitCode::MachineNotFit, text, "install it, or write its full path"));
        }
    }
    let allowed = tailbound_host::allowed_cpus();
    let loaded = starved(spec);
    (!loaded.is_empty() && allowed.iter().all(|cpu| loaded.contains(cpu))).then(|| {
        let cpus = CpuList(allowed.into_iter().collect());
        RunError::new(
            ExitCode::MachineNotFit,
            format!(
                "real-time loads on all CPUs that may be used ({cpus}) leave none for Tailbound itself, which ends them"
            ),
            "leave a CPU without a real-time load",
        )
    })
}

/// On PATH, or a path itself, and executable.
pub(super) fn is_program(name: &str) -> bool {
    use nix::unistd::{AccessFlags, access};
    let is_file = |path: &std::path::Path| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    if name.contains('/') {
        return is_file(name.as_ref());
    }
    std::env::var_os("PATH").is_some_and(|dirs| std::env::split_paths(&dirs).any(|dir| is_file(&dir.join(name))))
}

/// CPUs on which a real-time load may keep everything else away.
fn starved(spec: &TrialSpec) -> BTreeSet<u32> {
    let loads = spec.loads.iter().filter(|l| is_here(spec, l) && l.scheduling.policy.is_some_and(|p| p.starves()));
    loads.filter_map(|l| l.scheduling.cpus.as_ref()).flat_map(|c| &c.0).copied().collect()
}

/// Sample memory takes at most half of what is free.
fn memory_lack(spec: &TrialSpec) -> Option<RunError> {
    if spec.has_tool() {
        return None;
    }
    let (slots, live) = (super::length::slots(spec).0, spec.collect == Collect::Live);
    let octets = if live {
        2 * Memory::octets_for(MemoryKind::Sender, ring_cells(spec))
    } else {
        // As in `agent/trial.rs`: an eighth more echoes than slots.
        Memory::octets_for(MemoryKind::Sender, slots) + Memory::octets_for(MemoryKind::Echo, slots + slots / 8)
    };
    let free = available_octets().filter(|free| octets > free / 2)?;
    let (needed, free) = (octets / 1_000_000, free / 1_000_000);
    let what = if live { "rate".into() } else { format!("trial of {slots} slots") };
    let mend = if live {
        "ask for a lower rate or a shorter timeout"
    } else {
        "ask for fewer slots or a shorter duration, and for more repeats; or for `collect: live`, which stores samples \
         while it measures and needs a CPU for that"
    };
    let text =
        format!("this {what} needs {needed} MB of sample memory, and {free} MB are free; half of it may be used");
    Some(RunError::new(ExitCode::MachineNotFit, text, mend))
}

/// Draining a ring needs a CPU that is not measured.
fn drain_lack(plan: &Plan, spec: &TrialSpec) -> Option<RunError> {
    if spec.collect != Collect::Live {
        return None;
    }
    let allowed = tailbound_host::allowed_cpus();
    let unpinned = spec.ping.scheduling.cpus.is_none() || spec.pong.scheduling.cpus.is_none();
    let why = if unpinned {
        "the ends are not pinned and may run on any CPU".to_owned()
    } else if spare(plan, &allowed).is_empty() {
        format!("the ends are pinned to all of the CPUs that may be used, {}", CpuList(allowed.into_iter().collect()))
    } else {
        return None;
    };
    Some(RunError::new(
        ExitCode::MachineNotFit,
        format!("`collect: live` needs a CPU that is not measured: {why}"),
        "leave a CPU free with `cpus`, or leave `collect` out: samples then stay in memory until the end of the trial",
    ))
}

fn available_octets() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// CPUs for controller, agents and draining: those that no end and no load of the plan is pinned to, or else the last one
/// without a real-time load.
pub(super) fn housekeeping(plan: &Plan, allowed: &[u32]) -> CpuList {
    let spare = spare(plan, allowed);
    if !spare.is_empty() {
        return CpuList(spare);
    }
    let starved: BTreeSet<u32> = plan.conditions.iter().flat_map(|c| starved(&c.spec)).collect();
    let last = allowed.iter().rfind(|cpu| !starved.contains(cpu)).or(allowed.last());
    last.map_or_else(CpuList::default, |c| CpuList::one(*c))
}

/// CPUs for everything of another host that is not measured.
pub(super) fn housekeeping_of(named: &BTreeSet<u32>, allowed: &[u32]) -> CpuList {
    let spare: BTreeSet<u32> = allowed.iter().copied().filter(|cpu| !named.contains(cpu)).collect();
    match spare.is_empty() {
        true => allowed.last().map_or_else(CpuList::default, |cpu| CpuList::one(*cpu)),
        false => CpuList(spare),
    }
}

/// CPUs that ends and loads are pinned to at the place of an end: of both, where they share it.
pub(super) fn named_cpus_at(spec: &TrialSpec, ping: bool) -> BTreeSet<u32> {
    let place = if ping { &spec.ping.place } else { &spec.pong.place };
    let ends = [("ping", &spec.ping), ("pong", &spec.pong)].into_iter().filter(|(_, end)| end.place == *place);
    let of_end = |(name, end): (&'static str, &EndSpec)| {
        let loads = spec.loads.iter().filter(move |l| l.at == name).filter_map(|l| l.scheduling.cpus.clone());
        end.scheduling.named_cpus().into_iter().chain(loads.flat_map(|c| c.0)).collect::<Vec<u32>>()
    };
    ends.flat_map(of_end).collect()
}

/// The place of a load is on this host.
fn is_here(spec: &TrialSpec, load: &LoadSpec) -> bool {
    let end = if load.at == "ping" { &spec.ping } else { &spec.pong };
    !end.place.is_remote()
}

/// Each end has the CPUs of its own host; in pods and where none are named they are not known here.
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

/// Virtual CPUs of guests, with the ends that measure on this host beside them, on fewer CPUs of this host.
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
    let beside = if here > 0 {
        format!(" and {here} measured thread{}", if here == 1 { "" } else { "s" })
    } else {
        String::new()
    };
    (vcpus > 0 && vcpus + here > cpus.len())
        .then(|| format!("{vcpus} virtual CPUs{beside} share {} CPUs of this host", cpus.len()))
}

/// CPUs that no end and no load of the plan is pinned to.
fn spare(plan: &Plan, allowed: &[u32]) -> BTreeSet<u32> {
    let mut rest: BTreeSet<u32> = allowed.iter().copied().collect();
    for c in plan.conditions.iter().filter(|c| c.not_possible.is_none()) {
        let second = match c.spec.measure.hand_off() {
            HandOff::Thread { cpus: Some(cpus) } => Some(cpus),
            _ => None,
        };
        let ends = [&c.spec.ping, &c.spec.pong].into_iter().filter(|end| !end.place.is_remote());
        let ends = ends.flat_map(|end| end.scheduling.named_cpus());
        let places = [&c.spec.ping.place, &c.spec.pong.place];
        // The second thread of an end in a guest has CPUs of that guest.
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

/// What is asked for the threads of a virtual machine of this host.
fn guest_threads(place: &PlaceSpec) -> Vec<&RoleScheduling> {
    match place {
        PlaceSpec::Vm(guest) => guest.vcpu_threads.iter().chain(&guest.vhost).collect(),
        PlaceSpec::Domain(domain) => domain.vcpu_threads.iter().collect(),
        _ => Vec::new(),
    }
}

/// More measured threads than CPUs that they may use: the figures show function only.
pub(super) fn functional_only(plan: &Plan, allowed: &[u32]) -> Option<String> {
    let found = possible(plan).filter_map(|c| Some((c.id, crowded(&c.spec, allowed)?)));
    let (concerned, reasons): (Vec<usize>, Vec<String>) = found.unzip();
    Some(of_conditions(plan, reasons.first()?, &concerned))
}

fn possible(plan: &Plan) -> impl Iterator<Item = &Condition> {
    plan.conditions.iter().filter(|c| c.not_possible.is_none())
}

/// Conditions that have an end at a place.
pub(super) fn with_place(plan: &Plan, place: &PlaceSpec) -> Vec<usize> {
    possible(plan).filter(|c| c.spec.ping.place == *place || c.spec.pong.place == *place).map(|c| c.id).collect()
}

/// A reason that holds for some conditions names them.
pub(super) fn of_conditions(plan: &Plan, why: &str, concerned: &[usize]) -> String {
    const NAMED: usize = 4;
    let all = possible(plan).count();
    if concerned.len() == all {
        return why.to_owned();
    }
    let some = possible(plan).filter(|c| concerned.contains(&c.id)).take(NAMED).map(super::dry_run::levels);
    let some = some.collect::<Vec<_>>().join("; ");
    let more = match concerned.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    format!("{why} (of {} of {all} conditions: {some}{more})", concerned.len())
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
