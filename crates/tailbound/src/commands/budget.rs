//! Runs `tailbound budget`: checks whether a record or a capture keeps the limits of a budget file.

use super::capture_dir::is_capture;
use super::report::{judged, open, replace_metrics, write};
use super::{budget_file, captured};
use crate::cli::{Budget, MetricsFile, Undecided};
use crate::failure::CommandResult;
use crate::output::{colour, out, width};
use tailbound_model::ExitCode;
use tailbound_report::BudgetOutcome;

pub fn budget(args: &Budget) -> CommandResult {
    let budget = budget_file::load(&args.budget)?;
    let judged = match is_capture(&args.record) {
        true => captured::judged(&args.record, &budget, args.baseline.as_deref())?,
        false => judged(&open(&args.record)?, &budget, &args.budget, args.baseline.as_deref())?,
    };

    let undecided = args.undecided.map(|as_what| match as_what {
        Undecided::Pass => BudgetOutcome::Holds,
        Undecided::Fail => BudgetOutcome::Broken,
    });
    if let Some(file) = &args.junit {
        write(file, tailbound_report::render_budget_junit(&judged, undecided))?;
    }
    if let Some(file) = &args.markdown {
        write(file, tailbound_report::render_budget_markdown(&judged))?;
    }
    if let Some(MetricsFile { path, format }) = &args.metrics {
        replace_metrics(
            path,
            tailbound_report::render_budget_metrics(&judged, tailbound_host::realtime_ns(), *format),
        )?;
    }
    out!("{}", tailbound_report::render_budget_terminal(&judged, width(), colour()));
    let outcome = match judged.outcome() {
        BudgetOutcome::Undecided => undecided.unwrap_or(BudgetOutcome::Undecided),
        decided => decided,
    };
    Ok(match outcome {
        BudgetOutcome::Holds => ExitCode::Done,
        BudgetOutcome::Broken => ExitCode::BudgetExceeded,
        BudgetOutcome::Undecided => ExitCode::Undecided,
    })
}
