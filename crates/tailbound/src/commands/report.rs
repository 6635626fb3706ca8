//! Runs `tailbound report`: writes the results of a record as text, a page, a document or a chart.

use crate::cli::{Format, Picture, Report};
use crate::failure::{CommandResult, Failure};
use crate::output::{colour, errln, outln, width};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use tailbound_model::{Budget, ExitCode};
use tailbound_record::{Record, RecordError};
use tailbound_report::{BudgetReport, Figure, Perfetto, ReportStatus};

/// Largest number of records that a message names.
const MOST_RECORDS: usize = 6;

pub fn report(args: &Report) -> CommandResult {
    if !args.trials.is_empty() && args.format != Format::Perfetto {
        return Err(Failure::bad_input("--trial chooses trials of a trace, and another format was asked for")
            .help("add --format perfetto, or leave out --trial"));
    }
    let mut record = open(&args.record)?;
    record.manifest.plan.report.range = args.range.or(record.manifest.plan.report.range);
    let mut report = analysed(&record, args)?;
    if let Some(file) = &args.budget {
        let budget = super::budget_file::load(file)?;
        let lines = tailbound_report::limit_lines(&report, &budget);
        report.limits = lines.map_err(|e| Failure::of(ExitCode::BadInput, e))?;
        report.budget = Some(outcome(&record, budget, file)?);
    }
    if args.open {
        let page = record.dir().join("report.html");
        write(&page, tailbound_report::render_html(&report))?;
        open_page(&page)?;
        return Ok(code(report.status));
    }
    let text: Vec<u8> = match args.format {
        Format::Terminal if args.short => tailbound_report::render_short(&report, width(), colour()).into(),
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

/// The report of a record. Only forms that show what changed since the last run look for its record.
fn analysed(record: &Record, args: &Report) -> Result<tailbound_report::Report, Failure> {
    let is_shown = args.open || matches!(args.format, Format::Html | Format::Md | Format::Json);
    let report = match is_shown {
        true => tailbound_report::analyse_since_last(record),
        false => tailbound_report::analyse(record),
    };
    report.map_err(|e| Failure::of(ExitCode::BadInput, e))
}

/// The outcome of a budget without the comparison, if the budget does not name the record to compare with: `tailbound budget` gets it
/// by a flag that a report does not have.
fn outcome(record: &Record, mut budget: Budget, file: &Path) -> Result<BudgetReport, Failure> {
    budget.baseline = budget.baseline.filter(|baseline| baseline.record.is_some());
    judged(record, &budget, file, None)
}

/// Opens a record that the user named.
///
/// # Errors
/// The directory is not a record. The message names the records that are there.
pub fn open(dir: &Path) -> Result<Record, Failure> {
    Record::open(dir).map_err(|failed| match not_a_record(dir, &failed) {
        Some((text, help)) => Failure::bad_input(text).help(help),
        None => Failure::of(ExitCode::BadInput, failed),
    })
}

/// What is wrong with a record whose manifest is damaged, and what is left of the record.
fn damaged(dir: &Path, shown: &str, error: &RecordError) -> Option<(String, String)> {
    let RecordError::Damaged { reason, .. } = error else { return None };
    let text = format!("the manifest of {shown} is damaged: {reason}");
    let mut help = "copy manifest.json again from where the record was made".to_owned();
    if dir.join("samples").is_dir() {
        help.push_str(&format!("; the samples in {shown}/samples are separate Parquet files"));
    }
    Some((text, help))
}

/// What is at a path that is not a record, and what to write in its place. `None` = the error says so itself.
fn not_a_record(dir: &Path, error: &RecordError) -> Option<(String, String)> {
    let shown = tailbound_model::plain(&dir.display().to_string());
    if dir.is_file() {
        let parent = dir.parent().unwrap_or_else(|| Path::new("")).to_owned();
        return Some(match parent.join("manifest.json").is_file() {
            true => (format!("{shown} is a file of a record"), format!("name the record: {}", parent.display())),
            false => (format!("{shown} is a file, not a record"), "name the directory of a record".into()),
        });
    }
    if dir.join("manifest.json").exists() {
        return damaged(dir, &shown, error);
    }
    let folder = if dir.is_dir() { dir } else { Path::new(".") };
    let mut records = super::ls::records(folder);
    let more = records.len().saturating_sub(MOST_RECORDS);
    records.truncate(MOST_RECORDS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let there = if dir.is_dir() { "there" } else { "here" };
    let help = match records.is_empty() {
        true => format!("no records are {there}; `tailbound ping` or `tailbound run STUDY` makes one"),
        false => format!("records {there}: {}{more}", records.join(", ")),
    };
    let why = if dir.is_dir() { "is not a record: it has no manifest.json" } else { "does not exist" };
    Some((format!("{shown} {why}"), help))
}

/// Opens a page in a browser. Without a display, its path is printed.
fn open_page(page: &Path) -> Result<(), Failure> {
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let opened = has_display && {
        let mut command = std::process::Command::new("xdg-open");
        command.arg(page).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !opened {
        let why = if has_display { "xdg-open cannot open the page" } else { "there is no display" };
        errln!("{why}; open this file in a browser:");
        outln!("{}", page.display());
    }
    Ok(())
}

/// Checks a record against a budget that was read from `file`. `baseline`: directory of a record to compare with, in place of the one
/// that the budget names.
pub fn judged(record: &Record, budget: &Budget, file: &Path, baseline: Option<&Path>) -> Result<BudgetReport, Failure> {
    // The budget names its baseline relative to the directory of the budget file.
    let named = budget.baseline.as_ref().and_then(|b| b.record.as_ref());
    let named = named.map(|r| file.parent().unwrap_or_else(|| "".as_ref()).join(r));
    let baseline = baseline.map(Path::to_owned).or(named).map(|dir| open(&dir)).transpose()?;
    tailbound_report::judge_budget(record, budget, baseline.as_ref()).map_err(|e| Failure::of(ExitCode::BadInput, e))
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
        Picture::Layout => Figure::Layout,
    };
    tailbound_report::render_svg(report, figure).map_err(|e| Failure::of(ExitCode::BadInput, e))
}

/// Writes the text or the image of a report to a file.
pub fn write(file: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|e| refused(file, &e))
}

/// Writes or replaces a file of metrics that another program reads meanwhile: it sees the old or the new content, never a part.
pub fn replace_metrics(file: &Path, text: String) -> Result<(), Failure> {
    // The other program reads files with the ending of `file`.
    let partial = file.with_extension("partial");
    std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, file)).map_err(|e| {
        Failure::run_failed(format!("{}: cannot write the metrics: {e}", file.display()))
            .help("name a file in a folder that exists, and in which you may make files")
    })
}

/// Exit code of `tailbound report` for the status of a report.
pub fn code(status: ReportStatus) -> ExitCode {
    if status == ReportStatus::Valid { ExitCode::Done } else { ExitCode::RecordInvalid }
}
