//! Queues of samples for readers that block or poll, and the bell that wakes blocked readers.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use tailbound_abi::tb_view;

/// Largest memory of a queue in bytes, if at least [`FEWEST`] samples fit into it.
const BUDGET: usize = 4 << 20;
const FEWEST: usize = 4;
const MOST: usize = 1024;

/// The queue of one reader: samples in memory that is allocated and touched when the reader is created.
pub struct Queue {
    inner: Mutex<Places>,
    ready: AtomicU32,
}

struct Places {
    bytes: Vec<u8>,
    stride: usize,
    views: Vec<tb_view>,
    ready: VecDeque<u32>,
    free: Vec<u32>,
}

// SAFETY: the pointers in `views` point into `bytes`, which is owned and never moves while the queue exists.
unsafe impl Send for Places {}

impl Queue {
    /// Makes the queue of a reader for payloads of at most `max_len` bytes.
    pub fn new(max_len: usize) -> Queue {
        let stride = max_len.next_multiple_of(64).max(64);
        let places = (BUDGET / stride).clamp(FEWEST, MOST);
        let mut bytes = vec![0u8; places * stride];
        bytes.iter_mut().step_by(4096).for_each(|b| *b = 1); // fault the pages in now
        Queue {
            inner: Mutex::new(Places {
                bytes,
                stride,
                views: vec![tb_view::default(); places],
                ready: VecDeque::with_capacity(places),
                free: (0..places as u32).rev().collect(),
            }),
            ready: AtomicU32::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Copies a sample into the reader's queue; returns `false` if the queue is full.
    pub fn push(&self, view: &tb_view) -> bool {
        let mut q = self.lock();
        let Some(place) = q.free.pop() else { return false };
        let at = place as usize * q.stride;
        let len = (view.len as usize).min(q.stride).min(q.bytes.len().saturating_sub(at));
        if len > 0 {
            // SAFETY: the sender promises `len` bytes at `data`; the buffer has room for them.
            unsafe { std::ptr::copy_nonoverlapping(view.data, q.bytes.as_mut_ptr().add(at), len) };
        }
        let data = q.bytes[at..].as_ptr();
        q.views[place as usize] = tb_view { data, len: len as u64, loan: u64::from(place) + 1, ..*view };
        q.ready.push_back(place);
        self.ready.fetch_add(1, Ordering::SeqCst);
        true
    }

    /// Whether the reader's queue contains a sample.
    pub fn has_sample(&self) -> bool {
        self.ready.load(Ordering::SeqCst) > 0
    }

    /// Takes at most `out.len()` samples from the reader's queue.
    pub fn take(&self, out: &mut [MaybeUninit<tb_view>]) -> usize {
        if !self.has_sample() {
            return 0; // a spinning reader leaves the lock to the writer
        }
        let mut q = self.lock();
        let mut n = 0;
        while n < out.len() {
            let Some(place) = q.ready.pop_front() else { break };
            out[n].write(q.views[place as usize]);
            n += 1;
        }
        self.ready.fetch_sub(n as u32, Ordering::SeqCst);
        n
    }

    /// Releases the memory of samples; returns `false` if a sample was not taken from this queue.
    pub fn release(&self, views: &[tb_view]) -> bool {
        let mut q = self.lock();
        for view in views {
            let Some(place) = view.loan.checked_sub(1).filter(|p| (*p as usize) < q.views.len()) else { return false };
            if q.free.len() < q.views.len() {
                q.free.push(place as u32);
            }
        }
        true
    }

    /// Frees the memory of the reader's queue; no sample can be added afterwards.
    pub fn dismantle(&self) {
        let mut q = self.lock();
        *q = Places { bytes: Vec::new(), stride: 64, views: Vec::new(), ready: VecDeque::new(), free: Vec::new() };
        self.ready.store(0, Ordering::SeqCst);
    }
}

/// Wakes the threads of one session that block in `wait`.
#[derive(Default)]
pub struct Bell {
    waiting: AtomicU32,
    /// Number of calls of `wake` so far. Each reader compares this number with the number that it has seen last.
    pub wakes: AtomicU64,
    lock: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    /// Reports a change to the threads that wait. If no thread waits, the report costs one load instruction.
    #[inline]
    pub fn ring(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock().unwrap_or_else(|e| e.into_inner()));
            self.rung.notify_all();
        }
    }

    /// Blocks until `done` returns a value, or until `remaining` returns zero (`None` means no limit).
    pub fn wait<T>(&self, mut done: impl FnMut() -> Option<T>, remaining: impl Fn() -> Option<Duration>) -> Option<T> {
        if let Some(value) = done() {
            return Some(value);
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock.lock().unwrap_or_else(|e| e.into_inner());
        let value = loop {
            if let Some(value) = done() {
                break Some(value);
            }
            guard = match remaining() {
                Some(Duration::ZERO) => break None,
                Some(left) => self.rung.wait_timeout(guard, left).unwrap_or_else(|e| e.into_inner()).0,
                None => self.rung.wait(guard).unwrap_or_else(|e| e.into_inner()),
            };
        };
        drop(guard);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        value
    }
}
