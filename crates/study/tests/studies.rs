//! Studies that are right: the built-in ones, defaults, factors, `--set`.

use std::path::Path;
use tailbound_model::Plan;
use tailbound_study::{embedded, estimate, load_str};

fn built_in(name: &str) -> Plan {
    let (_, text) = embedded().iter().find(|(n, _)| *n == name).expect("a built-in study");
    load_str(&format!("{name}.yaml"), text, Path::new(""), &[]).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn quick_measures_eight_conditions_in_about_twenty_seconds() {
    let plan = built_in("quick");
    assert_eq!((plan.conditions.len(), plan.trials.len()), (8, 16));
    let seconds = estimate(&plan).secs();
    assert!((15.0..25.0).contains(&seconds), "{seconds} s");
}

#[test]
fn built_in_studies_load() {
    for (name, _) in embedded() {
        let plan = built_in(name);
        assert_eq!(plan.study, *name);
        assert!(plan.conditions.iter().all(|c| c.not_possible.is_none()), "{name}");
    }
}
