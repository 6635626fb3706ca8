//! Names of conditions for sentences: driver, path, payload, rate, then the levels of other factors that vary.

use std::collections::BTreeMap;
use tailbound_document::short_factor;
use tailbound_model::{Condition, Plan, Rate};

/// Factors whose levels the name of every condition begins with.
const ALWAYS: [&str; 4] = ["driver", "path", "payload", "rate"];

/// Returns one name per condition, in the order of the plan.
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

fn name(condition: &Condition, others: &[&str]) -> String {
    let level = |factor: &str, from_spec: String| condition.levels.get(factor).cloned().unwrap_or(from_spec);
    let spec = &condition.spec;
    let rate = match spec.rate {
        Rate::Max if spec.measure.flow().is_some() => "as fast as possible".to_owned(),
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
            // The name contains the driver already.
            if factor.starts_with("ends.") && factor.ends_with(".driver") && spec.driver_names().contains(level) {
                continue;
            }
            name.push_str(&format!(", {} {level}", short_factor(factor)));
        }
    }
    name
}
