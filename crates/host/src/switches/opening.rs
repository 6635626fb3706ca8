//! Chooses how the events of a trial are recorded: by the tracer (BPF), or by perf events of whole CPUs or of threads.

use super::cost::{self, Costs};
use super::follow::Follower;
use super::points::Points;
use super::records::Record;
use super::ring::{Contents, Ring};
use super::tracer::Tracer;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use tailbound_model::{Attribution, CpuList, Problem, RecordCounts, RecordedBy, Recorder, RecordingCost, SwitchScope};

/// Size in bytes of the ring buffer of a CPU on which watched threads may run; users without privilege may have one
/// buffer of this size for each CPU (kernel.perf_event_mlock_kb).
const WATCHED_CPU: usize = 512 << 10;
/// Size in bytes of the ring buffer of a CPU whose tracepoints are recorded: their records are larger, and there are
/// more of them. Users without privilege cannot have it, and cannot record tracepoints.
const WITH_TRACEPOINTS: usize = 2 << 20;
/// Size in bytes of the ring buffer of a CPU on which no watched thread may run.
const OTHER_CPU: usize = 64 << 10;
/// Size in bytes of the ring buffer of one thread.
const THREAD: usize = 32 << 10;

/// What should be recorded.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Level of the recording that the study asks for.
    pub level: Attribution,
    /// The tracer's shared object; `None` if this installation has none.
    pub tracer: Option<&'a Path>,
    /// Process whose messages are followed at the level `packets`; `None` = no messages are followed.
    pub process: Option<i32>,
}

/// Open ring buffers, and what they record.
pub(super) struct Opened {
    pub rings: Vec<Ring>,
    pub tracer: Option<Tracer>,
    pub scope: SwitchScope,
    pub wakes: bool,
    pub interrupts: bool,
    pub recorder: Option<Recorder>,
    /// Follows messages, at the level `packets`.
    pub follower: Option<Follower>,
}

/// Opens what fits best to the wanted level and is permitted.
pub(super) fn open(threads: &[i32], cpus: &CpuList, wanted: &Wanted) -> Opened {
    if wanted.level == Attribution::Off {
        return Opened { scope: SwitchScope::Off, ..Opened::nothing(String::new()) };
    }
    if wanted.level == Attribution::Threads {
        return of_threads(threads, cpus, None);
    }
    let must_be_cheap = wanted.level == Attribution::Auto;
    let mut why_not = match Opened::by_tracer(cpus, wanted.tracer) {
        Ok(opened) => match opened.measured(RecordedBy::Bpf, threads, cpus, must_be_cheap) {
            Ok(opened) => {
                return match wanted.process {
                    Some(process) if wanted.level == Attribution::Packets => {
                        opened.with_packets(threads, cpus, process)
                    }
                    Some(process) if must_be_cheap => opened.with_cheap_packets(threads, cpus, process),
                    _ => opened,
                };
            }
            Err(reason) => reason,
        },
        Err(problem) => problem.what,
    };
    let points = Points::find();
    if let Some(opened) = Opened::by_perf(threads, cpus, &points) {
        match opened.measured(RecordedBy::Perf, threads, cpus, must_be_cheap) {
            Ok(mut opened) => {
                opened.recorder.iter_mut().for_each(|recorder| recorder.instead = Some(why_not.clone()));
                return opened;
            }
            Err(reason) => why_not = format!("{why_not}; {reason}"),
        }
    } else {
        why_not.push_str("; perf may not record interrupts");
    }
    of_threads(threads, cpus, Some(why_not))
}

/// Opens the level `threads`. `instead` says why it is not the level `machine`.
fn of_threads(threads: &[i32], cpus: &CpuList, instead: Option<String>) -> Opened {
    let recorder =
        Recorder { level: Attribution::Threads, by: RecordedBy::Perf, instead, cost: None, others: Vec::new() };
    let opened = |rings, scope| Opened { rings, scope, recorder: Some(recorder.clone()), ..Opened::default() };
    // A tracepoint can exist without being permitted.
    let traced = Points::find().without_interrupts();
    for (points, bytes) in [(&traced, WITH_TRACEPOINTS), (&traced, WATCHED_CPU), (&Points::default(), WATCHED_CPU)] {
        if let Ok(mut rings) = of_cpus(threads, cpus, points, bytes) {
            rings.extend(page_faults(threads));
            let opened = Opened { wakes: points.wake.is_some(), ..opened(rings, SwitchScope::Cpus(cpus.clone())) };
            return opened.with_cost(threads, cpus);
        }
    }
    match of_each(threads) {
        Ok(rings) => {
            let opened = opened(rings, SwitchScope::OwnThreads);
            let recorder = opened.recorder.map(|recorder| Recorder { instead: only_own(recorder.instead), ..recorder });
            Opened { recorder, ..opened }
        }
        Err(e) => Opened::nothing(io::Error::to_string(&e)),
    }
}

/// Says that other programs are not recorded, and what would change that, after the reason why interrupts are not.
fn only_own(instead: Option<String>) -> Option<String> {
    let more = "other programs are not recorded either: `sudo sysctl kernel.perf_event_paranoid=0` permits that until the \
                next boot";
    Some(instead.map_or_else(|| more.to_owned(), |instead| format!("{instead}; {more}")))
}

/// Opens a ring buffer for each of the threads that still exist: a thread may have ended since it was listed.
fn of_each(threads: &[i32]) -> io::Result<Vec<Ring>> {
    let mut rings = Vec::new();
    let mut gone = None;
    for tid in threads {
        match Ring::of_thread(*tid, true, THREAD) {
            Ok(ring) => rings.push(ring),
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => gone = Some(e),
            Err(e) => return Err(e),
        }
    }
    match gone {
        Some(e) if rings.is_empty() => Err(e),
        _ => Ok(rings),
    }
}

/// Opens a ring buffer for the page faults of each thread, as far as the kernel permits.
fn page_faults(threads: &[i32]) -> impl Iterator<Item = Ring> {
    threads.iter().filter_map(|tid| Ring::of_thread(*tid, false, THREAD).ok())
}

impl Default for Opened {
    fn default() -> Opened {
        Opened::nothing(String::new())
    }
}

impl Opened {
    /// Records nothing, for this reason.
    pub fn nothing(why: String) -> Opened {
        let scope = SwitchScope::Nothing(why);
        Opened {
            rings: Vec::new(),
            tracer: None,
            scope,
            wakes: false,
            interrupts: false,
            recorder: None,
            follower: None,
        }
    }

    /// Attaches the tracer. Names of new threads come from perf events, if these are permitted.
    fn by_tracer(cpus: &CpuList, file: Option<&Path>) -> Result<Opened, Problem> {
        let missing = |what: &str| Problem::new("no_tracer", what, "");
        let file = file.ok_or_else(|| missing("this installation has no tracer, which records by BPF"))?;
        let tracer = Tracer::attach(file)?;
        let names = Contents { points: &Points::default(), watched: false, wakes: "", bytes: OTHER_CPU };
        let rings = online_cpus().and_then(|online| online.0.iter().map(|cpu| Ring::of_cpu(*cpu, &names)).collect());
        Ok(Opened {
            rings: rings.unwrap_or_default(),
            tracer: Some(tracer),
            scope: SwitchScope::Cpus(cpus.clone()),
            wakes: true,
            interrupts: true,
            recorder: Some(machine(RecordedBy::Bpf)),
            follower: None,
        })
    }

    /// Opens perf events of the level `machine`; `None` if they are not permitted or do not exist.
    fn by_perf(threads: &[i32], cpus: &CpuList, points: &Points) -> Option<Opened> {
        if points.edges.is_empty() {
            return None;
        }
        let open = |bytes| of_cpus(threads, cpus, points, bytes).ok();
        let mut rings = open(WITH_TRACEPOINTS).or_else(|| open(WATCHED_CPU))?;
        rings.extend(page_faults(threads));
        Some(Opened {
            rings,
            scope: SwitchScope::Cpus(cpus.clone()),
            wakes: points.wake.is_some(),
            interrupts: true,
            recorder: Some(machine(RecordedBy::Perf)),
            ..Opened::default()
        })
    }

    /// Adds the cost of the level `machine`. If it must be cheap, fails with the reason if it costs too much.
    fn measured(self, by: RecordedBy, threads: &[i32], cpus: &CpuList, must_be_cheap: bool) -> Result<Opened, String> {
        let mut opened = self.with_cost(threads, cpus);
        let cost = opened.recorder.as_ref().and_then(|recorder| recorder.cost);
        let name = if by == RecordedBy::Bpf { "BPF" } else { "perf" };
        match cost {
            Some(cost) if must_be_cheap && !cost::is_cheap(&cost) => {
                opened.close();
                let RecordingCost { per_message_ns, unwatched_ns, .. } = cost;
                Err(format!(
                    "recording interrupts by {name} costs {per_message_ns} ns of a message of {unwatched_ns} ns, more \
                     than a tenth"
                ))
            }
            None if must_be_cheap && by == RecordedBy::Perf => {
                opened.close();
                Err(format!("the cost of recording interrupts by {name} could not be measured"))
            }
            _ => Ok(opened),
        }
    }

    /// Adds the cost of the recording: measured now, or earlier by this process.
    fn with_cost(mut self, threads: &[i32], cpus: &CpuList) -> Opened {
        let Some(mut recorder) = self.recorder.take() else { return self };
        recorder.cost = Costs::of(recorder.level, recorder.by, cpus, |is_on| {
            if is_on { self.begin(threads, cpus).is_ok() } else { self.end_of_trial_run() }
        });
        Opened { recorder: Some(recorder), ..self }
    }

    /// Starts to record.
    ///
    /// # Errors
    /// The kernel refuses; nothing is recorded then.
    pub fn begin(&mut self, threads: &[i32], cpus: &CpuList) -> Result<(), Problem> {
        let refused = |e: io::Error| Problem::new("perf_refused", e.to_string(), "");
        // Records of the measurement of the cost do not belong to the trial.
        self.rings.iter_mut().for_each(|ring| ring.read(|_| {}));
        self.rings.iter_mut().try_for_each(Ring::enable).map_err(refused)?;
        if let Some(tracer) = &mut self.tracer {
            tracer.watch(cpus, threads)?;
            if let Some(follower) = &self.follower {
                // Records of an earlier use do not belong to the trial.
                tracer.read_packets(|_| {});
                tracer.watch_packets(&follower.sockets.ports.iter().copied().collect::<Vec<u16>>())?;
            }
        }
        Ok(())
    }

    fn end_of_trial_run(&mut self) -> bool {
        self.end();
        true
    }

    /// File descriptors that become readable when a ring buffer is half full.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(Ring::fd).chain(self.tracer.iter().flat_map(Tracer::fds))
    }

    /// Passes all records to `take`.
    pub fn read(&mut self, mut take: impl FnMut(Record)) {
        for ring in &mut self.rings {
            ring.read(&mut take);
        }
        let lost = self.tracer.as_mut().map_or(0, |tracer| tracer.read(|event| take(Record::Event(event))));
        if lost > 0 {
            take(Record::Missing { at_ns: super::kernel_clock::now_ns(), records: lost });
        }
    }

    /// Reads all records of packets. Records of the time span `since` (begin and end, monotonic ns) can be among those
    /// that were lost. Returns how many there were.
    pub fn read_packets(&mut self, since: (i64, i64)) -> RecordCounts {
        let mut counts = RecordCounts::default();
        let (Some(tracer), Some(follower)) = (&mut self.tracer, &mut self.follower) else { return counts };
        counts.dropped = tracer.read_packets(|packet| {
            counts.read += 1;
            follower.take(packet);
        });
        if counts.dropped > 0 {
            follower.miss(since);
        }
        counts
    }

    /// Stops the recording.
    pub fn end(&mut self) {
        self.rings.iter_mut().for_each(Ring::disable);
        self.tracer.iter_mut().for_each(Tracer::rest);
    }

    /// Number of lost records that [`Opened::read`] has not reported, after the end of the recording.
    pub fn lost_more(&mut self) -> u64 {
        self.rings.iter_mut().map(Ring::lost_more).sum()
    }

    /// Closes all ring buffers, and detaches the tracer.
    pub fn close(&mut self) {
        // The kernel waits for all CPUs before it closes a tracepoint: half a second for all of them, and as long as a
        // real-time load keeps a CPU from the threads of the kernel. The load may end only after this call.
        let open = (std::mem::take(&mut self.rings), self.tracer.take());
        // If no thread can be started, the caller waits.
        let _ = std::thread::Builder::new().name("close-rings".into()).spawn(move || drop(open));
    }
}

fn machine(by: RecordedBy) -> Recorder {
    Recorder { level: Attribution::Machine, by, instead: None, cost: None, others: Vec::new() }
}

/// The CPUs that are online.
///
/// # Errors
/// The file of the kernel with their list cannot be read.
pub fn online_cpus() -> io::Result<CpuList> {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    online.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

/// With at most this many CPUs, all of them are watched.
const FEW_CPUS: usize = 4;

/// The CPUs to watch for threads that may run on `own`: on small machines all CPUs, so that a thread that another program
/// moves is followed.
pub fn cpus_to_watch(own: CpuList) -> CpuList {
    online_cpus().ok().filter(|all| all.0.len() <= FEW_CPUS && all.0.is_superset(&own.0)).unwrap_or(own)
}

/// Opens a ring buffer for each online CPU: for context switches and interrupts on the CPUs in `cpus` with `bytes`
/// bytes, and on all CPUs for wake-ups of `threads`, and of all threads whose CPU is in `cpus`.
fn of_cpus(threads: &[i32], cpus: &CpuList, points: &Points, bytes: usize) -> io::Result<Vec<Ring>> {
    let wakes = wakes_filter(threads, cpus);
    let ring = |cpu: &u32| {
        let watched = cpus.0.contains(cpu);
        let bytes = if watched { bytes } else { OTHER_CPU };
        Ring::of_cpu(*cpu, &Contents { points, watched, wakes: &wakes, bytes })
    };
    online_cpus()?.0.iter().map(ring).collect()
}

/// Filter for the tracepoint `sched_waking`: one of `threads`, or a thread that last ran on one of `cpus`. Threads of
/// the kernel that pass messages on (ksoftirqd, interrupt threads, vhost) are among the second.
fn wakes_filter(threads: &[i32], cpus: &CpuList) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in &cpus.0 {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let own = threads.iter().map(|tid| format!("pid=={tid}"));
    let near = ranges.iter().map(|(first, last)| format!("(target_cpu>={first}&&target_cpu<={last})"));
    own.chain(near).collect::<Vec<_>>().join("||")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests that a thread which has ended does not hide the threads that still run.
    #[test]
    fn threads_that_have_ended_are_left_out() {
        // SAFETY: gettid has no preconditions.
        let own = unsafe { libc::gettid() };
        // No thread has this id: it is above the kernel's limit.
        let ended = i32::MAX;
        match of_each(&[ended, own]) {
            Ok(rings) => assert_eq!(rings.len(), 1),
            Err(e) if e.raw_os_error() == Some(libc::EACCES) => println!("skipped: perf events are not permitted: {e}"),
            Err(e) => panic!("{e}"),
        }
        assert!(of_each(&[ended]).is_err());
    }

    #[test]
    fn wake_ups_of_the_threads_and_of_their_cpus_are_recorded() {
        let cpus = CpuList([0, 1, 2, 5].into());
        let filter = wakes_filter(&[17, 18], &cpus);
        assert_eq!(filter, "pid==17||pid==18||(target_cpu>=0&&target_cpu<=2)||(target_cpu>=5&&target_cpu<=5)");
    }
}
