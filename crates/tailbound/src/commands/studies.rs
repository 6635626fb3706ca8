//! Runs `tailbound studies`: lists the built-in studies with what they need, or prints one of them.

use super::{run, study_needs};
use crate::cli::{Listed, StudiesCommand};
use crate::failure::{CommandResult, Failure};
use crate::output::{out, outln, width};
use serde_json::json;
use std::path::Path;
use study_needs::{Group, Needs};
use tailbound_model::{ExitCode, Nanos};
use tailbound_report::wrap;

/// The first lines of a study that is printed: editors with the language server of YAML read the first one.
const HEAD: &str = "# yaml-language-server: $schema=study.schema.json\n\
                    # Keys are checked by an editor after: tailbound schema study > study.schema.json\n";

pub fn studies(command: Option<&StudiesCommand>) -> CommandResult {
    match command {
        None => list(Listed::TEXT),
        Some(StudiesCommand::List(listed)) => list(*listed),
        Some(StudiesCommand::Show { name }) => {
            out!("{HEAD}{}", text(name)?);
            Ok(ExitCode::Done)
        }
    }
}

/// A built-in study in the list.
struct Listing {
    name: &'static str,
    question: String,
    needs: Needs,
}

fn list(listed: Listed) -> CommandResult {
    let of = |(name, text): &(&'static str, &'static str)| {
        let question = text.lines().find_map(|l| l.strip_prefix("question:")).unwrap_or("").trim();
        let question = question.trim_matches(|c| c == '"' || c == '\'').to_owned();
        Listing { name, question, needs: study_needs::of(&run::load(Path::new(name), &[], false), text) }
    };
    let all: Vec<Listing> = tailbound_study::embedded().iter().map(of).collect();
    if listed.is_json() {
        let of = |study: &Listing| {
            let Needs { length, conditions, possible, lacks, group } = &study.needs;
            json!({
                "study": study.name, "question": study.question, "group": group.title(), "lacks": lacks,
                "length_ns": length.map(|length| length.0), "conditions": conditions, "possible": possible,
            })
        };
        let all: Vec<_> = all.iter().map(of).collect();
        outln!("{}", serde_json::to_string_pretty(&json!({ "studies": all })).map_err(Failure::unexpected)?);
        return Ok(ExitCode::Done);
    }
    for group in [Group::OneMachine, Group::Isolated, Group::SeveralMachines] {
        outln!("{}", group.title());
        for study in all.iter().filter(|study| study.needs.group == group) {
            outln!("{}", text_of(study, width()));
        }
        outln!("");
    }
    outln!("`tailbound studies show NAME` prints a study, `tailbound run NAME` runs the study.");
    Ok(ExitCode::Done)
}

/// A study of the list for a terminal of `width` columns: beside its name, or below it if the terminal is narrow.
fn text_of(study: &Listing, width: usize) -> String {
    let head = format!("  {:<24} {:>9}", study.name, length(study.needs.length));
    let is_narrow = width < 70;
    let indent = if is_narrow { 6 } else { head.chars().count() + 2 };
    let texts = std::iter::once(study.question.clone()).chain(note(&study.needs));
    let lines = texts.flat_map(|text| wrap(&text, width.saturating_sub(indent).max(20), 0));
    let lines: Vec<String> = lines.map(|line| format!("{:indent$}{line}", "")).collect();
    let body = lines.join("\n");
    if is_narrow { format!("{head}\n{body}") } else { format!("{head}{}", &body[head.len().min(body.len())..]) }
}

/// What this machine lacks for a study, in words; `None` = it can be run as it is.
fn note(needs: &Needs) -> Option<String> {
    let lacks = needs.lacks.join("; ");
    match (needs.possible, needs.conditions) {
        (_, 0) => Some(format!("cannot be run here: {lacks}")),
        _ if needs.lacks.is_empty() => None,
        (possible, all) if possible < all => Some(format!("{possible} of {all} conditions can be run here: {lacks}")),
        _ => Some(lacks),
    }
}

/// About how long a study takes, in words.
fn length(of: Option<Nanos>) -> String {
    match of.map(|length| length.secs()) {
        None => "?".into(),
        Some(s) if s < 100.0 => format!("{s:.0} s"),
        Some(s) if s < 6_000.0 => format!("{:.0} min", s / 60.0),
        Some(s) => format!("{:.1} h", s / 3_600.0),
    }
}

/// Text of the study file of a built-in study.
pub fn text(name: &str) -> Result<&'static str, Failure> {
    tailbound_study::embedded().iter().find(|(n, _)| *n == name).map(|(_, text)| *text).ok_or_else(|| {
        let names: Vec<&str> = tailbound_study::embedded().iter().map(|(n, _)| *n).collect();
        let near = tailbound_study::nearest(name, names.iter().copied())
            .map_or(String::new(), |n| format!("did you mean `{n}`? "));
        Failure::bad_input(format!("there is no built-in study `{name}`"))
            .help(format!("{near}these exist: {}", names.join(" ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_says_what_this_machine_lacks() {
        let needs = |possible, conditions, lacks: &[&str]| Needs {
            length: Some(Nanos(90_000_000_000)),
            conditions,
            possible,
            lacks: lacks.iter().map(|lack| (*lack).to_owned()).collect(),
            group: Group::OneMachine,
        };
        assert_eq!(note(&needs(4, 4, &[])), None);
        assert_eq!(note(&needs(4, 4, &["needs a second host"])).unwrap(), "needs a second host");
        assert_eq!(note(&needs(2, 4, &["x"])).unwrap(), "2 of 4 conditions can be run here: x");
        assert_eq!(note(&needs(0, 0, &["x"])).unwrap(), "cannot be run here: x");
        assert_eq!(length(needs(0, 0, &[]).length), "90 s");
        let question = "How late can a message be between two processes of this machine?".to_owned();
        let study = Listing { name: "quick", question, needs: needs(2, 4, &["driver `fastdds` is not installed"]) };
        insta::assert_snapshot!(format!("{}\n\n{}", text_of(&study, 80), text_of(&study, 60)));
        assert_eq!(length(Some(Nanos(9_960_000_000_000))), "2.8 h");
    }
}
