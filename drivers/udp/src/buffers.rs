//! The buffers of a reader: memory for datagrams that is allocated and touched when the reader is created.

use tailbound_abi::tb_view;

use crate::net::ReceiveStamps;
use crate::wire::{CONTROL, HEADER};

/// Largest memory for a reader's buffers in bytes. A reader has at least [`FEWEST`] buffers, even if they do not fit.
const BUDGET: usize = 1 << 20;
const FEWEST: usize = 4;
/// A power of two, so that a position in a ring of this length is cheap to calculate.
const MOST: usize = 64;

/// Buffers for the datagrams of a reader: ready buffers wait to be taken, free buffers wait to be filled.
pub struct Places {
    bytes: Vec<u8>,
    stride: usize,
    views: Vec<tb_view>,
    /// Numbers of the ready buffers, as a ring: `filled` and `taken` count all samples.
    ready: [u8; MOST],
    filled: usize,
    taken: usize,
    /// Numbers of the free buffers: the first `vacant` of them.
    free: [u8; MOST],
    vacant: usize,
}

// SAFETY: the pointers in `views` point into `bytes`, which is owned and never moves while the buffers exist.
unsafe impl Send for Places {}

impl Places {
    pub fn new(max_len: u64) -> Places {
        // A control datagram must fit, and one more byte reveals a datagram that is too long.
        let stride = (HEADER + max_len as usize + 1).max(CONTROL + 1).next_multiple_of(64);
        let places = (BUDGET / stride).clamp(FEWEST, MOST);
        let mut bytes = vec![0u8; places * stride];
        bytes.iter_mut().step_by(4096).for_each(|b| *b = 1); // fault the pages in now
        Places {
            bytes,
            stride,
            views: (1..=places as u64).map(|loan| tb_view { loan, ..tb_view::default() }).collect(),
            vacant: places,
            free: std::array::from_fn(|i| i as u8),
            ..Places::none()
        }
    }

    /// Makes an empty set of buffers, for a destroyed reader.
    pub fn none() -> Places {
        Places {
            bytes: Vec::new(),
            stride: 64,
            views: Vec::new(),
            ready: [0; MOST],
            filled: 0,
            taken: 0,
            free: [0; MOST],
            vacant: 0,
        }
    }

    #[inline]
    pub fn has_sample(&self) -> bool {
        self.filled != self.taken
    }

    /// Takes the next ready sample; its buffer belongs to the caller until [`Places::give_back`].
    #[inline]
    pub fn next(&mut self) -> Option<&tb_view> {
        if !self.has_sample() {
            return None;
        }
        let place = self.ready[self.taken % MOST];
        self.taken = self.taken.wrapping_add(1);
        self.views.get(usize::from(place))
    }

    /// Frees the buffer of a sample for another datagram; returns `false` if the sample was not taken from this reader.
    #[inline]
    pub fn give_back(&mut self, view: &tb_view) -> bool {
        let Some(place) = view.loan.checked_sub(1).filter(|p| (*p as usize) < self.views.len()) else { return false };
        if self.vacant < self.views.len() {
            self.free[self.vacant % MOST] = place as u8;
            self.vacant += 1;
        }
        true
    }

    /// Returns the number and the memory of the free buffer that the next datagram fills; `None` if the program
    /// that uses the driver holds all buffers.
    #[inline]
    pub fn vacant(&mut self) -> Option<(u8, &mut [u8])> {
        let place = self.free[self.vacant.checked_sub(1)? % MOST];
        let at = usize::from(place) * self.stride;
        Some((place, self.bytes.get_mut(at..at + self.stride)?))
    }

    /// Adds the buffer `place`, which [`Places::vacant`] has just returned, to the ready samples, with the members of its
    /// view that differ between samples.
    #[inline]
    pub fn fill(&mut self, place: u8, seq: u64, payload: (*const u8, usize), writer: u64, stamps: ReceiveStamps) {
        let Some(view) = self.views.get_mut(usize::from(place)) else { return };
        (view.seq, view.writer) = (seq, writer);
        (view.kernel_rx_ns, view.hw_rx_ns) = (stamps.kernel_ns, stamps.card_ns);
        (view.data, view.len) = (payload.0, payload.1 as u64);
        self.vacant -= 1;
        self.ready[self.filled % MOST] = place;
        self.filled = self.filled.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_taken_in_the_order_of_their_arrival_and_buffers_are_used_again() {
        let mut places = Places::new(100);
        assert_eq!(places.views.len(), MOST);
        let mut taken = Vec::new();
        for seq in 0..10 * MOST as u64 {
            let (place, slot) = places.vacant().unwrap();
            let data = slot.as_ptr();
            places.fill(place, seq, (data, 8), 7, ReceiveStamps { kernel_ns: 9, card_ns: 11 });
            let view = *places.next().unwrap();
            assert_eq!((view.seq, view.data, view.len, view.writer), (seq, data, 8, 7));
            assert_eq!((view.kernel_rx_ns, view.hw_rx_ns), (9, 11));
            assert!(!places.has_sample());
            taken.push(view);
            if taken.len() == MOST {
                assert!(places.vacant().is_none(), "all buffers are taken");
                let mut used: Vec<_> = taken.iter().map(|v| v.data).collect();
                used.sort_unstable();
                used.dedup();
                assert_eq!(used.len(), MOST, "no buffer is used twice");
                assert!(taken.drain(..).rev().all(|v| places.give_back(&v)));
            }
        }
    }

    #[test]
    fn several_samples_can_be_ready() {
        let mut places = Places::new(60_000);
        assert!(places.views.len() < MOST);
        for round in 0..100 {
            for seq in 0..3 {
                let (place, slot) = places.vacant().unwrap();
                let data = slot.as_ptr();
                places.fill(place, round * 3 + seq, (data, 1), 0, ReceiveStamps::default());
            }
            for seq in 0..3 {
                let view = *places.next().unwrap();
                assert_eq!(view.seq, round * 3 + seq);
                assert!(places.give_back(&view));
            }
            assert!(places.next().is_none());
        }
        let foreign = tb_view { loan: places.views.len() as u64 + 1, ..tb_view::default() };
        assert!(!places.give_back(&foreign) && !places.give_back(&tb_view::default()));
    }
}
