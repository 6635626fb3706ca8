//! The queue between the thread of zenoh that receives and the thread that takes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::message::Message;

/// Messages of a reader, in the order in which they arrived.
pub struct Queue {
    waiting: Mutex<VecDeque<Message>>,
    /// Number of messages in the queue: a look at an empty queue takes no lock.
    number: AtomicUsize,
    room: Condvar,
    depth: usize,
    /// Whether a full queue stops the thread that receives; otherwise the oldest message is replaced.
    keep_all: bool,
    closed: AtomicBool,
    /// Number of messages that were replaced.
    pub replaced: AtomicU64,
}

impl Queue {
    pub fn new(depth: usize, keep_all: bool) -> Queue {
        Queue {
            waiting: Mutex::new(VecDeque::with_capacity(depth.min(4096))),
            number: AtomicUsize::new(0),
            room: Condvar::new(),
            depth,
            keep_all,
            closed: AtomicBool::new(false),
            replaced: AtomicU64::new(0),
        }
    }

    /// Adds a message. If the queue is full and keeps all messages, the call waits until there is room.
    #[inline]
    pub fn push(&self, message: Message) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.len() >= self.depth {
            if self.closed.load(SeqCst) {
                return;
            }
            if self.keep_all {
                waiting = self.room.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            } else {
                waiting.pop_front();
                self.replaced.fetch_add(1, SeqCst);
            }
        }
        waiting.push_back(message);
        self.number.store(waiting.len(), SeqCst);
    }

    /// Whether the queue has a message.
    #[inline]
    pub fn has_message(&self) -> bool {
        self.number.load(SeqCst) > 0
    }

    /// Takes the oldest message.
    #[inline]
    pub fn pop(&self) -> Option<Message> {
        if !self.has_message() {
            return None;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let message = waiting.pop_front();
        self.number.store(waiting.len(), SeqCst);
        if self.keep_all {
            self.room.notify_one();
        }
        message
    }

    /// Ends calls that wait for room; from now on, messages that find no room are discarded.
    pub fn close(&self) {
        self.closed.store(true, SeqCst);
        drop(self.waiting.lock());
        self.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::encode;

    fn message(seq: u64) -> Message {
        Message::decode(&encode(seq, b"x").into(), 1).unwrap()
    }

    fn seqs(queue: &Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop()).map(|m| m.view(0).seq).collect()
    }

    #[test]
    fn the_newest_messages_are_kept() {
        let queue = Queue::new(2, false);
        (1..=5).for_each(|seq| queue.push(message(seq)));
        assert_eq!((seqs(&queue), queue.replaced.load(SeqCst)), (vec![4, 5], 3));
    }

    #[test]
    fn a_full_queue_that_keeps_all_waits_for_room_or_for_its_end() {
        let queue = Queue::new(2, true);
        std::thread::scope(|scope| {
            let pushed = scope.spawn(|| (1..=5).for_each(|seq| queue.push(message(seq))));
            let mut got = Vec::new();
            while got.len() < 5 {
                got.extend(seqs(&queue));
            }
            pushed.join().unwrap();
            assert_eq!((got, queue.replaced.load(SeqCst)), (vec![1, 2, 3, 4, 5], 0));
            let stopped = scope.spawn(|| (6..=9).for_each(|seq| queue.push(message(seq))));
            queue.close();
            stopped.join().unwrap();
        });
        assert!(seqs(&queue).len() <= 2);
    }
}
