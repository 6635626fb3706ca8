//! Reads columns of a Parquet segment (a file of samples) into plain vectors.

use crate::RecordError;
use crate::outcomes::OutcomeReader;
use crate::segment::{LATER, STAGE_NUMBERS};
use parquet::basic::Type;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, DataType, Int32Type, Int64Type};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;
use std::fs::File;
use std::path::{Path, PathBuf};
use tailbound_model::{Metric, NO_TIME};

/// Number of rows that are read in one batch: small enough that a batch fits into the CPU cache, and that `malloc` does
/// not map new pages for its buffers.
const ROWS_PER_BATCH: usize = 8_192;

type Reader = SerializedFileReader<File>;

fn reader(path: &Path) -> Result<Reader, RecordError> {
    let file = File::open(path).map_err(RecordError::io(path, "open the segment"))?;
    SerializedFileReader::new(file).map_err(|e| RecordError::damaged(path, e))
}

/// Index of the column with this name in a segment (file of samples); `None` if there is no such column.
fn position(reader: &Reader, name: &str) -> Option<usize> {
    let columns = reader.metadata().file_metadata().schema_descr().columns();
    columns.iter().position(|c| c.path().string() == name)
}

fn required_position(reader: &Reader, name: &str, path: &Path) -> Result<usize, RecordError> {
    position(reader, name).ok_or_else(|| RecordError::damaged(path, format!("column `{name}` is missing")))
}

/// Reader of selected columns of a segment (file of samples), which reads the rows in batches.
pub(crate) struct Rows {
    path: PathBuf,
    file: Reader,
    columns: Vec<Column>,
    next_group: usize,
    /// Number of rows of samples in the current row group that follow the current batch.
    left: usize,
    /// Number of rows of samples in the current batch.
    batch: usize,
}

struct Column {
    name: &'static str,
    /// Index of the column in the segment; `None` for a column that segments of earlier releases do not have.
    position: Option<usize>,
    values: Values,
}

/// Reader of the values of one column in the segment's current row group.
enum Values {
    /// The column has no reader, because no row group of the segment has been opened yet.
    None,
    /// The segment has no such column.
    Absent,
    Int64(ColumnReaderImpl<Int64Type>, Nullable),
    Int32(ColumnReaderImpl<Int32Type>),
    Flags(ColumnReaderImpl<BoolType>),
    Outcomes(OutcomeReader),
}

/// Parquet definition levels of a column that may contain nulls; `None` for other columns.
type Nullable = Option<Vec<i16>>;

/// Opens a segment (file of samples) to read the columns with these names.
pub(crate) fn open(path: &Path, columns: &[&'static str]) -> Result<Rows, RecordError> {
    let file = reader(path)?;
    let column = |name: &&'static str| {
        let position = match LATER.contains(name) {
            true => position(&file, name),
            false => Some(required_position(&file, name, path)?),
        };
        Ok(Column { name, position, values: Values::None })
    };
    let columns = columns.iter().map(column).collect::<Result<_, RecordError>>()?;
    Ok(Rows { path: path.to_owned(), file, columns, next_group: 0, left: 0, batch: 0 })
}

/// Opens the file with the stages that the messages of an end passed.
pub(crate) fn open_stages(path: &Path) -> Result<Rows, RecordError> {
    let [queued, sent, card, card_rx, taken] = STAGE_NUMBERS;
    open(path, &["seq", queued, sent, card, card_rx, taken])
}

impl Rows {
    /// Goes to the next batch of rows and returns the number of rows in the batch: 0 at the end of the segment. Each
    /// column must be read once per batch.
    pub(crate) fn next_batch(&mut self) -> Result<usize, RecordError> {
        while self.left == 0 && self.next_group < self.file.num_row_groups() {
            self.open_group(self.next_group)?;
            self.next_group += 1;
        }
        self.batch = self.left.min(ROWS_PER_BATCH);
        self.left -= self.batch;
        Ok(self.batch)
    }

    fn open_group(&mut self, index: usize) -> Result<(), RecordError> {
        let damaged = |e| RecordError::damaged(&self.path, e);
        let group = self.file.get_row_group(index).map_err(damaged)?;
        let schema = self.file.metadata().file_metadata().schema_descr();
        for column in &mut self.columns {
            let Some(position) = column.position else {
                column.values = Values::Absent;
                continue;
            };
            let kind = schema.column(position);
            column.values = if is_outcome(&kind) {
                Values::Outcomes(OutcomeReader::new(group.get_column_page_reader(position).map_err(damaged)?))
            } else {
                let nullable = (kind.max_def_level() == 1).then(Vec::new);
                match group.get_column_reader(position).map_err(damaged)? {
                    ColumnReader::Int64ColumnReader(r) if kind.max_def_level() <= 1 => Values::Int64(r, nullable),
                    ColumnReader::Int32ColumnReader(r) if nullable.is_none() => Values::Int32(r),
                    ColumnReader::BoolColumnReader(r) if nullable.is_none() => Values::Flags(r),
                    _ => return Err(wrong(&self.path, column.name)),
                }
            };
        }
        self.left = group.metadata().num_rows().max(0) as usize;
        Ok(())
    }

    fn column(&mut self, name: &str) -> Result<(&mut Values, usize, &Path), RecordError> {
        let column = self.columns.iter_mut().find(|c| c.name == name);
        let missing = || RecordError::damaged(&self.path, format!("column `{name}` is missing"));
        Ok((&mut column.ok_or_else(missing)?.values, self.batch, &self.path))
    }

    /// Reads the sequence numbers of the current batch of rows.
    pub(crate) fn sequence(&mut self, into: &mut Vec<u64>) -> Result<(), RecordError> {
        let (Values::Int64(reader, None), rows, path) = self.column("seq")? else {
            return Err(wrong(&self.path, "seq"));
        };
        let mut numbers = Vec::with_capacity(rows);
        read(reader, rows, None, &mut numbers, path)?;
        into.clear();
        into.extend(numbers.iter().map(|n| *n as u64));
        Ok(())
    }

    /// Reads the values of the current batch of rows from a column that contains times or ids of threads; null becomes
    /// [`NO_TIME`].
    pub(crate) fn numbers(&mut self, name: &str, into: &mut Vec<i64>) -> Result<(), RecordError> {
        let (reader, nullable, rows, path) = match self.column(name)? {
            (Values::Int64(reader, nullable), rows, path) => (reader, nullable, rows, path),
            (Values::Absent, rows, _) => {
                into.clear();
                into.resize(rows, NO_TIME);
                return Ok(());
            }
            _ => return Err(wrong(&self.path, name)),
        };
        let mut values = read(reader, rows, nullable.as_mut(), into, path)?;
        if let Some(levels) = nullable
            && values < rows
        {
            into.resize(rows, NO_TIME);
            for row in (0..rows).rev() {
                into[row] = match levels[row] {
                    0 => NO_TIME,
                    _ => {
                        values = values.checked_sub(1).ok_or_else(|| wrong(path, name))?;
                        into[values]
                    }
                };
            }
        }
        Ok(())
    }

    /// Reads the outcomes of the slots in the current batch of rows, as the numbers `Outcome as u8`.
    pub(crate) fn outcomes(&mut self, into: &mut Vec<u8>) -> Result<(), RecordError> {
        let (Values::Outcomes(reader), rows, path) = self.column("outcome")? else {
            return Err(wrong(&self.path, "outcome"));
        };
        into.clear();
        reader.read(rows, into, path)
    }

    /// Reads the values of the current batch of rows from a column that contains counts.
    pub(crate) fn counts(&mut self, name: &str, into: &mut Vec<u32>) -> Result<(), RecordError> {
        let (Values::Int32(reader), rows, path) = self.column(name)? else { return Err(wrong(&self.path, name)) };
        let mut numbers = Vec::with_capacity(rows);
        read(reader, rows, None, &mut numbers, path)?;
        into.clear();
        into.extend(numbers.iter().map(|n| *n as u32));
        Ok(())
    }

    /// Reads the values of the current batch of rows from a column that contains truth values.
    pub(crate) fn flags(&mut self, name: &str, into: &mut Vec<bool>) -> Result<(), RecordError> {
        let (Values::Flags(reader), rows, path) = self.column(name)? else { return Err(wrong(&self.path, name)) };
        read(reader, rows, None, into, path).map(drop)
    }
}

/// True if a column has the Parquet type of the column `outcome`: words, without nulls.
fn is_outcome(column: &ColumnDescriptor) -> bool {
    column.physical_type() == Type::BYTE_ARRAY && column.max_def_level() == 0 && column.max_rep_level() == 0
}

/// Reads the values of `rows` rows from a column of a segment and returns the number of values that are not null.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    mut levels: Option<&mut Vec<i16>>,
    into: &mut Vec<T::T>,
    path: &Path,
) -> Result<usize, RecordError> {
    into.clear();
    if let Some(levels) = &mut levels {
        levels.clear();
    }
    let (records, values, _) =
        reader.read_records(rows, levels, None, into).map_err(|e| RecordError::damaged(path, e))?;
    if records < rows {
        return Err(RecordError::damaged(path, "a column of the segment has too few rows"));
    }
    Ok(values)
}

/// Reads the number of rows of a segment (file of samples) from the footer of the segment.
pub(crate) fn count_rows(path: &Path) -> Result<u64, RecordError> {
    Ok(reader(path)?.metadata().file_metadata().num_rows().max(0) as u64)
}

/// Data from the footer of a segment (a file of samples).
pub(crate) struct SegmentEnd {
    /// Lowest and highest trial id in the segment, if the footer contains them.
    pub trials: Option<(u32, u32)>,
    /// For each row group of the segment: lowest and highest sequence number (`seq`), if the footer contains them, and
    /// the number of rows.
    pub groups: Vec<(Option<(u64, u64)>, u64)>,
}

/// Reads the footer of a segment (Parquet file of samples).
pub(crate) fn segment_end(path: &Path) -> Result<SegmentEnd, RecordError> {
    let reader = reader(path)?;
    let (trial, seq) = (required_position(&reader, "trial", path)?, required_position(&reader, "seq", path)?);
    let mut end = SegmentEnd { trials: None, groups: Vec::new() };
    for group in reader.metadata().row_groups().iter().filter(|g| g.num_rows() > 0) {
        let statistics = |at: usize| group.columns().get(at)?.statistics();
        if let Some(Statistics::Int32(s)) = statistics(trial)
            && let (Some(&low), Some(&high)) = (s.min_opt(), s.max_opt())
        {
            let (low, high) = (low as u32, high as u32);
            end.trials = Some(end.trials.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
        }
        end.groups.push((seq_range(group, seq), group.num_rows() as u64));
    }
    Ok(end)
}

/// Lowest and highest sequence number (`seq`) of a row group of a segment, if the footer contains them.
fn seq_range(group: &RowGroupMetaData, position: usize) -> Option<(u64, u64)> {
    match group.columns().get(position)?.statistics()? {
        Statistics::Int64(s) => Some((*s.min_opt()? as u64, *s.max_opt()? as u64)),
        _ => None,
    }
}

/// Reads the lowest and highest sequence number (`seq`) of each row group of a segment (file of samples); `None` if the
/// footer does not contain them.
pub(crate) fn seq_ranges(path: &Path) -> Result<Option<Vec<(u64, u64)>>, RecordError> {
    let reader = reader(path)?;
    let Some(seq) = position(&reader, "seq") else { return Ok(None) };
    Ok(reader.metadata().row_groups().iter().map(|group| seq_range(group, seq)).collect())
}

/// True if a column of a segment has a value in at least one row. If the footer does not contain the number of nulls,
/// the result is true.
pub(crate) fn has_values(path: &Path, name: &str) -> Result<bool, RecordError> {
    let reader = reader(path)?;
    let Some(column) = position(&reader, name) else { return Ok(false) };
    let nulls = |group: &RowGroupMetaData| group.columns().get(column)?.statistics()?.null_count_opt();
    let all_null = |g| nulls(g).is_some_and(|n| n >= g.num_rows().max(0) as u64);
    Ok(!reader.metadata().row_groups().iter().all(all_null))
}

fn wrong(path: &Path, name: &str) -> RecordError {
    RecordError::damaged(path, format!("column `{name}` does not have the type that the record format requires"))
}

/// Names of the columns of a segment from which a metric is computed: columns of the sender, and columns of the pong
/// side (echoes).
pub(crate) fn columns_of(metric: Metric) -> (&'static [&'static str], &'static [&'static str]) {
    match metric {
        Metric::RoundTrip | Metric::HalfRoundTrip => (&["send_begin_ns", "receive_ns"], &[]),
        Metric::Out => (&["send_begin_ns"], &["in_ns"]),
        Metric::OutNetwork => (&["send_begin_ns"], &["kernel_rx_ns"]),
        Metric::Turnaround => (&[], &["in_ns", "end_ns"]),
        Metric::Back => (&["receive_ns"], &["end_ns"]),
        Metric::BackNetwork => (&["kernel_rx_ns"], &["end_ns"]),
        Metric::FromIntended => (&["intended_ns", "receive_ns"], &[]),
        Metric::SendLateness => (&["intended_ns", "send_begin_ns"], &[]),
        Metric::SendDuration => (&["send_begin_ns", "send_end_ns"], &[]),
        Metric::WakeToSent => (&["wake_ns", "send_end_ns"], &[]),
        Metric::WakePeriod => (&["wake_ns"], &[]),
    }
}
