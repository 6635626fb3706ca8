//! Tests: interrupts, states of threads and wakers as the kernel reports them, by perf events and by BPF, compared with
//! faults that a test plants.

use crate::busy::{Busy, covered};
use crate::flood::Flood;
use crate::occupied::Occupied;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tailbound_host::switches::{SwitchWatch, TRACER_FILE, Wanted};
use tailbound_host::{allowed_cpus, monotonic_ns, scheduling};
use tailbound_model::{Attribution, CpuList, Interruption, RecordedBy, SleepState, SwitchEvent, SwitchKind, Switches};

const NET_RX: Interruption = Interruption::Softirq(3);
/// Number of datagrams in a flood.
const DATAGRAMS: usize = 200;
/// Least time that the soft interrupt takes to deliver a datagram to 300 sockets, ns: less than 0.1 us for each.
const DELIVERY_NS: i64 = 20_000;
/// Shortest gap of a busy thread that the test of soft interrupts looks at, ns: far shorter than the planted soft
/// interrupts.
const GAP_NS: i64 = 10_000;

/// Each test, once with perf events and once with BPF.
macro_rules! by_perf_and_by_bpf {
    ($($test:ident),* $(,)?) => {
        mod perf {
            $(#[test] fn $test() { super::$test(tailbound_model::RecordedBy::Perf); })*
        }
        mod bpf {
            $(#[test] fn $test() { super::$test(tailbound_model::RecordedBy::Bpf); })*
        }
    };
}

by_perf_and_by_bpf!(
    a_thread_that_a_timer_wakes_sleeps_interruptibly_and_is_woken_by_an_interrupt,
    a_thread_that_another_thread_wakes_is_not_woken_by_an_interrupt,
    a_stopped_thread_has_the_state_stopped,
    a_thread_that_waits_in_the_kernel_has_the_state_uninterruptible,
    a_flood_of_packets_is_seen_as_soft_interrupts_while_a_busy_thread_does_not_run,
    interrupts_are_recorded_only_on_the_watched_cpus,
    a_full_ring_buffer_is_a_gap,
);

/// The tracer that dev/tracer built beside this test program.
pub fn tracer() -> Option<PathBuf> {
    let program = std::env::current_exe().unwrap();
    let target = program.ancestors().nth(3).unwrap();
    Some(target.join("lib/tailbound/drivers").join(TRACER_FILE)).filter(|file| file.exists())
}

/// Opens a recording of interrupts; without the rights for it the test is skipped.
pub fn watched(by: RecordedBy, threads: &[i32], cpus: &CpuList) -> Option<SwitchWatch> {
    let tracer = tracer().filter(|_| by == RecordedBy::Bpf);
    if by == RecordedBy::Bpf && tracer.is_none() {
        println!("skipped: the tracer is not built (dev/tracer)");
        return None;
    }
    let wanted = Wanted { level: Attribution::Machine, tracer: tracer.as_deref(), process: None };
    let watch = SwitchWatch::open(threads, cpus, &wanted);
    let recorder = watch.recorder().cloned();
    let has_it = recorder.as_ref().is_some_and(|r| r.level == Attribution::Machine && r.by == by);
    if !has_it {
        println!("skipped: {}", recorder.and_then(|r| r.instead).unwrap_or_default());
    }
    has_it.then_some(watch)
}

/// Runs `work` in a thread of its own while this thread reads the ring buffers, as an agent does. Returns the result of
/// `work`, and what each of `watches` recorded meanwhile.
pub fn record<T: Send, const N: usize>(
    mut watches: [SwitchWatch; N],
    work: impl FnOnce() -> T + Send,
) -> (T, [Switches; N]) {
    watches.iter_mut().for_each(SwitchWatch::begin);
    let begin = monotonic_ns();
    let result = std::thread::scope(|scope| {
        let thread = scope.spawn(work);
        while !thread.is_finished() {
            std::thread::sleep(Duration::from_millis(5));
            watches.iter_mut().for_each(SwitchWatch::read);
        }
        thread.join().unwrap()
    });
    // A thread that has ended leaves its CPU a little later.
    std::thread::sleep(Duration::from_millis(20));
    let end = monotonic_ns();
    watches.iter_mut().for_each(SwitchWatch::end);
    let seen = watches.map(|mut watch| watch.events_in(&[(begin, end)]));
    for Switches { gaps, windows, .. } in &seen {
        // A time span with too many events is left out.
        assert_eq!((&gaps[..], &windows[..]), (&[][..], &[(begin, end)][..]));
    }
    (result, seen)
}

pub fn last_cpu() -> u32 {
    allowed_cpus().last().copied().expect("a process may run on a CPU")
}

pub fn own_tid() -> i32 {
    // SAFETY: gettid has no preconditions.
    unsafe { libc::gettid() }
}

fn states(seen: &Switches, tid: i32) -> Vec<Option<SleepState>> {
    let left = seen.events.iter().filter_map(|event| match event.what {
        SwitchKind::Switch { out, preempted: false, state, .. } if out == tid => Some(state),
        _ => None,
    });
    left.collect()
}

/// Wake-ups of a thread: who woke it, and whether that was an interrupt.
fn wakes(seen: &Switches, tid: i32) -> Vec<(i32, bool)> {
    let woken = seen.events.iter().filter_map(|event| match event.what {
        SwitchKind::Wake { thread, by, interrupt, .. } if thread == tid => Some((by, interrupt)),
        _ => None,
    });
    woken.collect()
}

fn a_thread_that_a_timer_wakes_sleeps_interruptibly_and_is_woken_by_an_interrupt(by: RecordedBy) {
    let _occupied = Occupied::start();
    let cpus = CpuList::one(last_cpu());
    let (send, receive) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let on = cpus.clone();
    let thread = std::thread::spawn(move || {
        scheduling::set_affinity(0, &on).unwrap();
        send.send(own_tid()).unwrap();
        if wait.recv().is_err() {
            return;
        }
        (0..10).for_each(|_| std::thread::sleep(Duration::from_millis(5)));
    });
    let tid = receive.recv().unwrap();
    let Some(watch) = watched(by, &[tid], &cpus) else { return };
    let work = || {
        go.send(()).unwrap();
        thread.join().unwrap();
    };
    let ((), [seen]) = record([watch], work);
    let slept = states(&seen, tid).iter().filter(|s| **s == Some(SleepState::Interruptible)).count();
    assert!(slept >= 10, "{slept} sleeps: {:?}", states(&seen, tid));
    assert_eq!(states(&seen, tid).last(), Some(&Some(SleepState::Ended)));
    let by_timer = wakes(&seen, tid).iter().filter(|(_, interrupt)| *interrupt).count();
    assert!(by_timer >= 8, "{:?}", wakes(&seen, tid));
}

fn a_thread_that_another_thread_wakes_is_not_woken_by_an_interrupt(by: RecordedBy) {
    let cpus = CpuList::one(last_cpu());
    let (send, receive) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let on = cpus.clone();
    let thread = std::thread::spawn(move || {
        scheduling::set_affinity(0, &on).unwrap();
        send.send(own_tid()).unwrap();
        let _ = (0..20).try_for_each(|_| wait.recv());
    });
    let tid = receive.recv().unwrap();
    let Some(watch) = watched(by, &[tid], &cpus) else { return };
    let work = || {
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(2));
            go.send(()).unwrap();
        }
        thread.join().unwrap();
        own_tid()
    };
    let (me, [seen]) = record([watch], work);
    let by_me = wakes(&seen, tid).iter().filter(|wake| **wake == (me, false)).count();
    assert!(by_me >= 15, "woken by {me}: {:?}", wakes(&seen, tid));
}

fn a_stopped_thread_has_the_state_stopped(by: RecordedBy) {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep of coreutils");
    let tid = child.id() as i32;
    let cpus = CpuList(allowed_cpus().into_iter().collect());
    let Some(watch) = watched(by, &[tid], &cpus) else {
        child.kill().unwrap();
        child.wait().unwrap();
        return;
    };
    let work = move || {
        std::thread::sleep(Duration::from_millis(20));
        // SAFETY: a process that this test started.
        unsafe { libc::kill(tid, libc::SIGSTOP) };
        let until = Instant::now() + Duration::from_secs(10);
        let is_stopped = || std::fs::read_to_string(format!("/proc/{tid}/stat")).is_ok_and(|s| s.contains(") T "));
        while !is_stopped() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    };
    let ((), [seen]) = record([watch], work);
    assert!(states(&seen, tid).contains(&Some(SleepState::Stopped)), "{:?}", states(&seen, tid));
}

/// Test: while a thread starts another program, it waits in the kernel until that program runs (CLONE_VFORK), and no
/// signal wakes it.
fn a_thread_that_waits_in_the_kernel_has_the_state_uninterruptible(by: RecordedBy) {
    let cpus = CpuList(allowed_cpus().into_iter().collect());
    let Some(watch) = watched(by, &[own_tid()], &cpus) else { return };
    let work = || {
        for _ in 0..10 {
            assert!(std::process::Command::new("true").status().unwrap().success());
        }
        own_tid()
    };
    let (tid, [seen]) = record([watch], work);
    // Only BPF shows that the thread waits neither for a disk nor for a page of memory.
    let expected = if by == RecordedBy::Bpf { SleepState::KernelLock } else { SleepState::Uninterruptible };
    let waits = states(&seen, tid).iter().filter(|s| **s == Some(expected)).count();
    assert!(waits >= 5, "{:?}", states(&seen, tid));
}

/// Test: packets are sent on one CPU and received by the soft interrupt of another CPU, where a busy thread sees gaps in
/// its own time. The recorded soft interrupts must lie within these gaps.
fn a_flood_of_packets_is_seen_as_soft_interrupts_while_a_busy_thread_does_not_run(by: RecordedBy) {
    let allowed = allowed_cpus();
    let (Some(from), Some(to)) = (allowed.first().copied(), allowed.get(1).copied()) else {
        println!("skipped: needs two CPUs");
        return;
    };
    let cpus = CpuList::one(to);
    let Some(watch) = watched(by, &[own_tid()], &cpus) else { return };
    let flood = match Flood::prepare(from, to) {
        Ok(flood) => flood,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    let work = || {
        let busy = Busy::begin(to, GAP_NS);
        std::thread::sleep(Duration::from_millis(100));
        flood.run(DATAGRAMS);
        busy.end()
    };
    let (gaps, [seen]) = record([watch], work);
    assert!(seen.interrupts && seen.events.is_sorted_by_key(|e| e.at_ns));
    // Packets of other programs take less time, too little for a gap.
    let is_net_rx = |e: &&SwitchEvent| {
        e.cpu == to && matches!(e.what, SwitchKind::Interrupted { by: NET_RX, ns } if i64::from(ns) >= 2 * GAP_NS)
    };
    let received: Vec<&SwitchEvent> = seen.events.iter().filter(is_net_rx).collect();
    // A busy machine can deliver several datagrams in one soft interrupt, so that only the time is compared.
    let (whole, missed): (Vec<i64>, Vec<i64>) = received.iter().map(|event| covered(event, &gaps)).unzip();
    let (whole, missed): (i64, i64) = (whole.iter().sum(), missed.iter().sum());
    println!("{} soft interrupts of {whole} ns, of which a busy thread missed {missed} ns", received.len());
    assert!(whole >= DATAGRAMS as i64 * DELIVERY_NS, "{whole} ns for {DATAGRAMS} datagrams");
    assert!(missed * 10 >= whole * 9, "{missed} of {whole} ns");
}

/// All events are about CPUs in `scope`, but for wake-ups, which can come from every CPU, and page faults of the watched
/// threads.
fn interrupts_are_recorded_only_on_the_watched_cpus(by: RecordedBy) {
    let cpus = CpuList::one(last_cpu());
    let Some(watch) = watched(by, &[own_tid()], &cpus) else { return };
    let ((), [seen]) = record([watch], || std::thread::sleep(Duration::from_millis(200)));
    // A watched thread is followed on every CPU; it reads the ring buffers meanwhile, and the scheduler can move it.
    let of_thread = |e: &&SwitchEvent| {
        use SwitchKind::*;
        matches!(e.what, Wake { .. } | Moved { .. } | PageFault { .. } | Reclaim { .. })
    };
    let elsewhere = |e: &&SwitchEvent| !of_thread(e) && !cpus.0.contains(&e.cpu);
    assert_eq!(seen.events.iter().find(elsewhere), None);
}

/// Test: nobody reads the ring buffer while two threads wake each other more often than it has room for.
fn a_full_ring_buffer_is_a_gap(by: RecordedBy) {
    let cpus = CpuList::one(last_cpu());
    let Some(mut watch) = watched(by, &[own_tid()], &cpus) else { return };
    watch.begin();
    let begin = monotonic_ns();
    let on = cpus.clone();
    let (to, from) = mpsc::sync_channel(0);
    let receiver = std::thread::spawn(move || {
        scheduling::set_affinity(0, &on).unwrap();
        (from.iter().count(), own_sleeps())
    });
    let on = cpus.clone();
    let sender = std::thread::spawn(move || {
        scheduling::set_affinity(0, &on).unwrap();
        (0..100_000).for_each(|_| to.send(()).unwrap());
        own_sleeps()
    });
    let of_sender = sender.join().unwrap();
    let (received, of_receiver) = receiver.join().unwrap();
    assert_eq!(received, 100_000);
    let end = monotonic_ns();
    watch.end();
    // A result holds fewer events than the ring buffer, so that only a part is looked at.
    let (first, last) = ((begin, begin + 10_000_000), (end - 1_000_000, end));
    let seen = watch.events_in(&[first]);
    assert!(seen.events.len() > 100, "{} events in the first 10 ms", seen.events.len());
    let seen = watch.events_in(&[last]);
    // Wake-ups that come from another CPU are in the ring buffer of that CPU, which has room, and page faults of this thread in one
    // of their own.
    let is_elsewhere = |e: &SwitchEvent| !cpus.0.contains(&e.cpu) || matches!(e.what, SwitchKind::PageFault { .. });
    let here: Vec<&SwitchEvent> = seen.events.iter().filter(|e| !is_elsewhere(e)).collect();
    assert!(here.is_empty(), "in the last millisecond before {end}: {here:?}");
    let covers = |(from, to): &&(i64, i64)| *from <= last.0 && last.1 <= *to && *to < i64::MAX;
    assert!(seen.gaps.iter().any(|gap| covers(&gap)), "{last:?}: {:?}", seen.gaps);
    // Each sleep is a record, and so is each wake-up by a thread of this CPU.
    let counts = seen.records.expect("events were recorded");
    assert!(counts.dropped > 0 && counts.read > 0, "{counts:?}");
    assert!(
        counts.read + counts.dropped >= of_sender + of_receiver,
        "{counts:?}: {of_sender} and {of_receiver} sleeps"
    );
}

/// How often the calling thread has slept.
fn own_sleeps() -> u64 {
    let mut usage = std::mem::MaybeUninit::uninit();
    // SAFETY: the kernel fills all of `usage`, which is read only if it did.
    let done = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    assert_eq!(done, 0);
    // SAFETY: as above.
    unsafe { usage.assume_init() }.ru_nvcsw as u64
}

/// Test: the freezer of a control group stops a process. Perf events cannot tell this from another sleep.
#[test]
fn a_frozen_thread_has_the_state_frozen_by_bpf() {
    let is_frozen = |group: &Path| {
        let says = |file: &str, text: &str| {
            std::fs::read_to_string(group.join(file)).is_ok_and(|all| all.lines().any(|line| line == text))
        };
        says("freezer.state", "FROZEN") || says("cgroup.events", "frozen 1")
    };
    let of_version_1 = ("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED");
    let of_version_2 = |root| (root, "cgroup.freeze", "1", "0");
    let all = [of_version_1, of_version_2("/sys/fs/cgroup/unified"), of_version_2("/sys/fs/cgroup")];
    let mut tried = 0;
    for (root, file, freeze, thaw) in all {
        let group = PathBuf::from(root).join(format!("tb-frozen-{}", std::process::id()));
        if std::fs::create_dir(&group).is_err() {
            continue;
        }
        let frozen = group.join(file);
        if frozen.exists() {
            tried += 1;
            // A process that sleeps may be frozen without a context switch.
            let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
            let tid = child.id() as i32;
            let cpus = CpuList(allowed_cpus().into_iter().collect());
            let watch = watched(RecordedBy::Bpf, &[tid], &cpus);
            std::fs::write(group.join("cgroup.procs"), tid.to_string()).unwrap();
            let seen = watch.map(|mut watch| {
                watch.begin();
                std::fs::write(&frozen, freeze).unwrap();
                // The kernel freezes the process after the call.
                let until = std::time::Instant::now() + Duration::from_secs(10);
                while !is_frozen(&group) {
                    assert!(std::time::Instant::now() < until, "{root}: the process was not frozen");
                    std::thread::sleep(Duration::from_millis(5));
                }
                std::fs::write(&frozen, thaw).unwrap();
                watch.end();
                watch.events_in(&[(0, i64::MAX)])
            });
            child.kill().unwrap();
            child.wait().unwrap();
            std::fs::remove_dir(&group).unwrap();
            let Some(seen) = seen else { return };
            assert!(states(&seen, tid).contains(&Some(SleepState::Frozen)), "{root}: {:?}", states(&seen, tid));
        } else {
            std::fs::remove_dir(&group).unwrap();
        }
    }
    if tried == 0 {
        println!("skipped: needs a control group that this process may make, with a freezer");
    }
}

/// Test: perf events and BPF record the same CPU at the same time, while threads wake each other, sleep and end.
#[test]
fn perf_and_bpf_record_the_same_switches_and_wake_ups() {
    let _occupied = Occupied::start();
    let cpus = CpuList::one(last_cpu());
    let (Some(bpf), Some(perf)) =
        (watched(RecordedBy::Bpf, &[own_tid()], &cpus), watched(RecordedBy::Perf, &[own_tid()], &cpus))
    else {
        return;
    };
    let one = || {
        scheduling::set_affinity(0, &cpus).unwrap();
        let (to, from) = mpsc::channel();
        let waker = std::thread::spawn(move || (0..100).for_each(|_| to.send(()).unwrap()));
        (0..100).for_each(|_| from.recv().unwrap());
        waker.join().unwrap();
        (0..50).for_each(|_| std::thread::sleep(Duration::from_millis(2)));
        assert!(std::process::Command::new("true").status().unwrap().success());
    };
    // Both take their own times, so that an event at an edge can be in one window only.
    let ((), [bpf, perf]) = record([bpf, perf], || {
        std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(one))));
    });
    let switches = |seen: &Switches| kinds(seen, |what| matches!(what, SwitchKind::Switch { .. }));
    let wakes = |seen: &Switches| kinds(seen, |what| matches!(what, SwitchKind::Wake { .. }));
    // A wake-up between two soft interrupts can look like one of the interrupted thread to BPF.
    let wake_limit = wakes(&perf).len() / 50;
    let coarse = |kinds: Vec<SwitchKind>| kinds.into_iter().map(as_perf_events_show).collect::<Vec<_>>();
    let (switches, wakes) = (|seen: &Switches| coarse(switches(seen)), |seen: &Switches| coarse(wakes(seen)));
    for (bpf, perf, limit) in [(switches(&bpf), switches(&perf), 0), (wakes(&bpf), wakes(&perf), wake_limit)] {
        println!("{} and {} events", bpf.len(), perf.len());
        assert!(bpf.len() > 100 && bpf.len().abs_diff(perf.len()) <= 2, "{} and {}", bpf.len(), perf.len());
        let different = differences(&bpf, &perf);
        assert!(different.len() <= limit, "{different:?}");
    }
}

/// The event without what only BPF shows: why a thread sleeps uninterruptibly, limits of CPU time, packets.
fn as_perf_events_show(kind: SwitchKind) -> SwitchKind {
    match kind {
        SwitchKind::Switch { out, into, preempted, state, .. } => {
            let waits = [SleepState::KernelLock, SleepState::Io, SleepState::PageFault].map(Some).contains(&state);
            let state = if waits { Some(SleepState::Uninterruptible) } else { state };
            SwitchKind::Switch { out, into, preempted, state, limit: None }
        }
        SwitchKind::Wake { thread, by, interrupt, .. } => {
            SwitchKind::Wake { thread, by, interrupt, packet: false, limit: None }
        }
        other => other,
    }
}

/// Pairs of events that differ, if the sequences are shifted so that they fit best.
fn differences(one: &[SwitchKind], other: &[SwitchKind]) -> Vec<(SwitchKind, SwitchKind)> {
    let shifted = |(a, b): (usize, usize)| -> Vec<(SwitchKind, SwitchKind)> {
        one[a..].iter().copied().zip(other[b..].iter().copied()).filter(|(one, other)| one != other).collect()
    };
    let shifts = [(0, 0), (1, 0), (0, 1), (2, 0), (0, 2)];
    shifts.into_iter().map(shifted).min_by_key(Vec::len).unwrap_or_default()
}

fn kinds(seen: &Switches, is_wanted: fn(&SwitchKind) -> bool) -> Vec<SwitchKind> {
    seen.events.iter().map(|e| e.what).filter(is_wanted).collect()
}
