//! The hand-off of received samples: a ring from the receive thread to the processing thread, which sleeps on a futex.

use super::Arrival;
use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// Number of received samples for which the ring has room, a power of two. Under Miri, where the program is some
/// thousand times slower, the ring is small, so that it is full after few samples.
const SLOTS: usize = if cfg!(miri) { 4 } else { 256 };

struct Letter {
    seq: u64,
    kernel_rx_ns: i64,
    received_ns: i64,
    thread: u64,
    length: usize,
    payload: Box<[u8]>,
}

/// A ring of received samples with one producer thread and one consumer thread.
pub struct Mailbox {
    letters: Box<[UnsafeCell<Letter>]>,
    /// Number of received samples that the producer has put into the ring. This number is also the futex word.
    put: AtomicU32,
    taken: AtomicU32,
    closed: AtomicBool,
    /// Number of received samples that were dropped because the ring was full.
    pub dropped: AtomicU64,
}

// SAFETY: a letter belongs to the producer until `put` is above its number (Release), and then to the consumer until
// `taken` is above its number.
unsafe impl Sync for Mailbox {}
// SAFETY: as above.
unsafe impl Send for Mailbox {}

impl Mailbox {
    /// Creates a mailbox with room for payloads of up to `max_payload` bytes; 0 = payloads are not kept.
    pub fn new(max_payload: usize) -> Self {
        let letter = || {
            UnsafeCell::new(Letter {
                seq: 0,
                kernel_rx_ns: 0,
                received_ns: 0,
                thread: 0,
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

    /// Puts a received sample into the ring and wakes the consumer with one futex call.
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
        letter.thread = arrival.thread;
        letter.length = arrival.payload.len().min(letter.payload.len());
        letter.payload[..letter.length].copy_from_slice(&arrival.payload[..letter.length]);
        self.put.store(put.wrapping_add(1), Release);
        futex(&self.put, libc::FUTEX_WAKE, 1);
    }

    /// Calls `each` for every received sample, on the consumer's thread, until `close` is called.
    pub fn serve(&self, mut each: impl FnMut(&Arrival<'_>)) {
        loop {
            let taken = self.taken.load(Relaxed);
            let put = self.put.load(Acquire);
            if taken == put {
                if self.closed.load(Acquire) {
                    // A letter may have come between the look at `put` and the look at `closed`.
                    if self.put.load(Acquire) == put {
                        return;
                    }
                    continue;
                }
                futex(&self.put, libc::FUTEX_WAIT, put);
                continue;
            }
            // SAFETY: `put` is above the number of this letter, so the letter belongs to the consumer.
            let letter = unsafe { &*self.letters[taken as usize % SLOTS].get() };
            each(&Arrival {
                seq: letter.seq,
                kernel_rx_ns: letter.kernel_rx_ns,
                received_ns: letter.received_ns,
                thread: letter.thread,
                payload: &letter.payload[..letter.length],
            });
            self.taken.store(taken.wrapping_add(1), Release);
        }
    }

    /// Closes the mailbox: `serve` returns once all samples in the ring have been processed.
    pub fn close(&self) {
        self.closed.store(true, Release);
        // A waiter that read `closed` before the store may be asleep on the futex word, so it is woken.
        futex(&self.put, libc::FUTEX_WAKE, 1);
    }
}

fn futex(word: &AtomicU32, operation: i32, value: u32) {
    // A waiter checks `closed` at least every 100 ms, because `close` may be called between the check and the sleep.
    let limit = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let timeout = if operation == libc::FUTEX_WAIT { &raw const limit } else { std::ptr::null() };
    // SAFETY: the word outlives the call; the timeout is a valid timespec or null.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation | libc::FUTEX_PRIVATE_FLAG, value, timeout) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(mailbox: &Mailbox, seq: u64) {
        let (kernel_rx_ns, received_ns) = (seq as i64 + 1, seq as i64 + 2);
        mailbox.put(&Arrival { seq, kernel_rx_ns, received_ns, thread: seq + 3, payload: &seq.to_ne_bytes() });
    }

    /// Serves the mailbox until it is closed, and checks the content of each received sample. Returns the sequence
    /// numbers of all samples.
    fn serve(mailbox: &Mailbox) -> Vec<u64> {
        let mut served = Vec::new();
        mailbox.serve(|letter| {
            let expected =
                (letter.seq as i64 + 1, letter.seq as i64 + 2, letter.seq + 3, &letter.seq.to_ne_bytes()[..]);
            assert_eq!((letter.kernel_rx_ns, letter.received_ns, letter.thread, letter.payload), expected);
            served.push(letter.seq);
        });
        served
    }

    #[test]
    fn every_letter_is_served_once_and_in_order_or_counted_as_dropped() {
        let (rounds, letters) = if cfg!(miri) { (1, 12) } else { (200, 600) };
        for _ in 0..rounds {
            let mailbox = Mailbox::new(8);
            let served = std::thread::scope(|scope| {
                let consumer = scope.spawn(|| serve(&mailbox));
                (0..letters).for_each(|seq| put(&mailbox, seq));
                mailbox.close();
                consumer.join().unwrap()
            });
            assert!(served.is_sorted_by(|a, b| a < b), "{served:?}");
            assert_eq!(served.len() as u64 + mailbox.dropped.load(Relaxed), letters);
        }
    }

    #[test]
    fn a_full_ring_keeps_its_letters_and_counts_the_others() {
        let (mailbox, slots) = (Mailbox::new(8), SLOTS as u64);
        (0..slots + 3).for_each(|seq| put(&mailbox, seq));
        mailbox.close();
        assert_eq!(serve(&mailbox), (0..slots).collect::<Vec<_>>());
        assert_eq!(mailbox.dropped.load(Relaxed), 3);
    }
}
