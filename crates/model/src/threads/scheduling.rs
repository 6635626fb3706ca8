//! Scheduling of threads: policies of the Linux scheduler, and CPUs.

use crate::units::not_a_quantity;
use crate::{CpuList, Problem};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// A Linux scheduling policy with its parameters (sched(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Time-sharing policy SCHED_OTHER with a nice value.
    Other {
        /// Nice value of the thread, -20 (highest priority) to 19.
        nice: i32,
    },
    /// Time-sharing policy SCHED_BATCH with a nice value.
    Batch {
        /// Nice value of the thread, -20 (highest priority) to 19.
        nice: i32,
    },
    /// Policy SCHED_IDLE for threads that run only if no other thread wants the CPU.
    Idle,
    /// Real-time policy SCHED_FIFO with a priority.
    Fifo {
        /// Real-time priority of the thread, 1 to 99.
        priority: u32,
    },
    /// Real-time policy SCHED_RR with a priority.
    Rr {
        /// Real-time priority of the thread, 1 to 99.
        priority: u32,
    },
    /// Policy SCHED_DEADLINE with run time, deadline and period, in ns.
    Deadline {
        /// Run time that the thread may use in each period (SCHED_DEADLINE), ns.
        runtime_ns: u64,
        /// Deadline of the thread, counted from the begin of each period (SCHED_DEADLINE), ns.
        deadline_ns: u64,
        /// Length of a period of the thread (SCHED_DEADLINE), ns.
        period_ns: u64,
    },
}

impl Policy {
    /// Every scheduling policy with its word in a study file; all parameters are 0.
    pub const ALL: [(&'static str, Policy); 6] = [
        ("other", Policy::Other { nice: 0 }),
        ("batch", Policy::Batch { nice: 0 }),
        ("idle", Policy::Idle),
        ("fifo", Policy::Fifo { priority: 0 }),
        ("rr", Policy::Rr { priority: 0 }),
        ("deadline", Policy::Deadline { runtime_ns: 0, deadline_ns: 0, period_ns: 0 }),
    ];

    /// Word for the scheduling policy in a study file, e.g. `fifo`.
    pub fn word(&self) -> &'static str {
        match self {
            Policy::Other { .. } => "other",
            Policy::Batch { .. } => "batch",
            Policy::Idle => "idle",
            Policy::Fifo { .. } => "fifo",
            Policy::Rr { .. } => "rr",
            Policy::Deadline { .. } => "deadline",
        }
    }

    /// True if a thread with this policy may run without limit, so that ordinary threads may get no CPU time (fifo and
    /// rr).
    pub fn starves(&self) -> bool {
        matches!(self, Policy::Fifo { .. } | Policy::Rr { .. })
    }

    /// True if the policy is real-time: fifo, rr or deadline.
    pub fn is_real_time(&self) -> bool {
        self.starves() || matches!(self, Policy::Deadline { .. })
    }
}

impl Default for Policy {
    fn default() -> Self {
        Policy::Other { nice: 0 }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Other { nice: 0 } => f.write_str("other"),
            Policy::Other { nice } => write!(f, "other nice {nice}"),
            Policy::Batch { nice: 0 } => f.write_str("batch"),
            Policy::Batch { nice } => write!(f, "batch nice {nice}"),
            Policy::Idle => f.write_str("idle"),
            Policy::Fifo { priority } => write!(f, "fifo {priority}"),
            Policy::Rr { priority } => write!(f, "rr {priority}"),
            Policy::Deadline { runtime_ns, deadline_ns, period_ns } => {
                write!(f, "deadline {runtime_ns}/{deadline_ns}/{period_ns} ns")
            }
        }
    }
}

impl FromStr for Policy {
    type Err = Problem;
    /// Reads a scheduling policy from the text that `Display` writes, e.g. `fifo 10`.
    fn from_str(text: &str) -> Result<Self, Problem> {
        let error = || not_a_quantity(text, "a policy such as `fifo 10`");
        let words: Vec<&str> = text.split_whitespace().collect();
        let nice = |n: &str| n.parse().map_err(|_| error());
        let priority = |p: &str| p.parse().map_err(|_| error());
        Ok(match words.as_slice() {
            ["other"] => Policy::Other { nice: 0 },
            ["other", "nice", n] => Policy::Other { nice: nice(n)? },
            ["batch"] => Policy::Batch { nice: 0 },
            ["batch", "nice", n] => Policy::Batch { nice: nice(n)? },
            ["idle"] => Policy::Idle,
            ["fifo", p] => Policy::Fifo { priority: priority(p)? },
            ["rr", p] => Policy::Rr { priority: priority(p)? },
            ["deadline", times, "ns"] => {
                let times: Result<Vec<u64>, _> = times.split('/').map(str::parse).collect();
                let [runtime_ns, deadline_ns, period_ns] = times.map_err(|_| error())?[..] else { return Err(error()) };
                Policy::Deadline { runtime_ns, deadline_ns, period_ns }
            }
            _ => return Err(error()),
        })
    }
}

/// Scheduling that the study asks for, for the threads of one end's process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scheduling {
    /// Scheduling policy of every thread of the process; `None` keeps the inherited policy.
    pub policy: Option<Policy>,
    /// CPUs on which the threads may run; `None` means all CPUs that the process may use.
    pub cpus: Option<CpuList>,
    /// Scheduling of the threads of one role, by the role's word, e.g. `receive`. The key [`MIDDLEWARE`] applies to all
    /// threads that a driver makes and whose role has no entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, RoleScheduling>,
    /// True if the vendor's own configuration sets the scheduling of the driver's threads, so that Tailbound does not
    /// set it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_vendor: bool,
}

/// Key in [`Scheduling::roles`] that applies to all threads of the driver (the middleware).
pub const MIDDLEWARE: &str = "middleware";

/// Scheduling that the study asks for, for the threads of one role, e.g. `receive`. `None` means the value of the whole
/// process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct RoleScheduling {
    /// Scheduling policy of the threads; `None` means the policy of the whole process.
    pub policy: Option<Policy>,
    /// CPUs on which the threads may run; `None` means the CPUs of the whole process.
    pub cpus: Option<CpuList>,
}

impl fmt::Display for RoleScheduling {
    /// Writes policy and CPUs as text, e.g. `fifo 10, CPU 0-1`; absent values are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = self.policy.map(|p| p.to_string());
        let cpus = self.cpus.as_ref().map(|c| format!("CPU {c}"));
        f.write_str(&policy.into_iter().chain(cpus).collect::<Vec<_>>().join(", "))
    }
}

impl FromStr for RoleScheduling {
    type Err = Problem;
    /// Reads a scheduling policy and CPUs from the text that `Display` writes, e.g. `fifo 10, CPU 2`.
    fn from_str(text: &str) -> Result<Self, Problem> {
        let (policy, cpus) = match text.split_once("CPU ") {
            Some((policy, cpus)) => (policy.trim_end_matches(", "), Some(cpus)),
            None => (text, None),
        };
        let policy = Some(policy).filter(|p| !p.is_empty()).map(str::parse).transpose()?;
        Ok(RoleScheduling { policy, cpus: cpus.map(str::parse).transpose()? })
    }
}

impl Scheduling {
    /// Makes a scheduling with the same policy and CPUs for all threads.
    pub fn of_all(policy: Option<Policy>, cpus: Option<CpuList>) -> Scheduling {
        Scheduling { policy, cpus, ..Scheduling::default() }
    }

    /// Scheduling that the study asks for, for a thread with this role. `middleware` is true if the driver created the
    /// thread.
    pub fn of_role(&self, role: &str, middleware: bool) -> RoleScheduling {
        let own = self.roles.get(role);
        let shared = self.roles.get(MIDDLEWARE).filter(|_| middleware);
        let first = |get: fn(&RoleScheduling) -> bool| own.filter(|r| get(r)).or(shared.filter(|r| get(r)));
        RoleScheduling {
            policy: first(|r| r.policy.is_some()).and_then(|r| r.policy).or(self.policy),
            cpus: first(|r| r.cpus.is_some()).and_then(|r| r.cpus.clone()).or_else(|| self.cpus.clone()),
        }
    }

    /// The requested scheduling policies in words, e.g. `fifo 10; main rr 98, middleware other`.
    pub fn policy_text(&self) -> Option<String> {
        let roles: Vec<String> =
            self.roles.iter().filter_map(|(role, r)| Some(format!("{role} {}", r.policy?))).collect();
        let vendor = self
            .by_vendor
            .then(|| "the driver's own configuration sets the policies of the driver's threads".to_owned());
        let parts = [self.policy.map(|p| p.to_string()), (!roles.is_empty()).then(|| roles.join(", ")), vendor];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The CPUs that the study requests for the threads, as text, e.g. `0-1; receive 2`.
    pub fn cpu_text(&self) -> Option<String> {
        let roles = self.roles.iter().filter_map(|(role, r)| Some(format!("; {role} {}", r.cpus.as_ref()?)));
        let all = self.cpus.as_ref().map_or_else(|| "any".to_owned(), |c| c.to_string());
        let text = std::iter::once(all).chain(roles).collect::<String>();
        (text != "any").then_some(text)
    }

    /// All scheduling policies that the study requests for any thread.
    pub fn policies(&self) -> impl Iterator<Item = Policy> {
        self.policy.into_iter().chain(self.roles.values().filter_map(|r| r.policy))
    }

    /// All CPUs that the study requests for any thread.
    pub fn named_cpus(&self) -> BTreeSet<u32> {
        let roles = self.roles.values().map(|r| &r.cpus);
        std::iter::once(&self.cpus).chain(roles).flatten().flat_map(|c| &c.0).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_goes_before_the_middleware_and_that_before_all() {
        let policy = |priority| Some(Policy::Rr { priority });
        let role = |policy, cpus: Option<u32>| RoleScheduling { policy, cpus: cpus.map(CpuList::one) };
        let asked = Scheduling {
            policy: policy(10),
            cpus: Some(CpuList::one(0)),
            roles: BTreeMap::from([
                (MIDDLEWARE.into(), role(policy(20), Some(1))),
                ("receive".into(), role(policy(30), None)),
                ("main".into(), role(None, Some(2))),
            ]),
            by_vendor: false,
        };
        assert_eq!(asked.of_role("receive", true), role(policy(30), Some(1)));
        assert_eq!(asked.of_role("receive", false), role(policy(30), Some(0)));
        assert_eq!(asked.of_role("event", true), role(policy(20), Some(1)));
        assert_eq!(asked.of_role("main", false), role(policy(10), Some(2)));
        assert_eq!(CpuList(asked.named_cpus()).to_string(), "0-2");
        assert_eq!(asked.policy_text().unwrap(), "rr 10; middleware rr 20, receive rr 30");
        assert_eq!(asked.cpu_text().unwrap(), "0; main 2; middleware 1");
        assert_eq!(asked.policies().count(), 3);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let policies = [
            Policy::Other { nice: 0 },
            Policy::Other { nice: -5 },
            Policy::Batch { nice: 3 },
            Policy::Idle,
            Policy::Fifo { priority: 60 },
            Policy::Rr { priority: 1 },
            Policy::Deadline { runtime_ns: 1, deadline_ns: 2, period_ns: 3 },
        ];
        for policy in policies.map(Some).into_iter().chain([None]) {
            for cpus in [None, Some("0-1,3".parse().unwrap())] {
                let asked = RoleScheduling { policy, cpus };
                assert_eq!(asked.to_string().parse(), Ok(asked));
            }
        }
        assert!("fifo".parse::<Policy>().is_err() && "deadline 1/2 ns".parse::<Policy>().is_err());
    }
}
