//! Reads the directory of a recorded capture (`watch --out`).

use super::watch_files::{REPORT, SAMPLES};
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use tailbound_model::plain;
use tailbound_report::WatchReport;
use tailbound_watch::CaptureRecord;

/// Whether the directory is a recorded capture.
pub fn is_capture(dir: &Path) -> bool {
    dir.join(REPORT).is_file()
}

/// What was seen.
///
/// # Errors
/// The file cannot be read.
pub fn read_report(dir: &Path) -> Result<WatchReport, Failure> {
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

/// What was seen, and the lateness of each sample.
///
/// # Errors
/// A file cannot be read.
pub fn read(dir: &Path) -> Result<CaptureRecord, Failure> {
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
    // Rows can be missing: the directory was copied in part, or the disk was full.
    for writer in report.topics.iter().flat_map(|topic| &topic.writers) {
        let wanted = writer.lateness.as_ref().map_or(0, |late| late.range.count);
        let rows = late_ns.get(&writer.guid).map_or(0, |rows| rows.len() as u64);
        if rows != wanted {
            return Err(damaged(
                &path,
                &format!("{rows} samples of the writer {}, and {REPORT} has {wanted}", writer.guid),
            ));
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
