//! What the sending thread does between its slots: it sleeps, or it is the single-threaded executor.
//!
//! The executor is one thread that waits for a timer and for readers together and serves them one at a time, as the
//! single-threaded executor of rclcpp does. A message that arrives while it publishes waits; a timer that is due while it
//! serves a message waits.

use super::{Clock, Port, Receiver, Sink};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Acquire;
use tailbound_abi::TB_FOREVER;
use tailbound_driver::{Endpoint, ViewBuf, Wait};

/// Lets time pass on the sending thread.
pub trait Between {
    /// There is work to look for also when no time is left.
    const BUSY: bool;
    /// Lets time pass from `now_ns` until `deadline_ns` or later; the time then.
    fn until(&mut self, now_ns: i64, deadline_ns: i64) -> i64;
}

/// It sleeps; other threads take what arrives.
pub struct Asleep<C>(pub C);

impl<C: Clock> Between for Asleep<C> {
    const BUSY: bool = false;
    #[inline]
    fn until(&mut self, _: i64, deadline_ns: i64) -> i64 {
        self.0.sleep_until(deadline_ns);
        self.0.now()
    }
}

/// An end whose messages the executor takes.
pub trait Serve {
    /// Takes one message, if there is one.
    fn serve(&self, reader: &Port, views: &mut ViewBuf);
}

impl<S: Sink> Serve for Receiver<S> {
    fn serve(&self, reader: &Port, views: &mut ViewBuf) {
        self.take(reader, views);
    }
}

/// The executor of one session's readers.
pub struct Executor<'a, C> {
    clock: C,
    readers: Vec<Endpoint>,
    served: Vec<(Port, &'a dyn Serve)>,
    views: ViewBuf,
}

impl<'a, C: Clock> Executor<'a, C> {
    /// Over at least one reader; all are of one session.
    pub fn new(clock: C, served: Vec<(Port, &'a dyn Serve)>) -> Self {
        let readers = served.iter().map(|(port, _)| port.endpoint()).collect();
        // One message at a time: the next is looked for when what was ready has been served.
        Executor { clock, readers, served, views: ViewBuf::new(1) }
    }

    /// Waits, then takes one message from every reader that has some; `false` when the driver cannot wait.
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

    /// Serves until `stop`; whoever sets it also calls `wake`.
    pub fn serve(&mut self, stop: &AtomicBool) {
        while !stop.load(Acquire) && self.round(TB_FOREVER) {}
    }
}

impl<C: Clock> Between for Executor<'_, C> {
    const BUSY: bool = true;
    #[inline]
    fn until(&mut self, mut now_ns: i64, deadline_ns: i64) -> i64 {
        loop {
            // A deadline that has passed is moved to now: what has arrived by now is seen.
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
