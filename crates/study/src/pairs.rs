//! The plan of pairs of trials: one condition as it is, and the same condition with a change.

use crate::order::needs_same_lab;
use tailbound_model::{Condition, Plan, Trial};

/// Name of the factor that separates the two sides of a pair.
const FACTOR: &str = "change";

/// A plan that runs pairs of trials. Both plans have one possible condition each, which their trials run. For each entry of
/// `with_first` a pair is run; if the entry is true, the trial of `with` comes first. If both conditions are equal, the plan has
/// one condition, which all trials run.
///
/// Returns the number of possible conditions if a plan does not have exactly one.
///
/// # Errors
/// A plan has no possible condition, or several.
pub fn pairs(without: &Plan, with: &Plan, with_first: &[bool]) -> Result<Plan, usize> {
    let (a, b) = (only_condition(without)?, only_condition(with)?);
    let mut plan = without.clone();
    let equal = a.spec == b.spec;
    let side = |id: usize, condition: &Condition, level: &str| {
        let mut levels = condition.levels.clone();
        levels.insert(FACTOR.to_owned(), level.to_owned());
        Condition { id, levels, ..condition.clone() }
    };
    plan.conditions = if equal {
        vec![Condition { id: 0, ..a.clone() }]
    } else {
        plan.factors.push(FACTOR.to_owned());
        vec![side(0, a, "without"), side(1, b, "with")]
    };
    let change = usize::from(!equal);
    let order = with_first.iter().flat_map(|with_first| if *with_first { [change, 0] } else { [0, change] });
    let keeps_lab = equal || needs_same_lab(&a.spec, &b.spec);
    plan.trials.clear();
    for (id, condition) in order.enumerate() {
        let block = match plan.trials.last() {
            Some(last) => last.block + usize::from(!keeps_lab && last.condition != condition),
            None => 0,
        };
        plan.trials.push(Trial { id, condition, repeat: id / 2, block });
    }
    Ok(plan)
}

/// The only possible condition of a plan; otherwise the number of possible conditions.
fn only_condition(plan: &Plan) -> Result<&Condition, usize> {
    let possible: Vec<&Condition> = plan.conditions.iter().filter(|c| c.not_possible.is_none()).collect();
    match possible[..] {
        [one] => Ok(one),
        _ => Err(possible.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::pairs;
    use crate::load_str;
    use std::path::Path;
    use tailbound_model::Plan;

    fn plan(more: &str) -> Plan {
        let text = format!("study: one\nmeasure: ping-pong\ndriver: udp\nplace: netns\n{more}");
        load_str("one", &text, Path::new(""), &[]).expect("a valid study")
    }

    fn order(plan: &Plan) -> Vec<(usize, usize)> {
        plan.trials.iter().map(|t| (t.condition, t.block)).collect()
    }

    #[test]
    fn pairs_have_the_order_that_was_asked_for() {
        let changed = plan("ends: { pong: { cpus: \"0\" } }\n");
        let pairs = pairs(&plan(""), &changed, &[false, true, true]).expect("one condition each");
        assert_eq!(order(&pairs), [(0, 0), (1, 0), (1, 0), (0, 0), (1, 0), (0, 0)]);
        assert_eq!(pairs.conditions[1].levels["change"], "with");
        assert_eq!(pairs.trials.iter().map(|t| t.repeat).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn host_settings_and_paths_need_a_lab_of_their_own() {
        let changed = plan("host: { sysctl: { net.core.busy_poll: 50 } }\n");
        let pairs = pairs(&plan(""), &changed, &[false, true]).expect("one condition each");
        assert_eq!(order(&pairs), [(0, 0), (1, 1), (1, 1), (0, 2)]);
    }

    #[test]
    fn equal_sides_are_one_condition() {
        let pairs = pairs(&plan(""), &plan(""), &[false, true]).expect("one condition each");
        assert_eq!((pairs.conditions.len(), order(&pairs)), (1, vec![(0, 0); 4]));
    }

    #[test]
    fn several_conditions_are_refused() {
        let two = plan("factors: { payload: [64 B, 1 KiB] }\n");
        assert_eq!(pairs(&two, &two, &[false]), Err(2));
    }
}
