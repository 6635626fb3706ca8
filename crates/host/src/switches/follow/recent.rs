//! A table of which only the newest entries are kept.

use std::collections::{BTreeMap, VecDeque};

/// The newest entries of a table: as many as [`MOST`].
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    entries: BTreeMap<K, V>,
    order: VecDeque<K>,
}

/// Maximum number of entries.
const MOST: usize = 4096;

impl<K, V> Default for Recent<K, V> {
    fn default() -> Recent<K, V> {
        Recent { entries: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<K: Ord + Copy, V> Recent<K, V> {
    /// Adds an entry, or replaces the value of an entry, which stays as old as it was.
    pub fn insert(&mut self, key: K, value: V) {
        if self.entries.insert(key, value).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.entries.remove(&oldest);
        }
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_are_removed() {
        let mut recent = Recent::default();
        (0..=MOST).for_each(|n| recent.insert(n, 2 * n));
        recent.insert(1, 7);
        assert_eq!([0, 1, 2, MOST].map(|n| recent.get(&n).copied()), [None, Some(7), Some(4), Some(2 * MOST)]);
    }
}
