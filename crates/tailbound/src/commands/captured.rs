//! Recorded captures (`watch --out`) for `tailbound report` and `tailbound compare`.

use super::report::write;
use super::watch_files::{REPORT, SAMPLES};
use crate::cli::{Compare, CompareFormat, Format, Report};
use crate::failure::{CommandResult, Failure};
use crate::output::{colour, out, width};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use tailbound_model::{ExitCode, plain};
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

/// Prints two recorded captures side by side.
pub fn compare(args: &Compare) -> CommandResult {
    refuse(&args.a, &[("--margin", args.margin.is_some()), ("--metric", args.metrics != ["round_trip"])])?;
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

fn read_report(dir: &Path) -> Result<WatchReport, Failure> {
    let path = dir.join(REPORT);
    let bytes = std::fs::read(&path).map_err(|e| damaged(&path, &e))?;
    let mut report: WatchReport = serde_json::from_slice(&bytes).map_err(|e| damaged(&path, &e))?;
    // A directory of others must not change a terminal.
    let clean = |text: &mut String| *text = plain(text);
    clean(&mut report.place);
    report.warnings.iter_mut().for_each(clean);
    for topic in &mut report.topics {
        [&mut topic.topic, &mut topic.ros_topic, &mut topic.type_name].into_iter().flatten().for_each(clean);
        for writer in &mut topic.writers {
            [&mut writer.participant, &mut writer.node, &mut writer.address].into_iter().flatten().for_each(clean);
            [&mut writer.guid, &mut writer.vendor].into_iter().for_each(clean);
        }
    }
    Ok(report)
}

fn read(dir: &Path) -> Result<CaptureRecord, Failure> {
    let report = read_report(dir)?;
    let path = dir.join(SAMPLES);
    let file = File::open(&path).map_err(|e| damaged(&path, &e))?;
    let mut late_ns: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|e| damaged(&path, &e))?;
        if number == 0 {
            continue;
        }
        let Some((writer, late)) = sample(&line) else {
            return Err(damaged(&path, &format!("line {} is no sample", number + 1)));
        };
        let Some(late) = late else { continue };
        match late_ns.get_mut(writer) {
            Some(all) => all.push(late),
            None => drop(late_ns.insert(writer.to_owned(), vec![late])),
        }
    }
    Ok(CaptureRecord { report, late_ns })
}

/// The writer of a sample, and its capture stamp minus its source timestamp; `None` = another line.
fn sample(line: &str) -> Option<(&str, Option<i64>)> {
    let mut cells = line.split(',');
    let (writer, _, source, captured) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
    let captured: i64 = captured.parse().ok()?;
    match source {
        "" => Some((writer, None)),
        source => Some((writer, Some(captured.checked_sub(source.parse().ok()?)?))),
    }
}

fn damaged(path: &Path, what: &dyn std::fmt::Display) -> Failure {
    Failure::bad_input(format!("{}: the capture is damaged: {what}", path.display()))
        .help("copy the directory again from where it was made")
}
