//! Lines of text of a report about the path that messages took.

use tailbound_document::{ConditionReport, Report};

/// Lines for the terminal and Markdown: the conditions whose messages took the same path, and the path.
pub(crate) fn lines(report: &Report) -> Vec<(String, String)> {
    let mut groups: Vec<(&str, Vec<&ConditionReport>)> = Vec::new();
    for condition in &report.conditions {
        let Some(proof) = &condition.path_proof else { continue };
        match groups.iter_mut().find(|(text, _)| *text == proof.text) {
            Some((_, of)) => of.push(condition),
            None => groups.push((&proof.text, vec![condition])),
        }
    }
    let which = |of: &[&ConditionReport]| match of {
        [one] => one.name.clone(),
        all if all.len() == report.conditions.len() => format!("all {} conditions", all.len()),
        [first, rest @ ..] => format!("{} and {} more", first.name, rest.len()),
        [] => String::new(),
    };
    groups.into_iter().map(|(text, of)| (which(&of), text.to_owned())).collect()
}
