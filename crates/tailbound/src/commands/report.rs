//! `tailbound report`.

use crate::cli::{Format, Picture, Report};
use crate::exit::{Failure, Outcome};
use std::io::{IsTerminal, Write};
use std::path::Path;
use tailbound_model::ExitCode;
use tailbound_record::{Record, RecordError};
use tailbound_report::{Figure, ReportStatus};

pub fn report(args: &Report) -> Outcome {
    let unreadable = |e: RecordError| Failure::new(ExitCode::BadInput, e);
    let mut record = Record::open(&args.record).map_err(unreadable)?;
    record.manifest.plan.report.range = args.range.or(record.manifest.plan.report.range);
    let report = tailbound_report::analyse(&record).map_err(unreadable)?;
    let text: Vec<u8> = match args.format {
        Format::Terminal => tailbound_report::render_terminal(&report, width(), colour()).into(),
        Format::Html => tailbound_report::render_html(&report).into(),
        Format::Json => tailbound_report::render_json(&report).into(),
        Format::Csv => tailbound_report::render_csv(&report).into(),
        Format::Md => tailbound_report::render_markdown(&report).into(),
        Format::Svg => picture(&report, args.figure)?.into(),
        #[cfg(feature = "png")]
        Format::Png => tailbound_report::render_png(&picture(&report, args.figure)?)
            .map_err(|e| Failure::new(ExitCode::Unexpected, e))?,
    };
    match &args.out {
        Some(file) => write(file, &text)?,
        None => {
            let mut out = std::io::stdout().lock();
            let written = out.write_all(&text).and_then(|()| out.flush());
            written.map_err(|e| Failure::new(ExitCode::Unexpected, format!("cannot write the report: {e}")))?;
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
    tailbound_report::render_svg(report, figure).map_err(|why| Failure::new(ExitCode::BadInput, why))
}

/// Writes a report file.
pub fn write(file: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    std::fs::write(file, text)
        .map_err(|e| Failure::new(ExitCode::RunFailed, format!("{}: cannot write the report: {e}", file.display())))
}

/// The exit code that fits a report.
pub fn code(status: ReportStatus) -> ExitCode {
    if status == ReportStatus::Valid { ExitCode::Done } else { ExitCode::RecordInvalid }
}

/// Columns of the terminal; 80 where there is none.
pub fn width() -> usize {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ fills a winsize, or fails.
    let known = unsafe { libc::ioctl(1, libc::TIOCGWINSZ, &mut size) } == 0 && size.ws_col > 0;
    if known { usize::from(size.ws_col) } else { 80 }
}

/// Colour only on a terminal, and not with NO_COLOR.
pub fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// As [`colour`], for standard error.
pub fn colour_of_errors() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}
