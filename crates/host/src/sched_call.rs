//! System calls of the scheduler for policy and affinity of threads: sched_getattr, sched_setattr, sched_getaffinity,
//! sched_setaffinity.
//!
//! sched_getattr and sched_setattr are called by number, because glibc has wrappers for them only since 2.41.

use std::io;
use tailbound_model::{CpuList, Policy};

/// struct sched_attr of sched_setattr(2), first published version (48 bytes).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Attr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SCHED_DEADLINE: u32 = 6;
const FLAG_RESET_ON_FORK: u64 = 1;

/// Reads the policy and SCHED_RESET_ON_FORK of a thread; thread 0 is the caller.
pub fn get_policy(tid: i32) -> io::Result<(Policy, bool)> {
    let mut attr = Attr::default();
    // SAFETY: the kernel writes at most the given size into attr, which is that large.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &mut attr as *mut Attr, size_of::<Attr>() as u32, 0u32) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let policy = match attr.policy as i32 {
        libc::SCHED_OTHER => Policy::Other { nice: attr.nice },
        libc::SCHED_BATCH => Policy::Batch { nice: attr.nice },
        libc::SCHED_IDLE => Policy::Idle,
        libc::SCHED_FIFO => Policy::Fifo { priority: attr.priority },
        libc::SCHED_RR => Policy::Rr { priority: attr.priority },
        p if p as u32 == SCHED_DEADLINE => {
            Policy::Deadline { runtime_ns: attr.runtime, deadline_ns: attr.deadline, period_ns: attr.period }
        }
        other => return Err(io::Error::other(format!("scheduling policy {other} is not known to Tailbound"))),
    };
    Ok((policy, attr.flags & FLAG_RESET_ON_FORK != 0))
}

/// Sets the policy of a thread; thread 0 is the caller.
pub fn set_policy(tid: i32, policy: &Policy, reset_on_fork: bool) -> io::Result<()> {
    let mut attr = Attr {
        size: size_of::<Attr>() as u32,
        flags: if reset_on_fork { FLAG_RESET_ON_FORK } else { 0 },
        ..Attr::default()
    };
    match *policy {
        Policy::Other { nice } => (attr.policy, attr.nice) = (libc::SCHED_OTHER as u32, nice),
        Policy::Batch { nice } => (attr.policy, attr.nice) = (libc::SCHED_BATCH as u32, nice),
        Policy::Idle => attr.policy = libc::SCHED_IDLE as u32,
        Policy::Fifo { priority } => (attr.policy, attr.priority) = (libc::SCHED_FIFO as u32, priority),
        Policy::Rr { priority } => (attr.policy, attr.priority) = (libc::SCHED_RR as u32, priority),
        Policy::Deadline { runtime_ns, deadline_ns, period_ns } => {
            (attr.policy, attr.runtime, attr.deadline, attr.period) =
                (SCHED_DEADLINE, runtime_ns, deadline_ns, period_ns);
        }
    }
    // SAFETY: attr is a complete sched_attr that contains its own size; the kernel only reads it.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &attr as *const Attr, 0u32) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Size of a CPU mask in 64-bit words, for all CPUs that a [`CpuList`] can contain.
const MASK_WORDS: usize = 4096 / 64;

/// Reads the CPUs on which a thread may run; thread 0 is the caller.
pub fn get_affinity(tid: i32) -> io::Result<CpuList> {
    let mut mask = [0u64; MASK_WORDS];
    // SAFETY: the kernel writes at most the given number of bytes into mask.
    let written = unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, size_of_val(&mask), mask.as_mut_ptr()) };
    if written < 0 {
        return Err(io::Error::last_os_error());
    }
    let has = |cpu: &u32| mask[*cpu as usize / 64] & (1 << (cpu % 64)) != 0;
    Ok(CpuList((0..4096).filter(has).collect()))
}

/// Restricts a thread to CPUs; thread 0 is the caller. The kernel silently drops CPUs outside the cpuset, so callers
/// must read the affinity back.
pub fn set_affinity(tid: i32, cpus: &CpuList) -> io::Result<()> {
    let mut mask = [0u64; MASK_WORDS];
    for &cpu in &cpus.0 {
        let word = mask.get_mut(cpu as usize / 64).ok_or(io::ErrorKind::InvalidInput)?;
        *word |= 1 << (cpu % 64);
    }
    // SAFETY: the kernel reads the given number of bytes from mask.
    let result = unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, size_of_val(&mask), mask.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
