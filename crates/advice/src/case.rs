//! Cases: one cause or kind of loss of a situation, with the questions that rules ask about it.

use crate::answers::Answers;
use crate::situation::Situation;
use std::collections::BTreeSet;
use tailbound_document::{CauseShare, CauseWord, CausedBy, DelayedThread, LossKind, LossPlace, LossReport};
use tailbound_model::{DriverSpec, EndSpec, FactValue, Policy};

/// Highest priority that a study may ask for: priority 99 belongs to the guard that ends processes which run too long.
pub(crate) const HIGHEST_PRIORITY: u32 = 98;
/// Roles of threads that Tailbound makes, whatever the driver.
pub(crate) const OWN_ROLES: [&str; 2] = ["main", "processing"];
/// Priority against time-sharing threads: above all of them, and below threaded interrupts (50).
const ABOVE_TIME_SHARING: u32 = 10;
/// Priority against a thread whose policy is not known: above threaded interrupts (50).
const ABOVE_UNKNOWN: u32 = 60;

/// What a rule proposes for a case.
pub(crate) struct Proposal {
    /// Settings as for `--set`; empty if the change can be made by hand only.
    pub settings: Vec<String>,
    /// What to change and why, as one sentence.
    pub text: String,
    /// How directly the proposal answers the evidence: 1 for the named thread, CPU or buffer, near 0 for something that only
    /// has the same cause word.
    pub fit: f64,
}

impl Proposal {
    /// A proposal with settings of a study.
    pub fn new(settings: Vec<String>, fit: f64, text: String) -> Proposal {
        Proposal { settings, text, fit }
    }

    /// A proposal that can be made by hand only.
    pub fn by_hand(fit: f64, text: String) -> Proposal {
        Proposal { settings: Vec::new(), text, fit }
    }
}

/// One cause or kind of loss of a situation.
pub(crate) struct Case<'a> {
    pub situation: &'a Situation<'a>,
    what: What<'a>,
}

enum What<'a> {
    Cause(&'a CauseShare),
    Loss(&'a LossReport, LossKind),
}

impl<'a> Case<'a> {
    pub fn of_cause(situation: &'a Situation<'a>, share: &'a CauseShare) -> Case<'a> {
        Case { situation, what: What::Cause(share) }
    }

    pub fn of_loss(situation: &'a Situation<'a>, loss: &'a LossReport) -> Case<'a> {
        Case { situation, what: What::Loss(loss, loss.kind.unwrap_or(LossKind::Other)) }
    }

    /// What a change for this case answers.
    pub fn answers(&self) -> Answers {
        match self.what {
            What::Cause(share) => Answers::Cause { word: share.cause, end: share.end.clone(), by: share.by.clone() },
            What::Loss(_, kind) => Answers::Loss { kind, end: self.end() },
        }
    }

    /// The end whose threads were delayed, or to which the lost messages were sent.
    pub fn end(&self) -> &'static str {
        match self.what {
            What::Cause(share) if share.end.as_deref() == Some("pong") => "pong",
            What::Loss(LossReport { place: LossPlace::OnTheWayOut | LossPlace::AtThePong, .. }, _) => "pong",
            _ => "ping",
        }
    }

    /// The other end.
    pub fn other_end(&self) -> &'static str {
        if self.end() == "ping" { "pong" } else { "ping" }
    }

    /// The end in whose keys the settings of `end` are: with one process for both ends, the keys of the ping apply.
    pub fn key_of<'e>(&self, end: &'e str) -> &'e str {
        if self.situation.spec.is_one_session() { "ping" } else { end }
    }

    pub fn spec_of(&self, end: &str) -> &'a EndSpec {
        let spec = self.situation.spec;
        if self.key_of(end) == "ping" { &spec.ping } else { &spec.pong }
    }

    /// The driver of an end.
    pub fn driver_of(&self, end: &str) -> &'a DriverSpec {
        let spec = self.situation.spec;
        match &spec.pong_driver {
            Some(of_pong) if end == "pong" => of_pong,
            _ => &spec.driver,
        }
    }

    /// Path of an option of the driver of an end, e.g. `driver.udp.rcvbuf`.
    pub fn driver_key(&self, end: &str, option: &str) -> String {
        let name = self.driver_of(end).written();
        match self.situation.spec.pong_driver {
            Some(_) => format!("ends.{end}.driver.{name}.{option}"),
            None => format!("driver.{name}.{option}"),
        }
    }

    /// True if the case is this cause.
    pub fn is_cause(&self, word: CauseWord) -> bool {
        matches!(self.what, What::Cause(share) if share.cause == word)
    }

    /// The thread or interrupt that had the CPU.
    pub fn by(&self) -> Option<&'a CausedBy> {
        match self.what {
            What::Cause(share) => share.by.as_ref(),
            What::Loss(..) => None,
        }
    }

    /// Name of the thread or interrupt that had the CPU, in backquotes; otherwise "another thread".
    pub fn by_name(&self) -> String {
        self.by().map_or("another thread".to_owned(), |by| format!("`{}`", by.name))
    }

    /// Policy of the thread that had the CPU; `None` if it is not known.
    pub fn policy_of_by(&self) -> Option<Policy> {
        self.by()?.policy.as_deref()?.parse().ok()
    }

    /// The delayed threads with their CPUs, the one with the largest time first.
    pub fn delayed(&self) -> &'a [DelayedThread] {
        match self.what {
            What::Cause(share) => &share.delayed,
            What::Loss(..) => &[],
        }
    }

    /// Roles of the delayed threads, the one with the largest time first, each once.
    pub fn delayed_roles(&self) -> Vec<&'a str> {
        let mut roles: Vec<&str> = Vec::new();
        for role in self.delayed().iter().filter_map(|thread| thread.role.as_deref()) {
            if !roles.contains(&role) {
                roles.push(role);
            }
        }
        roles
    }

    /// Whether a thread of the middleware was delayed. The threads that Tailbound makes have names with `tb-`, and one of them can have
    /// the same role: with `receive: block`, it waits for what the threads of the middleware have received.
    pub fn is_middleware_delayed(&self) -> bool {
        let is_own = |thread: &DelayedThread| thread.thread.as_ref().is_some_and(|name| name.starts_with("tb-"));
        self.delayed().iter().any(|thread| {
            thread.role.as_ref().is_some_and(|role| !OWN_ROLES.contains(&role.as_str())) && !is_own(thread)
        })
    }

    /// CPUs on which threads were delayed, the one with the largest time first; without evidence, the CPUs of the end.
    pub fn contended(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = Vec::new();
        for cpu in self.delayed().iter().filter_map(|thread| thread.cpu) {
            if !cpus.contains(&cpu) {
                cpus.push(cpu);
            }
        }
        if cpus.is_empty() {
            cpus.extend(self.spec_of(self.end()).scheduling.named_cpus());
        }
        cpus
    }

    /// The CPUs on which nothing was delayed: first the CPUs that no end of the trial uses, then the CPUs of the other end.
    pub fn other_cpus(&self) -> Vec<(u32, bool)> {
        let contended = self.contended();
        let used = self.cpus_of_ends();
        let mut cpus: Vec<(u32, bool)> = self
            .situation
            .cpus
            .iter()
            .filter(|cpu| !contended.contains(cpu))
            .map(|cpu| (*cpu, !used.contains(cpu)))
            .collect();
        cpus.sort_by_key(|(cpu, is_free)| (!is_free, *cpu));
        cpus
    }

    /// CPUs that the study names for threads of the ends.
    pub fn cpus_of_ends(&self) -> BTreeSet<u32> {
        let spec = self.situation.spec;
        [&spec.ping, &spec.pong].into_iter().flat_map(|end| end.scheduling.named_cpus()).collect()
    }

    /// A real-time policy above the thread that had the CPU; `None` if no priority of a study is above it.
    pub fn policy_above(&self) -> Option<Policy> {
        let priority = match self.policy_of_by() {
            Some(Policy::Fifo { priority } | Policy::Rr { priority }) => priority + 1,
            Some(Policy::Deadline { .. }) => return None,
            Some(_) => ABOVE_TIME_SHARING,
            None => ABOVE_UNKNOWN,
        };
        (priority <= HIGHEST_PRIORITY).then_some(Policy::Fifo { priority })
    }

    /// True if the thread that had the CPU has a real-time policy.
    pub fn by_real_time(&self) -> bool {
        self.policy_of_by().is_some_and(|policy| policy.is_real_time())
    }

    /// Value of a fact of the host that is a number.
    pub fn number(&self, key: &str) -> Option<i64> {
        match self.situation.facts?.get(key)? {
            FactValue::Number(number) => Some(*number),
            FactValue::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Value of a fact of the host that is true or false.
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.situation.facts?.get(key)? {
            FactValue::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// Value of a fact of the host that is a text.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        match self.situation.facts?.get(key)? {
            FactValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// True if the condition sets this key below `host` already.
    pub fn sets_host(&self, key: &str) -> bool {
        self.situation.spec.host.iter().any(|knob| knob.key() == key)
    }
}
