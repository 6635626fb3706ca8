//! Names, priorities and processes of the threads in a trace.

use crate::perfetto::schema::{Process, ProcessTree, Thread};
use std::collections::{BTreeMap, BTreeSet};
use tailbound_analysis::Machine;
use tailbound_model::{Policy, Switches, ThreadTable};

/// Process id of `kthreadd`, the parent of all threads of the kernel.
const KTHREADD: i32 = 2;
/// Above all thread ids of Linux (`PID_MAX_LIMIT`): the ids from here on stand for "not recorded", one for each CPU.
const NOT_RECORDED: i32 = 1 << 22;

/// Thread id that stands for whatever had a CPU while no events of it were recorded.
pub(super) fn not_recorded(cpu: u32) -> i32 {
    NOT_RECORDED.saturating_add(i32::try_from(cpu).unwrap_or(0)).saturating_add(1)
}

/// Names and priorities of the threads of one trial, by thread id.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: BTreeMap<i32, (String, Option<i32>)>,
}

impl Names {
    pub fn of(seen: &[Switches], tables: &[ThreadTable]) -> Names {
        let tasks = seen.iter().flat_map(|s| &s.tasks);
        let tasks = tasks.map(|(tid, task)| (*tid, (task.name.clone(), task.policy.map(priority))));
        let rows = tables.iter().flat_map(|table| table.before.iter().chain(&table.after));
        let rows = rows.map(|row| (row.tid, (row.name.clone(), Some(priority(row.policy)))));
        Names { known: tasks.chain(rows).collect() }
    }

    /// Name of a thread that has or had this CPU.
    pub fn comm(&self, tid: i32, cpu: u32) -> String {
        match self.known.get(&tid) {
            Some((name, _)) => name.clone(),
            None if tid == 0 => format!("swapper/{cpu}"),
            None if tid == not_recorded(cpu) => format!("not recorded (CPU {cpu})"),
            None if tid < 0 => "a thread without a visible id".into(),
            None => "a thread that ended".into(),
        }
    }

    /// Priority of a thread as tracepoints of the kernel report it; `None` if it is not known.
    pub fn prio(&self, tid: i32) -> Option<i32> {
        self.known.get(&tid)?.1
    }
}

/// The kernel's own priority of a thread: -1 for deadline threads, 0 to 98 for real-time threads, 120 for nice 0.
fn priority(policy: Policy) -> i32 {
    let real_time = |priority: u32| i32::try_from(priority).map_or(0, |priority| 99 - priority);
    match policy {
        Policy::Deadline { .. } => -1,
        Policy::Fifo { priority } | Policy::Rr { priority } => real_time(priority),
        Policy::Other { nice } | Policy::Batch { nice } => nice.saturating_add(120),
        Policy::Idle => 120,
    }
}

/// The processes of a trial: those of its ends, with their names in the trace, and the threads of the kernel.
pub(super) fn process_tree(seen: &[Switches], ends: &[(String, &ThreadTable)]) -> ProcessTree {
    let mut tree = ProcessTree::default();
    for (name, table) in ends {
        let process = Process { pid: Some(table.pid), cmdline: vec![name.clone()], ..Process::default() };
        tree.processes.push(process);
        let mut listed = BTreeSet::new();
        for row in table.before.iter().chain(&table.after).filter(|row| listed.insert(row.tid)) {
            let (tid, name, tgid) = (Some(row.tid), Some(row.name.clone()), Some(table.pid));
            tree.threads.push(Thread { tid, name, tgid });
        }
    }
    let tasks: BTreeMap<_, _> = seen.iter().flat_map(|s| &s.tasks).collect();
    for (tid, task) in tasks.into_iter().filter(|(_, task)| task.kernel) {
        let parent = Machine::of_thread(*tid).thread(KTHREADD);
        let (pid, ppid, is_kthread) = (Some(*tid), Some(parent), Some(true));
        tree.processes.push(Process { pid, ppid, cmdline: vec![task.name.clone()], is_kthread });
    }
    tree
}
