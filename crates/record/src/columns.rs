//! Columns of a Parquet segment as plain vectors.

use crate::RecordError;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::statistics::Statistics;
use std::fs::File;
use std::path::Path;
use tailbound_model::{NO_TIME, Outcome};

/// Small enough for a batch to stay in the cache, and its buffers below the size from which `malloc` maps pages anew.
const ROWS_PER_BATCH: usize = 8_192;

fn builder(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>, RecordError> {
    let file = File::open(path).map_err(RecordError::io(path, "open the segment"))?;
    ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| RecordError::damaged(path, e))
}

/// The rows of a segment with only these columns.
pub(crate) fn open(path: &Path, columns: &[&str]) -> Result<ParquetRecordBatchReader, RecordError> {
    let builder = builder(path)?;
    for name in columns {
        if builder.schema().column_with_name(name).is_none() {
            return Err(RecordError::damaged(path, format!("column `{name}` is missing")));
        }
    }
    let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
    let reader = builder.with_projection(mask).with_batch_size(ROWS_PER_BATCH).build();
    reader.map_err(|e| RecordError::damaged(path, e))
}

/// Rows of a segment, as its end tells.
pub(crate) fn count_rows(path: &Path) -> Result<u64, RecordError> {
    Ok(builder(path)?.metadata().file_metadata().num_rows().max(0) as u64)
}

/// What the end of a segment tells.
pub(crate) struct SegmentEnd {
    /// Lowest and highest trial id, where it tells.
    pub trials: Option<(u32, u32)>,
    /// Of each row group: lowest and highest `seq`, where it tells, and rows.
    pub groups: Vec<(Option<(u64, u64)>, u64)>,
}

/// Reads the end of a segment.
pub(crate) fn segment_end(path: &Path) -> Result<SegmentEnd, RecordError> {
    let builder = builder(path)?;
    let place = |name: &str| {
        let found = builder.schema().column_with_name(name);
        found.map(|(at, _)| at).ok_or_else(|| RecordError::damaged(path, format!("column `{name}` is missing")))
    };
    let (trial, seq) = (place("trial")?, place("seq")?);
    let mut end = SegmentEnd { trials: None, groups: Vec::new() };
    for group in builder.metadata().row_groups().iter().filter(|g| g.num_rows() > 0) {
        let statistics = |at: usize| group.columns().get(at)?.statistics();
        if let Some(Statistics::Int32(s)) = statistics(trial)
            && let (Some(&low), Some(&high)) = (s.min_opt(), s.max_opt())
        {
            let (low, high) = (low as u32, high as u32);
            end.trials = Some(end.trials.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
        }
        let range = match statistics(seq) {
            Some(Statistics::Int64(s)) => s.min_opt().zip(s.max_opt()).map(|(low, high)| (*low as u64, *high as u64)),
            _ => None,
        };
        end.groups.push((range, group.num_rows() as u64));
    }
    Ok(end)
}

/// Lowest and highest `seq` of each row group; `None` when the file does not tell.
pub(crate) fn seq_ranges(path: &Path) -> Result<Option<Vec<(u64, u64)>>, RecordError> {
    let builder = builder(path)?;
    let Some((column, _)) = builder.schema().column_with_name("seq") else { return Ok(None) };
    let range = |group: &parquet::file::metadata::RowGroupMetaData| match group.columns().get(column)?.statistics()? {
        Statistics::Int64(s) => Some((*s.min_opt()? as u64, *s.max_opt()? as u64)),
        _ => None,
    };
    Ok(builder.metadata().row_groups().iter().map(range).collect())
}

/// Whether a column has a value in some row. A file that does not tell is taken to have.
pub(crate) fn has_values(path: &Path, name: &str) -> Result<bool, RecordError> {
    let builder = builder(path)?;
    let Some((column, _)) = builder.schema().column_with_name(name) else { return Ok(false) };
    let nulls =
        |group: &parquet::file::metadata::RowGroupMetaData| group.columns().get(column)?.statistics()?.null_count_opt();
    let all_null = |g| nulls(g).is_some_and(|n| n >= g.num_rows().max(0) as u64);
    Ok(!builder.metadata().row_groups().iter().all(all_null))
}

fn wrong(path: &Path, name: &str) -> RecordError {
    RecordError::damaged(path, format!("column `{name}` has another type than the format says"))
}

fn column<'a>(rows: &'a RecordBatch, name: &str, path: &Path) -> Result<&'a ArrayRef, RecordError> {
    rows.column_by_name(name).ok_or_else(|| RecordError::damaged(path, format!("column `{name}` is missing")))
}

/// The sequence numbers.
pub(crate) fn sequence<'a>(rows: &'a RecordBatch, path: &Path) -> Result<&'a [u64], RecordError> {
    let array = column(rows, "seq", path)?.as_primitive_opt::<UInt64Type>();
    array.map(|a| &a.values()[..]).ok_or_else(|| wrong(path, "seq"))
}

/// A column of times, [`NO_TIME`] for null.
pub(crate) fn copy_times(rows: &RecordBatch, name: &str, into: &mut Vec<i64>, path: &Path) -> Result<(), RecordError> {
    let array = column(rows, name, path)?.as_primitive_opt::<Int64Type>().ok_or_else(|| wrong(path, name))?;
    into.clear();
    into.extend_from_slice(array.values());
    if let Some(nulls) = array.nulls().filter(|n| n.null_count() > 0) {
        for (value, valid) in into.iter_mut().zip(nulls) {
            if !valid {
                *value = NO_TIME;
            }
        }
    }
    Ok(())
}

/// Outcomes as their numbers.
pub(crate) fn copy_outcomes(rows: &RecordBatch, into: &mut Vec<u8>, path: &Path) -> Result<(), RecordError> {
    let name = "outcome";
    let outcome = column(rows, name, path)?.as_dictionary_opt::<Int8Type>().ok_or_else(|| wrong(path, name))?;
    let words = outcome.values().as_string_opt::<i32>().ok_or_else(|| wrong(path, name))?;
    let code = |word: Option<&str>| {
        let known = Outcome::ALL.iter().find(|o| Some(o.word()) == word);
        known.map(|o| *o as u8).ok_or_else(|| RecordError::damaged(path, format!("unknown outcome {word:?}")))
    };
    let codes = words.iter().map(code).collect::<Result<Vec<u8>, _>>()?;
    into.clear();
    for key in outcome.keys().values() {
        into.push(*codes.get(*key as usize).ok_or_else(|| wrong(path, name))?);
    }
    Ok(())
}

/// A column of counts.
pub(crate) fn copy_counts(rows: &RecordBatch, name: &str, into: &mut Vec<u32>, path: &Path) -> Result<(), RecordError> {
    let array = column(rows, name, path)?.as_primitive_opt::<UInt32Type>().ok_or_else(|| wrong(path, name))?;
    into.clear();
    into.extend_from_slice(array.values());
    Ok(())
}

/// A column of yes and no.
pub(crate) fn copy_flags(rows: &RecordBatch, name: &str, into: &mut Vec<bool>, path: &Path) -> Result<(), RecordError> {
    let array = column(rows, name, path)?.as_boolean_opt().ok_or_else(|| wrong(path, name))?;
    into.clear();
    into.extend(array.values().iter());
    Ok(())
}
