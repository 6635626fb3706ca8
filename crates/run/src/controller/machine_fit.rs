//! Checks whether this machine can run a plan, before anything is changed on a host.

use super::cpu_plan::{is_here, spare, starved};
use super::places::{DriverFiles, guest_lack};
use super::program_path::is_program;
use super::{RunError, tool, trial_length};
use crate::hot::{Memory, MemoryKind};
use crate::live_collect::ring_cells;
use tailbound_lab::LabSpec;
use tailbound_model::*;

/// Finds the first thing that this machine lacks for the labs, settings, memory or guests of the plan. Checking guests
/// takes a moment, because their boot files are created, which contain the drivers of `driver_files`.
pub fn not_fit(plan: &Plan, driver_files: DriverFiles) -> Option<RunError> {
    for condition in plan.conditions.iter().filter(|c| c.not_possible.is_none()) {
        if let Some(lack) = LabSpec::from(&condition.spec).check().into_iter().next() {
            return Some(RunError::of(ExitCode::MachineNotFit, lack));
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
        if let Some(error) = available_bytes().and_then(|free| neighbours_lack(&condition.spec, free >> 20)) {
            return Some(error);
        }
    }
    guest_lack(plan, driver_files)
}

/// Marks the conditions whose guest controls a network card that this host cannot give to it as not possible, if another
/// condition of the plan needs no such card: one study then compares this path with others on machines with and without
/// such a card.
pub(super) fn leave_out_cards(plan: &mut Plan) {
    let has_card = |spec: &TrialSpec| match &spec.path {
        PathSpec::Existing { ping, pong } => ping.device.is_some() || pong.device.is_some(),
        _ => false,
    };
    if plan.conditions.iter().filter(|c| c.not_possible.is_none()).all(|c| has_card(&c.spec)) {
        return;
    }
    for condition in plan.conditions.iter_mut().filter(|c| c.not_possible.is_none() && has_card(&c.spec)) {
        condition.not_possible = LabSpec::from(&condition.spec).check().into_iter().next().map(|lack| lack.what);
    }
}

/// Makes the error for a load whose program does not exist, or for real-time loads on all CPUs.
fn load_lack(spec: &TrialSpec) -> Option<RunError> {
    for load in spec.loads.iter().filter(|load| is_here(spec, load)) {
        if let LoadKind::Command(words) = &load.run
            && let Some(program) = words.first().filter(|program| !is_program(program))
        {
            let text = format!("the load `{}` cannot be started: there is no program `{program}`", load.run);
            return Some(RunError::new(ExitCode::MachineNotFit, text, "install the program, or write its full path"));
        }
    }
    let allowed = tailbound_host::allowed_cpus();
    let loaded = starved(spec);
    (!loaded.is_empty() && allowed.iter().all(|cpu| loaded.contains(cpu))).then(|| {
        let cpus = CpuList(allowed.into_iter().collect());
        RunError::new(
            ExitCode::MachineNotFit,
            format!(
                "real-time loads on all CPUs that may be used ({cpus}) leave no CPU for Tailbound itself, which has \
                 to end these loads"
            ),
            "leave a CPU without a real-time load",
        )
    })
}

/// Makes the error for a trial whose sample memory needs more than half of the free memory.
fn memory_lack(spec: &TrialSpec) -> Option<RunError> {
    if spec.has_tool() {
        return None;
    }
    let (slots, live) = (trial_length::slots(spec).0, spec.collect == Collect::Live);
    let bytes = if live {
        2 * Memory::bytes_for(MemoryKind::Sender, ring_cells(spec))
    } else {
        // As in `agent/trial.rs`: an eighth more echoes than slots.
        Memory::bytes_for(MemoryKind::Sender, slots) + Memory::bytes_for(MemoryKind::Echo, slots + slots / 8)
    };
    let free = available_bytes().filter(|free| bytes > free / 2)?;
    let (needed, free) = (bytes / 1_000_000, free / 1_000_000);
    let what = if live { "rate".into() } else { format!("trial of {slots} slots") };
    let remedy = if live {
        "ask for a lower rate or a shorter timeout"
    } else {
        "ask for fewer slots or a shorter duration and more repeats, or for `collect: live`, which stores samples \
         while it measures and needs a CPU for that"
    };
    let text = format!(
        "this {what} needs {needed} MB of sample memory, but only half of the {free} MB of free memory may be used"
    );
    Some(RunError::new(ExitCode::MachineNotFit, text, remedy))
}

/// Makes the error for guests that, with their neighbours, need more memory than the `free_mib` MiB of this host.
fn neighbours_lack(spec: &TrialSpec, free_mib: u64) -> Option<RunError> {
    let neighbours = LabSpec::from(spec).neighbours();
    let mut guests: Vec<VmSpec> = neighbours.into_iter().map(|(_, guest)| guest).collect();
    let neighbours = guests.len();
    if neighbours == 0 {
        return None;
    }
    let mut places = vec![&spec.ping.place, &spec.pong.place];
    places.dedup();
    guests.extend(places.into_iter().filter_map(|place| match place {
        PlaceSpec::Vm(guest) => Some((**guest).clone()),
        _ => None,
    }));
    // Huge pages were reserved before.
    let needed: u64 = guests.iter().filter(|guest| !guest.huge_pages).map(|guest| u64::from(guest.memory_mib)).sum();
    let plural = if neighbours == 1 { "neighbour" } else { "neighbours" };
    let text = format!(
        "the guests of a trial with {neighbours} {plural} need {needed} MiB of memory, but {free_mib} MiB are available"
    );
    let remedy = "ask for fewer `neighbours`, or for less `memory` of the guest";
    (needed > free_mib).then(|| RunError::new(ExitCode::MachineNotFit, text, remedy))
}

/// Makes the error for `collect: live` without a CPU that is not measured: draining the rings needs such a CPU.
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

fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_that_need_more_memory_than_there_is_are_refused() {
        let text = "measure: ping-pong\ndriver: udp\nends: { ping: { place: netns }, pong: { place: { vm: { neighbours: 3 } } } }\n";
        let plan = tailbound_study::load_str("s.yaml", text, std::path::Path::new(""), &[]).unwrap();
        let spec = &plan.conditions[0].spec;
        assert!(neighbours_lack(spec, 2048).is_none());
        let error = neighbours_lack(spec, 2047).unwrap();
        insta::assert_snapshot!(error.problem, @"the guests of a trial with 3 neighbours need 2048 MiB of memory, but 2047 MiB are available; ask for fewer `neighbours`, or for less `memory` of the guest");
    }
}
