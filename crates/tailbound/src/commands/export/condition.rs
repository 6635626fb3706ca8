//! Parses `STUDY#CONDITION`, which selects a condition of a plan by its number or by its levels.

use crate::failure::Failure;
use tailbound_model::{Condition, Plan, is_same_level};

fn refused(text: String) -> Failure {
    Failure::bad_input(text)
}

/// Splits the argument at `#` into study and condition. If a file has the whole argument as its name, the argument is
/// not split.
pub fn split(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once('#') {
        Some((study, which)) if !std::path::Path::new(text).exists() => (study, Some(which)),
        _ => (text, None),
    }
}

/// Levels of a condition as text, in the format of `--dry-run`.
pub fn levels(c: &Condition) -> String {
    c.levels.iter().map(|(k, v)| format!("{k} {v}")).collect::<Vec<_>>().join(", ")
}

/// Largest number of conditions that an error message lists.
const SHOWN: usize = 20;

fn list<'a>(conditions: impl Iterator<Item = &'a Condition>) -> String {
    let lines: Vec<String> = conditions.map(|c| format!("\n  {:>3}  {}", c.id, levels(c))).collect();
    let more = lines.len().saturating_sub(SHOWN);
    let more =
        if more > 0 { format!("\n       and {more} more: see `tailbound run STUDY --dry-run`") } else { String::new() };
    lines.into_iter().take(SHOWN).collect::<String>() + &more
}

/// Finds the condition of a plan that the argument selects.
///
/// # Errors
/// The argument selects no condition or several. The error lists the conditions to choose from.
pub fn find<'a>(plan: &'a Plan, which: Option<&str>) -> Result<&'a Condition, Failure> {
    let all = || list(plan.conditions.iter());
    let Some(which) = which else {
        return match &plan.conditions[..] {
            [only] => Ok(only),
            _ => Err(refused(format!(
                "the argument names no condition; write STUDY#NUMBER or STUDY#FACTOR=LEVEL,...; the conditions of the \
                    study are:{}",
                all()
            ))),
        };
    };
    if let Ok(id) = which.parse::<usize>() {
        let found = plan.conditions.iter().find(|c| c.id == id);
        return found
            .ok_or_else(|| refused(format!("there is no condition {id}; the conditions of the study are:{}", all())));
    }
    let mut left: Vec<&Condition> = plan.conditions.iter().collect();
    for pair in which.split(',') {
        let Some((factor, level)) = pair.split_once('=') else {
            let text = format!(
                "`{pair}` is neither the number of a condition nor FACTOR=LEVEL; the conditions of the \
                study are:{}",
                all()
            );
            return Err(refused(text));
        };
        let fits = |c: &&&Condition| c.levels.get(factor.trim()).is_some_and(|has| is_same_level(has, level));
        let fitting: Vec<&Condition> = left.iter().filter(fits).copied().collect();
        if fitting.is_empty() {
            let there = list(left.into_iter());
            return Err(refused(format!(
                "no condition has {}={}; the conditions of the study are:{there}",
                factor.trim(),
                level.trim()
            )));
        }
        left = fitting;
    }
    match left[..] {
        [only] => Ok(only),
        _ => Err(refused(format!("`{which}` fits several conditions:{}", list(left.into_iter())))),
    }
}
