//! Runs `tailbound ls`: lists the records and captures of a folder, one line each.

use super::capture_dir::{is_capture, read_report};
use crate::cli::Ls;
use crate::failure::{CommandResult, Failure};
use crate::output::{outln, width};
use serde_json::json;
use std::path::{Path, PathBuf};
use tailbound_model::ExitCode;
use tailbound_record::{Record, Status};
use tailbound_report::number::{count, time};
use tailbound_report::{Brief, wrap};

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
    /// The figures of the record, or why it cannot be read.
    figures: Result<Figures, String>,
}

impl Line {
    /// When the run began, for the order of the list; records that cannot be read come last.
    fn began_unix_ns(&self) -> i64 {
        self.figures.as_ref().map_or(i64::MIN, |figures| figures.began_unix_ns)
    }
}

/// When a record was measured, and what it found.
struct Figures {
    began_unix_ns: i64,
    status: &'static str,
    brief: Brief,
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
    lines.extend(captures(folder).into_iter().map(line_of_capture));
    lines.sort_by_key(|line| std::cmp::Reverse(line.began_unix_ns()));
    if args.listed.is_json() {
        let of = |line: &Line| {
            let (began_unix_ns, status, brief) = match &line.figures {
                Ok(of) => (of.began_unix_ns, of.status.to_owned(), of.brief),
                Err(why) => (0, format!("cannot be read: {why}"), Brief::default()),
            };
            json!({
                "record": line.dir, "study": line.study, "began_unix_ns": began_unix_ns, "status": status,
                "worst_p99_ns": brief.worst_p99_ns, "lost": brief.lost,
            })
        };
        let all: Vec<_> = lines.iter().map(of).collect();
        outln!("{}", serde_json::to_string_pretty(&json!({ "records": all })).map_err(Failure::unexpected)?);
        return Ok(ExitCode::Done);
    }
    if lines.is_empty() {
        outln!("no records in {}; `tailbound ping` or `tailbound quick` makes one", folder.display());
    }
    for text in texts(&lines, width()) {
        outln!("{text}");
    }
    Ok(ExitCode::Done)
}

/// The lines of the list, in columns. What is wrong with a record that cannot be read is on a line of its own.
fn texts(lines: &[Line], width: usize) -> Vec<String> {
    let name = |line: &Line| tailbound_model::plain(&line.dir.display().to_string());
    let study = |line: &Line| tailbound_model::plain(&line.study);
    let widest = |of: &dyn Fn(&Line) -> String| lines.iter().map(|l| of(l).chars().count()).max().unwrap_or(0);
    let (names, studies) = (widest(&name), widest(&study));
    let of = |line: &Line| match &line.figures {
        Ok(Figures { began_unix_ns, status, brief }) => {
            let p99 = brief.worst_p99_ns.map_or("-".to_owned(), |ns| time(ns as f64));
            let when = tailbound_report::date(*began_unix_ns);
            let (name, study, lost) = (name(line), study(line), count(brief.lost));
            let text = format!("{name:<names$}  {when:<27}  {study:<studies$}  p99 {p99:>9}  {lost} lost  {status}");
            match text.chars().count() > width {
                true => format!("{name}\n    {when}  {study}  p99 {}  {lost} lost  {status}", p99.trim()),
                false => text,
            }
        }
        Err(why) => wrap(&format!("{:<names$}  cannot be read: {why}", name(line)), width, 4).join("\n"),
    };
    lines.iter().map(of).collect()
}

/// The captures in a folder, or the folder itself if it is one.
fn captures(folder: &Path) -> Vec<PathBuf> {
    if is_capture(folder) {
        return vec![folder.to_owned()];
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let dirs = entries.filter(|entry| !entry.file_type().is_ok_and(|kind| kind.is_symlink())).map(|entry| entry.path());
    dirs.filter(|dir| is_capture(dir)).collect()
}

/// Reads a capture (`watch --out`): its p99 is the lateness on the wire of the worst writer with a clock of this host.
fn line_of_capture(dir: PathBuf) -> Line {
    let study = "watch".to_owned();
    let report = match read_report(&dir) {
        Ok(report) => report,
        Err(failure) => return Line { dir, study, figures: Err(failure.text().to_owned()) },
    };
    let writers = || report.topics.iter().flat_map(|topic| &topic.writers);
    let late = writers().filter_map(|writer| writer.lateness.as_ref()).filter(|late| !late.is_above_fastest);
    let brief = Brief {
        worst_p99_ns: late.filter_map(|late| late.range.p99_ns).max(),
        lost: writers().map(|writer| writer.protocol.lost).sum(),
    };
    let status = if report.not_copied > 0 { "incomplete" } else { "capture" };
    Line { dir, study, figures: Ok(Figures { began_unix_ns: report.begin_ns, status, brief }) }
}

/// Reads a record.
fn line(dir: PathBuf) -> Line {
    let record = match Record::open(&dir) {
        Ok(record) => record,
        Err(e) => return Line { dir, study: String::new(), figures: Err(e.problem().what) },
    };
    let status = match record.status() {
        Status::Valid => "valid",
        Status::Invalid => "invalid",
        Status::Incomplete => "incomplete",
    };
    let began_unix_ns = record.manifest.began_unix_ns;
    let figures = tailbound_report::brief(&record).map_err(|e| e.problem().what);
    let figures = figures.map(|brief| Figures { began_unix_ns, status, brief });
    Line { dir, study: record.manifest.plan.study.clone(), figures }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_cannot_be_read_has_no_date() {
        let brief = Brief { worst_p99_ns: Some(252_000), lost: 1_234 };
        let figures = Ok(Figures { began_unix_ns: 1_795_924_704_000_000_000, status: "valid", brief });
        let good = Line { dir: "./ping-1".into(), study: "ping".into(), figures };
        let cut = Line { dir: "./cut".into(), study: String::new(), figures: Err("it is damaged".into()) };
        let none =
            Ok(Figures { began_unix_ns: 1_795_924_704_000_000_000, status: "incomplete", brief: Brief::default() });
        let none = Line { dir: "./fan".into(), study: "fan-out".into(), figures: none };
        insta::assert_snapshot!(texts(&[good, none, cut], 60).join("\n"));
    }
}
