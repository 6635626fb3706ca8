//! Loads and attaches single BPF programs.

use aya::programs::tp_btf::BtfTracePointLink;
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, BtfError, Ebpf};
use std::os::fd::{FromRawFd, OwnedFd};

/// Loads the program with this name, for this tracepoint. Returns false if the kernel does not have the tracepoint.
///
/// # Errors
/// The kernel refuses the program; the text is the reason.
pub fn load(bpf: &mut Ebpf, program: &str, tracepoint: &str, btf: &Btf) -> Result<bool, String> {
    match find(bpf, program)?.load(tracepoint, btf) {
        Ok(()) => Ok(true),
        Err(ProgramError::Btf(BtfError::UnknownBtfTypeName { .. })) => Ok(false),
        Err(e) => Err(refusal(tracepoint, &e)),
    }
}

/// Why the kernel refuses a program for this trace point or function.
pub fn refusal(of: &str, error: &ProgramError) -> String {
    let ProgramError::LoadError { io_error, verifier_log } = error else { return chain(error) };
    // The last lines of the verifier's log, before its figures, say what it refused.
    let log = verifier_log.to_string();
    let is_figure =
        |line: &str| ["verification time ", "stack depth ", "processed "].iter().any(|name| line.starts_with(name));
    let last = log.lines().rfind(|line| !line.trim().is_empty() && !is_figure(line));
    let last = last.map(|line| format!(": {line}")).unwrap_or_default();
    format!("the kernel refuses the BPF program for {of}: {io_error}{last}")
}

/// Attaches programs that are loaded, in this order. Dropping the links detaches them.
///
/// # Errors
/// The kernel refuses; no program is attached then. The text is the reason.
pub fn attach_all(
    bpf: &mut Ebpf,
    programs: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<Vec<BtfTracePointLink>, String> {
    programs.into_iter().map(|program| attach(bpf, program.as_ref())).collect()
}

fn attach(bpf: &mut Ebpf, program: &str) -> Result<BtfTracePointLink, String> {
    let program = find(bpf, program)?;
    let id = program.attach().map_err(|e| chain(&e))?;
    program.take_link(id).map_err(|e| chain(&e))
}

fn find<'a>(bpf: &'a mut Ebpf, name: &str) -> Result<&'a mut BtfTracePoint, String> {
    let program = bpf.program_mut(name).ok_or_else(|| format!("the object has no program {name}"))?;
    program.try_into().map_err(|e: ProgramError| chain(&e))
}

/// Whether the kernel lets this process use BPF: it may make a map of a kind that always needs CAP_BPF.
pub fn permitted() -> std::io::Result<()> {
    const BPF_MAP_CREATE: libc::c_long = 0;
    const BPF_MAP_TYPE_QUEUE: u32 = 22;
    // The begin of `union bpf_attr` (linux/bpf.h): type, size of a key, size of a value, number of entries.
    let attributes: [u32; 4] = [BPF_MAP_TYPE_QUEUE, 0, 4, 1];
    let size = size_of_val(&attributes);
    // SAFETY: attributes with their size; the kernel takes members that are not given as 0.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, BPF_MAP_CREATE, attributes.as_ptr(), size) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    drop(unsafe { OwnedFd::from_raw_fd(fd as i32) });
    Ok(())
}

/// Number of the PID namespace of this process (`pid_namespace` of the C files): 0 for the first one, whose thread ids are
/// the kernel's own, and if the number is not known.
pub fn pid_namespace() -> u32 {
    /// Number of the first PID namespace (linux/proc_ns.h).
    const FIRST: u32 = 0xeffffffc;
    let link = std::fs::read_link("/proc/self/ns/pid").ok();
    let number = link.and_then(|link| link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok());
    number.filter(|number| *number != FIRST).unwrap_or(0)
}

/// Period of the scheduler's tick, ns (`tick_ns` of the C files); 0 if it is not known, or if CPUs that run threads can be
/// without ticks (parameter `nohz_full` of the kernel).
pub fn tick_ns() -> u64 {
    let without = std::fs::read_to_string("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
    if without.contains(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    let mut period = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // The kernel advances this clock at each tick.
    // SAFETY: room for the answer.
    let done = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut period) };
    if done == 0 && period.tv_sec == 0 { period.tv_nsec as u64 } else { 0 }
}

/// Text of an error with its causes.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
