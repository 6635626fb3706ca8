//! Scheduling policies of processes, and of threads by their role.

use super::{Cpus, Duration};
use crate::read::At;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer};
use serde_json::json;
use std::borrow::Cow;
use tailbound_model::Policy;

/// Scheduling of an end's process, see sched(7): for all threads of the process, or for threads by their role. A thread
/// gets the entry of its role; otherwise, if the driver made the thread, the entry `middleware`; otherwise the entry
/// for all threads.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchedulingKeys {
    /// Who sets the scheduling of the driver's threads: Tailbound when they are created, or the vendor's own
    /// configuration, which Tailbound writes. Default: `birth`.
    pub apply: Option<ApplyChoice>,
    /// Scheduling policy of all threads of the process of an end.
    pub policy: Option<At<PolicyWord>>,
    /// Real-time priority, 1 to 98; required for the policies `fifo` and `rr`.
    #[schemars(range(min = 1, max = 98))]
    pub priority: Option<At<u32>>,
    /// Nice value for the policies `other` and `batch`: -20 (highest priority) to 19. Default: 0.
    #[schemars(range(min = -20, max = 19))]
    pub nice: Option<At<i32>>,
    /// CPU time of each thread in each period; required for the policy `deadline`.
    pub runtime: Option<At<Duration>>,
    /// Deadline, required for the policy `deadline`: the time by which the run time must have been used, counted from
    /// the begin of the period.
    pub deadline: Option<At<Duration>>,
    /// Period in which each thread gets its CPU time; required for the policy `deadline`.
    pub period: Option<At<Duration>>,
    /// Scheduling of the main thread, which sends on schedule (ping) or waits while another thread answers (pong).
    pub main: Option<At<RoleKeys>>,
    /// Scheduling of all threads that the driver makes and whose role has no entry.
    pub middleware: Option<At<RoleKeys>>,
    /// Scheduling of threads that receive messages from the network: threads of the middleware, or Tailbound's own
    /// thread (`receive: block` or `spin`).
    pub receive: Option<At<RoleKeys>>,
    /// Scheduling of threads that send messages for other threads.
    pub send: Option<At<RoleKeys>>,
    /// Scheduling of threads for timers, acknowledgements and retransmissions.
    pub event: Option<At<RoleKeys>>,
    /// Scheduling of threads that find peers (discovery).
    pub discovery: Option<At<RoleKeys>>,
    /// Scheduling of the second thread of `hand_off`, which processes messages.
    pub processing: Option<At<RoleKeys>>,
    /// Scheduling of threads of the driver whose role is not one of the other roles.
    pub other: Option<At<RoleKeys>>,
}

/// Scheduling of the threads that have one role in the middleware, such as `receive`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoleKeys {
    /// Scheduling policy of the threads. Default: the policy of all threads of the process.
    pub policy: Option<At<PolicyWord>>,
    /// Real-time priority, 1 to 98; required for the policies `fifo` and `rr`.
    #[schemars(range(min = 1, max = 98))]
    pub priority: Option<At<u32>>,
    /// Nice value for the policies `other` and `batch`: -20 (highest priority) to 19. Default: 0.
    #[schemars(range(min = -20, max = 19))]
    pub nice: Option<At<i32>>,
    /// CPU time of each thread of the role in each period; required for the policy `deadline`.
    pub runtime: Option<At<Duration>>,
    /// Deadline, required for the policy `deadline`: the time by which the run time must have been used, counted from
    /// the begin of the period.
    pub deadline: Option<At<Duration>>,
    /// Period in which each thread of the role gets its CPU time; required for the policy `deadline`.
    pub period: Option<At<Duration>>,
    /// CPUs of the threads, as for `taskset -c`, e.g. `"0-1,3"`. Default: the CPUs of the end.
    pub cpus: Option<At<Cpus>>,
}

impl SchedulingKeys {
    /// The scheduling keys of each role that the study names, with the name of the role.
    pub fn roles(&self) -> impl Iterator<Item = (&'static str, &At<RoleKeys>)> {
        [
            ("main", &self.main),
            (tailbound_model::MIDDLEWARE, &self.middleware),
            ("receive", &self.receive),
            ("send", &self.send),
            ("event", &self.event),
            ("discovery", &self.discovery),
            ("processing", &self.processing),
            ("other", &self.other),
        ]
        .into_iter()
        .filter_map(|(word, keys)| Some((word, keys.as_ref()?)))
    }
}

/// Who sets the scheduling of the driver's threads.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ApplyChoice {
    /// Tailbound sets the scheduling of a thread when the thread is created, before it runs any of its own code.
    Birth,
    /// The middleware itself sets the scheduling of its threads, by its own configuration. Only for the policies `fifo`
    /// and `other`.
    Vendor,
}

/// A scheduling policy, given by its word; the parameters of the policy are separate keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PolicyWord(pub Policy);

impl<'de> Deserialize<'de> for PolicyWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let found = Policy::ALL.iter().find(|(known, _)| *known == word);
        found.map(|(_, policy)| PolicyWord(*policy)).ok_or_else(|| de::Error::unknown_variant(&word, &POLICY_WORDS))
    }
}

const POLICY_WORDS: [&str; 6] = ["other", "batch", "idle", "fifo", "rr", "deadline"];

impl JsonSchema for PolicyWord {
    fn schema_name() -> Cow<'static, str> {
        "PolicyChoice".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let word =
            |word: &str, description: &str| json!({ "type": "string", "const": word, "description": description });
        json_schema!({
            "description": "Scheduling policies of Linux.",
            "oneOf": [
                word("other", "SCHED_OTHER, the default of Linux."),
                word("batch", "SCHED_BATCH, for work without interaction."),
                word("idle", "SCHED_IDLE, for threads that run only if no other thread wants the CPU."),
                word("fifo", "SCHED_FIFO, a real-time policy with a priority."),
                word("rr", "SCHED_RR, a real-time policy with a priority and time slices."),
                word("deadline", "SCHED_DEADLINE, a policy with run time, deadline and period."),
            ]
        })
    }
}

/// The keys of a scheduling policy and its parameters, which are the same for all threads and for the threads of one
/// role.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PolicyKeys<'a> {
    pub policy: Option<&'a At<PolicyWord>>,
    pub priority: Option<&'a At<u32>>,
    pub nice: Option<&'a At<i32>>,
    pub runtime: Option<&'a At<Duration>>,
    pub deadline: Option<&'a At<Duration>>,
    pub period: Option<&'a At<Duration>>,
}

macro_rules! policy_keys_of {
    ($($type:ty)*) => {$(
        impl<'a> From<&'a $type> for PolicyKeys<'a> {
            fn from(keys: &'a $type) -> Self {
                PolicyKeys {
                    policy: keys.policy.as_ref(),
                    priority: keys.priority.as_ref(),
                    nice: keys.nice.as_ref(),
                    runtime: keys.runtime.as_ref(),
                    deadline: keys.deadline.as_ref(),
                    period: keys.period.as_ref(),
                }
            }
        }
    )*};
}
policy_keys_of!(SchedulingKeys RoleKeys);
