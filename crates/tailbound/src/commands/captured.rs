//! Recorded captures (`watch --out`) for `tailbound report` and `tailbound compare`.

use super::report::write;
use super::watch_files::{REPORT, SAMPLES};
use crate::cli::{Compare, CompareFormat, Format, Report};
use crate::failure::{CommandResult, Failure};
use crate::output::{colour, out, width};
use std::collections::BTreeMap;
use std::path::Path;
use tailbound_model::ExitCode;
use tailbound_report::WatchReport;
use tailbound_watch::CaptureRecord;

/// Whether the directory is a recorded capture.
pub fn is_capture(dir: &Path) -> bool {
    dir.join(REPORT).is_file()
}

/// Whether one of two compared directories is a recorded capture.
pub fn is_of_captures(args: &Compare) -> bool {
    args.b.as_ref().is_some_and(|b| is_capture(&args.a) || is_capture(b))
}

/// Prints a recorded capture.
pub fn report(args: &Report) -> CommandResult {
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

/// Prints two recorded captures side by side.
pub fn compare(args: &Compare) -> CommandResult {
    let b = args.b.as_deref().unwrap_or(&args.a);
    if let Some(dir) = [args.a.as_path(), b].into_iter().find(|dir| !is_capture(dir)) {
        return Err(Failure::bad_input(format!("{} is no capture, and the other one is", dir.display()))
            .help("compare two directories of `watch --out`, or two records of studies"));
    }
    let comparison = tailbound_watch::compare(&read(&args.a)?, &read(b)?);
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

fn show(file: Option<&Path>, text: &str) -> CommandResult {
    match file {
        Some(file) => write(file, text)?,
        None => out!("{text}"),
    }
    Ok(ExitCode::Done)
}

fn read_report(dir: &Path) -> Result<WatchReport, Failure> {
    let path = dir.join(REPORT);
    let bytes = std::fs::read(&path).map_err(|e| damaged(&path, &e))?;
    serde_json::from_slice(&bytes).map_err(|e| damaged(&path, &e))
}

fn read(dir: &Path) -> Result<CaptureRecord, Failure> {
    let report = read_report(dir)?;
    let path = dir.join(SAMPLES);
    let text = std::fs::read_to_string(&path).map_err(|e| damaged(&path, &e))?;
    let mut late_ns: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (number, line) in text.lines().enumerate().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let times = match cells[..] {
            [writer, _, "", _] => Some((writer, None)),
            [writer, _, source, captured] => {
                source.parse::<i64>().ok().zip(captured.parse::<i64>().ok()).map(|(s, c)| (writer, Some(c - s)))
            }
            _ => None,
        };
        let Some((writer, late)) = times else {
            return Err(damaged(&path, &format!("line {} is no sample", number + 1)));
        };
        if let Some(late) = late {
            late_ns.entry(writer.to_owned()).or_default().push(late);
        }
    }
    Ok(CaptureRecord { report, late_ns })
}

fn damaged(path: &Path, what: &dyn std::fmt::Display) -> Failure {
    Failure::bad_input(format!("{}: the capture is damaged: {what}", path.display()))
        .help("copy the directory again from where it was made")
}
