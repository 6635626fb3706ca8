//! The words and charts of reports: makes findings, text, pages and charts from the documents of `tailbound-document`.
//!
//! [`analyse`], [`compare_records`] and [`compare_levels`] let `tailbound-analysis` compute a document, and add the
//! findings: sentences that say what the figures mean. Each `render_` function makes one form of a document from that
//! document alone; only [`Perfetto`] also reads the record, because a document has no events of the kernel.
//! Nothing here measures or computes a figure.

mod budget;
mod cause_words;
mod compared;
mod comparison;
mod csv;
mod date;
#[cfg(test)]
mod earlier_report;
mod escape;
mod findings;
mod html;
mod json;
mod markdown;
mod metrics;
mod perfetto;
mod picture;
mod plain;
mod short;
mod stalls;
mod tables;
mod terminal;
mod text;
mod trial_line;
mod watched;
mod watched_also;
mod watched_calls;
mod watched_compared;
mod watched_page;

pub use budget::{render_budget_junit, render_budget_markdown, render_budget_terminal};
pub use cause_words::cause_words;
pub use compared::verdict_with_ratio;
pub use comparison::{
    comparison_schema, render_comparison_html, render_comparison_json, render_comparison_markdown,
    render_comparison_terminal,
};
pub use csv::render_csv;
pub use date::{of_name as date_of_name, utc as date};
pub use escape::escape_html;
pub use html::table::{Head as TableHead, left as left_head, right as right_head, table_of_frame};
pub use html::{render_frame, render_html, render_html_with_files, worst_condition};
pub use json::{render_json, schema};
pub use markdown::render_markdown;
pub use metrics::{MetricsFormat, render_budget_metrics, render_watch_metrics};
pub use perfetto::{Perfetto, TraceError};
pub use picture::{Figure, render_svg};
#[cfg(feature = "png")]
pub use picture::{PngError, render_png};
pub use short::render_short;
pub use tailbound_analysis::{
    Brief, CompareError, CompareOptions, LeadAdvice, NoLead, RecoveredGate, RecoveredGates, brief, judge_budget,
    lead_times, limit_lines, recover_gates,
};
pub use tailbound_document::*;
pub use terminal::render_terminal;
pub use text::wrap;
pub use trial_line::{trial_causes, trial_line};
pub use watched::{render_watch, render_watched_calls, watch_schema};
pub use watched_compared::render_watch_comparison;
pub use watched_page::render_watch_html;

use tailbound_record::{Record, RecordError};

/// Computes the report of a record: every figure that the record supports, and the findings.
///
/// If the samples of a trial are missing, damaged or from another trial, the trial is left out, and a warning makes the
/// report invalid.
///
/// # Errors
/// The record changes while it is being read.
pub fn analyse(record: &Record) -> Result<Report, RecordError> {
    let mut report = tailbound_analysis::analyse(record)?;
    report.findings = findings::findings(&report);
    Ok(report)
}

/// Computes the report of a record as [`analyse`] does, and what changed since the last run of its study, if a record of an
/// earlier run lies in the same folder.
///
/// # Errors
/// The record changes while it is being read.
pub fn analyse_since_last(record: &Record) -> Result<Report, RecordError> {
    let since = tailbound_analysis::since(record)
        .map(|since| SinceReport { comparison: comparison::with_findings(since.comparison), ..since });
    Ok(Report { since, ..analyse(record)? })
}

/// Compares two records. A pair consists of conditions with the same levels of all factors that at least one of the
/// records varies.
///
/// # Errors
/// No condition has a counterpart with figures of the same definition; a record cannot be read.
pub fn compare_records(a: &Record, b: &Record, options: &CompareOptions) -> Result<Comparison, CompareError> {
    tailbound_analysis::compare_records(a, b, options).map(comparison::with_findings)
}

/// Compares two levels of one factor inside one record. A pair consists of conditions that have the same levels of all
/// other factors. Without `factor`, the record must vary exactly one factor; without `levels`, the factor must have
/// exactly two levels.
///
/// # Errors
/// The factor or a level does not exist, or the choice is ambiguous; the record cannot be read.
pub fn compare_levels(
    record: &Record,
    factor: Option<&str>,
    levels: Option<[&str; 2]>,
    options: &CompareOptions,
) -> Result<Comparison, CompareError> {
    tailbound_analysis::compare_levels(record, factor, levels, options).map(comparison::with_findings)
}
