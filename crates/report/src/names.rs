//! What a condition is called in sentences: driver, path, payload, rate, then whatever else was varied.

use std::collections::BTreeMap;
use tailbound_model::{Condition, Plan, Rate};

/// Factors that every name begins with.
const ALWAYS: [&str; 4] = ["driver", "path", "payload", "rate"];

/// One name per condition, in the order of the plan.
pub(crate) fn names(plan: &Plan) -> Vec<String> {
    let varied = varied(&plan.conditions);
    let mut order: Vec<&str> = plan.factors.iter().map(String::as_str).collect();
    order.extend(varied.keys().filter(|k| !plan.factors.contains(k)).map(String::as_str));
    let others: Vec<&str> = order.into_iter().filter(|f| varied.contains_key(*f) && !ALWAYS.contains(f)).collect();
    plan.conditions.iter().map(|c| name(c, &others)).collect()
}

fn varied(conditions: &[Condition]) -> BTreeMap<String, ()> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut varied = BTreeMap::new();
    for (factor, level) in conditions.iter().flat_map(|c| &c.levels) {
        if *first.entry(factor).or_insert(level) != level {
            varied.insert(factor.clone(), ());
        }
    }
    varied
}

/// The last word of a factor's path, with its end where it belongs to one: `cpus`, `pong driver`.
pub(crate) fn short(factor: &str) -> String {
    if let Some(of_end) = factor.strip_prefix("ends.") {
        return of_end.replace('.', " ");
    }
    // Settings of the host that have names of their own: `host.irq_affinity.24`.
    let of_host = factor.strip_prefix("host.").filter(|below| below.contains('.') && !below.starts_with("sysctl."));
    of_host.or(factor.rsplit('.').next()).unwrap_or(factor).to_owned()
}

fn name(condition: &Condition, others: &[&str]) -> String {
    let level = |factor: &str, from_spec: String| condition.levels.get(factor).cloned().unwrap_or(from_spec);
    let spec = &condition.spec;
    let rate = match spec.rate {
        Rate::Max if spec.measure.flow().is_some() => "as fast as it goes".to_owned(),
        Rate::Max => "stop-and-wait".to_owned(),
        Rate::Period(_) => level("rate", spec.rate.to_string()),
    };
    let mut name = format!(
        "{} over {}, {}, {rate}",
        level("driver", spec.driver_names()),
        level("path", spec.path.to_string()),
        level("payload", spec.payload.to_string()),
    );
    for factor in others {
        if let Some(level) = condition.levels.get(*factor) {
            // Told by the name already.
            if factor.starts_with("ends.") && factor.ends_with(".driver") && spec.driver_names().contains(level) {
                continue;
            }
            name.push_str(&format!(", {} {level}", short(factor)));
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn a_short_name_still_tells_what_it_is() {
        for (factor, name) in [
            ("measure.slots", "slots"),
            ("ends.pong.driver", "pong driver"),
            ("host.sysctl.net.core.busy_poll", "busy_poll"),
            ("host.governor", "governor"),
            ("host.irq_affinity.24", "irq_affinity.24"),
            ("host.nic.eth0.channels", "nic.eth0.channels"),
        ] {
            assert_eq!(short(factor), name);
        }
    }
}
