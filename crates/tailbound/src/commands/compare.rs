//! Runs `tailbound compare`: compares two records, or two levels of a factor in one record.

use super::report::{open, write};
use crate::cli::{Compare, CompareFormat};
use crate::failure::{CommandResult, Failure};
use crate::output::{colour, out, width};
use tailbound_model::{ExitCode, Metric};
use tailbound_report::{CompareOptions, ReportStatus};

pub fn compare(args: &Compare) -> CommandResult {
    let options = CompareOptions { metrics: metrics(&args.metrics)?, margin: args.margin };
    let a = open(&args.a)?;
    let comparison = match &args.b {
        Some(b) => tailbound_report::compare_records(&a, &open(b)?, &options),
        None => {
            let levels = args.levels.as_deref().and_then(|l| Some([l.first()?.as_str(), l.get(1)?.as_str()]));
            tailbound_report::compare_levels(&a, args.factor.as_deref(), levels, &options)
        }
    };
    let comparison = comparison.map_err(|e| Failure::of(ExitCode::BadInput, e))?;
    let text = match args.format {
        CompareFormat::Terminal => tailbound_report::render_comparison_terminal(&comparison, width(), colour()),
        CompareFormat::Html => tailbound_report::render_comparison_html(&comparison),
        CompareFormat::Json => tailbound_report::render_comparison_json(&comparison),
        CompareFormat::Md => tailbound_report::render_comparison_markdown(&comparison),
    };
    match &args.out {
        Some(file) => write(file, &text)?,
        None => out!("{text}"),
    }
    let valid = [&comparison.a, &comparison.b].iter().all(|s| s.status == ReportStatus::Valid);
    Ok(if valid { ExitCode::Done } else { ExitCode::RecordInvalid })
}

/// Finds the metrics that the user names by their keys for a comparison.
fn metrics(words: &[String]) -> Result<Vec<Metric>, Failure> {
    let mut metrics: Vec<Metric> = Vec::new();
    for word in words {
        let found = Metric::ALL.into_iter().find(|m| m.key() == word.replace('-', "_"));
        let metric = found.ok_or_else(|| {
            let keys: Vec<&str> = Metric::ALL.iter().map(|m| m.key()).collect();
            let near = tailbound_study::nearest(word, keys.iter().copied())
                .map_or(String::new(), |n| format!("did you mean `{n}`? "));
            Failure::bad_input(format!("`{word}` is not a metric"))
                .help(format!("{near}these exist: {}", keys.join(", ")))
        })?;
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    Ok(metrics)
}
