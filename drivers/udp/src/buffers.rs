//! The buffers of a reader: memory for datagrams that is allocated and touched when the reader is created.

use std::collections::VecDeque;

use tailbound_abi::tb_view;

use crate::wire::{CONTROL, HEADER};

/// Largest memory for a reader's buffers in bytes. A reader has at least [`FEWEST`] buffers, even if they do not fit.
const BUDGET: usize = 1 << 20;
const FEWEST: usize = 4;
const MOST: usize = 64;

/// Buffers for the datagrams of a reader: ready buffers wait to be taken, free buffers wait to be filled.
pub struct Places {
    bytes: Vec<u8>,
    stride: usize,
    views: Vec<tb_view>,
    ready: VecDeque<u32>,
    free: Vec<u32>,
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
            views: vec![tb_view::default(); places],
            ready: VecDeque::with_capacity(places),
            free: (0..places as u32).rev().collect(),
        }
    }

    /// Makes an empty set of buffers, for a destroyed reader.
    pub fn none() -> Places {
        Places { bytes: Vec::new(), stride: 64, views: Vec::new(), ready: VecDeque::new(), free: Vec::new() }
    }

    #[inline]
    pub fn has_sample(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes the next ready sample; its buffer belongs to the caller until [`Places::give_back`].
    #[inline]
    pub fn next(&mut self) -> Option<tb_view> {
        let place = self.ready.pop_front()?;
        self.views.get(place as usize).copied()
    }

    /// Frees the buffer of a sample for another datagram; returns `false` if the sample was not taken from this reader.
    #[inline]
    pub fn give_back(&mut self, view: &tb_view) -> bool {
        let Some(place) = view.loan.checked_sub(1).filter(|p| (*p as usize) < self.views.len()) else { return false };
        if self.free.len() < self.views.len() {
            self.free.push(place as u32);
        }
        true
    }

    /// Returns the memory of the free buffer that the next datagram fills; `None` if the loading program holds all
    /// buffers.
    #[inline]
    pub fn vacant(&mut self) -> Option<&mut [u8]> {
        let at = *self.free.last()? as usize * self.stride;
        self.bytes.get_mut(at..at + self.stride)
    }

    /// Adds the buffer that [`Places::vacant`] returned to the ready samples, with the view of its datagram; the number
    /// of the buffer is added to the view.
    #[inline]
    pub fn fill(&mut self, view: tb_view) {
        let Some(place) = self.free.pop() else { return };
        self.views[place as usize] = tb_view { loan: u64::from(place) + 1, ..view };
        self.ready.push_back(place);
    }
}
