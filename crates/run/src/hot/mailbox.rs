//! The hand-off: a ring of arrivals from the receive thread to the processing thread, who sleeps on a futex.

use super::Arrival;
use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

const SLOTS: usize = 256;

struct Letter {
    seq: u64,
    kernel_rx_ns: i64,
    received_ns: i64,
    length: usize,
    payload: Box<[u8]>,
}

/// One producer, one consumer.
pub struct Mailbox {
    letters: Box<[UnsafeCell<Letter>]>,
    /// Letters put in; the futex word.
    put: AtomicU32,
    taken: AtomicU32,
    closed: AtomicBool,
    /// Arrivals that found the ring full.
    pub dropped: AtomicU64,
}

// SAFETY: a letter belongs to the producer until `put` passes it (Release), to the consumer until `taken` does.
unsafe impl Sync for Mailbox {}
// SAFETY: as above.
unsafe impl Send for Mailbox {}

impl Mailbox {
    /// Room for payloads up to `max_payload`; 0 keeps no payload.
    pub fn new(max_payload: usize) -> Self {
        let letter = || {
            UnsafeCell::new(Letter {
                seq: 0,
                kernel_rx_ns: 0,
                received_ns: 0,
                length: 0,
                payload: vec![0xa5; max_payload].into(),
            })
        };
        Mailbox {
            letters: (0..SLOTS).map(|_| letter()).collect(),
            put: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            closed: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
        }
    }

    /// Puts an arrival in and wakes the consumer: one futex call.
    #[inline]
    pub fn put(&self, arrival: &Arrival<'_>) {
        let put = self.put.load(Relaxed);
        if put.wrapping_sub(self.taken.load(Acquire)) as usize >= SLOTS {
            self.dropped.fetch_add(1, Relaxed);
            return;
        }
        // SAFETY: the ring is not full, so this letter is the producer's.
        let letter = unsafe { &mut *self.letters[put as usize % SLOTS].get() };
        letter.seq = arrival.seq;
        letter.kernel_rx_ns = arrival.kernel_rx_ns;
        letter.received_ns = arrival.received_ns;
        letter.length = arrival.payload.len().min(letter.payload.len());
        letter.payload[..letter.length].copy_from_slice(&arrival.payload[..letter.length]);
        self.put.store(put.wrapping_add(1), Release);
        futex(&self.put, libc::FUTEX_WAKE, 1);
    }

    /// Hands letters to `each` until `close`.
    pub fn serve(&self, mut each: impl FnMut(&Arrival<'_>)) {
        loop {
            let taken = self.taken.load(Relaxed);
            let put = self.put.load(Acquire);
            if taken == put {
                if self.closed.load(Acquire) {
                    return;
                }
                futex(&self.put, libc::FUTEX_WAIT, put);
                continue;
            }
            // SAFETY: `put` is beyond it, so this letter is the consumer's.
            let letter = unsafe { &*self.letters[taken as usize % SLOTS].get() };
            each(&Arrival {
                seq: letter.seq,
                kernel_rx_ns: letter.kernel_rx_ns,
                received_ns: letter.received_ns,
                payload: &letter.payload[..letter.length],
            });
            self.taken.store(taken.wrapping_add(1), Release);
        }
    }

    /// Ends `serve` after what is in the ring.
    pub fn close(&self) {
        self.closed.store(true, Release);
        // A waiter that read `closed` before the store sleeps on the word: it is woken until it has gone.
        futex(&self.put, libc::FUTEX_WAKE, 1);
    }
}

fn futex(word: &AtomicU32, operation: i32, value: u32) {
    // A waiter looks again at least every 100 ms: `close` may come between its look and its sleep.
    let limit = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let timeout = if operation == libc::FUTEX_WAIT { &raw const limit } else { std::ptr::null() };
    // SAFETY: the word outlives the call; the timeout is a valid timespec or null.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation | libc::FUTEX_PRIVATE_FLAG, value, timeout) };
}
