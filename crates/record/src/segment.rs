//! Writes Parquet segments (files of samples). Each segment is written under a temporary name, closed and renamed, so
//! any Parquet reader can read the segment at any time.

use crate::RecordError;
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tailbound_model::*;

/// Number of rows of samples in a row group of a segment; a row group is collected in memory before it is written.
const ROWS_PER_GROUP: usize = 1 << 17;

/// Names of the columns with optional numbers in a segment (Parquet file) of the sender, in file order: times, and the id
/// of a thread.
pub(crate) const SLOT_NUMBERS: [&str; 7] =
    ["intended_ns", "wake_ns", "send_begin_ns", "send_end_ns", "receive_ns", "kernel_rx_ns", "receive_thread"];
/// Names of the columns with optional numbers in a segment (Parquet file) of the pong side, in file order: times, and the
/// id of a thread.
pub(crate) const ECHO_NUMBERS: [&str; 5] = ["in_ns", "begin_ns", "end_ns", "kernel_rx_ns", "in_thread"];
/// Names of the columns with optional numbers in the file with the stages that messages passed, in file order: times.
pub(crate) const STAGE_NUMBERS: [&str; 5] = ["queued_ns", "sent_ns", "card_ns", "card_rx_ns", "taken_ns"];
/// Columns that segments of earlier releases do not have.
pub(crate) const LATER: [&str; 4] = ["receive_thread", "in_thread", "card_rx_ns", "taken_ns"];

fn properties(numbers: &[&str]) -> WriterProperties {
    // Times grow by nearly equal steps, and ids of threads seldom change: delta encoding stores them in a few bits, and is as fast to read as plain
    // encoding.
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for column in numbers.iter().chain(&["seq"]) {
        let path = ColumnPath::from(*column);
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    builder.build()
}

/// Columns of a segment (file of samples) by which a reader finds the slots of a trial.
const KEYS: &str = "required int32 trial (INTEGER(32,false)); required int32 stream (INTEGER(16,false)); \
                    required int64 seq (INTEGER(64,false));";

fn optional_numbers(names: &[&str]) -> String {
    names.iter().map(|name| format!(" optional int64 {name};")).collect()
}

/// Values of one column of a segment in one row group of its Parquet file.
enum Column {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    /// Numbers of a column that are not null; and for each row a 1, or a 0 if the number of the row is null.
    Numbers(Vec<i64>, Vec<i16>),
    Words(Vec<ByteArray>),
    Flags(Vec<bool>),
}

impl Column {
    fn int32(values: impl Iterator<Item = u32>) -> Column {
        Column::Int32(values.map(|value| value as i32).collect())
    }

    fn seq(values: impl Iterator<Item = u64>) -> Column {
        Column::Int64(values.map(|value| value as i64).collect())
    }

    fn numbers(values: impl Iterator<Item = i64> + Clone) -> Column {
        let levels = values.clone().map(|value| i16::from(value != NO_TIME)).collect();
        Column::Numbers(values.filter(|value| *value != NO_TIME).collect(), levels)
    }

    fn write(&self, to: &mut SerializedColumnWriter<'_>) -> Result<usize, ParquetError> {
        match self {
            Column::Int32(values) => to.typed::<Int32Type>().write_batch(values, None, None),
            Column::Int64(values) => to.typed::<Int64Type>().write_batch(values, None, None),
            Column::Numbers(values, levels) => to.typed::<Int64Type>().write_batch(values, Some(levels), None),
            Column::Words(values) => to.typed::<ByteArrayType>().write_batch(values, None, None),
            Column::Flags(values) => to.typed::<BoolType>().write_batch(values, None, None),
        }
    }
}

fn write_file(
    path: &Path,
    columns: &str,
    numbers: &[&str],
    groups: impl Iterator<Item = Vec<Column>>,
) -> Result<(), RecordError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(RecordError::io(folder, "make the directory"))?;
    let temporary = path.with_extension("parquet.partial");
    let written = (|| {
        let file = File::create(&temporary)?;
        let schema = parse_message_type(&format!("message samples {{ {columns} }}"))?;
        let properties = Arc::new(properties(numbers));
        let mut writer = SerializedFileWriter::new(file, Arc::new(schema), properties)?;
        for columns in groups {
            write_group(&mut writer, &columns)?;
        }
        writer.into_inner()?.sync_all()?;
        fs::rename(&temporary, path)?;
        Ok(())
    })();
    written.map_err(|error| {
        // An incomplete segment is useless; if it cannot be removed, readers are not affected.
        let _ = fs::remove_file(&temporary);
        match of_the_file_system(error) {
            Ok(source) => RecordError::io(path, "write the samples")(source),
            Err(error) => RecordError::damaged(path, format!("cannot write the samples: {error}")),
        }
    })
}

/// Returns the error of the file system because of which a Parquet file could not be written, or the Parquet error if
/// there was another reason.
fn of_the_file_system(error: ParquetError) -> Result<io::Error, ParquetError> {
    match error {
        ParquetError::External(e) => e.downcast::<io::Error>().map(|e| *e).map_err(ParquetError::External),
        other => Err(other),
    }
}

fn write_group(writer: &mut SerializedFileWriter<File>, columns: &[Column]) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for column in columns {
        let missing = || ParquetError::General("the schema has too few columns".into());
        let mut to = group.next_column()?.ok_or_else(missing)?;
        column.write(&mut to)?;
        to.close()?;
    }
    group.close().map(drop)
}

/// Splits an iterator into vectors of at most `ROWS_PER_GROUP` items.
fn chunks<T>(rows: impl Iterator<Item = T>) -> impl Iterator<Item = Vec<T>> {
    let mut rows = rows.peekable();
    std::iter::from_fn(move || {
        rows.peek()?;
        Some(rows.by_ref().take(ROWS_PER_GROUP).collect())
    })
}

/// The id of a thread as the value of a column with optional numbers.
fn id(thread: Option<u32>) -> i64 {
    thread.map_or(NO_TIME, i64::from)
}

fn stream_of(seq: u64) -> u32 {
    u32::from((seq >> COUNTER_BITS) as u16)
}

/// Writes the slots of one end of one trial to a Parquet file.
///
/// # Errors
/// The file cannot be written; no file with this name remains then.
pub fn write_slots(path: &Path, trial: usize, rows: impl Iterator<Item = SenderRow>) -> Result<(), RecordError> {
    let columns = format!(
        "{KEYS}{} required binary outcome (STRING); required int32 duplicates (INTEGER(32,false)); \
         required boolean out_of_order; required boolean warm_up;",
        optional_numbers(&SLOT_NUMBERS)
    );
    let words = Outcome::ALL.map(|outcome| (outcome, ByteArray::from(outcome.word())));
    let word =
        |outcome: Outcome| words.iter().find(|(o, _)| *o == outcome).map_or_else(ByteArray::new, |(_, w)| w.clone());
    let groups = chunks(rows).map(|rows: Vec<SenderRow>| {
        let rows = rows.iter();
        vec![
            Column::int32(rows.clone().map(|_| trial as u32)),
            Column::int32(rows.clone().map(|r| stream_of(r.seq))),
            Column::seq(rows.clone().map(|r| r.seq)),
            Column::numbers(rows.clone().map(|r| r.intended_ns)),
            Column::numbers(rows.clone().map(|r| r.wake_ns)),
            Column::numbers(rows.clone().map(|r| r.send_begin_ns)),
            Column::numbers(rows.clone().map(|r| r.send_end_ns)),
            Column::numbers(rows.clone().map(|r| r.receive_ns)),
            Column::numbers(rows.clone().map(|r| r.kernel_rx_ns)),
            Column::numbers(rows.clone().map(|r| id(r.receive_thread))),
            Column::Words(rows.clone().map(|r| word(r.outcome)).collect()),
            Column::int32(rows.clone().map(|r| r.duplicates)),
            Column::Flags(rows.clone().map(|r| r.out_of_order).collect()),
            Column::Flags(rows.map(|r| r.warm_up).collect()),
        ]
    });
    write_file(path, &columns, &SLOT_NUMBERS, groups)
}

/// Writes the messages that the pong side received in one trial to a Parquet file.
///
/// # Errors
/// The file cannot be written; no file with this name remains then.
pub fn write_echoes(path: &Path, trial: usize, rows: &[EchoRow]) -> Result<(), RecordError> {
    // Readers merge echoes with slots, so a segment is always sorted by sequence number and arrival.
    let mut sorted = Vec::new();
    let rows = if rows.is_sorted_by_key(|r| (r.seq, r.in_ns)) {
        rows
    } else {
        sorted.extend_from_slice(rows);
        sorted.sort_unstable_by_key(|r| (r.seq, r.in_ns));
        &sorted
    };
    let columns = format!("{KEYS} required int32 subscriber (INTEGER(16,false));{}", optional_numbers(&ECHO_NUMBERS));
    let groups = rows.chunks(ROWS_PER_GROUP).map(|rows| {
        let rows = rows.iter();
        vec![
            Column::int32(rows.clone().map(|_| trial as u32)),
            Column::int32(rows.clone().map(|r| stream_of(r.seq))),
            Column::seq(rows.clone().map(|r| r.seq)),
            Column::int32(rows.clone().map(|_| 0)),
            Column::numbers(rows.clone().map(|r| r.in_ns)),
            Column::numbers(rows.clone().map(|r| r.begin_ns)),
            Column::numbers(rows.clone().map(|r| r.end_ns)),
            Column::numbers(rows.clone().map(|r| r.kernel_rx_ns)),
            Column::numbers(rows.map(|r| id(r.in_thread))),
        ]
    });
    write_file(path, &columns, &ECHO_NUMBERS, groups)
}

/// Writes the stages that the messages of one end passed in one trial to a Parquet file; `rows` are in rising order of the sequence
/// numbers.
///
/// # Errors
/// The file cannot be written; no file with this name remains then.
pub fn write_stages(path: &Path, rows: &[StageRow]) -> Result<(), RecordError> {
    let columns = format!("required int64 seq (INTEGER(64,false));{}", optional_numbers(&STAGE_NUMBERS));
    let groups = rows.chunks(ROWS_PER_GROUP).map(|rows| {
        let rows = rows.iter();
        vec![
            Column::seq(rows.clone().map(|r| r.seq)),
            Column::numbers(rows.clone().map(|r| r.queued_ns)),
            Column::numbers(rows.clone().map(|r| r.sent_ns)),
            Column::numbers(rows.clone().map(|r| r.card_ns)),
            Column::numbers(rows.clone().map(|r| r.card_rx_ns)),
            Column::numbers(rows.map(|r| r.taken_ns)),
        ]
    });
    write_file(path, &columns, &STAGE_NUMBERS, groups)
}
