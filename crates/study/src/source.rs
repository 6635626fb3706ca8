//! The texts that a plan is made of, and places in them.
//!
//! A place is a byte range of the study file or of one `--set` argument. It fits into 64 bits because it travels through
//! serde together with the value that stands there.

/// Longest study file in octets; anything larger is no study.
pub(crate) const MAX_TEXT: usize = 1 << 20;

/// A byte range of one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Pos {
    /// Index into [`Sources`]: 0 is the study file.
    pub source: u16,
    /// First byte.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

impl Pos {
    /// Packs for the way through serde.
    pub fn pack(self) -> u64 {
        u64::from(self.source) << 48 | u64::from(self.start & 0xff_ffff) << 24 | u64::from(self.len & 0xff_ffff)
    }
    /// The reverse of [`Pos::pack`].
    pub fn unpack(bits: u64) -> Self {
        Pos { source: (bits >> 48) as u16, start: (bits >> 24) as u32 & 0xff_ffff, len: bits as u32 & 0xff_ffff }
    }
}

/// One text with the name by which people know it.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// File name or `--set key=value`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// All texts of one load: the study file first, then the `--set` arguments in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources(pub Vec<Source>);

impl Sources {
    /// The text at a place.
    pub fn of(&self, at: Pos) -> &Source {
        &self.0[usize::from(at.source)]
    }
}

/// Line and column, both from 1, columns in characters.
pub(crate) fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
