//! Tests: context switches as the kernel reports them, compared with the sleeps of a thread whose times are known.

use crate::occupied::Occupied;
use std::sync::mpsc;
use std::time::Duration;
use tailbound_host::switches::{SwitchWatch, Wanted};
use tailbound_host::{allowed_cpus, monotonic_ns, scheduling};
use tailbound_model::{Attribution, CpuList, SwitchKind, SwitchScope};

const THREADS: Wanted = Wanted { level: Attribution::Threads, tracer: None, process: None };

/// Runs a thread that sleeps ten times for 20 ms on the last CPU. Returns the id of the thread, begin and end of every
/// sleep in ns, and the [`SwitchWatch`] that recorded its context switches.
fn sleeper(watch: impl FnOnce(i32, CpuList) -> SwitchWatch) -> (i32, Vec<(i64, i64)>, SwitchWatch) {
    let cpus = CpuList(allowed_cpus().last().copied().into_iter().collect());
    let (told, hear) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let on = cpus.clone();
    let thread = std::thread::spawn(move || {
        scheduling::set_affinity(0, &on).unwrap();
        // SAFETY: gettid has no preconditions.
        told.send(unsafe { libc::gettid() }).unwrap();
        wait.recv().unwrap();
        let mut sleeps = Vec::new();
        for _ in 0..10 {
            let begin = monotonic_ns();
            std::thread::sleep(Duration::from_millis(20));
            sleeps.push((begin, monotonic_ns()));
        }
        sleeps
    });
    let tid = hear.recv().unwrap();
    let mut watch = watch(tid, cpus);
    watch.begin();
    go.send(()).unwrap();
    while !thread.is_finished() {
        std::thread::sleep(Duration::from_millis(5));
        watch.read();
    }
    let sleeps = thread.join().unwrap();
    watch.end();
    (tid, sleeps, watch)
}

#[test]
fn every_sleep_is_seen_from_its_begin_to_its_end() {
    let _occupied = Occupied::start();
    let (tid, sleeps, mut watch) = sleeper(|tid, cpus| SwitchWatch::open(&[tid], &cpus, &THREADS));
    let window = (sleeps[0].0, sleeps[9].1);
    let seen = watch.events_in(&[window]);
    assert!(matches!(seen.scope, SwitchScope::Cpus(_) | SwitchScope::OwnThreads), "{:?}", seen.scope);
    assert!(seen.events.is_sorted_by_key(|e| e.at_ns) && seen.gaps.is_empty(), "{:?}", seen.gaps);
    for (begin, end) in sleeps {
        let within = seen.events.iter().filter(|e| (begin..=end).contains(&e.at_ns));
        let out = within.clone().find(|e| match e.what {
            SwitchKind::Switch { out, preempted, .. } => out == tid && !preempted,
            SwitchKind::Out { thread, preempted } => thread == tid && !preempted,
            _ => false,
        });
        let into = within.clone().rev().find(|e| match e.what {
            SwitchKind::Switch { into, .. } => into == tid,
            SwitchKind::In(thread) => thread == tid,
            _ => false,
        });
        let (out, into) = (out.expect("it left the CPU"), into.expect("it came back"));
        assert!(into.at_ns - out.at_ns >= 19_000_000, "{} ns", into.at_ns - out.at_ns);
        if seen.wakes {
            let wake = within.clone().find(|e| matches!(e.what, SwitchKind::Wake { thread, .. } if thread == tid));
            // The kernel does not always report a wake-up on an idle CPU; readers of the record can work without it.
            assert!(wake.is_none_or(|wake| (out.at_ns..=into.at_ns).contains(&wake.at_ns)));
        }
    }
}

#[test]
fn what_lies_outside_the_windows_is_left_out() {
    let (_, sleeps, mut watch) = sleeper(|tid, cpus| SwitchWatch::open(&[tid], &cpus, &THREADS));
    let windows = [sleeps[2], sleeps[7]];
    let seen = watch.events_in(&windows);
    assert!(!seen.events.is_empty());
    for event in &seen.events {
        assert!(windows.iter().any(|(begin, end)| (*begin..=*end).contains(&event.at_ns)));
    }
}
