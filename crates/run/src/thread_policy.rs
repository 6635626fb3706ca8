//! Scheduling by thread role. Each thread sets its own scheduling when it is created, before its start routine, and
//! again when it takes a name from which its role is known. This also works for threads that are created during the
//! trial.
//!
//! The input is the scheduling that the study asks for, and the driver's rules for roles (by thread name, or by the
//! driver's call that creates the thread and the position in that call). The output is threads with their scheduling,
//! or reasons why the kernel refused it. The thread table checks the scheduling afterwards.

use crate::creation_list::CallPosition;
use crate::thread_creation;
use std::ffi::{CStr, c_char};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, OnceLock};
use tailbound_abi::name_matches;
use tailbound_driver::ThreadRole;
use tailbound_host::scheduling;
use tailbound_model::{CpuList, Policy, Problem, RoleScheduling, Scheduling};

/// Names and roles of Tailbound's own threads.
///
/// A thread that runs an executor has the role `main`. The thread that waits for the order to stop has the role `main`
/// too, so that it is not starved.
const OWN: [(&str, &str); 4] =
    [("tb-receive", "receive"), ("tb-process", "processing"), ("tb-executor", "main"), ("tb-control", "main")];

/// Role of one of Tailbound's own threads by its name; `None` = no thread of Tailbound has this name.
pub(crate) fn own_role(name: &str) -> Option<&'static str> {
    let own = OWN.iter().find(|(own, _)| *own == name).map(|(_, role)| *role);
    own.or_else(|| name.starts_with("tb-load-").then_some("load"))
}

struct Rules {
    asked: Scheduling,
    roles: Vec<ThreadRole>,
    /// Scheduling of the process before any thread got the scheduling of its role.
    inherited: (Policy, CpuList),
    failures: Mutex<Vec<String>>,
}

static RULES: OnceLock<Rules> = OnceLock::new();
/// True once the driver is open, so that the scheduling policy `deadline` may be set. A thread with this policy cannot
/// create threads.
static OPEN: AtomicBool = AtomicBool::new(false);

/// Begins to give each new thread the scheduling of its role. If the study names no roles, threads inherit their
/// scheduling instead.
///
/// # Errors
/// The scheduling of this process cannot be read.
pub fn begin(asked: &Scheduling, roles: &[ThreadRole]) -> Result<(), Problem> {
    let deadline = asked.policies().any(|p| matches!(p, Policy::Deadline { .. }));
    if asked.roles.is_empty() && !deadline {
        return Ok(());
    }
    let unread = |e| Problem::new("scheduling", format!("the scheduling of this process cannot be read: {e}"), "");
    let inherited = scheduling::read_back(0).map_err(unread)?;
    let rules = Rules { asked: asked.clone(), roles: roles.to_vec(), inherited, failures: Mutex::default() };
    // A process runs one trial, so the rules are set once.
    let _ = RULES.set(rules);
    thread_creation::on_creation(created);
    Ok(())
}

/// Marks that the driver's function `open` or `create` is being called: threads that are created until the returned
/// guard is dropped count as created in this call.
pub fn during(call: &'static CStr) -> impl Drop {
    thread_creation::during(call)
}

/// Sets the policy `deadline` for threads, once the driver is open and the main thread creates no more threads. Returns
/// the reasons for which any scheduling was refused, without repetitions.
pub fn apply_deadlines(threads: &[(i32, String, bool)]) -> Vec<String> {
    OPEN.store(true, Release);
    let Some(rules) = RULES.get() else { return Vec::new() };
    for (tid, role, middleware) in threads {
        let wanted = rules.asked.of_role(role, *middleware);
        if matches!(wanted.policy, Some(Policy::Deadline { .. })) {
            rules.apply(*tid, role, wanted);
        }
    }
    let mut failures = rules.failures.lock().map(|f| f.clone()).unwrap_or_default();
    failures.dedup();
    failures
}

impl Rules {
    fn apply(&self, tid: i32, role: &str, wanted: RoleScheduling) {
        let (policy, cpus) = &self.inherited;
        let cpus = wanted.cpus.unwrap_or_else(|| cpus.clone());
        let policy = wanted.policy.unwrap_or(*policy);
        let deadline = matches!(policy, Policy::Deadline { .. });
        let given = match deadline {
            true if !OPEN.load(Acquire) => Ok(()),
            // The kernel requires that a thread with a deadline may run on all CPUs, and its creator may have had
            // fewer.
            true => scheduling::set_policy(tid, &policy, true),
            false => scheduling::apply(tid, &RoleScheduling { policy: Some(policy), cpus: Some(cpus) }),
        };
        if let (Err(e), Ok(mut failures)) = (given, self.failures.lock()) {
            failures.push(format!("role {role}: {e}"));
        }
    }

    fn by_name(&self, name: &str) -> Option<&str> {
        let fits = |r: &&ThreadRole| r.name_glob.as_deref().is_some_and(|pattern| name_matches(pattern, name));
        self.roles.iter().find(fits).map(|r| r.role.as_str())
    }
}

/// Role of a thread by the driver's call that created it, if the driver has a rule for it.
pub(crate) fn by_creation(roles: &[ThreadRole], (call, position): CallPosition) -> Option<&str> {
    let fits = |r: &&ThreadRole| r.born_in.as_deref() == call.to_str().ok() && r.index == Some(position);
    roles.iter().find(fits).map(|r| r.role.as_str())
}

/// Sets the scheduling of the calling thread, which was just created.
fn created(position: Option<CallPosition>) {
    // With `apply: vendor` the middleware creates the thread with its scheduling.
    let Some(rules) = RULES.get().filter(|rules| !rules.asked.by_vendor) else { return };
    let role = position.and_then(|position| by_creation(&rules.roles, position)).unwrap_or("other");
    rules.apply(0, role, rules.asked.of_role(role, true));
}

/// Sets the scheduling of the calling thread, which has taken a name.
fn named(name: &str) {
    let Some(rules) = RULES.get() else { return };
    if let Some(role) = own_role(name) {
        rules.apply(0, role, rules.asked.of_role(role, false));
    } else if let Some(role) = rules.by_name(name).filter(|_| !rules.asked.by_vendor) {
        rules.apply(0, role, rules.asked.of_role(role, true));
    }
}

type SetName = unsafe extern "C" fn(libc::pthread_t, *const c_char) -> i32;

/// Interposes the function `pthread_setname_np` of the C library: libraries name their threads in their first lines,
/// and the name of a thread determines its role.
///
/// # Safety
/// The rules of pthread_setname_np(3) apply to the arguments.
#[cfg_attr(not(miri), unsafe(no_mangle))] // Miri refuses a second function of this name.
pub unsafe extern "C" fn pthread_setname_np(thread: libc::pthread_t, name: *const c_char) -> i32 {
    let Some(next) = thread_creation::next(c"pthread_setname_np") else { return libc::ENOSYS };
    // SAFETY: the symbol has this type on every Linux C library.
    let next: SetName = unsafe { std::mem::transmute(next.as_ptr()) };
    // SAFETY: the caller keeps the conditions of pthread_setname_np.
    let code = unsafe { next(thread, name) };
    // SAFETY: no preconditions; and the C library has just read the name.
    if code == 0 && unsafe { libc::pthread_self() } == thread {
        named(&unsafe { CStr::from_ptr(name) }.to_string_lossy());
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_mark_in_the_pattern_of_a_role_stands_for_one_character() {
        let role = |role: &str, pattern: &str| ThreadRole {
            role: role.into(),
            name_glob: Some(pattern.into()),
            born_in: None,
            index: None,
        };
        let inherited = (Policy::Idle, CpuList::default());
        let roles = vec![role("receive", "recv?"), role("event", "*")];
        let rules = Rules { asked: Scheduling::default(), roles, inherited, failures: Mutex::default() };
        assert_eq!(rules.by_name("recvU"), Some("receive"));
        assert_eq!(rules.by_name("recvUC"), Some("event"));
    }
}
