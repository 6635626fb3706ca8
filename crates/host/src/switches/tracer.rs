//! The tracer: a shared object that records events by BPF, loaded once in a process, and its records as events.

use std::ffi::{CStr, c_char, c_void};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Mutex;
use tailbound_abi::*;
use tailbound_model::{CpuLimit, CpuList, Interruption, Problem, SleepState, SwitchEvent, SwitchKind};

/// Name of the tracer's shared object.
pub const TRACER_FILE: &str = "libtailbound_tracer.so";

/// Size in bytes of the ring buffer of all CPUs. A record has 32 bytes with its header.
const RING: u32 = 4 << 20;
/// Room in bytes for the text of an error.
pub(crate) const TEXT: usize = 512;

/// The tracer of this process, if it is loaded and nobody uses it: loading takes 0.1 s.
static IDLE: Mutex<Option<Loaded>> = Mutex::new(None);

/// BPF programs that are loaded into the kernel.
struct Loaded {
    table: tb_tracer,
    handle: *mut c_void,
}

// SAFETY: by the tracer's contract, every thread may call its functions, one thread at a time; `Loaded` is not `Sync`.
unsafe impl Send for Loaded {}

/// The attached tracer. When this value is dropped, the BPF programs are detached, and stay loaded for the next use.
pub(super) struct Tracer {
    /// `None` only while the value is dropped.
    loaded: Option<Loaded>,
    lost: u64,
    packets_lost: u64,
}

impl Tracer {
    /// Loads the tracer, if this process has not loaded it yet, and attaches its programs.
    ///
    /// # Errors
    /// The file cannot be loaded or belongs to another version of Tailbound, another user has the tracer, or the kernel
    /// refuses its programs. The text is a sentence without a full stop.
    pub fn attach(file: &Path) -> Result<Tracer, Problem> {
        let idle = IDLE.lock().ok().and_then(|mut idle| idle.take());
        let loaded = idle.map_or_else(|| Loaded::load(file), Ok)?;
        let mut tracer = Tracer { loaded: Some(loaded), lost: 0, packets_lost: 0 };
        // SAFETY: a valid handle, and room for the text.
        tracer.call(|loaded, text| unsafe { (loaded.table.attach)(loaded.handle, text, TEXT) })?;
        Ok(tracer)
    }

    /// Records events of `cpus` and wake-ups of `threads` from now on.
    ///
    /// # Errors
    /// The tracer cannot watch one of the CPUs, or not as many threads.
    pub fn watch(&mut self, cpus: &CpuList, threads: &[i32]) -> Result<(), Problem> {
        // Records of an earlier use are not of this one.
        self.read(|_| {});
        let cpus: Vec<u32> = cpus.0.iter().copied().collect();
        self.call(|Loaded { table, handle }, text| {
            // SAFETY: a valid handle, two slices with their lengths, and room for the text.
            unsafe { (table.watch)(*handle, cpus.as_ptr(), cpus.len(), threads.as_ptr(), threads.len(), text, TEXT) }
        })
    }

    /// Records nothing any more. Records that were written until now can still be read.
    pub fn rest(&mut self) {
        // If this is refused, events are recorded that nobody reads.
        let _ = self.watch_packets(&[]);
        let _ = self.call(|Loaded { table, handle }, text| {
            // SAFETY: a valid handle, no CPUs and no threads, and room for the text.
            unsafe { (table.watch)(*handle, std::ptr::null(), 0, std::ptr::null(), 0, text, TEXT) }
        });
    }

    /// Passes all recorded events to `take`. Returns how many records were lost since the last call.
    pub fn read(&mut self, mut take: impl FnMut(SwitchEvent)) -> u64 {
        let Some(Loaded { table, handle }) = &self.loaded else { return 0 };
        let mut take = |record: &tb_trace| event(record).into_iter().for_each(&mut take);
        let mut sink: Sink = &mut take;
        // SAFETY: a valid handle, and the function `sink` with the argument that it expects.
        let lost = unsafe { (table.read)(*handle, sink_of, (&raw mut sink).cast()) };
        lost.saturating_sub(std::mem::replace(&mut self.lost, lost))
    }

    /// Attaches the programs that follow packets.
    ///
    /// # Errors
    /// The kernel refuses the programs. The text is a sentence without a full stop.
    pub fn attach_packets(&mut self) -> Result<(), Problem> {
        // SAFETY: a valid handle, and room for the text.
        self.call(|loaded, text| unsafe { (loaded.table.packets_attach)(loaded.handle, text, TEXT) })
    }

    /// Detaches the programs that follow packets.
    pub fn detach_packets(&mut self) {
        if let Some(Loaded { table, handle }) = &self.loaded {
            // SAFETY: a valid handle.
            unsafe { (table.packets_detach)(*handle) };
        }
    }

    /// Follows datagrams that are sent from these ports from now on.
    ///
    /// # Errors
    /// The tracer cannot watch as many ports.
    pub fn watch_packets(&mut self, ports: &[u16]) -> Result<(), Problem> {
        self.call(|Loaded { table, handle }, text| {
            // SAFETY: a valid handle, a slice with its length, and room for the text.
            unsafe { (table.packets_watch)(*handle, ports.as_ptr(), ports.len(), text, TEXT) }
        })
    }

    /// Passes all records of packets to `take`. Returns how many records were lost since the last call.
    pub fn read_packets(&mut self, mut take: impl FnMut(&tb_packet)) -> u64 {
        let Some(Loaded { table, handle }) = &self.loaded else { return 0 };
        let mut sink: PacketSink = &mut take;
        // SAFETY: a valid handle, and the function `packet_sink` with the argument that it expects.
        let lost = unsafe { (table.packets_read)(*handle, packet_sink, (&raw mut sink).cast()) };
        lost.saturating_sub(std::mem::replace(&mut self.packets_lost, lost))
    }

    /// Descriptors that become readable when a ring buffer is half full.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.fd().into_iter().chain(self.packets_fd())
    }

    fn packets_fd(&self) -> Option<BorrowedFd<'_>> {
        let Loaded { table, handle } = self.loaded.as_ref()?;
        // SAFETY: a valid handle.
        let fd = unsafe { (table.packets_fd)(*handle) };
        // SAFETY: the descriptor is open as long as the tracer, which is borrowed.
        (fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Descriptor that becomes readable when the ring buffer of events is half full.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        let Loaded { table, handle } = self.loaded.as_ref()?;
        // SAFETY: a valid handle; the descriptor is open as long as the tracer, which is borrowed.
        Some(unsafe { BorrowedFd::borrow_raw((table.fd)(*handle)) })
    }

    /// Calls a function of the tracer that writes a text if it fails.
    fn call(&mut self, function: impl FnOnce(&Loaded, *mut c_char) -> i32) -> Result<(), Problem> {
        let mut text = [0; TEXT];
        match self.loaded.as_ref().map(|loaded| function(loaded, text.as_mut_ptr())) {
            Some(code) if code < 0 => Err(refused(&text)),
            _ => Ok(()),
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.rest();
        if let Some(loaded) = self.loaded.take() {
            // SAFETY: a valid handle.
            unsafe { (loaded.table.detach)(loaded.handle) };
            if let Ok(mut idle) = IDLE.lock() {
                *idle = Some(loaded);
            }
        }
    }
}

impl Loaded {
    fn load(file: &Path) -> Result<Loaded, Problem> {
        let table = table_of(file)?;
        let mut text = [0; TEXT];
        // SAFETY: room for the text.
        let handle = unsafe { (table.load)(possible_cpus(), RING, text.as_mut_ptr(), TEXT) };
        if handle.is_null() { Err(refused(&text)) } else { Ok(Loaded { table, handle }) }
    }
}

/// Loads the shared object and returns its table of functions. It stays loaded until the process ends.
///
/// # Errors
/// The file cannot be loaded, or belongs to another version of Tailbound.
pub(crate) fn table_of(file: &Path) -> Result<tb_tracer, Problem> {
    let broken = |e: &dyn std::fmt::Display| {
        let what = format!("the tracer {} cannot be loaded: {e}", file.display());
        Problem::new("tracer_not_loadable", what, "build it again with dev/tracer")
    };
    // SAFETY: initialisers of the object run; the file is a part of this installation.
    let library = unsafe { libloading::Library::new(file) }.map_err(|e| broken(&e))?;
    let library: &'static libloading::Library = Box::leak(Box::new(library));
    // SAFETY: the tracer's entry point has this type.
    let entry = unsafe { library.get::<unsafe extern "C" fn() -> *const tb_tracer>(b"tailbound_tracer_v1\0") };
    // SAFETY: the entry point takes no arguments and returns a table that lives as long as the object; its first two
    // members have these types in every version.
    let table = unsafe { entry.map_err(|e| broken(&e))?() };
    let (version, size) = unsafe { ((*table).version, (*table).size) };
    if version != TB_TRACER_VERSION || (size as usize) < size_of::<tb_tracer>() {
        return Err(broken(&"it belongs to another version of Tailbound"));
    }
    // SAFETY: the table has this version and size.
    Ok(unsafe { *table })
}

/// Number of CPUs that can ever be online here.
fn possible_cpus() -> u32 {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    text.trim().parse::<CpuList>().ok().and_then(|cpus| cpus.0.last().copied()).map_or(1, |last| last + 1)
}

/// What the tracer says of a refusal.
pub(crate) fn refused(text: &[c_char; TEXT]) -> Problem {
    // SAFETY: the tracer ends the text with a NUL byte within its room; the room was zeroed.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    Problem::new("bpf_refused", format!("BPF cannot be used: {}", text.to_string_lossy()), "")
}

type Sink<'a> = &'a mut dyn FnMut(&tb_trace);

unsafe extern "C" fn sink_of(ctx: *mut c_void, record: *const tb_trace) {
    // SAFETY: `Tracer::read` passes a `Sink`, and the tracer passes a record.
    let (sink, record) = unsafe { (&mut *ctx.cast::<Sink>(), &*record) };
    sink(record);
}

type PacketSink<'a> = &'a mut dyn FnMut(&tb_packet);

unsafe extern "C" fn packet_sink(ctx: *mut c_void, packet: *const tb_packet) {
    // SAFETY: `Tracer::read_packets` passes a `PacketSink`, and the tracer passes a record.
    let (sink, packet) = unsafe { (&mut *ctx.cast::<PacketSink>(), &*packet) };
    sink(packet);
}

/// Event of a record; `None` for a kind that this version does not know.
fn event(record: &tb_trace) -> Option<SwitchEvent> {
    let tb_trace { at_ns, cpu, kind, flags, state, one, two, .. } = *record;
    let number = one as u32;
    let interrupted = |by| Some(SwitchKind::Interrupted { by, ns: two as u32 });
    let what = match kind {
        TB_TRACE_SWITCH => {
            let preempted = flags & TB_TRACE_PREEMPTED != 0;
            let (state, limit) = (sleep_state(state), cpu_limit(state));
            Some(SwitchKind::Switch { out: one, into: two, preempted, state, limit })
        }
        TB_TRACE_WAKE => {
            let interrupt = flags & TB_TRACE_BY_INTERRUPT != 0;
            let packet = flags & TB_TRACE_BY_PACKET != 0;
            Some(SwitchKind::Wake { thread: one, by: two, interrupt, packet, limit: cpu_limit(state) })
        }
        TB_TRACE_MOVE => Some(SwitchKind::Moved { thread: one, to: two as u32 }),
        TB_TRACE_SERVED => Some(SwitchKind::FairServer { thread: one }),
        TB_TRACE_LIMITED => cpu_limit(state).map(|limit| SwitchKind::Limited { thread: one, limit }),
        TB_TRACE_IRQ => interrupted(Interruption::Irq(number)),
        TB_TRACE_VECTOR => interrupted(Interruption::Vector(number)),
        TB_TRACE_SOFTIRQ => interrupted(Interruption::Softirq(number)),
        TB_TRACE_FAULT => {
            Some(SwitchKind::PageFault { thread: one, ns: two as u32, disk: flags & TB_TRACE_FROM_DISK != 0 })
        }
        TB_TRACE_RECLAIM => Some(SwitchKind::Reclaim { thread: one, ns: two as u32 }),
        TB_TRACE_NO_TICK => Some(SwitchKind::NoTick { ns: two as u32 }),
        TB_TRACE_FREQUENCY => Some(SwitchKind::Frequency { khz: number }),
        _ => None,
    };
    what.map(|what| SwitchEvent { at_ns: at_ns as i64, cpu, what })
}

fn sleep_state(state: u8) -> Option<SleepState> {
    match state {
        TB_STATE_INTERRUPTIBLE => Some(SleepState::Interruptible),
        TB_STATE_UNINTERRUPTIBLE => Some(SleepState::KernelLock),
        TB_STATE_IO => Some(SleepState::Io),
        TB_STATE_PAGE_FAULT => Some(SleepState::PageFault),
        TB_STATE_STOPPED => Some(SleepState::Stopped),
        TB_STATE_FROZEN => Some(SleepState::Frozen),
        TB_STATE_ENDED => Some(SleepState::Ended),
        _ => None,
    }
}

fn cpu_limit(state: u8) -> Option<CpuLimit> {
    match state {
        TB_STATE_OUT_OF_QUOTA => Some(CpuLimit::Quota),
        TB_STATE_RT_THROTTLED => Some(CpuLimit::RealTime),
        TB_STATE_DEADLINE_THROTTLED => Some(CpuLimit::Deadline),
        _ => None,
    }
}
