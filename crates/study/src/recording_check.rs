//! The check of what the recording of events costs: a study with `attribution: { level: machine, check: on }` runs
//! each condition with and without the recording, and compares the two.
//!
//! The key becomes a factor with two levels, and `off` the level with which the report compares. Order, pairs, intervals
//! and tables are therefore those of any other factor.

use crate::error::Fault;
use crate::factors::{Factor, Study};
use crate::format::{AttributionChoice, AttributionKeys, CheckChoice};
use crate::read::read;
use crate::tree::{Key, Kind, Node};

const KEY: &str = "attribution";
const OFF: &str = "off";

/// Replaces the map `attribution` of a study by its level and, if the study asks for the check, adds the factor.
pub(crate) fn expand(study: &mut Study) -> Result<(), Fault> {
    let Some(node) = study.base.get(KEY).filter(|node| matches!(node.kind, Kind::Map(_))).cloned() else {
        return Ok(());
    };
    let keys: AttributionKeys = read(&node)?;
    let word = |text: &str| Node { at: node.at, kind: Kind::Text(text.into()) };
    let level = node.get("level").cloned().unwrap_or_else(|| word("auto"));
    if let Some(key) = study.base.get_mut(KEY) {
        *key = level.clone();
    }
    let Some(check) = keys.check.filter(|check| matches!(check.value, CheckChoice::On)) else { return Ok(()) };
    if let Some(off) = keys.level.filter(|level| matches!(level.value, AttributionChoice::Off)) {
        let reason = "without a recording, there is nothing to check";
        return Err(Fault::new(off.at, reason).help("write `level: auto`, `packets`, `machine` or `threads`"));
    }
    if let Some(factor) = study.factors.iter().find(|factor| factor.path == KEY) {
        let reason = "`attribution` is a factor already, so that `check: on` cannot vary it too";
        return Err(Fault::new(factor.at, reason).help("remove the factor, or `check: on`"));
    }
    compare_with_off(&mut study.base, &word)?;
    // A factor has no fixed value.
    study.base.remove(KEY);
    study.factors.push(Factor { path: KEY.into(), at: check.at, levels: vec![level, word(OFF)], names: None });
    Ok(())
}

/// Lets the report compare with the level `off`.
fn compare_with_off(base: &mut Node, word: &dyn Fn(&str) -> Node) -> Result<(), Fault> {
    let key = |text: &str| Key { at: word("").at, text: text.into() };
    let map = |entries| Node { at: word("").at, kind: Kind::Map(entries) };
    if let Some(other) = base.get("report").and_then(|report| report.get("against")) {
        let reason = "`check: on` compares with trials without a recording, and a report has one comparison only";
        return Err(Fault::new(other.at, reason).help("remove `against`, or `check: on`"));
    }
    let against = (key("against"), map(vec![(key(KEY), word(OFF))]));
    match base.get_mut("report").map(|report| &mut report.kind) {
        Some(Kind::Map(entries)) => entries.push(against),
        // A `report` of another kind is an error, which is found when the study is read.
        Some(_) => {}
        None => {
            if let Kind::Map(entries) = &mut base.kind {
                entries.push((key("report"), map(vec![against])));
            }
        }
    }
    Ok(())
}
