//! The table of functions of the tracer: a shared object of Tailbound that records scheduler events and interrupts by
//! BPF.
//!
//! The tracer is a file of its own, so that a program without it needs nothing of what BPF brings along. It belongs to
//! one version of Tailbound: [`TB_TRACER_VERSION`] changes with every change of this file.

use core::ffi::{c_char, c_int, c_void};

/// Version of the tracer's table of functions and of its records.
pub const TB_TRACER_VERSION: u32 = 11;

/// One record of the tracer.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct tb_trace {
    /// Time of the event, for everything with a duration its begin, monotonic ns.
    pub at_ns: u64,
    /// CPU on which the event happened, or whose frequency changed.
    pub cpu: u32,
    /// Kind of the event, one of `TB_TRACE_*`.
    pub kind: u8,
    /// Set of `TB_TRACE_PREEMPTED`, `TB_TRACE_BY_INTERRUPT`, `TB_TRACE_BY_PACKET` and `TB_TRACE_FROM_DISK`.
    pub flags: u8,
    /// State of the thread that left the CPU, that was woken, or that a limit kept from the CPU, one of `TB_STATE_*`.
    pub state: u8,
    /// Reserved member of a record, always 0.
    pub unused: u8,
    /// Switch: thread that left the CPU. Wake-up: thread that was woken. Interrupt: its number. Move, page fault, freeing of
    /// memory, fair server or limit: the thread. Frequency: the new one, kHz.
    pub one: i32,
    /// Switch: thread that got the CPU. Wake-up: thread that ran where the wake-up happened. Interrupt, page fault, freeing of
    /// memory or missing tick: its duration, ns. Move: the new CPU.
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
/// Kind of a record: the kernel's fair server chose the thread that got the CPU in the last switch.
pub const TB_TRACE_SERVED: u8 = 8;
/// Kind of a record: a limit of CPU time, which is the state, still kept a watched thread from the CPU.
pub const TB_TRACE_LIMITED: u8 = 9;

/// Kind of a record: a watched thread needed memory and freed some first (direct reclaim).
pub const TB_TRACE_RECLAIM: u8 = 10;
/// Kind of a record: a CPU ran threads and got no interrupt of its timer for longer than two ticks.
pub const TB_TRACE_NO_TICK: u8 = 11;
/// Kind of a record: the kernel set the frequency of a CPU.
pub const TB_TRACE_FREQUENCY: u8 = 12;

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
/// State: the thread is ready, and has used up its run time of this period (SCHED_DEADLINE).
pub const TB_STATE_DEADLINE_THROTTLED: u8 = 10;

/// Longest part of a datagram's payload in a record of a packet, bytes.
pub const TB_PACKET_PAYLOAD: usize = 128;

/// One record of the tracer about a packet: where it was in the kernel at a time.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tb_packet {
    /// Time of the record, monotonic ns.
    pub at_ns: u64,
    /// Address of the kernel's packet buffer; 0 for `TB_PACKET_READ`.
    pub buffer: u64,
    /// CPU that handled the packet.
    pub cpu: u32,
    /// Thread that ran on the CPU.
    pub thread: i32,
    /// Network namespace of the device or of the socket.
    pub namespace: u32,
    /// Identification of the fragments of a datagram, network byte order; of the IPv4 header, or of the fragment header of
    /// IPv6 (0 without one).
    pub id: u32,
    /// Source address, network byte order, IPv4 as `::ffff:a.b.c.d`; 0 for records of sockets.
    pub from: [u32; 4],
    /// Destination address, network byte order, IPv4 as `::ffff:a.b.c.d`; 0 for records of sockets.
    pub to: [u32; 4],
    /// Source port, network byte order; 0 for records of sockets.
    pub from_port: u16,
    /// Destination port, network byte order; the port of the socket for records of sockets.
    pub to_port: u16,
    /// Offset of the IP fragment in the datagram, bytes; 0 for the first one and for datagrams without fragments.
    pub offset: u16,
    /// Where the packet was, one of `TB_PACKET_*`.
    pub kind: u8,
    /// Number of bytes of the payload that are in `payload`.
    pub payload_bytes: u8,
    /// `TB_PACKET_READ`: number of bytes that were read; `TB_PACKET_DROPPED`: number of the kernel's reason; other places
    /// of a device: length of the UDP datagram with its header, in bytes.
    pub number: u32,
    /// Number of the run of soft interrupts of this CPU that handled the packet at this place; 0 = none did. A run is one
    /// poll of a device, by a soft interrupt or by a thread of the kernel.
    pub run: u32,
    /// 1 if later IP fragments of the datagram follow, else 0.
    pub more: u8,
    /// Reserved bytes of a record, not set.
    pub unused: [u8; 7],
    /// Name of the device, with a NUL byte at its end; empty if there is none.
    pub device: [u8; 16],
    /// `TB_PACKET_QUEUED`: kind of the device's queue discipline, with a NUL byte at its end.
    pub discipline: [u8; 16],
    /// First bytes of the payload of the datagram.
    pub payload: [u8; TB_PACKET_PAYLOAD],
}

/// Place of a packet: it reaches the queue discipline of a device.
pub const TB_PACKET_QUEUED: u8 = 1;
/// Place of a packet: the driver of a device gets it for transmission.
pub const TB_PACKET_TRANSMITTED: u8 = 2;
/// Place of a packet: a device has received it and puts it into the backlog of a CPU.
pub const TB_PACKET_BACKLOG: u8 = 3;
/// Place of a packet: the soft interrupt that receives packets handles it.
pub const TB_PACKET_RECEIVED: u8 = 4;
/// Place of a packet: it is in the receive buffer of a socket.
pub const TB_PACKET_IN_SOCKET: u8 = 5;
/// Not a place of a followed packet: a thread has read a datagram from a watched socket.
pub const TB_PACKET_READ: u8 = 6;
/// Place of a packet: the kernel dropped it.
pub const TB_PACKET_DROPPED: u8 = 7;

/// Room for the name of a topic in a record of a call, bytes, with the NUL byte at its end.
pub const TB_CALL_TOPIC: usize = 256;

/// One record of the tracer about a program of ROS 2: a call of its middleware, or the execution of a subscription by rclcpp.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tb_call {
    /// Begin of the call, monotonic ns; `TB_CALL_EXECUTE`: when the message was taken.
    pub begin_ns: u64,
    /// End of the call, monotonic ns.
    pub end_ns: u64,
    /// `TB_CALL_TAKE`: source timestamp of the message, ns since 1970, as the middleware gives it; 0 = it gives none. `TB_CALL_WAITED`: for
    /// how much of the wait the other thread had the CPU, ns; 0 = not known who had it.
    pub source_ns: i64,
    /// Process that called.
    pub process: i32,
    /// Thread that called.
    pub thread: i32,
    /// Kind of the record, one of `TB_CALL_*`.
    pub kind: u8,
    /// Reserved bytes of a record, not set.
    pub unused: [u8; 7],
    /// Name of the topic in ROS 2, with a NUL byte at its end; empty for `TB_CALL_EXECUTE`. `TB_CALL_WAITED`: two names of 16 bytes, each
    /// with a NUL byte at its end, of the thread and of the one that had the CPU longest meanwhile.
    pub topic: [u8; TB_CALL_TOPIC],
}

/// Kind of a record: a message was published (`rmw_publish` and its forms for serialized and loaned messages).
pub const TB_CALL_PUBLISH: u8 = 1;
/// Kind of a record: a message was taken (`rmw_take_with_info` and its forms for serialized and loaned messages).
pub const TB_CALL_TAKE: u8 = 2;
/// Kind of a record: rclcpp has executed a subscription; its message is the one that the thread took last.
pub const TB_CALL_EXECUTE: u8 = 3;

/// Kind of a record: a thread of a process that publishes or takes messages was ready and waited for a CPU, for at least 100 us, from
/// begin to end.
pub const TB_CALL_WAITED: u8 = 4;

/// Functions of a library: those with which messages are published and taken.
pub const TB_CALLS_OF_RMW: u32 = 1;
/// Functions of a library: the one with which rclcpp executes a subscription.
pub const TB_CALLS_OF_RCLCPP: u32 = 2;

/// Function of the caller that gets a record of a call. It must not call the tracer.
pub type tb_call_sink = unsafe extern "C" fn(ctx: *mut c_void, call: *const tb_call);

/// Function of the caller that gets a record of a packet. It must not call the tracer.
pub type tb_packet_sink = unsafe extern "C" fn(ctx: *mut c_void, packet: *const tb_packet);

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
    /// Loads the BPF programs that follow packets, if they are not loaded yet, and attaches them. Nothing is recorded
    /// before `packets_watch`.
    pub packets_attach: unsafe extern "C" fn(handle: *mut c_void, error: *mut c_char, len: usize) -> c_int,
    /// Follows datagrams that are sent from these ports, and records what is read from them, from now on; without ports,
    /// nothing any more.
    pub packets_watch: unsafe extern "C" fn(
        handle: *mut c_void,
        ports: *const u16,
        port_count: usize,
        error: *mut c_char,
        len: usize,
    ) -> c_int,
    /// Passes all records of packets to `sink`. Returns the number of records of packets that were lost since `load`.
    pub packets_read: unsafe extern "C" fn(handle: *mut c_void, sink: tb_packet_sink, ctx: *mut c_void) -> u64,
    /// Descriptor that becomes readable when the ring buffer of packets is half full; -1 before `packets_attach`.
    pub packets_fd: unsafe extern "C" fn(handle: *mut c_void) -> c_int,
    /// Detaches the BPF programs that follow packets.
    pub packets_detach: unsafe extern "C" fn(handle: *mut c_void),
    /// Detaches all BPF programs.
    pub detach: unsafe extern "C" fn(handle: *mut c_void),
    /// Detaches and unloads the BPF programs. The handle is not valid any more.
    pub unload: unsafe extern "C" fn(handle: *mut c_void),
    /// Loads the BPF programs that record calls of ROS 2, with a ring buffer of `bytes` (a power of two, at least a page). Returns a
    /// handle of its own, for the functions `calls_*` alone.
    pub calls_load: unsafe extern "C" fn(bytes: u32, error: *mut c_char, len: usize) -> *mut c_void,
    /// Attaches these programs to the functions `of` (one of `TB_CALLS_OF_*`) of the library at `path`, in all processes that use it.
    /// Returns to how many functions; 0 = the library has none of them.
    pub calls_attach: unsafe extern "C" fn(
        handle: *mut c_void,
        path: *const c_char,
        of: u32,
        error: *mut c_char,
        len: usize,
    ) -> c_int,
    /// Passes all records of calls to `sink`. Returns the number of records of calls that were lost since `calls_load`.
    pub calls_read: unsafe extern "C" fn(handle: *mut c_void, sink: tb_call_sink, ctx: *mut c_void) -> u64,
    /// Detaches and unloads these programs. The handle is not valid any more.
    pub calls_unload: unsafe extern "C" fn(handle: *mut c_void),
}
