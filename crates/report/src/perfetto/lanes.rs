//! Tracks for slices that may overlap: slices of one track must lie inside each other or apart.

use crate::perfetto::packets::{Packets, Track};
use std::io;

/// Largest number of tracks with the same name; the viewer draws them below each other.
const MOST: usize = 256;

/// Tracks with the same name, one below the other; each slice is on the first track that is free.
pub(super) struct Lanes {
    name: String,
    below: Track,
    /// Each track with the end of its last slice, ns.
    tracks: Vec<(Track, i64)>,
}

impl Lanes {
    pub fn new(name: impl Into<String>, below: Track) -> Lanes {
        Lanes { name: name.into(), below, tracks: Vec::new() }
    }

    /// A track that is free from `begin_ns` on, and is taken until `end_ns`; `None` if there are too many tracks.
    pub fn take(&mut self, packets: &mut Packets, (begin_ns, end_ns): (i64, i64)) -> io::Result<Option<Track>> {
        if let Some((track, free_ns)) = self.tracks.iter_mut().find(|(_, free_ns)| *free_ns <= begin_ns) {
            *free_ns = end_ns;
            return Ok(Some(*track));
        }
        if self.tracks.len() == MOST {
            return Ok(None);
        }
        let track = packets.track(&self.name, Some(self.below))?;
        self.tracks.push((track, end_ns));
        Ok(Some(track))
    }
}
