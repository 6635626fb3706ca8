//! The tracer: a shared object that records context switches, wake-ups and interrupts by BPF.
//!
//! Input: CPUs and threads. Output: records of `tailbound_abi::tb_trace`, through the table of functions that the entry
//! point returns. The BPF programs are an object in this file, compiled from `bpf/machine.bpf.c` by `dev/bpf`. The
//! tracer knows no record, study or message.

mod machine;

use machine::Machine;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tailbound_abi::{TB_TRACER_VERSION, tb_trace_sink, tb_tracer};

static TABLE: tb_tracer = tb_tracer {
    version: TB_TRACER_VERSION,
    size: size_of::<tb_tracer>() as u32,
    load,
    attach,
    watch,
    read,
    fd,
    detach,
    unload,
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

/// The value behind a handle.
///
/// # Safety
/// `handle` comes from `load`, was not unloaded, and no other function uses it.
unsafe fn machine<'a>(handle: *mut c_void) -> &'a mut Machine {
    // SAFETY: by the contract of this function.
    unsafe { &mut *handle.cast() }
}

unsafe extern "C" fn load(cpus: u32, bytes: u32, error: *mut c_char, len: usize) -> *mut c_void {
    // SAFETY: the caller gives room for `len` bytes.
    let loaded = unsafe { guarded(error, len, || Machine::load(cpus, bytes)) };
    loaded.map_or(std::ptr::null_mut(), |machine| Box::into_raw(Box::new(machine)).cast())
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

unsafe extern "C" fn detach(handle: *mut c_void) {
    // SAFETY: the contract of the table of functions.
    let machine = unsafe { machine(handle) };
    let _ = catch_unwind(AssertUnwindSafe(|| machine.detach()));
}

unsafe extern "C" fn unload(handle: *mut c_void) {
    // SAFETY: `load` made this box, and by the contract the handle is not used any more.
    let machine = unsafe { Box::from_raw(handle.cast::<Machine>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(machine)));
}
