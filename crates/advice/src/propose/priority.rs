//! Proposals that change the policy and the priority of threads of the ends.

use crate::case::{Case, OWN_ROLES, Proposal};
use crate::settings;
use tailbound_model::{MIDDLEWARE, Policy, RoleScheduling, Scheduling};

/// Smallest nice value, the highest priority of time-sharing threads.
const LEAST_NICE: i32 = -20;

/// Real-time priority of a policy; 0 for time-sharing.
fn rank(policy: Option<Policy>) -> u32 {
    match policy {
        Some(Policy::Fifo { priority } | Policy::Rr { priority }) => priority,
        Some(Policy::Deadline { .. }) => 100,
        _ => 0,
    }
}

/// All threads of an end with a policy: roles keep their CPUs, and policies of roles that are not below it.
fn of_whole_end(old: &Scheduling, policy: Policy) -> Scheduling {
    let mut new = Scheduling { policy: Some(policy), ..old.clone() };
    for role in new.roles.values_mut() {
        role.policy = role.policy.filter(|own| rank(Some(*own)) >= rank(Some(policy)));
    }
    new.roles.retain(|_, role| role.policy.is_some() || role.cpus.is_some());
    new
}

/// The threads of one role with a policy; all others keep theirs.
fn of_one_role(old: &Scheduling, role: &str, policy: Policy) -> Scheduling {
    let mut new = old.clone();
    let cpus = new.roles.get(role).and_then(|of| of.cpus.clone());
    new.roles.insert(role.to_owned(), RoleScheduling { policy: Some(policy), cpus });
    new
}

/// Why a policy is enough, e.g. `above \`hog\` (fifo 50)`.
fn above(case: &Case<'_>) -> String {
    match case.by() {
        Some(by) => match &by.policy {
            Some(policy) => format!("above `{}` ({policy})", by.name),
            None => format!("above `{}`", by.name),
        },
        None => "above time-sharing threads".to_owned(),
    }
}

/// True if the scheduling of an end already has threads whose policies differ by their role.
fn differs_by_role(scheduling: &Scheduling) -> bool {
    scheduling.roles.values().any(|role| role.policy.is_some())
}

/// All threads of the delayed end with a priority above the thread that had the CPU.
pub(crate) fn of_end(case: &Case<'_>) -> Vec<Proposal> {
    end_above(case, case.end(), 1.0)
}

/// All threads of the other end with this priority.
pub(crate) fn of_other_end(case: &Case<'_>) -> Vec<Proposal> {
    if case.situation.spec.is_one_session() {
        return Vec::new();
    }
    end_above(case, case.other_end(), 0.1)
}

fn end_above(case: &Case<'_>, end: &str, fit: f64) -> Vec<Proposal> {
    let old = &case.spec_of(end).scheduling;
    let Some(policy) = case.policy_above() else { return Vec::new() };
    let lowest = old.policies().map(|own| rank(Some(own))).chain((old.policy.is_none()).then_some(0)).min();
    if lowest >= Some(rank(Some(policy))) {
        return Vec::new();
    }
    // A study that gives roles their own policies has a reason for the others.
    let fit = if differs_by_role(old) { 0.8 * fit } else { fit };
    let setting = settings::scheduling(case.key_of(end), &of_whole_end(old, policy));
    let text = format!("Give all threads of the {end} end the policy `{policy}`, {}.", above(case));
    vec![Proposal::new(vec![setting], fit, text)]
}

/// The threads of the middleware of the delayed end with a priority above the thread that had the CPU.
pub(crate) fn of_middleware(case: &Case<'_>) -> Vec<Proposal> {
    let old = &case.spec_of(case.end()).scheduling;
    let Some(policy) = case.policy_above() else { return Vec::new() };
    if rank(old.of_role(MIDDLEWARE, true).policy) >= rank(Some(policy)) {
        return Vec::new();
    }
    let is_delayed = case.is_middleware_delayed();
    let mut new = of_one_role(old, MIDDLEWARE, policy);
    // Entries of single roles come before the entry of all threads of the middleware.
    for (_, role) in new.roles.iter_mut().filter(|(name, _)| !OWN_ROLES.contains(&name.as_str())) {
        role.policy = role.policy.map(|own| if rank(Some(own)) < rank(Some(policy)) { policy } else { own });
    }
    let fit = if is_delayed { 0.95 } else { 0.3 };
    let setting = settings::scheduling(case.key_of(case.end()), &new);
    let text =
        format!("Give the threads of the middleware at the {} end the policy `{policy}`, {}.", case.end(), above(case));
    vec![Proposal::new(vec![setting], fit, text)]
}

/// Roles of threads that wait for messages or pass them on, in the order in which they are tried when they were not delayed.
fn roles_of(driver: &str) -> &'static [&'static str] {
    match driver {
        "cyclonedds" => &["receive", "main", "event", "send"],
        "fastdds" => &["receive", "main", "event"],
        "udp" => &["receive", "main"],
        _ => &["main"],
    }
}

/// The threads of one role of the delayed end with this priority: first the delayed roles, then others.
pub(crate) fn of_role(case: &Case<'_>) -> Vec<Proposal> {
    let old = &case.spec_of(case.end()).scheduling;
    let Some(policy) = case.policy_above() else { return Vec::new() };
    let delayed = case.delayed_roles();
    let driver = case.driver_of(case.end()).family();
    let others = roles_of(driver).iter().filter(|role| !delayed.contains(role)).map(|role| (*role, false));
    let roles = delayed.iter().map(|role| (*role, true)).chain(others);
    let is_driver = |role: &str| !OWN_ROLES.contains(&role);
    let lower = roles.filter(|(role, _)| rank(old.of_role(role, is_driver(role)).policy) < rank(Some(policy)));
    let mut others = 0;
    lower
        .map(|(role, is_delayed)| {
            let fit = if is_delayed && delayed.len() == 1 {
                0.9
            } else if is_delayed {
                0.5
            } else {
                others += 1;
                0.3 / f64::from(others)
            };
            let setting = settings::scheduling(case.key_of(case.end()), &of_one_role(old, role, policy));
            let end = case.end();
            let text =
                format!("Give the threads of role {role} at the {end} end the policy `{policy}`, {}.", above(case));
            Proposal::new(vec![setting], fit, text)
        })
        .collect()
}

/// A smaller nice value for the threads of the delayed end, if they are time-sharing.
pub(crate) fn nice(case: &Case<'_>) -> Vec<Proposal> {
    let old = &case.spec_of(case.end()).scheduling;
    let is_favoured = matches!(old.policy, Some(Policy::Other { nice } | Policy::Batch { nice }) if nice <= LEAST_NICE);
    if is_favoured || old.policies().any(|policy| policy.is_real_time()) {
        return Vec::new();
    }
    let new = Scheduling { policy: Some(Policy::Other { nice: LEAST_NICE }), ..old.clone() };
    let fit = if case.by_real_time() { 0.05 } else { 0.6 };
    let end = case.end();
    let text = format!("Give the threads of the {end} end the nice value {LEAST_NICE}.");
    vec![Proposal::new(vec![settings::scheduling(case.key_of(end), &new)], fit, text)]
}

/// Time-sharing for the threads of an end that used up their real-time run time.
pub(crate) fn without_deadline(case: &Case<'_>) -> Vec<Proposal> {
    let old = &case.spec_of(case.end()).scheduling;
    let Some(Policy::Deadline { runtime_ns, deadline_ns, period_ns }) = old.policy else { return Vec::new() };
    let end = case.key_of(case.end());
    let longer = Policy::Deadline { runtime_ns: (2 * runtime_ns).min(deadline_ns), deadline_ns, period_ns };
    let change = |policy, fit, text: String| {
        let new = Scheduling { policy: Some(policy), ..old.clone() };
        Proposal::new(vec![settings::scheduling(end, &new)], fit, text)
    };
    let mut all = Vec::new();
    if Some(longer) != old.policy {
        let text = format!("Give the threads of the {end} end twice the run time in each period (`{longer}`).");
        all.push(change(longer, 1.0, text));
    }
    let text = format!("Give the threads of the {end} end the policy `fifo 60`, which has no run time.");
    all.push(change(Policy::Fifo { priority: 60 }, 0.7, text));
    all
}

/// The thread that had the CPU with a lower priority or on other CPUs, by hand.
pub(crate) fn of_hog(case: &Case<'_>) -> Vec<Proposal> {
    let Some(by) = case.by() else { return Vec::new() };
    let text = format!("Give the thread `{}` a lower priority, or CPUs that no end uses.", by.name);
    vec![Proposal::by_hand(0.25, text)]
}
