//! `tailbound compare`.

use super::report::{colour, width, write};
use crate::cli::{Compare, CompareFormat};
use crate::exit::{Failure, Outcome};
use crate::say::out;
use tailbound_model::{ExitCode, Metric};
use tailbound_record::Record;
use tailbound_report::{CompareError, CompareOptions, ReportStatus};

pub fn compare(args: &Compare) -> Outcome {
    let options = CompareOptions { metrics: metrics(&args.metrics)?, margin: args.margin };
    let a = Record::open(&args.a).map_err(bad)?;
    let comparison = match &args.b {
        Some(b) => tailbound_report::compare_records(&a, &Record::open(b).map_err(bad)?, &options),
        None => {
            let levels = args.levels.as_deref().and_then(|l| Some([l.first()?.as_str(), l.get(1)?.as_str()]));
            tailbound_report::compare_levels(&a, args.factor.as_deref(), levels, &options)
        }
    };
    let comparison = comparison.map_err(|e: CompareError| bad(e))?;
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

fn bad(e: impl ToString) -> Failure {
    Failure::new(ExitCode::BadInput, e)
}

/// Metrics by their keys.
fn metrics(words: &[String]) -> Result<Vec<Metric>, Failure> {
    let mut metrics: Vec<Metric> = Vec::new();
    for word in words {
        let found = Metric::ALL.into_iter().find(|m| m.key() == word.replace('-', "_"));
        let metric = found.ok_or_else(|| {
            let keys: Vec<&str> = Metric::ALL.iter().map(|m| m.key()).collect();
            let near = tailbound_study::nearest(word, keys.iter().copied())
                .map_or(String::new(), |n| format!("did you mean `{n}`? "));
            bad(format!("`{word}` is not a metric\n  what to do: {near}one of: {}", keys.join(", ")))
        })?;
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    Ok(metrics)
}

/// `5%`, `5 %`: a share above 0.
pub fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').map(str::trim).and_then(|n| n.parse::<f64>().ok());
    match number {
        Some(n) if n > 0.0 && n <= 1_000.0 => Ok(n / 100.0),
        _ => Err("a share such as `5%`, above 0 % and at most 1000 %".into()),
    }
}
