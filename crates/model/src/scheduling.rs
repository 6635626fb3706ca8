//! How a thread is scheduled.

use crate::CpuList;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A Linux scheduling policy with its parameters (sched(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// SCHED_OTHER with a nice value.
    Other {
        /// -20 (favoured) to 19.
        nice: i32,
    },
    /// SCHED_BATCH with a nice value.
    Batch {
        /// -20 (favoured) to 19.
        nice: i32,
    },
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO with a priority.
    Fifo {
        /// 1 to 99.
        priority: u32,
    },
    /// SCHED_RR with a priority.
    Rr {
        /// 1 to 99.
        priority: u32,
    },
    /// SCHED_DEADLINE, all three in ns.
    Deadline {
        /// Run time per period.
        runtime_ns: u64,
        /// Relative deadline.
        deadline_ns: u64,
        /// Period.
        period_ns: u64,
    },
}

impl Policy {
    /// A thread of it is bounded by nothing but its priority: it may keep time-sharing threads off a CPU.
    pub fn starves(&self) -> bool {
        matches!(self, Policy::Fifo { .. } | Policy::Rr { .. })
    }

    /// Fifo, rr or deadline.
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

/// What was asked for the threads of one end's process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scheduling {
    /// Policy of every thread; `None` leaves what the process inherited.
    pub policy: Option<Policy>,
    /// CPUs; `None` = unpinned, all CPUs that the process may use.
    pub cpus: Option<CpuList>,
    /// What is asked for threads of one role instead, by its word, e.g. `receive`; [`MIDDLEWARE`] for all that a driver
    /// makes and that have no entry of their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, RoleScheduling>,
}

/// The key of [`Scheduling::roles`] for all threads of the driver.
pub const MIDDLEWARE: &str = "middleware";

/// What was asked for the threads of one role; `None` = as all threads of the process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoleScheduling {
    /// Policy.
    pub policy: Option<Policy>,
    /// CPUs.
    pub cpus: Option<CpuList>,
}

impl Scheduling {
    /// All threads alike.
    pub fn of_all(policy: Option<Policy>, cpus: Option<CpuList>) -> Scheduling {
        Scheduling { policy, cpus, roles: BTreeMap::new() }
    }

    /// What a thread of this role is to have; `middleware`: it was made by the driver.
    pub fn of_role(&self, role: &str, middleware: bool) -> RoleScheduling {
        let own = self.roles.get(role);
        let shared = self.roles.get(MIDDLEWARE).filter(|_| middleware);
        let first = |get: fn(&RoleScheduling) -> bool| own.filter(|r| get(r)).or(shared.filter(|r| get(r)));
        RoleScheduling {
            policy: first(|r| r.policy.is_some()).and_then(|r| r.policy).or(self.policy),
            cpus: first(|r| r.cpus.is_some()).and_then(|r| r.cpus.clone()).or_else(|| self.cpus.clone()),
        }
    }

    /// What is asked for, in words: `fifo 10; main rr 98, middleware other`.
    pub fn policy_text(&self) -> Option<String> {
        let roles: Vec<String> =
            self.roles.iter().filter_map(|(role, r)| Some(format!("{role} {}", r.policy?))).collect();
        let parts = [self.policy.map(|p| p.to_string()), (!roles.is_empty()).then(|| roles.join(", "))];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The CPUs asked for, in words: `0-1; receive 2`.
    pub fn cpu_text(&self) -> Option<String> {
        let roles = self.roles.iter().filter_map(|(role, r)| Some(format!("; {role} {}", r.cpus.as_ref()?)));
        let all = self.cpus.as_ref().map_or_else(|| "any".to_owned(), |c| c.to_string());
        let text = std::iter::once(all).chain(roles).collect::<String>();
        (text != "any").then_some(text)
    }

    /// Every policy that is asked for, for some thread.
    pub fn policies(&self) -> impl Iterator<Item = Policy> {
        self.policy.into_iter().chain(self.roles.values().filter_map(|r| r.policy))
    }

    /// Every CPU that is named for some thread.
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
}
