//! What QEMU tells of a machine that runs, without a word to the guest.

use std::collections::BTreeMap;
use tailbound_model::GuestSeen;

/// Statistics of KVM that only grow (QEMU's `query-stats`, linux/kvm_host.h): what is added over a trial means something.
/// Those that end in `_ns` are times.
pub(super) const COUNTS: [&str; 18] = [
    "exits",
    "halt_exits",
    "halt_attempted_poll",
    "halt_successful_poll",
    "halt_poll_invalid",
    "halt_poll_success_ns",
    "halt_poll_fail_ns",
    "halt_wait_ns",
    "halt_wakeup",
    "io_exits",
    "mmio_exits",
    "irq_exits",
    "irq_window_exits",
    "irq_injections",
    "signal_exits",
    "request_irq_exits",
    "hypercalls",
    "preemption_other",
];

/// A machine at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Statistics of each virtual CPU; why there are none.
    pub(super) vcpus: Result<Vec<BTreeMap<String, i64>>, String>,
}

impl Look {
    /// What happened since an earlier look.
    pub fn since(self, earlier: &Look, guest: &str) -> GuestSeen {
        let counted = match (&earlier.vcpus, self.vcpus) {
            (Ok(before), Ok(after)) => Ok(after.iter().zip(before).map(|(after, before)| added(before, after)).collect()),
            (Err(why), _) | (_, Err(why)) => Err(why.clone()),
        };
        let (vcpus, not_counted) = match counted {
            Ok(vcpus) => (vcpus, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        GuestSeen { guest: guest.to_owned(), vcpus, not_counted }
    }
}

fn added(before: &BTreeMap<String, i64>, after: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    after.iter().filter_map(|(key, now)| Some((key.clone(), now - before.get(key)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vcpu(exits: i64) -> BTreeMap<String, i64> {
        BTreeMap::from([("exits".to_owned(), exits)])
    }

    #[test]
    fn what_was_added_is_told_for_each_virtual_cpu() {
        let look = |one, other| Look { vcpus: Ok(vec![vcpu(one), vcpu(other)]) };
        let seen = look(130, 70).since(&look(100, 50), "pong");
        assert_eq!((seen.vcpus.clone(), seen.sum("exits"), seen.sum("no such")), (vec![vcpu(30), vcpu(20)], Some(50), None));
        let emulated = Look { vcpus: Err("emulated".into()) };
        let seen = emulated.clone().since(&emulated, "pong");
        assert_eq!((seen.vcpus.len(), seen.not_counted.as_deref()), (0, Some("emulated")));
    }
}
