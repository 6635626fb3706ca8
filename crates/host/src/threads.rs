//! The thread table of a process, as the kernel shows it.
//!
//! Input: a process id and a function from thread names to roles. Output: one [`ThreadRow`] for each thread, sorted by
//! thread id, and a remark for every value that could not be read. For threads that were runnable during the first
//! reading, the kernel's counters are read a second time. How a thread was created (`born_in`, `birth`, `creator`) is
//! not visible here: the agent, which sees threads being created, fills these fields in.

use crate::process::Stat;
use crate::sched_call;
use std::fs;
use std::io;
use std::time::{Duration, Instant};
use tailbound_model::{CpuList, Policy, RoleScheduling, ThreadLater, ThreadRow};

/// The threads of one process, and remarks on values that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadScan {
    /// Policy, CPUs and counters of each thread of the process, sorted by thread id.
    pub rows: Vec<ThreadRow>,
    /// One sentence for each value that was replaced by a default (0, default policy, no CPU) because it could not be
    /// read, and for each thread that ended during the reading.
    pub remarks: Vec<String>,
}

/// Reads all threads of a process. `role` maps a thread's name to its role.
///
/// # Errors
/// The process does not exist or its thread list is not readable.
pub fn read_threads(pid: i32, role: &dyn Fn(&str) -> String) -> io::Result<ThreadScan> {
    let mut tids: Vec<i32> = fs::read_dir(format!("/proc/{pid}/task"))?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    tids.sort_unstable();
    let mut scan = ThreadScan::default();
    for tid in tids {
        let mut remarks = Vec::new();
        match read_thread(pid, tid, role, &mut remarks) {
            Ok(row) => {
                scan.rows.push(row);
                scan.remarks.append(&mut remarks);
            }
            Err(error) => scan.remarks.push(format!("thread {tid} ended while it was read ({error})")),
        }
    }
    Ok(scan)
}

/// Reads the policy, CPUs and counters of one thread; an error means that the thread has ended.
fn read_thread(pid: i32, tid: i32, role: &dyn Fn(&str) -> String, remarks: &mut Vec<String>) -> io::Result<ThreadRow> {
    let dir = format!("/proc/{pid}/task/{tid}");
    let stat = Stat::read(&format!("{dir}/stat"))?;
    let name = fs::read_to_string(format!("{dir}/comm"))?.trim_end_matches('\n').to_owned();
    let mut need = |what: &str, value: Option<u64>| {
        value.unwrap_or_else(|| {
            remarks.push(format!("{what} of thread {tid} ({name}) could not be read; 0 is reported instead"));
            0
        })
    };

    let (cpu_ns, run_delay_ns) = times(&dir, &stat);
    let (cpu_ns, run_delay_ns) = (need("CPU time", cpu_ns), need("run delay", run_delay_ns));

    let status = fs::read_to_string(format!("{dir}/status"))?;
    let voluntary_switches = need("voluntary switches", field(&status, "voluntary_ctxt_switches"));
    let involuntary_switches = need("involuntary switches", field(&status, "nonvoluntary_ctxt_switches"));
    let minor_faults = need("minor page faults", stat.field(10));
    let major_faults = need("major page faults", stat.field(12));
    let last_cpu = need("last CPU", stat.field(39)) as u32;
    let sched = fs::read_to_string(format!("{dir}/sched")).unwrap_or_default();
    // /proc lists only the first thread of a process, but the directories of the others can be opened by name.
    let slack = fs::read_to_string(format!("/proc/{tid}/timerslack_ns")).ok();

    let gone = |error: &io::Error| error.raw_os_error() == Some(libc::ESRCH);
    let (policy, reset_on_fork) = match sched_call::get_policy(tid) {
        Err(error) if gone(&error) => return Err(error),
        found => found.unwrap_or_else(|error| {
            remarks.push(format!("policy of thread {tid} ({name}) could not be read: {error}"));
            (Policy::default(), false)
        }),
    };
    let cpus = match sched_call::get_affinity(tid) {
        Err(error) if gone(&error) => return Err(error),
        found => found.unwrap_or_else(|error| {
            remarks.push(format!("CPUs of thread {tid} ({name}) could not be read: {error}"));
            CpuList::default()
        }),
    };
    // SAFETY: gettid has no argument and cannot fail.
    let runnable = stat.state() == 'R' && tid != unsafe { libc::gettid() };
    Ok(ThreadRow {
        asked: RoleScheduling::default(),
        tid,
        role: role(&name),
        name,
        policy,
        reset_on_fork,
        cpus,
        last_cpu,
        cpu_ns,
        run_delay_ns,
        runnable,
        waits_since_ns: started_ns(&stat).filter(|_| runnable).map(|started| started + (cpu_ns + run_delay_ns) as i64),
        later: None,
        voluntary_switches,
        involuntary_switches,
        migrations: field(&sched, "se.nr_migrations"),
        minor_faults,
        major_faults,
        born_in: None,
        birth: None,
        creator: None,
        timer_slack_ns: slack.and_then(|text| text.trim().parse().ok()),
    })
}

/// Reads the counters of runnable threads again until the thread has got a CPU, because the kernel counts a wait for a
/// CPU only when the wait ends. For a thread that gets no CPU within `patience`, the last reading is kept. A thread
/// that has ended has no second reading.
pub fn read_later(pid: i32, rows: &mut [ThreadRow], patience: Duration) {
    let until = Instant::now() + patience;
    let mut open: Vec<&mut ThreadRow> = rows.iter_mut().filter(|row| row.runnable).collect();
    loop {
        for row in &mut open {
            row.later = later(pid, row.tid);
        }
        let unchanged = |row: &ThreadRow, later: ThreadLater| {
            later.runnable && (later.cpu_ns, later.run_delay_ns) == (row.cpu_ns, row.run_delay_ns)
        };
        open.retain(|row| row.later.is_some_and(|later| unchanged(row, later)));
        if open.is_empty() || Instant::now() >= until {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reads the counters of a thread a second time; `None` if the thread has ended or the kernel does not provide the
/// counters.
fn later(pid: i32, tid: i32) -> Option<ThreadLater> {
    let dir = format!("/proc/{pid}/task/{tid}");
    let stat = Stat::read(&format!("{dir}/stat")).ok()?;
    let (cpu_ns, run_delay_ns) = times(&dir, &stat);
    // The clock is read last, so all counted times lie before `at_ns`.
    let (cpu_ns, run_delay_ns, at_ns) = (cpu_ns?, run_delay_ns?, crate::monotonic_ns());
    Some(ThreadLater { at_ns, cpu_ns, run_delay_ns, runnable: stat.state() == 'R' })
}

/// Monotonic time at which a thread started, ns; up to a clock tick too early.
fn started_ns(stat: &Stat) -> Option<i64> {
    let since_boot_ns = stat.start_ticks()? * crate::clock::tick_ns();
    Some(crate::clock::monotonic_ns() - crate::clock::since_boot_ns() + since_boot_ns as i64)
}

/// CPU time of a thread and the total time of its finished waits for a CPU, both in ns.
fn times(dir: &str, stat: &Stat) -> (Option<u64>, Option<u64>) {
    let schedstat = fs::read_to_string(format!("{dir}/schedstat")).unwrap_or_default();
    let mut schedstat = schedstat.split_ascii_whitespace().map(|n| n.parse::<u64>().ok());
    (schedstat.next().flatten().or_else(|| cpu_ns_by_ticks(stat)), schedstat.next().flatten())
}

/// CPU time of a thread in ns, for kernels without schedstat: user plus system time, with the resolution of a clock
/// tick.
fn cpu_ns_by_ticks(stat: &Stat) -> Option<u64> {
    Some((stat.field(14)? + stat.field(15)?) * crate::clock::tick_ns())
}

/// The number after `key   :` in the text of a status or sched file in /proc.
fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim_end() == key).then(|| value.split_ascii_whitespace().next()?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn every_thread_of_this_process_is_seen_with_its_own_settings() {
        let (ready, is_ready) = mpsc::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let worker = std::thread::Builder::new()
            .name("tb-worker".into())
            .spawn(move || {
                sched_call::set_policy(0, &Policy::Batch { nice: 5 }, true).unwrap();
                let first = *sched_call::get_affinity(0).unwrap().0.first().unwrap();
                sched_call::set_affinity(0, &CpuList::one(first)).unwrap();
                // SAFETY: gettid has no argument and cannot fail.
                ready.send((unsafe { libc::gettid() }, first)).unwrap();
                let _ = stopped.recv();
            })
            .unwrap();
        let (tid, cpu) = is_ready.recv().unwrap();
        let role = |name: &str| if name == "tb-worker" { "receive".to_owned() } else { "other".to_owned() };
        let scan = read_threads(std::process::id() as i32, &role).unwrap();
        let row = scan.rows.iter().find(|r| r.tid == tid).expect("the worker is in the table");
        assert_eq!((row.name.as_str(), row.role.as_str()), ("tb-worker", "receive"));
        assert_eq!(row.policy, Policy::Batch { nice: 5 });
        assert!(row.reset_on_fork);
        assert_eq!(row.cpus, CpuList::one(cpu));
        assert_eq!(row.last_cpu, cpu);
        assert!(row.cpu_ns > 0);
        assert!(scan.rows.windows(2).all(|p| p[0].tid < p[1].tid));
        assert!(scan.rows.iter().any(|r| r.tid == std::process::id() as i32));
        drop(stop);
        worker.join().unwrap();
    }

    /// Test: a second thread spins on the CPU of the reading thread. The second thread runs while the reader sleeps,
    /// and waits while the reader reads.
    #[test]
    fn runnable_threads_are_read_a_second_time() {
        let cpu = *sched_call::get_affinity(0).unwrap().0.first().unwrap();
        let over = std::sync::atomic::AtomicBool::new(false);
        let (send_id, thread_id) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sched_call::set_affinity(0, &CpuList::one(cpu)).unwrap();
                // SAFETY: gettid has no argument and cannot fail.
                send_id.send(unsafe { libc::gettid() }).unwrap();
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let reader = scope.spawn(move || {
                let busy = thread_id.recv().unwrap();
                sched_call::set_affinity(0, &CpuList::one(cpu)).unwrap();
                // SAFETY: as above.
                let own = unsafe { libc::gettid() };
                let mut rows = read_threads(std::process::id() as i32, &|_| String::new()).unwrap().rows;
                rows.retain(|row| row.tid == busy || row.tid == own);
                read_later(std::process::id() as i32, &mut rows, Duration::from_secs(10));
                (busy, rows, crate::monotonic_ns())
            });
            let (busy, rows, now_ns) = reader.join().unwrap();
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            for row in rows {
                assert_eq!((row.runnable, row.later.is_some()), (row.tid == busy, row.tid == busy));
                let Some(later) = row.later else { continue };
                assert!(
                    later.run_delay_ns > row.run_delay_ns,
                    "the wait is counted after the thread had the CPU: {row:?}"
                );
                assert!(later.at_ns <= now_ns);
            }
        });
    }

    #[test]
    fn a_thread_that_has_ended_has_no_later_reading() {
        let scan = read_threads(std::process::id() as i32, &|_| String::new()).unwrap();
        let gone = ThreadRow { tid: i32::MAX, runnable: true, ..scan.rows[0].clone() };
        let asleep = ThreadRow { runnable: false, ..scan.rows[0].clone() };
        let mut rows = vec![gone, asleep];
        read_later(std::process::id() as i32, &mut rows, Duration::ZERO);
        assert!(rows.iter().all(|row| row.later.is_none()));
    }

    #[test]
    fn a_missing_process_is_an_error() {
        assert!(read_threads(i32::MAX, &|_| String::new()).is_err());
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "voluntary_ctxt_switches:\t55\nnonvoluntary_ctxt_switches:\t9\nse.nr_migrations      :      11\n";
        assert_eq!(field(text, "voluntary_ctxt_switches"), Some(55));
        assert_eq!(field(text, "se.nr_migrations"), Some(11));
        assert_eq!(field(text, "se.nr"), None);
    }
}
