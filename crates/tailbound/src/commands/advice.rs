//! Runs `tailbound advice`: prints the table of rules by which reports, `doctor` and `tune` say what to change.

use crate::cli::{Advice, AdviceFormat};
use crate::failure::{CommandResult, Failure};
use crate::output::{out, outln, width};
use tailbound_model::ExitCode;

pub fn advice(args: &Advice) -> CommandResult {
    match args.format {
        AdviceFormat::Text => out!("{}", tailbound_advice::list(width())),
        AdviceFormat::Markdown => out!("{}", tailbound_advice::markdown()),
        AdviceFormat::Json => {
            let text = serde_json::to_string_pretty(tailbound_advice::RULES).map_err(Failure::unexpected)?;
            outln!("{text}");
        }
    }
    Ok(ExitCode::Done)
}
