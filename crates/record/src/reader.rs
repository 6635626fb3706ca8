//! Reading a record, also one that was cut off.

use crate::segment::{ECHO_TIMES, SLOT_TIMES};
use crate::{FORMAT_MAJOR, Format, Manifest, RecordError, Status};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tailbound_model::{HostFacts, NO_TIME, ThreadTable, counter_of};

const ROWS_PER_BATCH: usize = 65_536;

/// A record on disk.
#[derive(Debug)]
pub struct Record {
    dir: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
}

/// Consecutive slots of one trial, joined with what the pong side saw, column by column.
///
/// Times are monotonic ns, [`NO_TIME`] where there is none.
#[derive(Debug, Default)]
#[allow(missing_docs)] // the columns are those of `SenderRow` and `EchoRow`
pub struct SlotBatch {
    pub seq: Vec<u64>,
    pub intended_ns: Vec<i64>,
    pub wake_ns: Vec<i64>,
    pub previous_wake_ns: Vec<i64>,
    pub send_begin_ns: Vec<i64>,
    pub send_end_ns: Vec<i64>,
    pub receive_ns: Vec<i64>,
    pub kernel_rx_ns: Vec<i64>,
    /// `Outcome as u8`.
    pub outcome: Vec<u8>,
    pub duplicates: Vec<u32>,
    pub out_of_order: Vec<bool>,
    pub warm_up: Vec<bool>,
    pub echo_in_ns: Vec<i64>,
    pub echo_begin_ns: Vec<i64>,
    pub echo_end_ns: Vec<i64>,
}

impl SlotBatch {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.seq.len()
    }
    /// No rows.
    pub fn is_empty(&self) -> bool {
        self.seq.is_empty()
    }
}

/// First echo of every slot, by slot counter.
#[derive(Default)]
struct Echoes {
    times: [Vec<i64>; 3],
}

impl Record {
    /// Opens `dir`.
    ///
    /// # Errors
    /// Not a record, damaged, or of a later format.
    pub fn open(dir: &Path) -> Result<Record, RecordError> {
        let path = dir.join("manifest.json");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(RecordError::NotARecord(dir.to_owned())),
            Err(e) => return Err(RecordError::io(&path, "read the manifest")(e)),
        };
        // The version is read before the rest, which a later release may have changed.
        #[derive(serde::Deserialize)]
        struct Head {
            format: Format,
            #[serde(default)]
            readable_by: String,
        }
        let head: Head = serde_json::from_slice(&text).map_err(|e| RecordError::damaged(&path, e))?;
        if head.format.major > FORMAT_MAJOR {
            return Err(RecordError::Newer {
                path: dir.to_owned(),
                found_major: head.format.major,
                found_minor: head.format.minor,
                ours: FORMAT_MAJOR,
                readable_by: head.readable_by,
            });
        }
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|e| RecordError::damaged(&path, e))?;
        let conditions = manifest.plan.conditions.len();
        if manifest.plan.trials.iter().any(|t| t.condition >= conditions) {
            return Err(RecordError::damaged(&path, "a trial names a condition that the plan does not have"));
        }
        Ok(Record { dir: dir.to_owned(), manifest })
    }

    /// Where it lies.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Valid, invalid or incomplete.
    pub fn status(&self) -> Status {
        self.manifest.status
    }

    /// Facts of all hosts that have a file; one that cannot be read is an error.
    pub fn hosts(&self) -> Result<Vec<HostFacts>, RecordError> {
        self.manifest.hosts.values().map(|file| self.json(Path::new(file))).collect()
    }

    /// Thread tables of a trial.
    pub fn threads(&self, trial: usize) -> Result<Vec<ThreadTable>, RecordError> {
        let folder = self.dir.join("threads");
        let Ok(entries) = fs::read_dir(&folder) else { return Ok(Vec::new()) };
        let prefix = format!("{trial}-");
        let mut files: Vec<PathBuf> = entries
            .filter_map(|e| Some(e.ok()?.path()))
            .filter(|p| {
                p.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(&prefix) && n.ends_with(".json"))
            })
            .collect();
        files.sort();
        files.iter().map(|p| self.json(p)).collect()
    }

    fn json<T: serde::de::DeserializeOwned>(&self, file: &Path) -> Result<T, RecordError> {
        let path = self.dir.join(file);
        let text = fs::read(&path).map_err(RecordError::io(&path, "read the file"))?;
        serde_json::from_slice(&text).map_err(|e| RecordError::damaged(&path, e))
    }

    /// Closed segments of one end of one trial, in order.
    fn segments(&self, trial: usize, end: &str) -> Vec<PathBuf> {
        let folder = self.dir.join("samples").join(trial.to_string());
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let mut numbered: Vec<(u64, PathBuf)> = entries
            .filter_map(|e| {
                let path = e.ok()?.path();
                let name = path.file_name()?.to_str()?;
                let number = name.strip_prefix(end)?.strip_prefix('-')?.strip_suffix(".parquet")?.parse().ok()?;
                Some((number, path))
            })
            .collect();
        numbered.sort();
        numbered.into_iter().map(|(_, path)| path).collect()
    }

    /// Hands all slots of a trial to `each`, in slot order, in batches joined with the pong side.
    ///
    /// # Errors
    /// A segment is damaged.
    pub fn slots(&self, trial: usize, each: &mut dyn FnMut(&SlotBatch)) -> Result<(), RecordError> {
        let echoes = self.echoes(trial)?;
        let mut batch = SlotBatch::default();
        let mut last_wake = NO_TIME;
        for path in self.segments(trial, "ping") {
            let mut columns = vec!["seq"];
            columns.extend(SLOT_TIMES);
            columns.extend(["outcome", "duplicates", "out_of_order", "warm_up"]);
            read(&path, &columns, &mut |rows| {
                fill(&mut batch, rows, &path)?;
                join(&mut batch, &echoes, &mut last_wake);
                each(&batch);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn echoes(&self, trial: usize) -> Result<Echoes, RecordError> {
        let mut echoes = Echoes::default();
        for path in self.segments(trial, "pong") {
            let columns = [&["seq"], &ECHO_TIMES[..3]].concat();
            read(&path, &columns, &mut |rows| {
                let seq = rows.column(0).as_primitive::<UInt64Type>().values();
                let top = seq.iter().map(|s| counter_of(*s)).max().map_or(0, |s| s as usize + 1);
                // A damaged sequence number must not ask for all the memory of the machine.
                if top > (1 << 33) {
                    return Err(RecordError::damaged(&path, format!("sequence number {top} is beyond any trial")));
                }
                let mut decoded = Vec::new();
                for (column, times) in echoes.times.iter_mut().enumerate() {
                    if times.len() < top {
                        times.resize(top, NO_TIME);
                    }
                    copy_times(rows, column + 1, &mut decoded, &path)?;
                    for (s, t) in seq.iter().zip(&decoded) {
                        let slot = &mut times[counter_of(*s) as usize];
                        if *slot == NO_TIME {
                            *slot = *t;
                        }
                    }
                }
                Ok(())
            })?;
        }
        Ok(echoes)
    }
}

fn read(
    path: &Path,
    columns: &[&str],
    each: &mut dyn FnMut(&RecordBatch) -> Result<(), RecordError>,
) -> Result<(), RecordError> {
    let file = File::open(path).map_err(RecordError::io(path, "open the segment"))?;
    let damaged = |e: &dyn std::fmt::Display| RecordError::damaged(path, e);
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| damaged(&e))?;
    for name in columns {
        if builder.schema().column_with_name(name).is_none() {
            return Err(damaged(&format!("column `{name}` is missing")));
        }
    }
    let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
    let reader = builder.with_projection(mask).with_batch_size(ROWS_PER_BATCH).build().map_err(|e| damaged(&e))?;
    for batch in reader {
        each(&batch.map_err(|e| damaged(&e))?)?;
    }
    Ok(())
}

fn copy_times(rows: &RecordBatch, column: usize, into: &mut Vec<i64>, path: &Path) -> Result<(), RecordError> {
    let array = rows
        .column(column)
        .as_primitive_opt::<Int64Type>()
        .ok_or_else(|| RecordError::damaged(path, format!("column {column} does not hold whole numbers")))?;
    into.clear();
    if array.null_count() == 0 {
        into.extend_from_slice(array.values());
    } else {
        into.extend(array.iter().map(|v| v.unwrap_or(NO_TIME)));
    }
    Ok(())
}

fn fill(batch: &mut SlotBatch, rows: &RecordBatch, path: &Path) -> Result<(), RecordError> {
    let wrong =
        |name: &str| RecordError::damaged(path, format!("column `{name}` has another type than the format says"));
    let seq = rows.column(0).as_primitive_opt::<UInt64Type>().ok_or_else(|| wrong("seq"))?;
    batch.seq.clear();
    batch.seq.extend_from_slice(seq.values());
    let times = [
        &mut batch.intended_ns,
        &mut batch.wake_ns,
        &mut batch.send_begin_ns,
        &mut batch.send_end_ns,
        &mut batch.receive_ns,
        &mut batch.kernel_rx_ns,
    ];
    for (column, into) in times.into_iter().enumerate() {
        copy_times(rows, column + 1, into, path)?;
    }
    let outcome = rows.column(7).as_dictionary_opt::<Int8Type>().ok_or_else(|| wrong("outcome"))?;
    let words = outcome.values().as_string_opt::<i32>().ok_or_else(|| wrong("outcome"))?;
    let codes: Vec<u8> = words
        .iter()
        .map(|w| {
            let known = tailbound_model::Outcome::ALL.iter().find(|o| Some(o.word()) == w);
            known.map(|o| *o as u8).ok_or_else(|| RecordError::damaged(path, format!("unknown outcome {w:?}")))
        })
        .collect::<Result<_, _>>()?;
    batch.outcome.clear();
    for key in outcome.keys().values() {
        batch.outcome.push(*codes.get(*key as usize).ok_or_else(|| wrong("outcome"))?);
    }
    batch.duplicates.clear();
    let duplicates = rows.column(8).as_primitive_opt::<UInt32Type>().ok_or_else(|| wrong("duplicates"))?;
    batch.duplicates.extend_from_slice(duplicates.values());
    for (column, into) in [(9, &mut batch.out_of_order), (10, &mut batch.warm_up)] {
        let flags = rows.column(column).as_boolean_opt().ok_or_else(|| wrong("out_of_order or warm_up"))?;
        into.clear();
        into.extend(flags.values().iter());
    }
    Ok(())
}

fn join(batch: &mut SlotBatch, echoes: &Echoes, last_wake: &mut i64) {
    let SlotBatch { seq, echo_in_ns, echo_begin_ns, echo_end_ns, wake_ns, previous_wake_ns, .. } = batch;
    for (into, from) in [echo_in_ns, echo_begin_ns, echo_end_ns].into_iter().zip(&echoes.times) {
        into.clear();
        into.extend(seq.iter().map(|s| from.get(counter_of(*s) as usize).copied().unwrap_or(NO_TIME)));
    }
    previous_wake_ns.clear();
    previous_wake_ns.push(*last_wake);
    previous_wake_ns.extend_from_slice(&wake_ns[..wake_ns.len().saturating_sub(1)]);
    previous_wake_ns.truncate(wake_ns.len());
    *last_wake = wake_ns.last().copied().unwrap_or(*last_wake);
}
