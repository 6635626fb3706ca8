//! Reads what is known about a thread from `/proc`.

use crate::sched_call;
use tailbound_model::{Policy, Task};

/// Reads the thread with this id; `None` if it has ended.
pub(super) fn task(tid: i32) -> Option<Task> {
    Some(named(tid, comm(tid)?))
}

/// Reads the thread with this id, whose name is known; everything else is absent if the thread has ended.
pub(super) fn named(tid: i32, name: String) -> Task {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let process: Option<i32> = status.lines().find_map(|l| l.strip_prefix("Tgid:")?.trim().parse().ok());
    let process = process.filter(|pid| *pid != tid).and_then(comm).filter(|process| *process != name);
    Task { name, policy: policy(tid), process, kernel: is_of_the_kernel(tid) }
}

fn comm(tid: i32) -> Option<String> {
    Some(std::fs::read_to_string(format!("/proc/{tid}/comm")).ok()?.trim_end().to_owned())
}

/// True if the thread is a thread of the kernel: the flag PF_KTHREAD in field 9 of `/proc/TID/stat` (proc_pid_stat(5)).
fn is_of_the_kernel(tid: i32) -> bool {
    const PF_KTHREAD: u64 = 0x0020_0000;
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    // The name in field 2 may contain spaces and parentheses.
    let flags = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(6)?.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & PF_KTHREAD != 0)
}

fn policy(tid: i32) -> Option<Policy> {
    Some(sched_call::get_policy(tid).ok()?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_kernel_and_of_a_process_are_told_apart() {
        // Thread 2 is kthreadd, the parent of all threads of the kernel.
        if let Some(kthreadd) = task(2).filter(|task| task.name == "kthreadd") {
            assert!(kthreadd.kernel && kthreadd.process.is_none(), "{kthreadd:?}");
        }
        let own = std::thread::Builder::new().name("own-thread".into());
        let own = own.spawn(|| task(nix::unistd::gettid().as_raw())).unwrap().join().unwrap().unwrap();
        assert!(own.name == "own-thread" && !own.kernel && own.process.is_some(), "{own:?}");
    }
}
