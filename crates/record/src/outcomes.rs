//! Reads the column of outcomes: words that are stored as keys of a dictionary with a few entries.
//!
//! The general reader of Parquet returns each word as a value of its own, which would cost more than all other columns
//! together. Here consecutive equal keys are decoded together.

use crate::RecordError;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use std::path::Path;
use tailbound_model::Outcome;

/// Decodes the outcomes of the slots in a row group of a segment (file of samples) into the numbers `Outcome as u8`.
pub(crate) struct OutcomeReader {
    pages: Box<dyn PageReader>,
    /// Number of the outcome for each key of the Parquet dictionary.
    dictionary: Vec<u8>,
    /// Decoded outcomes of the slots in the current Parquet page.
    page: Vec<u8>,
    /// Number of outcomes of the current Parquet page that have been returned already.
    returned: usize,
}

impl OutcomeReader {
    pub(crate) fn new(pages: Box<dyn PageReader>) -> OutcomeReader {
        OutcomeReader { pages, dictionary: Vec::new(), page: Vec::new(), returned: 0 }
    }

    /// Reads the outcomes of the next `rows` slots and appends them to `into`.
    pub(crate) fn read(&mut self, rows: usize, into: &mut Vec<u8>, path: &Path) -> Result<(), RecordError> {
        let end = into.len() + rows;
        while into.len() < end {
            if self.returned == self.page.len() {
                let page = self.pages.get_next_page().map_err(|e| RecordError::damaged(path, e))?;
                let page = page.ok_or_else(|| RecordError::damaged(path, "column `outcome` has too few rows"))?;
                self.decode(page).map_err(|reason| RecordError::damaged(path, reason))?;
                continue;
            }
            let taken = (end - into.len()).min(self.page.len() - self.returned);
            into.extend_from_slice(&self.page[self.returned..self.returned + taken]);
            self.returned += taken;
        }
        Ok(())
    }

    fn decode(&mut self, page: Page) -> Result<(), String> {
        let (values, encoding, count) = match &page {
            Page::DictionaryPage { buf, num_values, .. } => {
                self.dictionary = words(buf, *num_values as usize)?;
                return Ok(());
            }
            Page::DataPage { buf, encoding, num_values, .. } => (&buf[..], *encoding, *num_values as usize),
            Page::DataPageV2 { buf, encoding, num_values, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
                (buf.get(levels..).ok_or("a page of column `outcome` is cut off")?, *encoding, *num_values as usize)
            }
        };
        self.returned = 0;
        self.page = match encoding {
            Encoding::PLAIN => words(values, count)?,
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => keys(values, count, &self.dictionary)?,
            other => return Err(format!("column `outcome` has the unknown encoding {other}")),
        };
        Ok(())
    }
}

/// Decodes words, each of which follows its length in four bytes, into the numbers of the outcomes.
fn words(mut data: &[u8], count: usize) -> Result<Vec<u8>, String> {
    let mut outcomes = Vec::new();
    for _ in 0..count {
        let (length, rest) = data.split_first_chunk::<4>().ok_or("a word in column `outcome` is cut off")?;
        let word = rest.get(..u32::from_le_bytes(*length) as usize).ok_or("a word in column `outcome` is cut off")?;
        data = &rest[word.len()..];
        let known = Outcome::ALL.iter().find(|o| o.word().as_bytes() == word);
        let unknown = || format!("unknown outcome {:?}", String::from_utf8_lossy(word));
        outcomes.push(*known.ok_or_else(unknown)? as u8);
    }
    Ok(outcomes)
}

/// Decodes dictionary keys into the numbers of the outcomes. Equal consecutive keys are stored as one key with the
/// number of its repetitions; other keys are stored in groups of eight packed keys.
///
/// Source: Parquet format, "Run Length Encoding / Bit-Packing Hybrid".
fn keys(data: &[u8], count: usize, dictionary: &[u8]) -> Result<Vec<u8>, String> {
    let cut_off = || "a page of column `outcome` is cut off".to_owned();
    let (&width, mut data) = data.split_first().ok_or_else(cut_off)?;
    if width > 8 {
        return Err(format!("dictionary keys of column `outcome` have {width} bits, more than 8"));
    }
    let of = |key: u16| {
        dictionary
            .get(usize::from(key))
            .copied()
            .ok_or(format!("the dictionary of column `outcome` has no entry {key}"))
    };
    let mut outcomes = Vec::new();
    while outcomes.len() < count {
        let left = count - outcomes.len();
        let header = variable_length(&mut data).ok_or_else(cut_off)?;
        let length = usize::try_from(header >> 1).map_err(|_| cut_off())?;
        if length == 0 {
            return Err(cut_off());
        }
        if header & 1 == 0 {
            let (key, rest) = data.split_at_checked(usize::from(width.div_ceil(8))).ok_or_else(cut_off)?;
            data = rest;
            let outcome = of(key.first().copied().unwrap_or(0).into())?;
            outcomes.resize(outcomes.len() + length.min(left), outcome);
        } else {
            let width = usize::from(width);
            let packed = &data[..length.saturating_mul(width).min(data.len())];
            let values = length.saturating_mul(8).min(left);
            if packed.len() < (values * width).div_ceil(8) {
                return Err(cut_off());
            }
            data = &data[packed.len()..];
            for bit in (0..values).map(|value| value * width) {
                let byte = |at: usize| u16::from(packed.get(at).copied().unwrap_or(0));
                let two = byte(bit / 8) | byte(bit / 8 + 1) << 8;
                outcomes.push(of(two >> (bit % 8) & ((1 << width) - 1))?);
            }
        }
    }
    Ok(outcomes)
}

/// Reads a number in the ULEB128 format: seven bits per byte, the lowest bits first.
fn variable_length(data: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..35).step_by(7) {
        let (&byte, rest) = data.split_first()?;
        *data = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_packed_keys_are_decoded() {
        // Two bits per key: a run of three times key 1, then eight packed keys 0 1 2 0 1 2 0 1.
        let data = [2, 3 << 1, 1, 3, 0b00_10_01_00, 0b01_00_10_01];
        assert_eq!(keys(&data, 11, &[7, 8, 9]), Ok(vec![8, 8, 8, 7, 8, 9, 7, 8, 9, 7, 8]));
        // The last group may contain more keys than the page has values.
        assert_eq!(keys(&data, 5, &[7, 8, 9]), Ok(vec![8, 8, 8, 7, 8]));
        // A dictionary with one word needs no bits.
        assert_eq!(keys(&[0, 4 << 1], 4, &[7]), Ok(vec![7; 4]));
    }

    #[test]
    fn damaged_keys_are_refused() {
        for data in
            [&[][..], &[9], &[2], &[2, 0], &[2, 3 << 1], &[2, 3], &[2, 3 << 1, 3], &[2, 0x80, 0x80, 0x80, 0x80, 0x80]]
        {
            assert!(keys(data, 3, &[7, 8, 9]).is_err(), "{data:?}");
        }
    }
}
