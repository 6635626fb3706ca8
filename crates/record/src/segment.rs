//! Parquet segments: written under a temporary name, closed, renamed. Readable by any Parquet reader at any moment.

use crate::RecordError;
use arrow_array::builder::{
    BooleanBuilder, Int64Builder, StringDictionaryBuilder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use tailbound_model::*;

const ROWS_PER_BATCH: usize = 65_536;
const ROWS_PER_GROUP: usize = 1 << 20;

/// Time columns of the sender, in file order.
pub(crate) const SLOT_TIMES: [&str; 6] =
    ["intended_ns", "wake_ns", "send_begin_ns", "send_end_ns", "receive_ns", "kernel_rx_ns"];
/// Time columns of the pong side, in file order.
pub(crate) const ECHO_TIMES: [&str; 4] = ["in_ns", "begin_ns", "end_ns", "kernel_rx_ns"];

fn properties(times: &[&str]) -> WriterProperties {
    // Times grow by nearly the same step: delta coding packs them to a few bits, and reads as fast as plain.
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_max_row_group_row_count(Some(ROWS_PER_GROUP))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for column in times.iter().chain(&["seq"]) {
        let path = ColumnPath::from(*column);
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    builder.build()
}

fn outcome_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))
}

fn key_fields() -> Vec<Field> {
    vec![
        Field::new("trial", DataType::UInt32, false),
        Field::new("stream", DataType::UInt16, false),
        Field::new("seq", DataType::UInt64, false),
    ]
}

fn write_file(
    path: &Path,
    fields: Vec<Field>,
    times: &[&str],
    batches: impl Iterator<Item = Vec<ArrayRef>>,
) -> Result<(), RecordError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(RecordError::io(folder, "make the directory"))?;
    let temporary = path.with_extension("parquet.partial");
    let written = (|| {
        let file = File::create(&temporary).map_err(|e| e.to_string())?;
        let schema = Arc::new(Schema::new(fields));
        let mut writer =
            ArrowWriter::try_new(file, schema.clone(), Some(properties(times))).map_err(|e| e.to_string())?;
        for columns in batches {
            let batch = RecordBatch::try_new(schema.clone(), columns).map_err(|e| e.to_string())?;
            writer.write(&batch).map_err(|e| e.to_string())?;
        }
        let file = writer.into_inner().map_err(|e| e.to_string())?;
        file.sync_all().map_err(|e| e.to_string())?;
        fs::rename(&temporary, path).map_err(|e| e.to_string())
    })();
    written.map_err(|reason: String| {
        // Half a segment helps nobody; a failure to remove it changes nothing for the reader.
        let _ = fs::remove_file(&temporary);
        let full = reason.contains("os error 28");
        let advice = if full { "; free some space, or give an --out on another disk" } else { "" };
        RecordError::damaged(path, format!("cannot write the samples: {reason}{advice}"))
    })
}

fn option(builder: &mut Int64Builder, value: i64) {
    if value == NO_TIME { builder.append_null() } else { builder.append_value(value) }
}

/// Splits an iterator into vectors of at most `ROWS_PER_BATCH`.
fn chunks<T>(rows: impl Iterator<Item = T>) -> impl Iterator<Item = Vec<T>> {
    let mut rows = rows.peekable();
    std::iter::from_fn(move || {
        rows.peek()?;
        Some(rows.by_ref().take(ROWS_PER_BATCH).collect())
    })
}

/// Writes the slots of one end of one trial.
///
/// # Errors
/// The file cannot be written; nothing is left under its name then.
pub fn write_slots(path: &Path, trial: usize, rows: impl Iterator<Item = SenderRow>) -> Result<(), RecordError> {
    let mut fields = key_fields();
    fields.extend(SLOT_TIMES.map(|name| Field::new(name, DataType::Int64, true)));
    fields.push(Field::new("outcome", outcome_type(), false));
    fields.push(Field::new("duplicates", DataType::UInt32, false));
    fields.push(Field::new("out_of_order", DataType::Boolean, false));
    fields.push(Field::new("warm_up", DataType::Boolean, false));
    let batches = chunks(rows).map(|rows: Vec<SenderRow>| {
        let n = rows.len();
        let (mut trials, mut stream, mut seq) =
            (UInt32Builder::with_capacity(n), UInt16Builder::with_capacity(n), UInt64Builder::with_capacity(n));
        let mut times = SLOT_TIMES.map(|_| Int64Builder::with_capacity(n));
        let mut outcome = StringDictionaryBuilder::<Int8Type>::with_capacity(n, 4, 32);
        let (mut duplicates, mut disorder, mut warm) =
            (UInt32Builder::with_capacity(n), BooleanBuilder::with_capacity(n), BooleanBuilder::with_capacity(n));
        for r in &rows {
            trials.append_value(trial as u32);
            stream.append_value((r.seq >> COUNTER_BITS) as u16);
            seq.append_value(r.seq);
            let values = [r.intended_ns, r.wake_ns, r.send_begin_ns, r.send_end_ns, r.receive_ns, r.kernel_rx_ns];
            for (builder, value) in times.iter_mut().zip(values) {
                option(builder, value);
            }
            outcome.append_value(r.outcome.word());
            duplicates.append_value(r.duplicates);
            disorder.append_value(r.out_of_order);
            warm.append_value(r.warm_up);
        }
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(trials.finish()), Arc::new(stream.finish()), Arc::new(seq.finish())];
        columns.extend(times.iter_mut().map(|b| Arc::new(b.finish()) as ArrayRef));
        columns.push(Arc::new(outcome.finish()));
        columns.push(Arc::new(duplicates.finish()));
        columns.push(Arc::new(disorder.finish()));
        columns.push(Arc::new(warm.finish()));
        columns
    });
    write_file(path, fields, &SLOT_TIMES, batches)
}

/// Writes what the pong side saw of one trial.
///
/// # Errors
/// As [`write_slots`].
pub fn write_echoes(path: &Path, trial: usize, rows: &[EchoRow]) -> Result<(), RecordError> {
    // Readers merge echoes with slots: a segment is always in the order of sequence number and arrival.
    let mut sorted = Vec::new();
    let rows = if rows.is_sorted_by_key(|r| (r.seq, r.in_ns)) {
        rows
    } else {
        sorted.extend_from_slice(rows);
        sorted.sort_unstable_by_key(|r| (r.seq, r.in_ns));
        &sorted
    };
    let mut fields = key_fields();
    fields.push(Field::new("subscriber", DataType::UInt16, false));
    fields.extend(ECHO_TIMES.map(|name| Field::new(name, DataType::Int64, true)));
    let batches = rows.chunks(ROWS_PER_BATCH).map(|rows| {
        let n = rows.len();
        let (mut trials, mut stream, mut seq, mut subscriber) = (
            UInt32Builder::with_capacity(n),
            UInt16Builder::with_capacity(n),
            UInt64Builder::with_capacity(n),
            UInt16Builder::with_capacity(n),
        );
        let mut times = ECHO_TIMES.map(|_| Int64Builder::with_capacity(n));
        for r in rows {
            trials.append_value(trial as u32);
            stream.append_value((r.seq >> COUNTER_BITS) as u16);
            seq.append_value(r.seq);
            subscriber.append_value(0);
            for (builder, value) in times.iter_mut().zip([r.in_ns, r.begin_ns, r.end_ns, r.kernel_rx_ns]) {
                option(builder, value);
            }
        }
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(trials.finish()),
            Arc::new(stream.finish()),
            Arc::new(seq.finish()),
            Arc::new(subscriber.finish()),
        ];
        columns.extend(times.iter_mut().map(|b| Arc::new(b.finish()) as ArrayRef));
        columns
    });
    write_file(path, fields, &ECHO_TIMES, batches)
}
