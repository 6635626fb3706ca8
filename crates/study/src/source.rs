//! The texts from which a plan is made, and positions in them.
//!
//! A position is a byte range of the study file or of one `--set` argument. A position fits into 64 bits, because serde
//! passes it together with the value at this position.

/// Longest study file in bytes; a longer file is not a study.
pub(crate) const MAX_TEXT: usize = 1 << 20;

/// Position in a text from which a plan is made: a range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Pos {
    /// Index in [`Sources`] of the text that contains the position: 0 is the study file.
    pub source: u16,
    /// Index of the first byte of this position in the text.
    pub start: u32,
    /// Number of bytes of this position in the text.
    pub len: u32,
}

impl Pos {
    /// Packs the position into 64 bits, to pass it through serde.
    pub fn pack(self) -> u64 {
        u64::from(self.source) << 48 | u64::from(self.start & 0xff_ffff) << 24 | u64::from(self.len & 0xff_ffff)
    }
    /// Unpacks a position from 64 bits; the reverse of [`Pos::pack`].
    pub fn unpack(bits: u64) -> Self {
        Pos { source: (bits >> 48) as u16, start: (bits >> 24) as u32 & 0xff_ffff, len: bits as u32 & 0xff_ffff }
    }
}

/// One text from which a plan is made, with the name that error messages use.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Name of the text: the file name or `--set key=value`.
    pub name: String,
    /// The whole text of the study file, of the budget file, or of the `--set` argument.
    pub text: String,
}

/// All texts from which one plan is made: the study file first, then the `--set` arguments in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources(pub Vec<Source>);

impl Sources {
    /// Returns the text that contains a position.
    pub fn of(&self, at: Pos) -> &Source {
        &self.0[usize::from(at.source)]
    }
}

/// Line and column of a byte offset, both from 1; columns are counted in characters.
pub(crate) fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
