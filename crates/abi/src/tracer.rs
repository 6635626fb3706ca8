//! The table of functions of the tracer: a shared object of Tailbound that records scheduler events and interrupts by
//! BPF.
//!
//! The tracer is a file of its own, so that a program without it needs nothing of what BPF brings along. It belongs to
//! one version of Tailbound: [`TB_TRACER_VERSION`] changes with every change of this file.

use core::ffi::{c_char, c_int, c_void};

/// Version of the tracer's table of functions and of its records.
pub const TB_TRACER_VERSION: u32 = 3;

/// One record of the tracer.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct tb_trace {
    /// Time of the event, for an interrupt or a page fault its begin, monotonic ns.
    pub at_ns: u64,
    /// CPU on which the event happened.
    pub cpu: u32,
    /// Kind of the event, one of `TB_TRACE_*`.
    pub kind: u8,
    /// Set of `TB_TRACE_PREEMPTED`, `TB_TRACE_BY_INTERRUPT`, `TB_TRACE_BY_PACKET` and `TB_TRACE_FROM_DISK`.
    pub flags: u8,
    /// State of the thread that left the CPU, or of the thread that was woken, one of `TB_STATE_*`.
    pub state: u8,
    /// Reserved member of a record, always 0.
    pub unused: u8,
    /// Switch: thread that left the CPU. Wake-up: thread that was woken. Interrupt: its number. Move
    /// or page fault: the thread.
    pub one: i32,
    /// Switch: thread that got the CPU. Wake-up: thread that ran where the wake-up happened. Interrupt or page
    /// fault: its duration, ns. Move: the new CPU.
    pub two: i32,
}

/// Kind of a record: one thread left a CPU and another thread got it.
pub const TB_TRACE_SWITCH: u8 = 1;
/// Kind of a record: a thread was woken.
pub const TB_TRACE_WAKE: u8 = 2;
/// Kind of a record: an interrupt of a device had the CPU.
pub const TB_TRACE_IRQ: u8 = 3;
/// Kind of a record: an interrupt of the CPU itself had the CPU.
pub const TB_TRACE_VECTOR: u8 = 4;
/// Kind of a record: a soft interrupt had the CPU.
pub const TB_TRACE_SOFTIRQ: u8 = 5;

/// Kind of a record: a watched thread was moved to another CPU.
pub const TB_TRACE_MOVE: u8 = 6;
/// Kind of a record: a watched thread was in a page fault.
pub const TB_TRACE_FAULT: u8 = 7;

/// Flag of a switch: the thread that left the CPU was still runnable.
pub const TB_TRACE_PREEMPTED: u8 = 1;
/// Flag of a wake-up: an interrupt woke the thread.
pub const TB_TRACE_BY_INTERRUPT: u8 = 2;
/// Flag of a wake-up: the soft interrupt that receives packets (NET_RX) woke the thread.
pub const TB_TRACE_BY_PACKET: u8 = 4;
/// Flag of a page fault: the page came from a disk.
pub const TB_TRACE_FROM_DISK: u8 = 8;

/// State of a thread: runnable, or not known.
pub const TB_STATE_UNKNOWN: u8 = 0;
/// State of a thread: it waits, and a signal wakes it.
pub const TB_STATE_INTERRUPTIBLE: u8 = 1;
/// State of a thread: it waits in the kernel, and no signal wakes it; it waits neither for a disk nor for a page.
pub const TB_STATE_UNINTERRUPTIBLE: u8 = 2;
/// State of a thread: a signal or a debugger stopped it.
pub const TB_STATE_STOPPED: u8 = 3;
/// State of a thread: the freezer of a control group stopped it.
pub const TB_STATE_FROZEN: u8 = 4;
/// State of a thread: it ended.
pub const TB_STATE_ENDED: u8 = 5;

/// State of a thread: it waits for a disk, and no signal wakes it.
pub const TB_STATE_IO: u8 = 6;
/// State of a thread: it waits in a page fault, and no signal wakes it.
pub const TB_STATE_PAGE_FAULT: u8 = 7;
/// State of a thread: it is ready to run, and its control group has used up its CPU quota.
pub const TB_STATE_OUT_OF_QUOTA: u8 = 8;
/// State of a thread: it is ready to run, and its control group has used up its real-time run time.
pub const TB_STATE_RT_THROTTLED: u8 = 9;

/// Function of the caller that gets a record. It must not call the tracer.
pub type tb_trace_sink = unsafe extern "C" fn(ctx: *mut c_void, record: *const tb_trace);

/// The table of functions of the tracer. Functions with `error` write a text of at most `len` bytes, with a NUL byte at
/// its end, and return a null pointer or a number below 0 if they fail. No two functions may run at the same time with
/// the same `handle`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tb_tracer {
    /// [`TB_TRACER_VERSION`] of the tracer.
    pub version: u32,
    /// Number of bytes of this table.
    pub size: u32,
    /// Loads the BPF programs for CPUs below `cpus`, with a ring buffer of `bytes` (a power of two, at least a page).
    /// Returns the handle.
    pub load: unsafe extern "C" fn(cpus: u32, bytes: u32, error: *mut c_char, len: usize) -> *mut c_void,
    /// Attaches the BPF programs. Nothing is recorded before `watch`.
    pub attach: unsafe extern "C" fn(handle: *mut c_void, error: *mut c_char, len: usize) -> c_int,
    /// Records events of `cpus`, wake-ups of `threads` and their page faults on `cpus` from now on; without CPUs and
    /// threads, nothing any more.
    pub watch: unsafe extern "C" fn(
        handle: *mut c_void,
        cpus: *const u32,
        cpu_count: usize,
        threads: *const i32,
        thread_count: usize,
        error: *mut c_char,
        len: usize,
    ) -> c_int,
    /// Passes all records to `sink`. Returns the number of records that were lost since `load`.
    pub read: unsafe extern "C" fn(handle: *mut c_void, sink: tb_trace_sink, ctx: *mut c_void) -> u64,
    /// Descriptor that becomes readable when the ring buffer is half full. It stays open until `unload`.
    pub fd: unsafe extern "C" fn(handle: *mut c_void) -> c_int,
    /// Detaches the BPF programs.
    pub detach: unsafe extern "C" fn(handle: *mut c_void),
    /// Detaches and unloads the BPF programs. The handle is not valid any more.
    pub unload: unsafe extern "C" fn(handle: *mut c_void),
}
