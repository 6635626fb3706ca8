//! Ring buffers of perf events for whole CPUs or threads, and the parser of the records in them.

use perf_event::events::{Software, Tracepoint};
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use tailbound_model::{SwitchEvent, SwitchKind};

/// Numbers of the types of records in a ring buffer of perf events (linux/perf_event.h).
const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_FORK: u32 = 7;
const RECORD_SAMPLE: u32 = 9;
const RECORD_SWITCH: u32 = 14;
const RECORD_SWITCH_CPU_WIDE: u32 = 15;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// Number of the ioctl PERF_EVENT_IOC_SET_FILTER, `_IOW('$', 6, char *)`.
const SET_FILTER: libc::c_ulong = 0x4008_2406;

/// Length in bytes of the fields at the end of every perf record, as set up by [`common`]: pid, tid, time, CPU.
const TRAILER: usize = 24;

/// The kernel's tracepoint `sched_waking`, which records which thread is woken.
#[derive(Debug, Clone, Copy)]
pub(super) struct WakePoint {
    pub id: u64,
    /// Offset in bytes of the woken thread's id in the data of the tracepoint.
    pub thread_at: usize,
}

/// One record of a ring buffer of perf events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    Event(SwitchEvent),
    /// A record of a perf ring buffer: a thread has taken a new name.
    Named {
        thread: i32,
        name: String,
    },
    /// A record of a perf ring buffer: a thread was created by another thread and has inherited its name.
    Created {
        thread: i32,
        by: i32,
    },
    /// A record of a perf ring buffer: the ring buffer was full, so records before this time are missing.
    Missing {
        at_ns: i64,
    },
}

/// A ring buffer into which the kernel writes perf events.
pub(super) struct Ring {
    sampler: Sampler,
    wake: Option<WakePoint>,
    /// Id of the thread that got the CPU of this ring buffer last.
    here: Option<i32>,
}

/// Sets the clock and the fields at the end of every record. The reader is woken when the ring buffer is half full.
fn common(builder: &mut Builder, bytes: usize) {
    builder
        .sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU)
        .sample_id_all(true)
        .clockid(Clock::MONOTONIC)
        .wakeup_watermark(bytes / 2);
}

impl Ring {
    /// Opens a ring buffer of a whole CPU. The kernel records in it names of new threads, wake-ups of the threads in
    /// `filter`, and context switches if `switches` is set.
    ///
    /// # Errors
    /// The kernel refuses: no privilege, no such CPU, or no memory.
    pub fn of_cpu(cpu: u32, switches: bool, wake: Option<WakePoint>, filter: &str, bytes: usize) -> io::Result<Ring> {
        let mut builder = match wake {
            Some(point) => Builder::new(Tracepoint::with_id(point.id)),
            None => Builder::new(Software::DUMMY),
        };
        builder.any_pid().one_cpu(cpu as usize).include_kernel().task(true).comm(true).context_switch(switches);
        common(&mut builder, bytes);
        if wake.is_some() {
            builder.sample(SampleFlag::RAW).sample_period(1);
        }
        let sampler = builder.build()?.sampled(bytes)?;
        let ring = Ring { sampler, wake, here: None };
        if wake.is_some() {
            ring.set_filter(filter)?;
        }
        Ok(ring)
    }

    /// Opens a ring buffer that records one thread on all CPUs.
    ///
    /// # Errors
    /// The kernel refuses to open the ring buffer.
    pub fn of_thread(tid: i32, bytes: usize) -> io::Result<Ring> {
        let mut builder = Builder::new(Software::DUMMY);
        builder.observe_pid(tid).any_cpu().context_switch(true);
        common(&mut builder, bytes);
        Ok(Ring { sampler: builder.build()?.sampled(bytes)?, wake: None, here: None })
    }

    fn set_filter(&self, filter: &str) -> io::Result<()> {
        let filter = std::ffi::CString::new(filter)?;
        // SAFETY: an open perf event, and a string that the kernel copies.
        let done = unsafe { libc::ioctl(self.sampler.as_raw_fd(), SET_FILTER, filter.as_ptr()) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub fn enable(&mut self) -> io::Result<()> {
        self.sampler.enable()
    }

    /// Stops the recording of perf events into this ring buffer.
    pub fn disable(&mut self) {
        // This fails only if the event does not exist any more.
        let _ = self.sampler.disable();
    }

    /// Descriptor that becomes readable when the ring buffer is half full.
    pub fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the sampler, which is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.sampler.as_raw_fd()) }
    }

    /// Calls the function `take` for each record in the perf ring buffer.
    pub fn read(&mut self, mut take: impl FnMut(Record)) {
        while let Some(raw) = self.sampler.next_record() {
            let (kind, misc) = (raw.ty(), raw.misc());
            let Some(record) = parse(kind, misc, &raw.to_contiguous(), self.wake) else { continue };
            if let Record::Event(SwitchEvent { what: SwitchKind::Switch { into, .. }, .. }) = record {
                // The kernel records most switches twice, for the leaving and for the coming thread; some switches of
                // idle CPUs are recorded only for the coming thread.
                let known = misc & MISC_SWITCH_OUT == 0 && self.here == Some(into);
                self.here = Some(into);
                if known {
                    continue;
                }
            }
            take(record);
        }
    }
}

fn word(data: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?))
}

fn long(data: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_ne_bytes(data.get(at..at + 8)?.try_into().ok()?))
}

/// Parses a perf record; the layout is in perf_event_open(2), "Record layout".
fn parse(kind: u32, misc: u16, data: &[u8], wake: Option<WakePoint>) -> Option<Record> {
    // The fields at the end of other records are at the beginning of a sample.
    let id = if kind == RECORD_SAMPLE { 0 } else { data.len().checked_sub(TRAILER)? };
    let (thread, at_ns, cpu) = (word(data, id + 4)?, long(data, id + 8)?, word(data, id + 16)? as u32);
    let (out, preempted) = (misc & MISC_SWITCH_OUT != 0, misc & MISC_SWITCH_OUT_PREEMPT != 0);
    let event = |what| Some(Record::Event(SwitchEvent { at_ns, cpu, what }));
    match kind {
        // Only the record of the leaving thread says whether the thread was preempted.
        RECORD_SWITCH_CPU_WIDE if out => {
            event(SwitchKind::Switch { out: thread, into: word(data, 4)?, preempted, state: None })
        }
        RECORD_SWITCH_CPU_WIDE => {
            event(SwitchKind::Switch { out: word(data, 4)?, into: thread, preempted: false, state: None })
        }
        RECORD_SWITCH if out => event(SwitchKind::Out { thread, preempted }),
        RECORD_SWITCH => event(SwitchKind::In(thread)),
        RECORD_SAMPLE => {
            let woken = word(data, TRAILER + 4 + wake?.thread_at)?;
            event(SwitchKind::Wake { thread: woken, by: thread, interrupt: false })
        }
        RECORD_COMM => {
            let name = data.get(8..id)?.split(|b| *b == 0).next()?;
            Some(Record::Named { thread: word(data, 4)?, name: String::from_utf8_lossy(name).into_owned() })
        }
        RECORD_FORK => Some(Record::Created { thread: word(data, 8)?, by: word(data, 12)? }),
        RECORD_LOST => Some(Record::Missing { at_ns }),
        _ => None,
    }
}
