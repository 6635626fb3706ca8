//! Finds the host settings that a knob of a study refers to.

use super::error::KnobError;
use super::file::FileSetting;
use super::latency::LatencySetting;
use super::place::Place;
use super::setting::Setting;
use super::{governor, irq, kthread, nic, queue, quota};
use crate::process::group_dirs;
use std::path::Path;
use tailbound_model::{KVM_HALT_POLL, KnobSpec};

/// Finds all host settings of a knob in a place (the host, or the network namespace of an end).
///
/// # Errors
/// No setting that the knob refers to exists in this place.
pub(super) fn find(spec: &KnobSpec, place: &Place) -> Result<Vec<Box<dyn Setting>>, KnobError> {
    match spec {
        KnobSpec::Sysctl { name, .. } => Ok(vec![Box::new(FileSetting::sysctl(name, place.id()))]),
        KnobSpec::Governor { cpus, governor } => {
            governor::find(Path::new(governor::POLICIES), cpus.as_ref(), governor, &spec.key())
        }
        KnobSpec::IrqAffinity { irq, .. } => irq::find(irq, &spec.key()),
        KnobSpec::KernelThreads { threads, scheduling } => kthread::find(threads, scheduling, &spec.key()),
        KnobSpec::Nic { interface, setting, value } => nic::find(interface, *setting, *value, place, &spec.key()),
        KnobSpec::Queue { interface, kind } => queue::find(interface, kind, place, &spec.key()),
        KnobSpec::KvmHaltPoll { .. } => Ok(vec![Box::new(FileSetting::of(KVM_HALT_POLL.into(), None))]),
        KnobSpec::CpuQuota => quota::find(&group_dirs(std::process::id() as i32, "cpu"), &spec.key()),
        KnobSpec::CpuDmaLatency { .. } => Ok(vec![Box::new(LatencySetting::default())]),
    }
}

/// The places in which a knob is set: for a network setting, the network namespaces of the ends that have the setting;
/// otherwise the caller's namespace.
pub(super) fn places(spec: &KnobSpec, ends: &[Place]) -> Vec<Place> {
    let mut chosen: Vec<Place> = Vec::new();
    for end in ends.iter().filter(|_| spec.is_of_network()) {
        if !chosen.iter().any(|known| known.is_same(end)) && has(spec, end) {
            chosen.push(end.clone());
        }
    }
    if chosen.is_empty() { vec![Place::own()] } else { chosen }
}

fn has(spec: &KnobSpec, end: &Place) -> bool {
    match find(spec, end) {
        // In a namespace, settings of the whole machine are missing or read-only.
        Ok(found) if matches!(spec, KnobSpec::Sysctl { .. }) => {
            end.inside(|| found.iter().try_for_each(|s| s.may_write())).is_ok()
        }
        found => !matches!(found, Err(KnobError::Absent { .. })),
    }
}
