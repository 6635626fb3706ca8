//! Which fragments of a sample were seen.

/// Largest number of fragments of a sample that are distinguished: 65 MB in fragments of Cyclone DDS.
const MOST: u32 = 50_000;

/// The fragments of a sample that were seen on one way.
pub struct Parts {
    /// One bit for each fragment.
    seen: Box<[u64]>,
    left: u32,
    /// When the sample was written, if a fragment says so.
    pub source_ns: Option<i64>,
    /// The time at the begin of the sample, if its first fragment was seen.
    pub first_stamp_ns: Option<i64>,
    /// Whether the sample was not sent on another way before.
    pub is_new: bool,
    /// Whether a fragment was sent again, or asked for, before all were seen.
    pub is_repeated: bool,
}

/// What a fragment is to the ones before.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// It was not seen before.
    New,
    /// It was seen before.
    Again,
}

impl Parts {
    /// A sample of `count` fragments, of which none was seen; `None` if it has too many.
    pub fn new(count: u32, is_new: bool) -> Option<Parts> {
        (count <= MOST).then(|| {
            let seen = vec![0; count.div_ceil(64) as usize].into();
            Parts { seen, left: count, source_ns: None, first_stamp_ns: None, is_new, is_repeated: false }
        })
    }

    /// Remembers a fragment, counted from 0.
    pub fn see(&mut self, index: u32) -> Part {
        let mask = 1 << (index % 64);
        match self.seen.get_mut(index as usize / 64) {
            Some(word) if *word & mask == 0 => {
                *word |= mask;
                self.left = self.left.saturating_sub(1);
                Part::New
            }
            _ => {
                self.is_repeated = true;
                Part::Again
            }
        }
    }

    /// Whether all fragments were seen.
    pub fn are_all(&self) -> bool {
        self.left == 0
    }
}
