//! `STUDY#CONDITION`: one condition of a plan, by its number or by its levels.

use tailbound_model::{Condition, Plan};

/// The study and the condition; a file whose name has a `#` is a file.
pub fn split(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once('#') {
        Some((study, which)) if !std::path::Path::new(text).exists() => (study, Some(which)),
        _ => (text, None),
    }
}

/// Levels in words, as `--dry-run` has them.
pub fn levels(c: &Condition) -> String {
    c.levels.iter().map(|(k, v)| format!("{k} {v}")).collect::<Vec<_>>().join(", ")
}

/// Longest list of conditions that an error shows.
const SHOWN: usize = 20;

fn list<'a>(conditions: impl Iterator<Item = &'a Condition>) -> String {
    let lines: Vec<String> = conditions.map(|c| format!("\n  {:>3}  {}", c.id, levels(c))).collect();
    let more = lines.len().saturating_sub(SHOWN);
    let more =
        if more > 0 { format!("\n       and {more} more: see `tailbound run STUDY --dry-run`") } else { String::new() };
    lines.into_iter().take(SHOWN).collect::<String>() + &more
}

/// The one condition that is meant.
///
/// # Errors
/// None or several are, with those to choose from.
pub fn find<'a>(plan: &'a Plan, which: Option<&str>) -> Result<&'a Condition, String> {
    let all = || list(plan.conditions.iter());
    let Some(which) = which else {
        return match &plan.conditions[..] {
            [only] => Ok(only),
            _ => Err(format!("which condition? Write STUDY#NUMBER or STUDY#FACTOR=LEVEL,...; there are{}", all())),
        };
    };
    if let Ok(id) = which.parse::<usize>() {
        let found = plan.conditions.iter().find(|c| c.id == id);
        return found.ok_or_else(|| format!("there is no condition {id}; there are{}", all()));
    }
    // Spaces between number and unit are optional in studies, so also here.
    let plain = |text: &str| text.replace(' ', "");
    let mut left: Vec<&Condition> = plan.conditions.iter().collect();
    for pair in which.split(',') {
        let Some((factor, level)) = pair.split_once('=') else {
            return Err(format!("`{pair}` is neither the number of a condition nor FACTOR=LEVEL; there are{}", all()));
        };
        let fits = |c: &&&Condition| c.levels.get(factor.trim()).is_some_and(|has| plain(has) == plain(level));
        let fitting: Vec<&Condition> = left.iter().filter(fits).copied().collect();
        if fitting.is_empty() {
            return Err(format!(
                "no condition has {}={}; there are{}",
                factor.trim(),
                level.trim(),
                list(left.into_iter())
            ));
        }
        left = fitting;
    }
    match left[..] {
        [only] => Ok(only),
        _ => Err(format!("`{which}` fits several conditions:{}", list(left.into_iter()))),
    }
}
