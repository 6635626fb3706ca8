//! Runs `tailbound report`: writes the results of a record as text, a page, a document or a chart.

use crate::cli::{Format, Picture, Report};
use crate::failure::{CommandResult, Failure};
use crate::output::{colour, width};
use std::io::Write;
use std::path::Path;
use tailbound_model::ExitCode;
use tailbound_record::Record;
use tailbound_report::{Figure, ReportStatus};

pub fn report(args: &Report) -> CommandResult {
    let mut record = Record::open(&args.record).map_err(|e| Failure::of(ExitCode::BadInput, e))?;
    record.manifest.plan.report.range = args.range.or(record.manifest.plan.report.range);
    let report = tailbound_report::analyse(&record).map_err(|e| Failure::of(ExitCode::BadInput, e))?;
    let text: Vec<u8> = match args.format {
        Format::Terminal => tailbound_report::render_terminal(&report, width(), colour()).into(),
        Format::Html => tailbound_report::render_html(&report).into(),
        Format::Json => tailbound_report::render_json(&report).into(),
        Format::Csv => tailbound_report::render_csv(&report).into(),
        Format::Md => tailbound_report::render_markdown(&report).into(),
        Format::Svg => picture(&report, args.figure)?.into(),
        #[cfg(feature = "png")]
        Format::Png => tailbound_report::render_png(&picture(&report, args.figure)?).map_err(Failure::unexpected)?,
    };
    match &args.out {
        Some(file) => write(file, &text)?,
        None => {
            let mut out = std::io::stdout().lock();
            let written = out.write_all(&text).and_then(|()| out.flush());
            written.map_err(|e| Failure::unexpected(format!("cannot write the report: {e}")))?;
        }
    }
    Ok(code(report.status))
}

fn picture(report: &tailbound_report::Report, picture: Option<Picture>) -> Result<String, Failure> {
    let flows =
        report.conditions.iter().any(|c| c.flow.is_some()) && report.conditions.iter().all(|c| c.round_trip.is_none());
    let figure = match picture.unwrap_or(if flows { Picture::Flow } else { Picture::Latency }) {
        Picture::Latency => Figure::Latency,
        Picture::Tail => Figure::Tail,
        Picture::TailEstimate => Figure::TailEstimate,
        Picture::Ladder => Figure::Ladder,
        Picture::Histogram => Figure::Histogram,
        Picture::Time => Figure::Time,
        Picture::Legs => Figure::Legs,
        Picture::Loop => Figure::Loop,
        Picture::Flow => Figure::Flow,
        Picture::Overhead => Figure::Overhead,
    };
    tailbound_report::render_svg(report, figure).map_err(|e| Failure::of(ExitCode::BadInput, e))
}

/// Writes the text or the image of a report to a file.
pub fn write(file: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    std::fs::write(file, text)
        .map_err(|e| Failure::run_failed(format!("{}: cannot write the report: {e}", file.display())))
}

/// Exit code of `tailbound report` for the status of a report.
pub fn code(status: ReportStatus) -> ExitCode {
    if status == ReportStatus::Valid { ExitCode::Done } else { ExitCode::RecordInvalid }
}
