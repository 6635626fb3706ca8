//! Scheduling by role, applied by each thread to itself: at its birth, before its start routine, and again when it takes a
//! name that tells its role. A thread that is born seconds into the trial is caught like the first.
//!
//! In: what was asked, and the driver's rules (role by name, or by the call that makes the thread and its place in it).
//! Out: threads set up, or reasons. Reading back is the business of the thread table.

use crate::births;
use std::ffi::{CStr, c_char};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, OnceLock};
use tailbound_driver::ThreadRole;
use tailbound_host::scheduling;
use tailbound_model::{CpuList, Policy, RoleScheduling, Scheduling};

/// Names of our own threads, and what they are for.
///
/// An executor is a main thread wherever it runs; what waits for the order to stop must not be starved either.
const OWN: [(&str, &str); 4] =
    [("tb-receive", "receive"), ("tb-process", "processing"), ("tb-executor", "main"), ("tb-control", "main")];

/// The role of one of our own threads.
pub(crate) fn own_role(name: &str) -> Option<&'static str> {
    let own = OWN.iter().find(|(own, _)| *own == name).map(|(_, role)| *role);
    own.or_else(|| name.starts_with("tb-load-").then_some("load"))
}

struct Rules {
    asked: Scheduling,
    roles: Vec<ThreadRole>,
    /// What the process had before any role was given its own.
    inherited: (Policy, CpuList),
    failures: Mutex<Vec<String>>,
}

static RULES: OnceLock<Rules> = OnceLock::new();
/// The driver is open: deadlines may be set. A thread with one cannot make others.
static OPEN: AtomicBool = AtomicBool::new(false);

/// From here on every thread gets what its role is to have; without roles they inherit from each other, as always.
pub fn begin(asked: &Scheduling, roles: &[ThreadRole]) -> Result<(), String> {
    let deadline = asked.policies().any(|p| matches!(p, Policy::Deadline { .. }));
    if asked.roles.is_empty() && !deadline {
        return Ok(());
    }
    let inherited = scheduling::read_back(0).map_err(|e| format!("the scheduling of this process: {e}"))?;
    let rules = Rules { asked: asked.clone(), roles: roles.to_vec(), inherited, failures: Mutex::default() };
    // One trial per process: it is set once.
    let _ = RULES.set(rules);
    births::at_birth(born);
    Ok(())
}

/// Threads made until the guard is dropped are born in this call of the driver, `open` or `create`.
pub fn during(call: &'static CStr) -> impl Drop {
    births::during(call)
}

/// The driver is open and the main thread needs no more threads: what had to wait is set now. Then the reasons for what
/// was refused, each once.
pub fn settle(threads: &[(i32, String, bool)]) -> Vec<String> {
    OPEN.store(true, Release);
    let Some(rules) = RULES.get() else { return Vec::new() };
    for (tid, role, middleware) in threads {
        let wanted = rules.asked.of_role(role, *middleware);
        if matches!(wanted.policy, Some(Policy::Deadline { .. })) {
            rules.give(*tid, role, wanted);
        }
    }
    let mut failures = rules.failures.lock().map(|f| f.clone()).unwrap_or_default();
    failures.dedup();
    failures
}

impl Rules {
    fn give(&self, tid: i32, role: &str, wanted: RoleScheduling) {
        let (policy, cpus) = &self.inherited;
        let cpus = wanted.cpus.unwrap_or_else(|| cpus.clone());
        let policy = wanted.policy.unwrap_or(*policy);
        let deadline = matches!(policy, Policy::Deadline { .. });
        let given = match deadline {
            true if !OPEN.load(Acquire) => Ok(()),
            // A deadline wants all CPUs, which the creator may not have had.
            true => scheduling::set_policy(tid, &policy, true),
            false => scheduling::apply(tid, &RoleScheduling { policy: Some(policy), cpus: Some(cpus) }),
        };
        if let (Err(e), Ok(mut failures)) = (given, self.failures.lock()) {
            failures.push(format!("role {role}: {e}"));
        }
    }

    fn by_name(&self, name: &str) -> Option<&str> {
        let fits = |r: &&ThreadRole| r.name_glob.as_deref().is_some_and(|glob| fits(glob, name));
        self.roles.iter().find(fits).map(|r| r.role.as_str())
    }
}

/// The role of a thread, where the driver's rules tell it by the place of its birth.
pub(crate) fn by_place(roles: &[ThreadRole], (call, place): births::Place) -> Option<&str> {
    let fits = |r: &&ThreadRole| r.born_in.as_deref() == call.to_str().ok() && r.index == Some(place);
    roles.iter().find(fits).map(|r| r.role.as_str())
}

fn born(place: Option<births::Place>) {
    // Left to the vendor's configuration: the thread was made with what it is to have.
    let Some(rules) = RULES.get().filter(|rules| !rules.asked.by_vendor) else { return };
    let role = place.and_then(|place| by_place(&rules.roles, place)).unwrap_or("other");
    rules.give(0, role, rules.asked.of_role(role, true));
}

/// The calling thread took a name.
fn named(name: &str) {
    let Some(rules) = RULES.get() else { return };
    if let Some(role) = own_role(name) {
        rules.give(0, role, rules.asked.of_role(role, false));
    } else if let Some(role) = rules.by_name(name).filter(|_| !rules.asked.by_vendor) {
        rules.give(0, role, rules.asked.of_role(role, true));
    }
}

/// `*` stands for any text.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).filter(|i| rest.is_char_boundary(*i)).any(|i| fits(after, &rest[i..]))
        }),
    }
}

type SetName = unsafe extern "C" fn(libc::pthread_t, *const c_char) -> i32;

/// In front of the C library's function of this name: libraries name their threads in their first lines, and the name
/// tells the role.
///
/// # Safety
/// As pthread_setname_np(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setname_np(thread: libc::pthread_t, name: *const c_char) -> i32 {
    let Some(next) = births::next(c"pthread_setname_np") else { return libc::ENOSYS };
    // SAFETY: the symbol has this type on every Linux C library.
    let next: SetName = unsafe { std::mem::transmute(next.as_ptr()) };
    // SAFETY: the caller's arguments.
    let code = unsafe { next(thread, name) };
    // SAFETY: no preconditions; and the C library has just read the name.
    if code == 0 && unsafe { libc::pthread_self() } == thread {
        named(&unsafe { CStr::from_ptr(name) }.to_string_lossy());
    }
    code
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("recv*", "recvUC", true),
            ("recv*", "dq.user", false),
            ("tev", "tev", true),
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "abd", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
