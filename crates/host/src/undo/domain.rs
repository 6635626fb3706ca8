//! Domains of libvirt: pins put back, and those shut off again that were started.

use super::Undone;
use crate::libvirt::{Virsh, is_qemu_of};
use crate::process::{is_alive, process_id};
use std::io;
use std::time::{Duration, Instant};
use tailbound_model::{CpuList, DomainPin, ProcessId};

/// A domain of the journal.
pub(super) struct Known<'a> {
    pub virsh: Virsh,
    pub name: &'a str,
    pub uuid: &'a str,
}

/// Puts CPUs back, if the domain still is the process that was pinned: a pin ends with it.
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
        _ => Ok(Undone::Did(format!("pinned {pin} of domain {name} to CPU {before} again"))),
    }
}

/// How long after it was asked for a domain may have begun to count as started by that. Probing KVM takes libvirt minutes
/// where it does not work.
const STARTING: Duration = Duration::from_secs(180);

/// Shuts a domain off that was started at `asked_ns`.
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
        // It was to be started when the run was killed.
        None => match find(uuid) {
            None => return Ok(Undone::AlreadyGone),
            Some((process, began)) if (0..STARTING.as_nanos() as i64).contains(&(began - asked_ns)) => process,
            Some(_) => {
                return Ok(Undone::LeftAlone(format!(
                    "domain {name} runs, and did not begin when this run asked for it: somebody else started it, so it stays"
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
        _ => Ok(Undone::Did(format!("ended domain {name}: it did not shut down within {} s", patience.as_secs()))),
    }
}

/// The QEMU of a domain, and when it began on the clock of the journal.
fn find(uuid: &str) -> Option<(ProcessId, i64)> {
    let all = std::fs::read_dir("/proc").ok()?.flatten();
    let mut pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let process = process_id(pids.find(|pid| is_qemu_of(*pid, uuid))?).ok()?;
    // SAFETY: sysconf takes a constant and touches no memory of ours.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1);
    // A tick is 10 ms: a start within the same one is not before it. Time in suspend, which only start times count, makes
    // it later: then it is left alone.
    Some((process, (process.start_ticks as i64 + 1) * (1_000_000_000 / per_second)))
}
