//! The hops that are kept in memory until the trial is over.

use std::collections::VecDeque;
use tailbound_model::PacketHop;

/// Maximum number of hops kept in memory; a hop has 48 bytes.
const MOST_HOPS: usize = 2 << 20;
/// Number of hops in one allocation; stored hops are never moved.
const PIECE: usize = 1 << 16;

/// Hops in the order in which they were read.
#[derive(Debug, Default)]
pub(super) struct Hops {
    pieces: VecDeque<Vec<PacketHop>>,
    /// Time of the latest hop that was discarded, monotonic ns; 0 = none was discarded.
    pub discarded_ns: i64,
}

impl Hops {
    /// Keeps a hop. If the maximum number of hops is reached, the oldest hops are discarded.
    pub fn keep(&mut self, hop: PacketHop) {
        if self.pieces.back().is_none_or(|piece| piece.len() == PIECE) {
            let oldest = if self.pieces.len() * PIECE >= MOST_HOPS { self.pieces.pop_front() } else { None };
            // The memory of the oldest piece is used again.
            let mut piece = oldest.unwrap_or_else(|| Vec::with_capacity(PIECE));
            self.discarded_ns = piece.iter().map(|hop| hop.at_ns).fold(self.discarded_ns, i64::max);
            piece.clear();
            self.pieces.push_back(piece);
        }
        self.pieces.back_mut().iter_mut().for_each(|piece| piece.push(hop));
    }

    /// Hops within these time spans (begin and end, monotonic ns; sorted and without overlap), in the order of time.
    pub fn within(&self, windows: &[(i64, i64)]) -> Vec<PacketHop> {
        let mut hops: Vec<PacketHop> =
            self.pieces.iter().flatten().filter(|hop| contain(windows, hop.at_ns)).copied().collect();
        hops.sort_by_key(|hop| hop.at_ns);
        hops
    }
}

/// Whether one of these time spans contains this time.
pub(super) fn contain(windows: &[(i64, i64)], at_ns: i64) -> bool {
    let at = windows.partition_point(|(_, end)| *end < at_ns);
    windows.get(at).is_some_and(|(begin, _)| *begin <= at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::HopPlace;

    #[test]
    fn the_newest_hops_are_kept() {
        let mut hops = Hops::default();
        let hop = |at_ns: i64| PacketHop {
            at_ns,
            seq: 1,
            at: HopPlace::Queued,
            cpu: 0,
            thread: 1,
            buffer: 1,
            device: None,
            offset: 0,
            part: 0,
            run: 0,
            reason: None,
        };
        let most = MOST_HOPS as i64;
        (1..=most + 1).for_each(|at_ns| hops.keep(hop(at_ns)));
        assert_eq!(hops.discarded_ns, PIECE as i64);
        let kept = hops.within(&[(0, i64::MAX)]);
        assert_eq!((kept[0].at_ns, kept[kept.len() - 1].at_ns), (PIECE as i64 + 1, most + 1));
        assert_eq!(hops.within(&[(0, 5), (most, most)]).len(), 1);
    }
}
