//! Ring buffers into which the kernel writes perf events of whole CPUs or of threads.

use super::faults::{self, Faults};
use super::pairs::Pairs;
use super::points::Points;
use super::records::{RECORD_SAMPLE, Record, is_arrival, parse};
use perf_event::events::{Software, Tracepoint};
use perf_event::{Builder, Clock, Counter, ReadFormat, SampleFlag, Sampler};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use tailbound_model::{SwitchEvent, SwitchKind};

/// Numbers of the ioctls PERF_EVENT_IOC_SET_OUTPUT, `_IO('$', 5)`, and PERF_EVENT_IOC_SET_FILTER,
/// `_IOW('$', 6, char *)`.
const SET_OUTPUT: libc::c_ulong = 0x2405;
const SET_FILTER: libc::c_ulong = 0x4008_2406;

/// A ring buffer into which the kernel writes perf events.
pub(super) struct Ring {
    sampler: Sampler,
    /// Events of tracepoints and page faults, whose records are written into the ring buffer of `sampler`.
    others: Vec<Counter>,
    points: Points,
    pairs: Pairs,
    /// Page faults of the thread whose ring buffer this is; `None` if they are not recorded.
    faults: Option<Faults>,
    /// Id of the thread that got the CPU of this ring buffer last.
    here: Option<i32>,
    /// Number of lost records that [`Ring::read`] has reported.
    reported_lost: u64,
}

/// What the ring buffer of a CPU records.
pub(super) struct Contents<'a> {
    /// Tracepoints that are recorded.
    pub points: &'a Points,
    /// Whether context switches and interrupts are recorded, and not only names of new threads and wake-ups.
    pub watched: bool,
    /// Condition that a recorded wake-up fulfils, in the form of a filter of a tracepoint.
    pub wakes: &'a str,
    pub bytes: usize,
}

/// Sets the clock and the fields at the end of every record. The reader is woken when the ring buffer is half full.
fn common(builder: &mut Builder, bytes: usize) {
    builder
        .sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU)
        .sample_id_all(true)
        .clockid(Clock::MONOTONIC)
        .wakeup_watermark(bytes / 2);
}

/// Opens a perf event that counts lost records; kernels before 6.0 cannot count them.
fn build(builder: &mut Builder) -> io::Result<Counter> {
    match builder.read_format(ReadFormat::LOST).build() {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => builder.read_format(ReadFormat::empty()).build(),
        result => result,
    }
}

impl Ring {
    /// Opens a ring buffer of a whole CPU.
    ///
    /// # Errors
    /// The kernel refuses: no privilege, no such CPU, or no memory.
    pub fn of_cpu(cpu: u32, contents: &Contents) -> io::Result<Ring> {
        let Contents { points, watched, wakes, bytes } = *contents;
        let mut builder = Builder::new(Software::DUMMY);
        builder.any_pid().one_cpu(cpu as usize).include_kernel().task(true).comm(true);
        // Without the tracepoint of context switches, the kernel's own records of them are used.
        builder.context_switch(watched && points.switch.is_none());
        common(&mut builder, bytes);
        let mut ring = Ring::new(build(&mut builder)?.sampled(bytes)?, points.clone());
        if let Some((id, _)) = points.wake {
            ring.add(cpu, id, bytes)?;
            ring.set_filter(wakes)?;
        }
        if watched {
            let mut ids = points.switch.iter().map(|(id, _)| *id).chain(points.edges.iter().map(|(id, _)| *id));
            ids.try_for_each(|id| ring.add(cpu, id, bytes))?;
        }
        Ok(ring)
    }

    /// Opens a ring buffer that records one thread on all CPUs: its context switches if `switches` is true, and its page
    /// faults if these are permitted.
    ///
    /// # Errors
    /// The kernel refuses to open the ring buffer.
    pub fn of_thread(tid: i32, switches: bool, bytes: usize) -> io::Result<Ring> {
        let mut builder = Builder::new(Software::DUMMY);
        builder.observe_pid(tid).any_cpu().context_switch(switches);
        common(&mut builder, bytes);
        let mut ring = Ring::new(build(&mut builder)?.sampled(bytes)?, Points::default());
        match ring.page_faults(tid, bytes) {
            Err(e) if !switches => Err(e),
            // Without the page faults, the context switches are still of use.
            _ => Ok(ring),
        }
    }

    fn new(sampler: Sampler, points: Points) -> Ring {
        let (others, pairs) = (Vec::new(), Pairs::default());
        Ring { sampler, others, points, pairs, faults: None, here: None, reported_lost: 0 }
    }

    /// Lets this ring buffer also record the page faults of a thread, and those inside system calls if that is permitted.
    fn page_faults(&mut self, tid: i32, bytes: usize) -> io::Result<()> {
        let open = |event: Software, exclude_kernel: bool| {
            let mut builder = Builder::new(event);
            builder.observe_pid(tid).any_cpu().exclude_kernel(exclude_kernel).sample_period(1);
            common(&mut builder, bytes);
            build(builder.sample(SampleFlag::IDENTIFIER))
        };
        let all = |exclude_kernel| {
            let [begin, minor, major] = faults::EVENTS;
            Ok([open(begin, exclude_kernel)?, open(minor, exclude_kernel)?, open(major, exclude_kernel)?])
        };
        let counters = all(false).or_else(|_: io::Error| all(true))?;
        counters.iter().try_for_each(|counter| self.take_over(counter))?;
        self.faults = Some(Faults::of(counters.each_ref().map(Counter::id)));
        self.others.extend(counters);
        Ok(())
    }

    /// Lets a perf event of the same threads and CPUs write its records into this ring buffer.
    fn take_over(&self, counter: &Counter) -> io::Result<()> {
        // SAFETY: two open perf events of the same thread, the same CPU and the same clock.
        let done = unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT, self.sampler.as_raw_fd()) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Adds a tracepoint whose records go into this ring buffer.
    fn add(&mut self, cpu: u32, id: u16, bytes: usize) -> io::Result<()> {
        let mut builder = Builder::new(Tracepoint::with_id(id.into()));
        builder.any_pid().one_cpu(cpu as usize).include_kernel().sample_period(1);
        common(&mut builder, bytes);
        builder.sample(SampleFlag::RAW);
        let counter = build(&mut builder)?;
        self.take_over(&counter)?;
        self.others.push(counter);
        Ok(())
    }

    /// Sets the filter of the tracepoint that was added last.
    fn set_filter(&self, filter: &str) -> io::Result<()> {
        let filter = std::ffi::CString::new(filter)?;
        let Some(counter) = self.others.last() else { return Ok(()) };
        // SAFETY: an open perf event, and a string that the kernel copies.
        let done = unsafe { libc::ioctl(counter.as_raw_fd(), SET_FILTER, filter.as_ptr()) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub fn enable(&mut self) -> io::Result<()> {
        self.sampler.enable()?;
        self.others.iter_mut().try_for_each(Counter::enable)
    }

    /// Stops the recording of perf events into this ring buffer.
    pub fn disable(&mut self) {
        // This fails only if the event does not exist any more.
        let _ = self.sampler.disable();
        self.others.iter_mut().for_each(|counter| {
            let _ = counter.disable();
        });
    }

    /// Descriptor that becomes readable when the ring buffer is half full.
    pub fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the sampler, which is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.sampler.as_raw_fd()) }
    }

    /// Calls the function `take` for each record in the perf ring buffer, with begin and end of an interrupt or of a page
    /// fault as one event.
    pub fn read(&mut self, mut take: impl FnMut(Record)) {
        while let Some(raw) = self.sampler.next_record() {
            let (kind, misc) = (raw.ty(), raw.misc());
            let data = raw.to_contiguous();
            if let Some(faults) = self.faults.as_mut().filter(|_| kind == RECORD_SAMPLE) {
                faults.take(&data).into_iter().map(Record::Event).for_each(&mut take);
                continue;
            }
            let Some(record) = parse(kind, misc, &data, &self.points) else { continue };
            match record {
                Record::Event(SwitchEvent { at_ns, cpu, what: SwitchKind::Switch { out, into, .. } }) => {
                    // The kernel's own records come twice for most switches, for the leaving and for the coming thread;
                    // some switches of idle CPUs are recorded only for the coming thread.
                    let known = self.points.switch.is_none() && is_arrival(misc) && self.here == Some(into);
                    self.here = Some(into);
                    if known {
                        continue;
                    }
                    self.pairs.switch((out, into), cpu, at_ns).into_iter().map(Record::Event).for_each(&mut take);
                }
                Record::Edge { by, is_begin: true, at_ns, .. } => self.pairs.begin(by, at_ns),
                Record::Edge { by, cpu, at_ns, .. } => {
                    self.pairs.end(by, cpu, at_ns).into_iter().map(Record::Event).for_each(&mut take);
                }
                Record::Missing { records, .. } => {
                    self.reported_lost += records;
                    self.pairs.forget();
                    self.faults.iter_mut().for_each(Faults::forget);
                }
                _ => {}
            }
            if !matches!(record, Record::Edge { .. }) {
                take(record);
            }
        }
    }

    /// Number of lost records that [`Ring::read`] has not reported: the kernel reports them only when it writes the
    /// next record, and after the last one it writes none.
    pub fn lost_more(&mut self) -> u64 {
        let lost = |counter: &mut Counter| counter.read_full().ok().and_then(|data| data.lost()).unwrap_or(0);
        let total = lost(&mut self.sampler) + self.others.iter_mut().map(lost).sum::<u64>();
        total.saturating_sub(self.reported_lost)
    }
}
