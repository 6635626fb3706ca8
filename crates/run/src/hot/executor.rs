//! Work of the sending thread between its slots: the thread sleeps, or it acts as the single-threaded executor.
//!
//! The executor is one thread that waits for a timer and for readers together and processes them one at a time, like
//! the single-threaded executor of rclcpp. A message that arrives while the executor publishes waits; a timer that
//! becomes due while the executor processes a message waits.

use super::{Clock, Port, Receiver, Sink};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Acquire;
use tailbound_abi::TB_FOREVER;
use tailbound_driver::{Endpoint, ViewBuf, Wait};

/// What the sending thread does between two slots: it sleeps, or it processes messages.
pub trait Between {
    /// True if the function `until` must be called even if the deadline has passed, because there may be messages to
    /// process.
    const BUSY: bool;
    /// Sleeps or processes messages from `now_ns` until `deadline_ns` or later. Returns the time of its return, ns.
    fn until(&mut self, now_ns: i64, deadline_ns: i64) -> i64;
}

/// The sending thread sleeps between its slots; other threads take the messages that arrive.
pub struct Asleep<C>(pub C);

impl<C: Clock> Between for Asleep<C> {
    const BUSY: bool = false;
    #[inline]
    fn until(&mut self, _: i64, deadline_ns: i64) -> i64 {
        self.0.sleep_until(deadline_ns);
        self.0.now()
    }
}

/// An end for which the executor takes messages from a reader.
pub trait Serve {
    /// Takes one message from the reader and processes the message, if there is one.
    fn serve(&self, reader: &Port, views: &mut ViewBuf);
}

impl<S: Sink> Serve for Receiver<S> {
    fn serve(&self, reader: &Port, views: &mut ViewBuf) {
        self.take(reader, views);
    }
}

/// Executor in one thread: waits for messages of all readers of one driver session and processes them.
pub struct Executor<'a, C> {
    clock: C,
    readers: Vec<Endpoint>,
    served: Vec<(Port, &'a dyn Serve)>,
    views: ViewBuf,
}

impl<'a, C: Clock> Executor<'a, C> {
    /// Creates an executor for readers and their ends. There must be at least one reader, and all readers must be of
    /// one session.
    pub fn new(clock: C, served: Vec<(Port, &'a dyn Serve)>) -> Self {
        let readers = served.iter().map(|(port, _)| port.endpoint()).collect();
        // One message at a time: the executor looks for more messages when it has processed those that were ready.
        Executor { clock, readers, served, views: ViewBuf::new(1) }
    }

    /// Waits until a reader has messages or until `limit_ns`, then takes one message from every reader that has
    /// messages. Returns `false` if the driver cannot wait.
    #[inline]
    fn round(&mut self, limit_ns: i64) -> bool {
        match self.served[0].0.hot().wait(&self.readers, limit_ns) {
            Ok(Wait::Ready(ready)) => {
                for (i, (port, end)) in self.served.iter().enumerate() {
                    if ready >> i & 1 == 1 {
                        end.serve(port, &mut self.views);
                    }
                }
                true
            }
            Ok(Wait::TimedOut | Wait::Woken) => true,
            Err(_) => false,
        }
    }

    /// Processes messages until `stop` is true. The thread that sets `stop` must also call `wake`.
    pub fn serve(&mut self, stop: &AtomicBool) {
        while !stop.load(Acquire) && self.round(TB_FOREVER) {}
    }
}

impl<C: Clock> Between for Executor<'_, C> {
    const BUSY: bool = true;
    #[inline]
    fn until(&mut self, mut now_ns: i64, deadline_ns: i64) -> i64 {
        loop {
            // A deadline that has passed is moved to now, so that messages that have arrived by now are taken.
            if !self.round(deadline_ns.max(now_ns)) {
                self.clock.sleep_until(deadline_ns);
            }
            now_ns = self.clock.now();
            if now_ns >= deadline_ns {
                return now_ns;
            }
        }
    }
}
