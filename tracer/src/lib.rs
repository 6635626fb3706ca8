//! The tracer: a shared object that records context switches, wake-ups, interrupts, ways of packets and calls of
//! ROS 2 by BPF.
//!
//! Input: CPUs, threads and ports. Output: records of `tailbound_abi::tb_trace`, `tb_packet` and `tb_call`, through
//! the table of functions that the entry point returns. The BPF programs are objects in this file, compiled from
//! `bpf/*.bpf.c` by `dev/bpf`. The tracer knows no record, study or message.

mod calls;
mod machine;
mod packets;
mod programs;

use calls::Calls;
use machine::Machine;
use packets::Packets;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tailbound_abi::{TB_TRACER_VERSION, tb_call_sink, tb_packet_sink, tb_trace_sink, tb_tracer};

static TABLE: tb_tracer = tb_tracer {
    version: TB_TRACER_VERSION,
    size: size_of::<tb_tracer>() as u32,
    load,
    attach,
    watch,
    read,
    fd,
    packets_attach,
    packets_watch,
    packets_read,
    packets_fd,
    packets_detach,
    detach,
    unload,
    calls_load,
    calls_attach,
    calls_read,
    calls_unload,
};

/// Entry point of the tracer: returns its table of functions.
#[unsafe(no_mangle)]
pub extern "C" fn tailbound_tracer_v1() -> *const tb_tracer {
    &TABLE
}

/// Runs a function; a panic or an error becomes a text at `error`.
///
/// # Safety
/// `error` has room for `len` bytes.
unsafe fn guarded<T>(error: *mut c_char, len: usize, run: impl FnOnce() -> Result<T, String>) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("the tracer panicked".into()));
    match result {
        Ok(value) => Some(value),
        Err(text) => {
            let bytes = text.as_bytes();
            let kept = bytes.len().min(len.saturating_sub(1));
            if len > 0 && !error.is_null() {
                // SAFETY: `kept` bytes and the NUL byte fit into `len` bytes by the contract of this function.
                unsafe {
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), error.cast(), kept);
                    error.add(kept).write(0);
                }
            }
            None
        }
    }
}

/// Everything that is loaded. The programs that follow packets are loaded when they are attached first.
struct Loaded {
    machine: Machine,
    packets: Option<Packets>,
    cpus: u32,
    bytes: u32,
}

/// The value behind a handle.
///
/// # Safety
/// `handle` comes from `load`, was not unloaded, and no other function uses it.
unsafe fn loaded<'a>(handle: *mut c_void) -> &'a mut Loaded {
    // SAFETY: by the contract of this function.
    unsafe { &mut *handle.cast() }
}

/// The programs of `bpf/machine.bpf.c` behind a handle.
///
/// # Safety
/// As for [`loaded`].
unsafe fn machine<'a>(handle: *mut c_void) -> &'a mut Machine {
    // SAFETY: by the contract of this function.
    &mut unsafe { loaded(handle) }.machine
}

unsafe extern "C" fn load(cpus: u32, bytes: u32, error: *mut c_char, len: usize) -> *mut c_void {
    // SAFETY: the caller gives room for `len` bytes.
    let machine = unsafe { guarded(error, len, || Machine::load(cpus, bytes)) };
    let loaded = machine.map(|machine| Loaded { machine, packets: None, cpus, bytes });
    loaded.map_or(std::ptr::null_mut(), |loaded| Box::into_raw(Box::new(loaded)).cast())
}

unsafe extern "C" fn attach(handle: *mut c_void, error: *mut c_char, len: usize) -> c_int {
    // SAFETY: the contract of the table of functions.
    let done = unsafe { guarded(error, len, || machine(handle).attach()) };
    done.map_or(-1, |()| 0)
}

unsafe extern "C" fn watch(
    handle: *mut c_void,
    cpus: *const u32,
    cpu_count: usize,
    threads: *const i32,
    thread_count: usize,
    error: *mut c_char,
    len: usize,
) -> c_int {
    let slice = |cpus: *const u32, n: usize| {
        // SAFETY: the caller gives `n` numbers, or none.
        if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(cpus, n) } }
    };
    // Thread ids are read as they are: they are never negative.
    let (cpus, threads) = (slice(cpus, cpu_count), slice(threads.cast(), thread_count));
    // SAFETY: the contract of the table of functions.
    let done = unsafe { guarded(error, len, || machine(handle).watch(cpus, threads)) };
    done.map_or(-1, |()| 0)
}

unsafe extern "C" fn read(handle: *mut c_void, sink: tb_trace_sink, ctx: *mut c_void) -> u64 {
    // SAFETY: the contract of the table of functions.
    let machine = unsafe { machine(handle) };
    // SAFETY: the caller's function takes its own `ctx` and a record.
    let read = || machine.read(|record| unsafe { sink(ctx, record) });
    catch_unwind(AssertUnwindSafe(read)).unwrap_or(0)
}

unsafe extern "C" fn fd(handle: *mut c_void) -> c_int {
    // SAFETY: the contract of the table of functions.
    unsafe { machine(handle) }.fd()
}

unsafe extern "C" fn packets_attach(handle: *mut c_void, error: *mut c_char, len: usize) -> c_int {
    // SAFETY: the contract of the table of functions.
    let Loaded { packets, cpus, bytes, .. } = unsafe { loaded(handle) };
    let attach = || match packets {
        Some(packets) => packets.attach(),
        None => packets.insert(Packets::load(*cpus, *bytes)?).attach(),
    };
    // SAFETY: the caller gives room for `len` bytes.
    unsafe { guarded(error, len, attach) }.map_or(-1, |()| 0)
}

unsafe extern "C" fn packets_watch(
    handle: *mut c_void,
    ports: *const u16,
    port_count: usize,
    error: *mut c_char,
    len: usize,
) -> c_int {
    // SAFETY: the caller gives `port_count` numbers, or none.
    let ports = if port_count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(ports, port_count) } };
    // SAFETY: the contract of the table of functions.
    let packets = unsafe { loaded(handle) }.packets.as_mut();
    let watch = || packets.map_or(Ok(()), |packets| packets.watch(ports));
    // SAFETY: the caller gives room for `len` bytes.
    unsafe { guarded(error, len, watch) }.map_or(-1, |()| 0)
}

unsafe extern "C" fn packets_read(handle: *mut c_void, sink: tb_packet_sink, ctx: *mut c_void) -> u64 {
    // SAFETY: the contract of the table of functions.
    let Some(packets) = unsafe { loaded(handle) }.packets.as_mut() else { return 0 };
    // SAFETY: the caller's function takes its own `ctx` and a record.
    let read = || packets.read(|packet| unsafe { sink(ctx, packet) });
    catch_unwind(AssertUnwindSafe(read)).unwrap_or(0)
}

unsafe extern "C" fn packets_fd(handle: *mut c_void) -> c_int {
    // SAFETY: the contract of the table of functions.
    unsafe { loaded(handle) }.packets.as_ref().map_or(-1, Packets::fd)
}

unsafe extern "C" fn packets_detach(handle: *mut c_void) {
    // SAFETY: the contract of the table of functions.
    let packets = &mut unsafe { loaded(handle) }.packets;
    let _ = catch_unwind(AssertUnwindSafe(|| packets.iter_mut().for_each(Packets::detach)));
}

unsafe extern "C" fn detach(handle: *mut c_void) {
    // SAFETY: the contract of the table of functions.
    let Loaded { machine, packets, .. } = unsafe { loaded(handle) };
    let detach = || {
        machine.detach();
        packets.iter_mut().for_each(Packets::detach);
    };
    let _ = catch_unwind(AssertUnwindSafe(detach));
}

unsafe extern "C" fn unload(handle: *mut c_void) {
    // SAFETY: `load` made this box, and by the contract the handle is not used any more.
    let loaded = unsafe { Box::from_raw(handle.cast::<Loaded>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(loaded)));
}

/// The programs of `bpf/calls.bpf.c` behind a handle.
///
/// # Safety
/// `handle` comes from `calls_load`, was not unloaded, and no other function uses it.
unsafe fn calls<'a>(handle: *mut c_void) -> &'a mut Calls {
    // SAFETY: by the contract of this function.
    unsafe { &mut *handle.cast() }
}

unsafe extern "C" fn calls_load(bytes: u32, error: *mut c_char, len: usize) -> *mut c_void {
    // SAFETY: the caller gives room for `len` bytes.
    let calls = unsafe { guarded(error, len, || Calls::load(bytes)) };
    calls.map_or(std::ptr::null_mut(), |calls| Box::into_raw(Box::new(calls)).cast())
}

unsafe extern "C" fn calls_attach(
    handle: *mut c_void,
    path: *const c_char,
    of: u32,
    error: *mut c_char,
    len: usize,
) -> c_int {
    // SAFETY: the caller gives a text with a NUL byte at its end.
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
    // SAFETY: the contract of the table of functions.
    let attached = unsafe { guarded(error, len, || calls(handle).attach(path, of)) };
    attached.map_or(-1, |functions| functions as c_int)
}

unsafe extern "C" fn calls_read(handle: *mut c_void, sink: tb_call_sink, ctx: *mut c_void) -> u64 {
    // SAFETY: the contract of the table of functions.
    let calls = unsafe { calls(handle) };
    // SAFETY: the caller's function takes its own `ctx` and a record.
    let read = || calls.read(|call| unsafe { sink(ctx, call) });
    catch_unwind(AssertUnwindSafe(read)).unwrap_or(0)
}

unsafe extern "C" fn calls_unload(handle: *mut c_void) {
    // SAFETY: `calls_load` made this box, and by the contract the handle is not used any more.
    let calls = unsafe { Box::from_raw(handle.cast::<Calls>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(calls)));
}
