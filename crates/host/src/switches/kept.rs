//! What the kernel recorded, in bounded memory: the newest items, and the items of chosen time spans (around late
//! messages, for example) however old they are.

use std::collections::VecDeque;

/// Number of items in one allocation; stored items are never moved.
pub(super) const PIECE: usize = 1 << 16;
/// Maximum number of time spans that are spared.
const MOST_SPANS: usize = 2_000;
/// Maximum number of items that are kept because they lie in a spared time span.
const MOST_SPARED: usize = 400_000;
/// Maximum number of such items of one time span. A result has no room for more, and one long stall would displace all other
/// incidents.
const MOST_OF_ONE: usize = 50_000;

/// Something that the kernel recorded.
pub(super) trait Timed: Copy {
    /// Begin, monotonic ns.
    fn at_ns(&self) -> i64;
    /// End, monotonic ns.
    fn end_ns(&self) -> i64 {
        self.at_ns()
    }
}

/// A time span whose items are not discarded when they are old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spared {
    /// Begin and end, monotonic ns.
    pub span: (i64, i64),
    /// If there are too many items, the items of the time span with the lowest rank are discarded first.
    pub rank: i64,
}

/// Items in the order in which they were read.
#[derive(Debug)]
pub(super) struct Kept<T> {
    pieces: VecDeque<Vec<T>>,
    /// Maximum number of pieces.
    most: usize,
    /// The items that were discarded last.
    before: Vec<T>,
    /// Time of the latest item that was discarded, monotonic ns; 0 = none was discarded.
    discarded_ns: i64,
    spared: Vec<Spared>,
    /// Number of rescued items of each spared time span.
    counts: Vec<usize>,
    /// Items of spared time spans that would have been discarded.
    rescued: Vec<T>,
    most_rescued: usize,
}

impl<T: Timed> Kept<T> {
    /// Keeps the `most` newest items, a multiple of the size of a piece.
    pub fn newest(most: usize) -> Kept<T> {
        Kept {
            pieces: VecDeque::new(),
            most: most / PIECE,
            before: Vec::new(),
            discarded_ns: 0,
            spared: Vec::new(),
            counts: Vec::new(),
            rescued: Vec::new(),
            most_rescued: MOST_SPARED,
        }
    }

    /// Keeps an item. If there is no room, the oldest items are discarded.
    pub fn keep(&mut self, item: T) {
        if self.pieces.back().is_none_or(|piece| piece.len() == PIECE) {
            let free = if self.pieces.len() >= self.most { self.discard() } else { Vec::with_capacity(PIECE) };
            self.pieces.push_back(free);
        }
        self.pieces.back_mut().iter_mut().for_each(|piece| piece.push(item));
    }

    /// Whether the next item makes the oldest ones be discarded.
    pub fn is_full(&self) -> bool {
        self.pieces.len() >= self.most && self.pieces.back().is_some_and(|piece| piece.len() == PIECE)
    }

    /// Whether a quarter of the room is used.
    pub fn is_quarter_full(&self) -> bool {
        self.pieces.len() * 4 > self.most
    }

    /// Discards the oldest piece, and returns memory that can be used again.
    fn discard(&mut self) -> Vec<T> {
        let oldest = self.pieces.pop_front().unwrap_or_default();
        self.discarded_ns = oldest.iter().map(T::at_ns).fold(self.discarded_ns, i64::max);
        let (spans, first) = (self.spans(), self.rescued.len());
        self.rescued.extend(oldest.iter().filter(|item| touch(&spans, *item)));
        let new = &self.rescued[first..];
        let times = (new.iter().map(T::at_ns).min(), new.iter().map(T::end_ns).max());
        if let (Some(from), Some(to)) = times {
            for (spared, count) in self.spared.iter().zip(&mut self.counts) {
                if spared.span.0 <= to && from <= spared.span.1 {
                    *count += new.iter().filter(|item| touch(&[spared.span], *item)).count();
                }
            }
            self.make_room();
        }
        let mut free = std::mem::replace(&mut self.before, oldest);
        free.clear();
        free
    }

    /// Spares a time span from now on, unless some of its items were discarded already, or too many time spans with a higher
    /// rank are spared.
    pub fn spare(&mut self, spared: Spared) {
        if spared.span.0 <= self.discarded_ns {
            return;
        }
        if self.spared.len() >= MOST_SPANS {
            let ranks = self.spared.iter().map(|spared| spared.rank).enumerate();
            match ranks.min_by_key(|(_, rank)| *rank) {
                Some((at, rank)) if rank < spared.rank => self.give_up(&[at]),
                _ => return,
            }
        }
        self.spared.push(spared);
        self.counts.push(0);
    }

    /// Gives up time spans with too many items, then those with the lowest ranks, until the rest fits.
    fn make_room(&mut self) {
        let of_too_many = (0..self.counts.len()).filter(|at| self.counts[*at] > MOST_OF_ONE);
        let mut given_up: Vec<usize> = of_too_many.collect();
        let freed: usize = given_up.iter().map(|at| self.counts[*at]).sum();
        let mut surplus = self.rescued.len().saturating_sub(self.most_rescued + freed);
        let mut others: Vec<usize> = (0..self.counts.len()).filter(|at| self.counts[*at] > 0).collect();
        others.sort_by_key(|at| self.spared[*at].rank);
        for at in others.into_iter().filter(|at| self.counts[*at] <= MOST_OF_ONE) {
            if surplus == 0 {
                break;
            }
            surplus = surplus.saturating_sub(self.counts[at]);
            given_up.push(at);
        }
        self.give_up(&given_up);
    }

    /// Gives up the spared time spans at these places of the list, with their items.
    fn give_up(&mut self, places: &[usize]) {
        if places.is_empty() {
            return;
        }
        let had_items = places.iter().any(|at| self.counts[*at] > 0);
        let mut at = 0..self.spared.len();
        self.spared.retain(|_| at.next().is_none_or(|at| !places.contains(&at)));
        let mut at = 0..self.counts.len();
        self.counts.retain(|_| at.next().is_none_or(|at| !places.contains(&at)));
        if had_items {
            let spans = self.spans();
            self.rescued.retain(|item| touch(&spans, item));
        }
    }

    /// Whether a spared time span begins at this time.
    pub fn begins_spared(&self, at_ns: i64) -> bool {
        self.spared.iter().any(|spared| spared.span.0 == at_ns)
    }

    /// The spared time spans, in the order of time and without overlap.
    fn spans(&self) -> Vec<(i64, i64)> {
        let mut spans: Vec<(i64, i64)> = self.spared.iter().map(|spared| spared.span).collect();
        spans.sort_unstable();
        spans.dedup_by(|next, last| {
            let joined = next.0 <= last.1;
            last.1 = if joined { last.1.max(next.1) } else { last.1 };
            joined
        });
        spans
    }

    /// Begin and end of each time span whose items were discarded, monotonic ns, in the order of time.
    pub fn discarded(&self) -> Vec<(i64, i64)> {
        let mut discarded = Vec::new();
        let mut from_ns = 0;
        for (begin, end) in self.spans().into_iter().filter(|(begin, _)| *begin < self.discarded_ns) {
            discarded.push((from_ns, begin));
            from_ns = end;
        }
        discarded.push((from_ns, self.discarded_ns));
        discarded.retain(|(from, to)| from < to);
        discarded
    }

    /// All items, in no order.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.rescued.iter().chain(self.pieces.iter().flatten())
    }

    /// Items that touch one of the time spans `windows` (begin and end, monotonic ns), which must be sorted and must not
    /// overlap. In the order of time.
    pub fn within(&self, windows: &[(i64, i64)]) -> Vec<T> {
        let mut items: Vec<T> = self.all().filter(|item| touch(windows, *item)).copied().collect();
        items.sort_by_key(T::at_ns);
        items
    }

    /// All items of the spared time spans before which items were discarded, in the order of time.
    pub fn rescued(&self) -> Vec<T> {
        let mut spans = self.spans();
        spans.retain(|(begin, _)| *begin <= self.discarded_ns);
        self.within(&spans)
    }

    /// The spared time span that contains this time, if the items of its begin would have been discarded.
    pub fn rescued_around(&self, at_ns: i64) -> Option<Spared> {
        let is_around = |(begin, end): (i64, i64)| begin <= at_ns && at_ns <= end && begin <= self.discarded_ns;
        self.spared.iter().find(|spared| is_around(spared.span)).copied()
    }

    /// Begins of the spared time spans that lie in the oldest items, which are discarded next.
    pub fn begins_in_oldest(&self) -> Vec<i64> {
        let until_ns = self.pieces.front().into_iter().flatten().map(T::at_ns).max().unwrap_or(0);
        let begins = self.spared.iter().map(|spared| spared.span.0);
        begins.filter(|begin| self.discarded_ns < *begin && *begin <= until_ns).collect()
    }

    /// The oldest items, those that were discarded before them, and those that are discarded after them.
    pub fn around_oldest(&self) -> impl Iterator<Item = &T> {
        self.before.iter().chain(self.pieces.iter().take(2).flatten())
    }
}

/// Whether an item touches one of these time spans, which are sorted and do not overlap.
pub(super) fn touch<T: Timed>(windows: &[(i64, i64)], item: &T) -> bool {
    let at = windows.partition_point(|(_, end)| *end < item.at_ns());
    windows.get(at).is_some_and(|(begin, _)| *begin <= item.end_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Timed for (i64, i64) {
        fn at_ns(&self) -> i64 {
            self.0
        }

        fn end_ns(&self) -> i64 {
            self.1
        }
    }

    const SIZE: i64 = PIECE as i64;

    /// Keeps one item per ns from `from` until before `to`.
    fn keep_all(kept: &mut Kept<(i64, i64)>, from: i64, to: i64) {
        (from..to).for_each(|at_ns| kept.keep((at_ns, at_ns)));
    }

    fn times(kept: &Kept<(i64, i64)>, window: (i64, i64)) -> Vec<i64> {
        kept.within(&[window]).iter().map(|item| item.0).collect()
    }

    #[test]
    fn the_newest_items_are_kept() {
        let mut kept = Kept::newest(2 * PIECE);
        keep_all(&mut kept, 1, 2 * SIZE + 1);
        assert!(kept.is_full() && kept.discarded().is_empty());
        keep_all(&mut kept, 2 * SIZE + 1, 2 * SIZE + 2);
        assert_eq!(kept.discarded(), [(0, SIZE)]);
        assert_eq!(times(&kept, (0, SIZE + 2)), [SIZE + 1, SIZE + 2]);
    }

    #[test]
    fn spared_time_spans_stay_and_the_rest_is_a_gap() {
        let mut kept = Kept::newest(2 * PIECE);
        // An interrupt that ends within the time span.
        kept.keep((1, 101));
        keep_all(&mut kept, 2, 1_000);
        let spare = |kept: &mut Kept<_>, span| kept.spare(Spared { span, rank: 1 });
        // Two time spans overlap, and one lies across the border of two pieces.
        [(100, 103), (102, 105), (SIZE - 1, SIZE + 2)].into_iter().for_each(|span| spare(&mut kept, span));
        keep_all(&mut kept, 1_000, 5 * SIZE);
        assert_eq!(kept.discarded(), [(0, 100), (105, SIZE - 1), (SIZE + 2, 3 * SIZE)]);
        assert_eq!(times(&kept, (99, 200)), [1, 100, 101, 102, 103, 104, 105]);
        assert_eq!(times(&kept, (SIZE - 5, SIZE + 5)), [SIZE - 1, SIZE, SIZE + 1, SIZE + 2]);
        // Too late.
        spare(&mut kept, (2 * SIZE, 2 * SIZE + 5));
        assert_eq!(kept.discarded().len(), 3);
    }

    /// Test: a long stall with the highest rank has more items than a result holds; the others stay.
    #[test]
    fn one_long_time_span_does_not_displace_the_others() {
        let mut kept = Kept { most_rescued: 60_000, ..Kept::newest(2 * PIECE) };
        let ranks = [((100, 199), 5), ((1_000, 61_000), 9), ((62_000, 62_099), 1)];
        ranks.iter().for_each(|(span, rank)| kept.spare(Spared { span: *span, rank: *rank }));
        keep_all(&mut kept, 1, 4 * SIZE);
        assert_eq!([150, 30_000, 62_050].map(|at| times(&kept, (at, at)).len()), [1, 0, 1]);
    }

    #[test]
    fn of_too_many_time_spans_those_of_the_highest_ranks_stay() {
        let mut kept: Kept<(i64, i64)> = Kept::newest(2 * PIECE);
        for rank in 0..MOST_SPANS as i64 + 10 {
            kept.spare(Spared { span: (rank * 10 + 1, rank * 10 + 2), rank });
        }
        // Too unimportant.
        kept.spare(Spared { span: (5, 6), rank: 3 });
        assert_eq!((kept.spared.len(), kept.counts.len()), (MOST_SPANS, MOST_SPANS));
        assert!(!kept.begins_spared(5) && !kept.begins_spared(91) && kept.begins_spared(101));
    }

    #[test]
    fn of_too_many_items_those_of_the_highest_ranks_stay() {
        let mut kept = Kept { most_rescued: 250, ..Kept::newest(2 * PIECE) };
        let ranks = [(100, 5), (300, 1), (500, 9)];
        ranks.iter().for_each(|(at, rank)| kept.spare(Spared { span: (*at, at + 99), rank: *rank }));
        keep_all(&mut kept, 1, 4 * SIZE);
        assert_eq!(kept.discarded(), [(0, 100), (199, 500), (599, 2 * SIZE)]);
        assert_eq!([150, 350, 550].map(|at| times(&kept, (at, at)).len()), [1, 0, 1]);
    }
}
