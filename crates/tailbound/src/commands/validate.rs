//! Runs `tailbound validate` and `tailbound schema`: checks a study or a budget file, prints the schema of a format.

use super::run;
use crate::cli::{SchemaOf, Validate};
use crate::failure::{CommandResult, Failure};
use crate::output::{out, outln};
use tailbound_model::ExitCode;
use tailbound_run::controller;

/// Keys that only a budget file has at its begin.
const KEYS_OF_BUDGETS: [&str; 3] = ["budget:", "limits:", "baseline:"];

pub fn validate(args: &Validate) -> CommandResult {
    // A file that cannot be read is refused as a study.
    let text = std::fs::read_to_string(&args.file).unwrap_or_default();
    if text.lines().any(|line| KEYS_OF_BUDGETS.iter().any(|key| line.starts_with(key))) {
        let budget = super::budget_file::load(&args.file)?;
        let baseline = if budget.baseline.is_some() { ", compared with a baseline" } else { "" };
        let sets = count(budget.limits.len(), "set");
        outln!("{}: a budget with {sets} of limits{baseline}", args.file.display());
        return Ok(ExitCode::Done);
    }
    let plan = run::load(&args.file, &args.settings, false)?;
    let not_possible = plan.conditions.iter().filter_map(|c| c.not_possible.as_ref());
    let not_possible: std::collections::BTreeSet<&String> = not_possible.collect();
    let (conditions, trials) = (plan.conditions.len(), plan.trials.len());
    outln!(
        "{}: a study with {} and {}, about {}",
        args.file.display(),
        count(conditions, "condition"),
        count(trials, "trial"),
        controller::expected_time(&plan)
    );
    for reason in not_possible {
        outln!("  some conditions are not possible here: {reason}");
    }
    Ok(ExitCode::Done)
}

fn count(n: usize, word: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") }
}

pub fn schema(of: SchemaOf) -> CommandResult {
    let pretty = |schema: serde_json::Value| serde_json::to_string_pretty(&schema).map_err(Failure::unexpected);
    let text = match of {
        SchemaOf::Study => pretty(tailbound_study::schema())?,
        SchemaOf::Budget => pretty(tailbound_study::budget_schema())?,
        SchemaOf::Report => tailbound_report::schema(),
        SchemaOf::Compare => tailbound_report::comparison_schema(),
        SchemaOf::Watch => tailbound_report::watch_schema(),
    };
    out!("{}\n", text.trim_end());
    Ok(ExitCode::Done)
}
