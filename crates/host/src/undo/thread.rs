//! Undoes the change of a thread's scheduling: restores the scheduling.

use super::outcome::Undone;
use crate::scheduling::as_asked;
use crate::{process, scheduling};
use std::io;
use tailbound_model::{ProcessId, RoleScheduling};

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
            "thread {tid} ({name}) has `{now}` now, not `{set}` as this run set it: somebody else changed it, so it stays \
             (it had `{before}` before)"
        )));
    }
    scheduling::apply(tid, before).map_err(io::Error::other)?;
    let now = as_asked(tid, set)?;
    if now != *before {
        return Err(io::Error::other(format!("thread {tid} ({name}) still has `{now}`")));
    }
    Ok(Undone::Did(format!("set thread {tid} ({name}) back to `{before}`")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use tailbound_model::Policy;

    #[test]
    fn a_thread_gets_its_scheduling_back_unless_it_was_replaced_or_changed_by_somebody_else() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let id = process::process_id(child.id() as i32).unwrap();
        let of = |policy| RoleScheduling { policy: Some(policy), cpus: None };
        let before = as_asked(id.pid, &of(Policy::Idle)).unwrap();
        let Some(Policy::Other { nice }) = before.policy else { panic!("{before} to begin with") };
        let set = of(Policy::Batch { nice });
        let undo = |id| restore(id, "sleep", &before, &set).unwrap();
        assert_eq!(undo(id), Undone::AlreadyGone, "the thread has the former scheduling");
        scheduling::apply(id.pid, &set).unwrap();
        let earlier = ProcessId { start_ticks: id.start_ticks - 1, ..id };
        assert_eq!(undo(earlier), Undone::AlreadyGone, "the thread of the journal has ended");
        assert!(matches!(undo(id), Undone::Did(_)));
        scheduling::apply(id.pid, &of(Policy::Batch { nice: nice + 1 })).unwrap();
        assert!(matches!(undo(id), Undone::LeftAlone(_)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
