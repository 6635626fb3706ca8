//! Receiving into memory that was allocated and touched when the reader was made.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;

use tailbound_abi::tb_view;

use crate::net;
use crate::reader::Reader;
use crate::wire::{CONTROL, Control, HEADER, word};

/// Bytes that a reader's places may take, as long as it has [`FEWEST`].
const BUDGET: usize = 1 << 20;
const FEWEST: usize = 4;
const MOST: usize = 64;

/// What one receive call brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A sample; it is the last of the ready ones.
    Sample,
    /// A question, or something to be thrown away: go on.
    Other,
    /// Nothing there, or the time slice is over.
    Nothing,
    /// The host holds all places.
    Full,
    /// The socket failed with this `errno`.
    Failed(i32),
}

/// Places for datagrams: ready ones wait to be taken, free ones to be filled.
pub struct Places {
    bytes: Vec<u8>,
    stride: usize,
    views: Vec<tb_view>,
    ready: VecDeque<u32>,
    free: Vec<u32>,
}

// SAFETY: the pointers in `views` lead into `bytes`, which is owned and never moves while the places live.
unsafe impl Send for Places {}

impl Places {
    pub fn new(max_len: u64) -> Places {
        // A control datagram must fit, and one octet more tells a datagram that is too long.
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

    /// No memory: for a reader that is destroyed.
    pub fn none() -> Places {
        Places { bytes: Vec::new(), stride: 64, views: Vec::new(), ready: VecDeque::new(), free: Vec::new() }
    }

    #[inline]
    pub fn has_sample(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next ready sample, whose place is the caller's until [`Places::give_back`].
    #[inline]
    pub fn next(&mut self) -> Option<tb_view> {
        let place = self.ready.pop_front()?;
        self.views.get(place as usize).copied()
    }

    /// `false` when the view is not one that was taken from here.
    #[inline]
    pub fn give_back(&mut self, view: &tb_view) -> bool {
        let Some(place) = view.loan.checked_sub(1).filter(|p| (*p as usize) < self.views.len()) else { return false };
        if self.free.len() < self.views.len() {
            self.free.push(place as u32);
        }
        true
    }

    /// One `recvmsg`.
    #[inline]
    pub fn receive(&mut self, reader: &Reader, flags: i32) -> Received {
        let Some(&place) = self.free.last() else { return Received::Full };
        let at = place as usize * self.stride;
        let Some(slot) = self.bytes.get_mut(at..at + self.stride) else { return Received::Full };
        let got = match net::receive(reader.common.fd(), slot, flags, reader.timestamps) {
            Ok(got) => got,
            Err(e) => {
                return match e.kind() {
                    ErrorKind::WouldBlock | ErrorKind::Interrupted => Received::Nothing,
                    // An answer could not be delivered: that says nothing about what comes in.
                    ErrorKind::ConnectionRefused => Received::Other,
                    _ => Received::Failed(e.raw_os_error().unwrap_or(0)),
                };
            }
        };
        if got.len < HEADER || got.len > HEADER + reader.common.max_len as usize {
            // The second test comes after the control datagrams when those are longer than the reader's samples.
            if got.len != CONTROL || Control::decode(&slot[..CONTROL]).is_none() {
                if got.len > 0 {
                    reader.odd.fetch_add(1, Ordering::Relaxed);
                }
                return if got.len == 0 { Received::Nothing } else { Received::Other };
            }
        }
        if got.len == CONTROL
            && let Some(control) = Control::decode(&slot[..CONTROL])
        {
            reader.answer(control, &got.from);
            return Received::Other;
        }
        self.views[place as usize] = tb_view {
            seq: word(slot, 0),
            data: slot[HEADER..].as_ptr(),
            len: (got.len - HEADER) as u64,
            writer: got.from.identity(),
            kernel_rx_ns: got.kernel_rx_ns,
            loan: u64::from(place) + 1,
            ..tb_view::default()
        };
        self.free.pop();
        self.ready.push_back(place);
        reader.received.fetch_add(1, Ordering::Relaxed);
        Received::Sample
    }
}
