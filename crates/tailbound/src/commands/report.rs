//! Runs `tailbound report`: writes the results of a record as text, a page, a document or a chart.

use crate::cli::{Format, Picture, Report};
use crate::failure::{CommandResult, Failure};
use crate::output::{colour, errln, width};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use tailbound_model::ExitCode;
use tailbound_record::Record;
use tailbound_report::{Figure, Perfetto, ReportStatus};

pub fn report(args: &Report) -> CommandResult {
    if !args.trials.is_empty() && args.format != Format::Perfetto {
        return Err(Failure::bad_input("--trial chooses trials of a trace, and another format was asked for")
            .help("add --format perfetto, or leave out --trial"));
    }
    let mut record = Record::open(&args.record).map_err(|e| Failure::of(ExitCode::BadInput, e))?;
    record.manifest.plan.report.range = args.range.or(record.manifest.plan.report.range);
    let report = tailbound_report::analyse(&record).map_err(|e| Failure::of(ExitCode::BadInput, e))?;
    let text: Vec<u8> = match args.format {
        Format::Perfetto => {
            trace(&record, &report, args)?;
            return Ok(code(report.status));
        }
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

/// Writes the trace of a record packet by packet, and sentences about what it does not have to standard error.
fn trace(record: &Record, report: &tailbound_report::Report, args: &Report) -> Result<(), Failure> {
    let trace = Perfetto::of(record, report, &args.trials).map_err(|e| Failure::of(ExitCode::BadInput, e))?;
    let written = match &args.out {
        Some(file) => {
            let made = File::create(file).and_then(|made| complete(&trace, BufWriter::new(made)));
            made.map_err(|e| refused(file, &e))
        }
        None => complete(&trace, BufWriter::new(std::io::stdout().lock()))
            .map_err(|e| Failure::unexpected(format!("cannot write the report: {e}"))),
    };
    for note in written? {
        errln!("{note}");
    }
    Ok(())
}

fn complete(trace: &Perfetto, mut out: impl Write) -> std::io::Result<Vec<String>> {
    let notes = trace.write(&mut out)?;
    out.flush().map(|()| notes)
}

fn refused(file: &Path, error: &std::io::Error) -> Failure {
    Failure::run_failed(format!("{}: cannot write the report: {error}", file.display()))
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
        Picture::GateWaits => Figure::GateWaits,
        Picture::GateTimeline => Figure::GateTimeline,
        Picture::NetworkUser => Figure::NetworkUser,
        Picture::Levels => Figure::Levels,
    };
    tailbound_report::render_svg(report, figure).map_err(|e| Failure::of(ExitCode::BadInput, e))
}

/// Writes the text or the image of a report to a file.
pub fn write(file: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|e| refused(file, &e))
}

/// Exit code of `tailbound report` for the status of a report.
pub fn code(status: ReportStatus) -> ExitCode {
    if status == ReportStatus::Valid { ExitCode::Done } else { ExitCode::RecordInvalid }
}
