//! Makes the conditions of the plan from the combinations of levels.

use crate::error::Fault;
use crate::factors::{Combination, Study};
use crate::format::StudyFile;
use crate::levels;
use crate::read::read;
use crate::resolve::{Context, Places, trial};
use crate::rules;
use crate::shape;
use crate::source::Pos;
use crate::tree::{Kind, Node};
use std::collections::{BTreeMap, HashMap};
use tailbound_model::{Condition, TrialSpec};

/// Keys that every condition shows as levels, whether they are factors or not.
pub(crate) const ALWAYS: [&str; 4] = ["driver", "payload", "rate", "path"];

/// Makes all conditions of a study. Also returns the study file with the levels of the first condition, from which the
/// caller reads keys that are equal in all conditions.
pub(crate) fn conditions(study: &Study, context: &Context<'_>) -> Result<(Vec<Condition>, StudyFile), Fault> {
    let mut conditions = Vec::new();
    let mut first_file = None;
    let mut first_fault = None;
    let mut seen: HashMap<String, Vec<usize>> = HashMap::new();
    for combination in study.combinations()? {
        let file: StudyFile = read(&combination.root)?;
        let (spec, places) = trial(&file, &combination.root, context)?;
        let fault = combination
            .impossible
            .clone()
            .or_else(|| rules::impossible(&spec, &places))
            .or_else(|| limit(&spec, &combination.root, &places, context));
        if fault.is_none() {
            check_effect(study, &combination, &spec, &mut seen)?;
        }
        if context.options.strict
            && let Some(fault) = fault
        {
            return Err(fault);
        }
        conditions.push(Condition {
            id: conditions.len(),
            levels: levels_of(study, &combination, &spec),
            spec,
            not_possible: fault.as_ref().map(|f| f.problem.what.clone()),
        });
        first_fault = first_fault.or(fault);
        first_file.get_or_insert(file);
    }
    match (first_file, first_fault) {
        (_, Some(fault)) if conditions.iter().all(|c| c.not_possible.is_some()) => Err(fault),
        (Some(file), _) => Ok((conditions, file)),
        (None, _) => Err(Fault::new(study.base.at, "the study has no conditions")),
    }
}

/// Makes the error that the driver cannot run the trial, at the position of the key that the user can change.
fn limit(spec: &TrialSpec, root: &Node, places: &Places, context: &Context<'_>) -> Option<Fault> {
    let mut problem = (context.options.limits?)(spec)?;
    let key = problem.at.take().filter(|_| !spec.has_tool());
    let at = key.and_then(|key| position(root, &key)).unwrap_or(places.driver);
    Some(Fault { at, problem })
}

/// The position of the value with this key path or, if the study does not contain the value, of the deepest value on
/// the key path that the study contains.
fn position(root: &Node, path: &str) -> Option<Pos> {
    let (mut node, mut at) = (root, None);
    for key in path.split('.') {
        let Some(next) = node.get(key) else { break };
        (node, at) = (next, Some(next.at));
    }
    at
}

/// Returns an error if two combinations of levels give equal trials, because another key overrides one of the factors.
fn check_effect(
    study: &Study,
    combination: &Combination,
    spec: &TrialSpec,
    seen: &mut HashMap<String, Vec<usize>>,
) -> Result<(), Fault> {
    let key = format!("{spec:?}");
    let Some(other) = seen.insert(key, combination.chosen.clone()) else { return Ok(()) };
    let differs = |i: &usize| other[*i] != combination.chosen[*i];
    let Some(index) = (0..other.len()).find(differs) else { return Ok(()) };
    let factor = &study.factors[index];
    let (a, b) = (factor.level(other[index]), factor.level(combination.chosen[index]));
    let reason = format!("the factor `{}` changes nothing: with `{a}` and `{b}` the trials are the same", factor.path);
    Err(Fault::new(factor.at, reason)
        .help("another key of the study overrides the factor; remove the factor or the other key"))
}

fn levels_of(study: &Study, combination: &Combination, spec: &TrialSpec) -> BTreeMap<String, String> {
    let mut levels = BTreeMap::new();
    for (factor, &chosen) in study.factors.iter().zip(&combination.chosen) {
        levels.insert(factor.path.clone(), factor.level(chosen));
    }
    for key in ALWAYS {
        if levels.contains_key(key) {
            continue;
        }
        // Options that are separate factors must not make this level vary too.
        let written = study.base.get(key).filter(|node| node.kind != Kind::Null).zip(shape::at(key));
        let below = |path: &String| path.starts_with(&format!("{key}."));
        let text = match written {
            Some((node, shape)) => levels::text(node, shape),
            None if key == "path" && levels.keys().any(below) => "veth".into(),
            None => match key {
                "driver" => spec.driver_names(),
                "payload" => spec.payload.to_string(),
                "rate" => spec.rate.to_string(),
                _ => spec.path.to_string(),
            },
        };
        levels.insert(key.into(), text);
    }
    levels
}
