//! Recorded captures (`watch --out`) for `tailbound report`, `tailbound compare` and `tailbound budget`.

use super::capture_dir::{captures, read, read_report};
use super::report::write;
use crate::cli::{Compare, CompareFormat, Format, Report};
use crate::failure::{CommandResult, Failure};
use crate::output::{colour, out, width};
use std::path::{Path, PathBuf};
use tailbound_model::{Budget, ExitCode};
use tailbound_report::BudgetReport;

/// Whether one of two compared directories is a recorded capture, or has some.
pub fn is_of_captures(args: &Compare) -> bool {
    args.b.as_ref().is_some_and(|b| [&args.a, b].into_iter().any(|dir| !captures(dir).is_empty()))
}

/// Prints a recorded capture.
pub fn report(args: &Report) -> CommandResult {
    let flags = [
        ("--budget", args.budget.is_some()),
        ("--open", args.open),
        ("--short", args.short),
        ("--range", args.range.is_some()),
        ("--trial", !args.trials.is_empty()),
        ("--figure", args.figure.is_some()),
    ];
    refuse(&args.record, &flags)?;
    let report = read_report(&args.record)?;
    let text = match args.format {
        Format::Terminal => tailbound_report::render_watch(&report, width(), colour()),
        Format::Html => tailbound_report::render_watch_html(&report),
        Format::Json => serde_json::to_string_pretty(&report).map_err(Failure::unexpected)? + "\n",
        _ => {
            return Err(Failure::bad_input(format!("{}: a capture has no such form", args.record.display()))
                .help("its forms are terminal, html and json; samples.csv has its samples"));
        }
    };
    show(args.out.as_deref(), &text)
}

/// Prints recorded captures side by side.
pub fn compare(args: &Compare) -> CommandResult {
    let b = args.b.as_deref().unwrap_or(&args.a);
    let sides = [captures(&args.a), captures(b)];
    let is_one_each = sides.iter().all(|side| side.len() == 1);
    let flags = [("--margin", args.margin.is_some() && is_one_each), ("--metric", args.metrics != ["round_trip"])];
    refuse(&args.a, &flags)?;
    if let Some((dir, _)) = [args.a.as_path(), b].into_iter().zip(&sides).find(|(_, side)| side.is_empty()) {
        return Err(Failure::bad_input(format!("{} is no capture, and the other one is", dir.display())).help(
            "compare two directories of `watch --out`, directories with several of them, or two records of studies",
        ));
    }
    let read_all = |side: &[PathBuf]| side.iter().map(|dir| read(dir)).collect::<Result<Vec<_>, Failure>>();
    let comparison = tailbound_watch::compare(&read_all(&sides[0])?, &read_all(&sides[1])?, args.margin);
    let text = match args.format {
        CompareFormat::Terminal => tailbound_report::render_watch_comparison(&comparison, width(), colour()),
        CompareFormat::Json => serde_json::to_string_pretty(&comparison).map_err(Failure::unexpected)? + "\n",
        _ => {
            return Err(
                Failure::bad_input("a comparison of captures has no such form").help("its forms are terminal and json")
            );
        }
    };
    show(args.out.as_deref(), &text)
}

/// Checks a recorded capture against a budget.
pub fn judged(dir: &Path, budget: &Budget, baseline: Option<&Path>) -> Result<BudgetReport, Failure> {
    refuse(dir, &[("--baseline", baseline.is_some())])?;
    tailbound_watch::judge(&read(dir)?, budget, &dir.display().to_string()).map_err(|misfit| {
        let help = misfit.help();
        Failure::bad_input(misfit.to_string()).help(help)
    })
}

/// Refuses the flags that a capture does not have.
fn refuse(dir: &Path, flags: &[(&str, bool)]) -> Result<(), Failure> {
    match flags.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::bad_input(format!("{}: {flag} does not apply to a capture", dir.display()))
            .help("leave it out; the page of a capture is report.html in its directory")),
    }
}

fn show(file: Option<&Path>, text: &str) -> CommandResult {
    match file {
        Some(file) => write(file, text)?,
        None => out!("{text}"),
    }
    Ok(ExitCode::Done)
}
