//! Reads the directory of a recorded capture (`watch --out`).

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use tailbound_model::plain;
use tailbound_report::{WatchReport, WatchedTopic};
use tailbound_watch::CaptureRecord;

/// Names of the files in the directory of `--out`.
pub const REPORT: &str = "watch.json";
pub const SAMPLES: &str = "samples.csv";

/// Whether the directory is a recorded capture.
pub fn is_capture(dir: &Path) -> bool {
    dir.join(REPORT).is_file()
}

/// The recorded captures at a path: itself, or those in its directory in the order of their names. Empty if it is neither.
pub fn captures(dir: &Path) -> Vec<PathBuf> {
    if is_capture(dir) {
        return vec![dir.to_owned()];
    }
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_capture(path)).collect();
    found.sort();
    found
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
    if let Some(also) = &mut report.also {
        clean(&mut also.host);
        also.warnings.iter_mut().for_each(clean);
        for writer in &mut also.writers {
            writer.topic.iter_mut().for_each(clean);
            clean(&mut writer.guid);
        }
    }
    for topic in report.incidents.iter_mut().flat_map(|incident| &mut incident.topics) {
        clean(&mut topic.topic);
    }
    for topic in report.calls.iter_mut().flat_map(|calls| &mut calls.topics) {
        clean(&mut topic.topic);
        for taker in &mut topic.takers {
            clean(&mut taker.process);
            for part in taker.latest.iter_mut().flat_map(|message| &mut message.parts) {
                clean(&mut part.name);
                let wait = part.wait.iter_mut();
                wait.flat_map(|wait| std::iter::once(&mut wait.thread).chain(&mut wait.by)).for_each(clean);
            }
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
    let mut late_ns: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    each_sample(&path, |Sample { writer, source_ns, stamp_ns }| {
        let Some(source_ns) = source_ns else { return };
        let late = stamp_ns - source_ns;
        match late_ns.get_mut(writer) {
            Some(all) => all.push(late),
            None => drop(late_ns.insert(writer.to_owned(), vec![late])),
        }
    })?;
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

/// A message of a topic of ROS 2 on the wire.
pub struct OnWire {
    /// Name of the topic in ROS 2.
    pub topic: String,
    /// When it was written, ns since 1970.
    pub source_ns: i64,
    /// When it was captured, ns since 1970.
    pub stamp_ns: i64,
}

/// The messages of topics of ROS 2 whose writers gave a time, in the order of the capture.
///
/// # Errors
/// The directory is no capture, or a file cannot be read.
pub fn on_wire(dir: &Path) -> Result<Vec<OnWire>, Failure> {
    if !is_capture(dir) {
        return Err(Failure::bad_input(format!("{}: the directory is no capture", dir.display()))
            .help("name a directory that `tailbound watch --out` has made"));
    }
    let report = read_report(dir)?;
    let with_writers = |topic: &'_ WatchedTopic| -> Vec<(String, String)> {
        let name = topic.ros_topic.clone();
        name.iter().flat_map(|name| topic.writers.iter().map(move |of| (of.guid.clone(), name.clone()))).collect()
    };
    let names: BTreeMap<String, String> = report.topics.iter().flat_map(with_writers).collect();
    let mut found = Vec::new();
    each_sample(&dir.join(SAMPLES), |Sample { writer, source_ns, stamp_ns }| {
        if let Some((topic, source_ns)) = names.get(writer).cloned().zip(source_ns) {
            found.push(OnWire { topic, source_ns, stamp_ns });
        }
    })?;
    Ok(found)
}

/// A row of the file of samples.
struct Sample<'a> {
    writer: &'a str,
    source_ns: Option<i64>,
    stamp_ns: i64,
}

/// Gives each row of a file of samples to `each`.
fn each_sample(path: &Path, mut each: impl FnMut(Sample<'_>)) -> Result<(), Failure> {
    let file = File::open(path).map_err(|e| damaged(path, &e))?;
    for (number, line) in BufReader::new(file).lines().enumerate().skip(1) {
        let line = line.map_err(|e| damaged(path, &e))?;
        let sample = sample(&line).ok_or_else(|| damaged(path, &format!("line {} is no sample", number + 1)))?;
        each(sample);
    }
    Ok(())
}

/// `None` = another line.
fn sample(line: &str) -> Option<Sample<'_>> {
    let mut cells = line.split(',');
    let (writer, _, source, stamp) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
    let stamp_ns: i64 = stamp.parse().ok()?;
    let source_ns = if source.is_empty() { None } else { Some(source.parse().ok()?) };
    // A difference that is not a number of 64 bits.
    stamp_ns.checked_sub(source_ns.unwrap_or(0))?;
    Some(Sample { writer, source_ns, stamp_ns })
}

fn damaged(path: &Path, what: &dyn std::fmt::Display) -> Failure {
    Failure::bad_input(format!("{}: the capture is damaged: {what}", path.display()))
        .help("copy the directory again from where it was made")
}
