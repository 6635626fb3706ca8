//! Runs `tailbound studies`: lists the built-in studies, or prints one of them.

use crate::cli::StudiesCommand;
use crate::failure::{CommandResult, Failure};
use crate::output::{out, outln};
use tailbound_model::ExitCode;

pub fn studies(command: Option<&StudiesCommand>) -> CommandResult {
    match command {
        None | Some(StudiesCommand::List) => {
            for (name, text) in tailbound_study::embedded() {
                let question = text.lines().find_map(|l| l.strip_prefix("question:")).unwrap_or("").trim();
                outln!("{name:<16} {}", question.trim_matches(|c| c == '"' || c == '\''));
            }
            outln!("\n`tailbound studies show NAME` prints a study, `tailbound run NAME` runs the study.");
            Ok(ExitCode::Done)
        }
        Some(StudiesCommand::Show { name }) => {
            out!("{}", text(name)?);
            Ok(ExitCode::Done)
        }
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
