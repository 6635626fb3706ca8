//! Runs `tailbound ls`: lists the records of a folder, one line each.

use crate::cli::Ls;
use crate::failure::{CommandResult, Failure};
use crate::output::outln;
use serde_json::json;
use std::path::{Path, PathBuf};
use tailbound_model::ExitCode;
use tailbound_record::{Record, Status};
use tailbound_report::number::time;
use tailbound_report::{ConditionReport, QuantileReport, Report};

/// Names of the records in a folder, in the order of their names. The link `latest` is left out.
pub fn records(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join("manifest.json").is_file())
        .filter(|entry| !entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// A record in the list.
struct Line {
    dir: PathBuf,
    study: String,
    began_unix_ns: i64,
    /// `valid`, `invalid`, `incomplete`, or why the record cannot be read.
    status: String,
    /// Worst p99 of the round trips of all conditions, ns. `None` = no condition has one.
    p99_ns: Option<i64>,
    lost: u64,
}

pub fn ls(args: &Ls) -> CommandResult {
    let folder = &args.folder;
    if !folder.is_dir() {
        let text = format!("{} is not a folder", folder.display());
        return Err(Failure::bad_input(text).help("name a folder that contains records"));
    }
    let is_record = folder.join("manifest.json").is_file();
    let dirs = if is_record { vec![folder.clone()] } else { records(folder).iter().map(|r| folder.join(r)).collect() };
    let mut lines: Vec<Line> = dirs.into_iter().map(line).collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.began_unix_ns));
    if args.listed.is_json() {
        let of = |line: &Line| {
            json!({
                "record": line.dir, "study": line.study, "began_unix_ns": line.began_unix_ns, "status": line.status,
                "worst_p99_ns": line.p99_ns, "lost": line.lost,
            })
        };
        let all: Vec<_> = lines.iter().map(of).collect();
        outln!("{}", serde_json::to_string_pretty(&json!({ "records": all })).map_err(Failure::unexpected)?);
        return Ok(ExitCode::Done);
    }
    if lines.is_empty() {
        outln!("no records in {}; `tailbound ping` or `tailbound quick` makes one", folder.display());
    }
    for line in &lines {
        outln!("{}", text(line));
    }
    Ok(ExitCode::Done)
}

fn text(line: &Line) -> String {
    let p99 = line.p99_ns.map_or("-".to_owned(), |ns| time(ns as f64));
    let name = tailbound_model::plain(&line.dir.display().to_string());
    let study = tailbound_model::plain(&line.study);
    let when = tailbound_report::date(line.began_unix_ns);
    format!("{name:<36} {when:<29} {study:<14} p99 {p99:>9}  {} lost  {}", line.lost, line.status)
}

/// Reads and analyses a record.
fn line(dir: PathBuf) -> Line {
    let unreadable = |dir: PathBuf, what: String| Line {
        dir,
        study: String::new(),
        began_unix_ns: 0,
        status: format!("cannot be read: {what}"),
        p99_ns: None,
        lost: 0,
    };
    let record = match Record::open(&dir) {
        Ok(record) => record,
        Err(e) => return unreadable(dir, e.problem().what),
    };
    let report = match tailbound_report::analyse(&record) {
        Ok(report) => report,
        Err(e) => return unreadable(dir, e.problem().what),
    };
    let status = match record.status() {
        Status::Valid => "valid",
        Status::Invalid => "invalid",
        Status::Incomplete => "incomplete",
    };
    Line {
        study: record.manifest.plan.study.clone(),
        began_unix_ns: record.manifest.began_unix_ns,
        status: status.to_owned(),
        p99_ns: worst_p99(&report),
        lost: report.conditions.iter().map(|c| c.counts.lost).sum(),
        dir,
    }
}

fn worst_p99(report: &Report) -> Option<i64> {
    let of = |c: &ConditionReport| c.round_trip.as_ref()?.quantile(0.99).and_then(QuantileReport::value_ns);
    report.conditions.iter().filter_map(of).max()
}
