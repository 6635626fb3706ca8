//! Lists of parameters: inline QoS, and the data of discovery (9.4.2.11).

use crate::numbers::Numbers;

/// Id of the parameter at the end of a list.
pub(crate) const SENTINEL: u16 = 1;

/// The parameters of a list, as far as they are there, with their place behind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameters<'a> {
    numbers: Numbers<'a>,
    at: usize,
    /// Whether the end of the list was found.
    is_ended: bool,
}

impl<'a> Parameters<'a> {
    /// The list that begins at a place of the bytes.
    pub fn new(bytes: &'a [u8], little_endian: bool, at: usize) -> Parameters<'a> {
        Parameters { numbers: Numbers { bytes, little_endian }, at, is_ended: false }
    }

    /// The place behind the list; `None` if its end is not there. Valid after the last parameter.
    pub fn end(&self) -> Option<usize> {
        self.is_ended.then_some(self.at)
    }
}

impl<'a> Iterator for Parameters<'a> {
    type Item = (u16, Numbers<'a>);

    fn next(&mut self) -> Option<(u16, Numbers<'a>)> {
        if self.is_ended {
            return None;
        }
        let (id, length) = self.numbers.half(self.at).zip(self.numbers.half(self.at + 2))?;
        self.at += 4;
        if id == SENTINEL {
            self.is_ended = true;
            return None;
        }
        let from = self.at;
        self.at += usize::from(length);
        let bytes = self.numbers.bytes;
        let value = bytes.get(from.min(bytes.len())..self.at.min(bytes.len())).unwrap_or_default();
        Some((id, Numbers { bytes: value, little_endian: self.numbers.little_endian }))
    }
}
