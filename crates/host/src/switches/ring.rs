//! Rings of perf events: opened for whole CPUs or for threads, read as plain facts.

use perf_event::events::{Software, Tracepoint};
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use tailbound_model::{SwitchEvent, SwitchKind};

/// linux/perf_event.h.
const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_FORK: u32 = 7;
const RECORD_SAMPLE: u32 = 9;
const RECORD_SWITCH: u32 = 14;
const RECORD_SWITCH_CPU_WIDE: u32 = 15;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// PERF_EVENT_IOC_SET_FILTER, `_IOW('$', 6, char *)`.
const SET_FILTER: libc::c_ulong = 0x4008_2406;

/// What every record ends with, as [`common`] asks for it: pid, tid, time, CPU.
const TRAILER: usize = 24;

/// A tracepoint that tells who is woken.
#[derive(Debug, Clone, Copy)]
pub(super) struct WakePoint {
    pub id: u64,
    /// Where the woken thread's number lies within its data.
    pub thread_at: usize,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    Event(SwitchEvent),
    /// A thread has this name from now on.
    Named {
        thread: i32,
        name: String,
    },
    /// A thread was made, with the name of its maker.
    Born {
        thread: i32,
        by: i32,
    },
    /// The ring was full: records are missing up to now.
    Missing {
        at_ns: i64,
    },
}

/// One ring.
pub(super) struct Ring {
    sampler: Sampler,
    wake: Option<WakePoint>,
    /// Who came to the CPU last.
    here: Option<i32>,
}

/// The clock and the trailer of every record; half a ring wakes the reader.
fn common(builder: &mut Builder, octets: usize) {
    builder
        .sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU)
        .sample_id_all(true)
        .clockid(Clock::MONOTONIC)
        .wakeup_watermark(octets / 2);
}

impl Ring {
    /// Of a whole CPU: its switches, if `switches`, wake-ups of the threads that `filter` names, names of all that is new.
    ///
    /// # Errors
    /// The kernel's word: no privilege, no such CPU, no memory.
    pub fn of_cpu(cpu: u32, switches: bool, wake: Option<WakePoint>, filter: &str, octets: usize) -> io::Result<Ring> {
        let mut builder = match wake {
            Some(point) => Builder::new(Tracepoint::with_id(point.id)),
            None => Builder::new(Software::DUMMY),
        };
        builder.any_pid().one_cpu(cpu as usize).include_kernel().task(true).comm(true).context_switch(switches);
        common(&mut builder, octets);
        if wake.is_some() {
            builder.sample(SampleFlag::RAW).sample_period(1);
        }
        let sampler = builder.build()?.sampled(octets)?;
        let ring = Ring { sampler, wake, here: None };
        if wake.is_some() {
            ring.set_filter(filter)?;
        }
        Ok(ring)
    }

    /// Of one thread, wherever it runs.
    ///
    /// # Errors
    /// The kernel's word.
    pub fn of_thread(tid: i32, octets: usize) -> io::Result<Ring> {
        let mut builder = Builder::new(Software::DUMMY);
        builder.observe_pid(tid).any_cpu().context_switch(true);
        common(&mut builder, octets);
        Ok(Ring { sampler: builder.build()?.sampled(octets)?, wake: None, here: None })
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

    /// Nothing more is written.
    pub fn disable(&mut self) {
        // Fails only for an event that is gone.
        let _ = self.sampler.disable();
    }

    /// Readable once half full.
    pub fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: open for as long as the sampler, which is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.sampler.as_raw_fd()) }
    }

    /// All records so far.
    pub fn read(&mut self, mut take: impl FnMut(Told)) {
        while let Some(record) = self.sampler.next_record() {
            let (kind, misc) = (record.ty(), record.misc());
            let Some(told) = parse(kind, misc, &record.to_contiguous(), self.wake) else { continue };
            if let Told::Event(SwitchEvent { what: SwitchKind::Switch { into, .. }, .. }) = told {
                // Each switch is told by both sides, and some from idle CPUs only by the one that comes.
                let known = misc & MISC_SWITCH_OUT == 0 && self.here == Some(into);
                self.here = Some(into);
                if known {
                    continue;
                }
            }
            take(told);
        }
    }
}

fn word(data: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?))
}

fn long(data: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_ne_bytes(data.get(at..at + 8)?.try_into().ok()?))
}

/// perf_event_open(2), "Record layout", for what the rings ask for.
fn parse(kind: u32, misc: u16, data: &[u8], wake: Option<WakePoint>) -> Option<Told> {
    // A sample begins with what other records end with.
    let id = if kind == RECORD_SAMPLE { 0 } else { data.len().checked_sub(TRAILER)? };
    let (thread, at_ns, cpu) = (word(data, id + 4)?, long(data, id + 8)?, word(data, id + 16)? as u32);
    let (out, preempted) = (misc & MISC_SWITCH_OUT != 0, misc & MISC_SWITCH_OUT_PREEMPT != 0);
    let event = |what| Some(Told::Event(SwitchEvent { at_ns, cpu, what }));
    match kind {
        // Only the side that leaves knows whether it was preempted.
        RECORD_SWITCH_CPU_WIDE if out => event(SwitchKind::Switch { out: thread, into: word(data, 4)?, preempted }),
        RECORD_SWITCH_CPU_WIDE => event(SwitchKind::Switch { out: word(data, 4)?, into: thread, preempted: false }),
        RECORD_SWITCH if out => event(SwitchKind::Out { thread, preempted }),
        RECORD_SWITCH => event(SwitchKind::In(thread)),
        RECORD_SAMPLE => {
            let woken = word(data, TRAILER + 4 + wake?.thread_at)?;
            event(SwitchKind::Wake { thread: woken, by: thread })
        }
        RECORD_COMM => {
            let name = data.get(8..id)?.split(|b| *b == 0).next()?;
            Some(Told::Named { thread: word(data, 4)?, name: String::from_utf8_lossy(name).into_owned() })
        }
        RECORD_FORK => Some(Told::Born { thread: word(data, 8)?, by: word(data, 12)? }),
        RECORD_LOST => Some(Told::Missing { at_ns }),
        _ => None,
    }
}
