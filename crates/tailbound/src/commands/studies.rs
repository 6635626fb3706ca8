//! `tailbound studies`.

use crate::cli::StudiesCommand;
use crate::exit::{Failure, Outcome};
use crate::say::{out, outln};
use tailbound_model::ExitCode;

pub fn studies(command: Option<&StudiesCommand>) -> Outcome {
    match command {
        None | Some(StudiesCommand::List) => {
            for (name, text) in tailbound_study::embedded() {
                let question = text.lines().find_map(|l| l.strip_prefix("question:")).unwrap_or("").trim();
                outln!("{name:<16} {}", question.trim_matches(|c| c == '"' || c == '\''));
            }
            outln!("\n`tailbound studies show NAME` prints one, `tailbound run NAME` runs it.");
            Ok(ExitCode::Done)
        }
        Some(StudiesCommand::Show { name }) => {
            out!("{}", text(name)?);
            Ok(ExitCode::Done)
        }
    }
}

/// The text of a built-in study.
pub fn text(name: &str) -> Result<&'static str, Failure> {
    tailbound_study::embedded().iter().find(|(n, _)| *n == name).map(|(_, text)| *text).ok_or_else(|| {
        let names: Vec<&str> = tailbound_study::embedded().iter().map(|(n, _)| *n).collect();
        Failure::new(ExitCode::BadInput, format!("there is no built-in study `{name}`; there are {}", names.join(" ")))
    })
}
