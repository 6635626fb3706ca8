//! Self-test of three seconds: measures how much CPU time an ordinary thread gets on the CPU of a real-time thread that
//! never sleeps.
//!
//! The test runs in a separate process, on one CPU, at the lowest real-time priority. Three mechanisms end the test:
//! its own clock, the kernel (RLIMIT_RTTIME), and the process that started the test.

use crate::scheduling::{set_affinity, set_policy};
use nix::sys::resource::{Resource, setrlimit};
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use tailbound_model::{CpuList, Policy, Problem, RescueSeen};

/// Time in ns during which the real-time thread runs alone: a little more than the default period of real-time
/// throttling, one second.
const ALONE_NS: i64 = 1_050_000_000;
/// Time in ns during which the real-time thread and the ordinary thread of the self-test both want the CPU.
const BESIDE_NS: i64 = 2_000_000_000;
/// Value of RLIMIT_RTTIME in us: the kernel ends a real-time thread that has not slept for this time.
const LIMIT_US: u64 = 4_500_000;

/// Returns the [`Problem`] that describes a failed step of the rescue test.
fn failed(what: impl Into<String>) -> Problem {
    Problem::new("rescue_test", what, "")
}

/// Runs the self-test of the real-time thread and the ordinary thread in the calling process, which must end soon
/// after.
///
/// # Errors
/// A step of the test is not permitted on this host or failed; the error says which step.
pub fn measure(cpu: u32) -> Result<RescueSeen, Problem> {
    setrlimit(Resource::RLIMIT_RTTIME, LIMIT_US, LIMIT_US)
        .map_err(|e| failed(format!("RLIMIT_RTTIME cannot be set: {e}")))?;
    set_affinity(0, &CpuList::one(cpu)).map_err(|e| failed(e.to_string()))?;
    let (go, over) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let ordinary = scope.spawn(|| {
            while !go.load(Acquire) {
                std::thread::park();
            }
            ordinary(&over)
        });
        let waiting = ordinary.thread().clone();
        let (go, over) = (&go, &over);
        let spinner = scope.spawn(move || {
            let wake = || {
                go.store(true, Release);
                waiting.unpark();
            };
            let seen = spinner(cpu, over, &wake);
            // The other thread is released in every case.
            over.store(true, Release);
            wake();
            seen
        });
        let seen = spinner.join().map_err(|_| failed("the real-time thread of this self-test failed"))?;
        let (cpu_ns, gap_ns) = ordinary.join().map_err(|_| failed("the ordinary thread failed"))?;
        seen.map(|s| RescueSeen { ordinary_cpu_ns: cpu_ns, ordinary_gap_ns: gap_ns, ..s })
    })
}

/// Runs the real-time thread: alone first, then together with the ordinary thread that `wake` releases.
fn spinner(cpu: u32, over: &AtomicBool, wake: &dyn Fn()) -> Result<RescueSeen, Problem> {
    set_policy(0, &Policy::Fifo { priority: 1 }, false).map_err(|e| failed(e.to_string()))?;
    let unread = |e: io::Error| failed(format!("the run delay or the idle time cannot be read: {e}"));
    let reading = |what: io::Result<u64>| what.map_err(unread);
    let (begin, delay, idle) = (crate::monotonic_ns(), reading(run_delay_ns())?, reading(idle_ns(cpu))?);
    while crate::monotonic_ns() - begin < ALONE_NS {
        std::hint::spin_loop();
    }
    let alone_delay_ns = reading(run_delay_ns())?.saturating_sub(delay);
    let alone_idle_ns = reading(idle_ns(cpu))?.saturating_sub(idle);
    let middle = crate::monotonic_ns();
    wake();
    while crate::monotonic_ns() - middle < BESIDE_NS {
        std::hint::spin_loop();
    }
    over.store(true, Release);
    let beside_ns = (crate::monotonic_ns() - middle) as u64;
    let alone_ns = (middle - begin) as u64;
    Ok(RescueSeen { cpu, alone_ns, alone_delay_ns, alone_idle_ns, beside_ns, ordinary_cpu_ns: 0, ordinary_gap_ns: 0 })
}

/// Runs the ordinary thread of the self-test: spins until the test is over. Returns two times in ns: the CPU time of
/// this thread, and the longest time for which the thread did not get the CPU.
fn ordinary(over: &AtomicBool) -> (u64, u64) {
    let mut gap = 0;
    let begin = crate::monotonic_ns();
    let (mut before, mut cpu_ns) = (begin, 0);
    while !over.load(Acquire) {
        let now = crate::monotonic_ns();
        gap = gap.max(now - before);
        before = now;
        cpu_ns = thread_cpu_ns();
    }
    // The last wait ends with the test. This wait counts too, because the kernel may never have given this thread the
    // CPU.
    (cpu_ns, gap.max((crate::monotonic_ns() - before).min(BESIDE_NS)) as u64)
}

fn thread_cpu_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec; the clock of the calling thread always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Time that the calling thread has waited for a CPU so far, in ns.
fn run_delay_ns() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    text.split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .ok_or_else(|| io::Error::other("schedstat is cut short"))
}

/// Idle time of the CPU with this number since boot, in ns.
fn idle_ns(cpu: u32) -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let line = text.lines().find_map(|l| l.strip_prefix(&format!("cpu{cpu} ")));
    let ticks = line.and_then(|l| l.split_whitespace().nth(3)?.parse::<u64>().ok());
    // USER_HZ is 100 on every Linux that this runs on.
    ticks.map(|t| t * 10_000_000).ok_or_else(|| io::Error::other(format!("/proc/stat does not show CPU {cpu}")))
}
