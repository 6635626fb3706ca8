//! Giving a thread the scheduling back that it had.

use super::Undone;
use crate::{process, scheduling};
use std::io;
use tailbound_model::{ProcessId, RoleScheduling};

/// What a thread has of what is asked: its policy, its CPUs, or both.
pub(crate) fn as_asked(tid: i32, asked: &RoleScheduling) -> io::Result<RoleScheduling> {
    let (policy, cpus) = scheduling::read_back(tid)?;
    Ok(RoleScheduling { policy: asked.policy.map(|_| policy), cpus: asked.cpus.as_ref().map(|_| cpus) })
}

pub(super) fn restore(
    thread: ProcessId,
    name: &str,
    before: &RoleScheduling,
    set: &RoleScheduling,
) -> io::Result<Undone> {
    let tid = thread.pid;
    if process::process_id(tid).ok() != Some(thread) {
        return Ok(Undone::AlreadyGone);
    }
    let now = as_asked(tid, set)?;
    if now == *before {
        return Ok(Undone::AlreadyGone);
    }
    if now != *set {
        return Ok(Undone::LeftAlone(format!(
            "thread {tid} ({name}) has `{now}` now, not `{set}` as this run gave it: somebody else changed it, so it stays \
             (it had `{before}` before)"
        )));
    }
    scheduling::apply(tid, before).map_err(io::Error::other)?;
    let now = as_asked(tid, set)?;
    if now != *before {
        return Err(io::Error::other(format!("thread {tid} ({name}) still has `{now}`")));
    }
    Ok(Undone::Did(format!("gave thread {tid} ({name}) `{before}` back")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use tailbound_model::Policy;

    #[test]
    fn a_thread_gets_back_what_it_had_unless_it_is_another_or_somebody_elses() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let id = process::process_id(child.id() as i32).unwrap();
        let of = |policy| RoleScheduling { policy: Some(policy), cpus: None };
        let before = as_asked(id.pid, &of(Policy::Idle)).unwrap();
        let Some(Policy::Other { nice }) = before.policy else { panic!("{before} to begin with") };
        let set = of(Policy::Batch { nice });
        let undo = |id| restore(id, "sleep", &before, &set).unwrap();
        assert_eq!(undo(id), Undone::AlreadyGone, "it has that");
        scheduling::apply(id.pid, &set).unwrap();
        let earlier = ProcessId { start_ticks: id.start_ticks - 1, ..id };
        assert_eq!(undo(earlier), Undone::AlreadyGone, "that one ended");
        assert!(matches!(undo(id), Undone::Did(_)));
        scheduling::apply(id.pid, &of(Policy::Batch { nice: nice + 1 })).unwrap();
        assert!(matches!(undo(id), Undone::LeftAlone(_)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
