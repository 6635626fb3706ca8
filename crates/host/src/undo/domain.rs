//! Undoes changes to libvirt domains: restores pins, and shuts off libvirt domains that were started.

use super::outcome::Undone;
use crate::process::{is_alive, process_id};
use crate::virsh::{Virsh, is_qemu_of};
use std::io;
use std::time::{Duration, Instant};
use tailbound_model::{CpuList, DomainPin, ProcessId};

/// A libvirt domain to which an entry of the journal refers.
pub(super) struct Known<'a> {
    pub virsh: Virsh,
    pub name: &'a str,
    pub uuid: &'a str,
}

/// Restores the CPUs to which a thread, or a group of threads, of a libvirt domain was pinned before. If the QEMU
/// process of the libvirt domain has ended, nothing is left to restore.
pub(super) fn restore_pin(
    domain: &Known<'_>,
    process: ProcessId,
    pin: DomainPin,
    before: &CpuList,
    set: &CpuList,
) -> io::Result<Undone> {
    if !is_alive(process) || !is_qemu_of(process.pid, domain.uuid) {
        return Ok(Undone::AlreadyGone);
    }
    let (virsh, name, uuid) = (&domain.virsh, domain.name, domain.uuid);
    let read = || virsh.pinned(uuid, pin).map_err(io::Error::other);
    let Some(now) = read()? else { return Ok(Undone::AlreadyGone) };
    if now == *before {
        return Ok(Undone::AlreadyGone);
    }
    if now != *set {
        return Ok(Undone::LeftAlone(format!(
            "{pin} of domain {name} is pinned to CPU {now} now, not to CPU {set} as this run did it: somebody else changed \
             it, so it stays (it was CPU {before} before)"
        )));
    }
    virsh.pin(uuid, pin, before).map_err(io::Error::other)?;
    match read()? {
        Some(now) if now != *before => Err(io::Error::other(format!("{pin} of domain {name} still is on CPU {now}"))),
        _ => Ok(Undone::Did(format!("{pin} of domain {name} was pinned to CPU {before} again"))),
    }
}

/// Longest time between the request to start a libvirt domain and the start of its process. On hosts where KVM does not
/// work, libvirt needs minutes to probe KVM.
const STARTING: Duration = Duration::from_secs(180);

/// Shuts off a libvirt domain if its process was started by the request made at `asked_ns`.
pub(super) fn stop(
    domain: &Known<'_>,
    process: Option<ProcessId>,
    asked_ns: i64,
    patience: Duration,
) -> io::Result<Undone> {
    let (virsh, name, uuid) = (&domain.virsh, domain.name, domain.uuid);
    let process = match process {
        Some(process) if is_alive(process) && is_qemu_of(process.pid, uuid) => process,
        Some(_) => return Ok(Undone::AlreadyGone),
        // The run was killed while the libvirt domain was being started.
        None => match find(uuid) {
            None => return Ok(Undone::AlreadyGone),
            Some((process, began)) if (0..STARTING.as_nanos() as i64).contains(&(began - asked_ns)) => process,
            Some(_) => {
                return Ok(Undone::LeftAlone(format!(
                    "domain {name} runs, but did not start when this run requested it: somebody else started it, so it stays"
                )));
            }
        },
    };
    virsh.ask(&["shutdown", uuid]).map_err(io::Error::other)?;
    let until = Instant::now() + patience;
    while is_alive(process) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
    if !is_alive(process) {
        return Ok(Undone::Did(format!("shut domain {name} off")));
    }
    match virsh.ask(&["destroy", uuid, "--graceful"]) {
        Err(error) if is_alive(process) => Err(io::Error::other(error)),
        _ => Ok(Undone::Did(format!(
            "domain {name} was ended, because it did not shut down within {} s",
            patience.as_secs()
        ))),
    }
}

/// The QEMU process of a libvirt domain, and its start time on the clock of the journal in ns.
fn find(uuid: &str) -> Option<(ProcessId, i64)> {
    let all = std::fs::read_dir("/proc").ok()?.flatten();
    let mut pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let process = process_id(pids.find(|pid| is_qemu_of(*pid, uuid))?).ok()?;
    // The end of the tick is used, so that a start within the tick of the request is not before the request. Start
    // times include time in suspend; then the start seems later, and the libvirt domain is left alone.
    Some((process, (process.start_ticks as i64 + 1) * crate::clock::tick_ns() as i64))
}
