//! Where samples wait for readers that block or spin, and the bell that wakes those that block.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use tailbound_abi::tb_view;

/// Bytes that a queue may take, as long as it has [`FEWEST`] places.
const BUDGET: usize = 4 << 20;
const FEWEST: usize = 4;
const MOST: usize = 1024;

/// Samples of one reader in memory that is allocated and touched when the reader is made.
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

// SAFETY: the pointers in `views` lead into `bytes`, which is owned and never moves while the queue lives.
unsafe impl Send for Places {}

impl Queue {
    /// A queue for payloads of up to `max_len` octets.
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

    /// Copies a sample in; `false` when no place is free.
    pub fn push(&self, view: &tb_view) -> bool {
        let mut q = self.lock();
        let Some(place) = q.free.pop() else { return false };
        let at = place as usize * q.stride;
        let len = (view.len as usize).min(q.stride).min(q.bytes.len().saturating_sub(at));
        if len > 0 {
            // SAFETY: the sender promises `len` octets at `data`; the place has room for them.
            unsafe { std::ptr::copy_nonoverlapping(view.data, q.bytes.as_mut_ptr().add(at), len) };
        }
        let data = q.bytes[at..].as_ptr();
        q.views[place as usize] = tb_view { data, len: len as u64, loan: u64::from(place) + 1, ..*view };
        q.ready.push_back(place);
        self.ready.fetch_add(1, Ordering::SeqCst);
        true
    }

    /// Whether a sample is there.
    pub fn has_sample(&self) -> bool {
        self.ready.load(Ordering::SeqCst) > 0
    }

    /// Takes up to `out.len()` samples.
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

    /// Gives places back; `false` when a view is not one that was taken from here.
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

    /// Gives the memory back; nothing can be pushed afterwards.
    pub fn dismantle(&self) {
        let mut q = self.lock();
        *q = Places { bytes: Vec::new(), stride: 64, views: Vec::new(), ready: VecDeque::new(), free: Vec::new() };
        self.ready.store(0, Ordering::SeqCst);
    }
}

/// Wakes the threads that block in `wait` of one session.
#[derive(Default)]
pub struct Bell {
    waiting: AtomicU32,
    /// How often `wake` was called; each reader compares it with what it has seen.
    pub wakes: AtomicU64,
    lock: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    /// Something changed. Costs one load when nobody waits.
    #[inline]
    pub fn ring(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock().unwrap_or_else(|e| e.into_inner()));
            self.rung.notify_all();
        }
    }

    /// Blocks until `done` gives a value or `remaining` says that the time is over (`None` = never).
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
