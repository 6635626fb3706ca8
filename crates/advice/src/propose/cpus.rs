//! Proposals that move threads of the ends to other CPUs, or change what threads an end has.

use crate::case::{Case, Proposal};
use crate::settings;
use std::collections::BTreeSet;
use tailbound_model::{Arrangement, CpuList, HandOff, Measure, PlaceSpec, ReceiveMode, RoleScheduling};

/// Number of single CPUs that are proposed for an end.
const MOST_CPUS: usize = 3;

/// The CPUs as words, e.g. `CPU 2`.
fn words(cpus: &[u32]) -> String {
    let list = CpuList(cpus.iter().copied().collect());
    if cpus.len() == 1 { format!("CPU {list}") } else { format!("the CPUs {list}") }
}

/// Reason for a move, e.g. `CPU 1 is the one that \`hog\` had`.
fn away(case: &Case<'_>) -> String {
    format!("away from {}, which {} had", words(&case.contended()), case.by_name())
}

/// Whether an end may be given CPUs: the kernel refuses to pin threads of the policy deadline.
fn can_be_pinned(case: &Case<'_>, end: &str) -> bool {
    case.spec_of(end).scheduling.policies().all(|policy| policy.word() != "deadline")
        && !matches!(case.spec_of(end).place, PlaceSpec::Pod(_))
}

/// The delayed end on other CPUs: single ones, first those that no end uses, and all of them.
pub(crate) fn of_end(case: &Case<'_>) -> Vec<Proposal> {
    let (end, others) = (case.end(), case.other_cpus());
    if case.contended().is_empty() || !can_be_pinned(case, end) {
        return Vec::new();
    }
    let to = |cpus: &[u32], fit| {
        let setting = settings::cpus(case.key_of(end), &CpuList(cpus.iter().copied().collect()));
        let text = format!("Run the {end} end on {}, {}.", words(cpus), away(case));
        Proposal::new(vec![setting], fit, text)
    };
    let single = others.iter().take(MOST_CPUS).enumerate();
    let mut all: Vec<Proposal> = single
        .map(|(at, (cpu, is_free))| to(&[*cpu], (if *is_free { 0.85 } else { 0.6 }) / (1.0 + 0.2 * at as f64)))
        .collect();
    if others.len() > 1 {
        let cpus: Vec<u32> = others.iter().map(|(cpu, _)| *cpu).collect();
        all.push(to(&cpus, 0.5));
    }
    all
}

/// The delayed threads on another CPU, by their role.
pub(crate) fn of_role(case: &Case<'_>) -> Vec<Proposal> {
    let (end, others) = (case.end(), case.other_cpus());
    let Some((cpu, is_free)) = others.first() else { return Vec::new() };
    if case.contended().is_empty() || !can_be_pinned(case, end) {
        return Vec::new();
    }
    let old = &case.spec_of(end).scheduling;
    let roles = case.delayed_roles().into_iter().map(|role| (role, 0.55));
    let all = roles.chain([("main", 0.15)]);
    let mut done: BTreeSet<&str> = BTreeSet::new();
    all.filter(|(role, _)| done.insert(role))
        .map(|(role, fit)| {
            let mut new = old.clone();
            let policy = new.roles.get(role).and_then(|of| of.policy);
            new.roles.insert(role.to_owned(), RoleScheduling { policy, cpus: Some(CpuList::one(*cpu)) });
            let text = format!("Run the threads of role {role} at the {end} end on CPU {cpu}, {}.", away(case));
            let fit = if *is_free { fit } else { 0.8 * fit };
            Proposal::new(vec![settings::scheduling(case.key_of(end), &new)], fit, text)
        })
        .collect()
}

/// The delayed end on all CPUs, so that the kernel can move its threads.
pub(crate) fn of_all(case: &Case<'_>) -> Vec<Proposal> {
    let end = case.end();
    let pinned =
        case.spec_of(end).scheduling.cpus.as_ref().is_some_and(|cpus| cpus.0.len() < case.situation.cpus.len());
    if !pinned {
        return Vec::new();
    }
    let text = format!("Let the {end} end use every CPU, so that the kernel can move its threads.");
    vec![Proposal::new(vec![format!("ends.{}.cpus=any", case.key_of(end))], 0.35, text)]
}

/// Receiving threads that poll, so that nothing has to wake them.
pub(crate) fn receive_spin(case: &Case<'_>) -> Vec<Proposal> {
    let measure = &case.situation.spec.measure;
    let polls = matches!(measure.receive(), ReceiveMode::Spin | ReceiveMode::Executor);
    if polls || case.situation.spec.is_one_session() {
        return Vec::new();
    }
    let text = "Let a thread of each end poll for messages, so that it needs no wake-up.".to_owned();
    vec![Proposal::new(vec!["measure.receive=spin".into()], 0.3, text)]
}

/// A second thread that processes messages, so that the receiving thread is free for the next one.
pub(crate) fn hand_off(case: &Case<'_>) -> Vec<Proposal> {
    let measure = &case.situation.spec.measure;
    let fits = matches!(measure, Measure::PingPong(_))
        && *measure.hand_off() == HandOff::None
        && matches!(measure.receive(), ReceiveMode::Listener | ReceiveMode::Block);
    if !fits {
        return Vec::new();
    }
    let text =
        "Let a second thread process messages, so that the receiving thread is ready for the next one.".to_owned();
    vec![Proposal::new(vec!["measure.hand_off=thread".into()], 0.2, text)]
}

/// An executor for each end, or a listener in place of an executor.
pub(crate) fn executors(case: &Case<'_>) -> Vec<Proposal> {
    let spec = case.situation.spec;
    let mut all = Vec::new();
    if let Some(Arrangement { processes: 1, participants, executors: 1 }) = spec.arrangement {
        let setting = format!("arrangement={{ processes: 1, participants: {participants}, executors: 2 }}");
        let text = "Give each end an executor thread of its own, so that a message of the other end does not go first.";
        all.push(Proposal::new(vec![setting], 1.0, text.to_owned()));
        let text = "Run the ends in two processes, each with an executor of its own.".to_owned();
        let setting = "arrangement={ processes: 2, participants: 2, executors: 2 }".to_owned();
        all.push(Proposal::new(vec![setting], 0.8, text));
    }
    if spec.measure.receive() == ReceiveMode::Executor {
        // The number of executors is only for executors, and one session cannot answer in a callback.
        let mut settings: Vec<String> = Vec::new();
        if let Some(Arrangement { processes, participants, executors: 1.. }) = spec.arrangement {
            settings.push(format!("arrangement={{ processes: {processes}, participants: {participants} }}"));
        }
        let (mode, text) = match spec.is_one_session() {
            true => ("block", "Receive in a thread that blocks until a message arrives, and not in an executor."),
            false => ("listener", "Receive in a callback of the middleware's own threads, and not in an executor."),
        };
        settings.push(format!("measure.receive={mode}"));
        all.push(Proposal::new(settings, 0.6, text.to_owned()));
    }
    all
}
