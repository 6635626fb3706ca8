//! Passes received samples from a driver to an end: in a callback, by a blocking thread or by a spinning thread, with
//! or without a hand-off to a second thread.

use super::{Arrival, CardReceipts, Mailbox, Port, thread_id};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64};
use std::sync::{Arc, Mutex};
use tailbound_abi::TB_FOREVER;
use tailbound_driver::{Callbacks, Code, Hot, LogLevel, View, ViewBuf, Wait};

/// An end that processes the samples that it receives.
pub trait Sink: Send + Sync + 'static {
    /// Present time of the end's clock, in ns.
    fn now(&self) -> i64;
    /// Processes a sample that the end has received.
    fn process(&self, arrival: &Arrival<'_>);
}

/// Passes the samples of a driver to an end, either directly or through a mailbox to a second thread.
pub struct Receiver<S> {
    /// The end that processes the received samples.
    pub sink: Arc<S>,
    /// Mailbox for the hand-off to a second thread, if the study asks for a hand-off.
    pub mailbox: Option<Arc<Mailbox>>,
    /// Memory for the receive times of the network card, if the study asks for them. It is never freed, because a middleware thread may
    /// still be using it.
    pub card_receipts: Option<&'static CardReceipts>,
    /// Flag that, once set, ends the loops in which threads receive samples.
    pub stop: AtomicBool,
    /// Number of calls of `take` that failed before `stop`, and the code of the last one.
    pub failed: (AtomicU64, AtomicI32),
}

impl<S: Sink> Receiver<S> {
    /// Makes a receiver that passes samples directly to an end.
    pub fn new(sink: Arc<S>) -> Self {
        let failed = (AtomicU64::new(0), AtomicI32::new(0));
        Receiver { sink, mailbox: None, card_receipts: None, stop: AtomicBool::new(false), failed }
    }

    /// Number of calls of `take` that failed, and the code of the last one.
    pub fn failures(&self) -> (u64, Code) {
        (self.failed.0.load(Relaxed), Code(self.failed.1.load(Relaxed)))
    }

    #[cold]
    fn take_failed(&self, code: Code) {
        if !self.stop.load(Acquire) {
            self.failed.0.fetch_add(1, Relaxed);
            self.failed.1.store(code.0, Relaxed);
        }
    }

    #[inline]
    fn view(&self, view: &View) {
        let received_ns = self.sink.now();
        let arrival = Arrival {
            seq: view.seq(),
            kernel_rx_ns: view.kernel_rx_ns(),
            received_ns,
            thread: thread_id(),
            payload: view.payload(),
        };
        match &self.mailbox {
            None => self.sink.process(&arrival),
            Some(mailbox) => mailbox.put(&arrival),
        }
        if let Some(receipts) = self.card_receipts {
            receipts.add(view.seq(), view.hw_rx_ns());
        }
    }

    #[inline]
    pub(super) fn take(&self, reader: &Port, views: &mut ViewBuf) {
        let (hot, ep) = (reader.hot(), reader.endpoint());
        match hot.take(ep, views) {
            Ok(0) => {}
            Ok(_) => {
                for view in views.iter() {
                    self.view(view);
                }
                // If the driver cannot release its views, it gives no more samples, and the messages count as lost.
                let _ = hot.release(ep, views);
            }
            Err(code) => self.take_failed(code),
        }
    }

    /// Loop of a blocking receive thread. The loop takes one sample at a time: if the driver has more samples, the next
    /// wait needs no system call.
    pub fn block(&self, reader: &Port) {
        let mut views = ViewBuf::new(1);
        let readers = [reader.endpoint()];
        while !self.stop.load(Acquire) {
            if matches!(reader.hot().wait(&readers, TB_FOREVER), Ok(Wait::Ready(_))) {
                self.take(reader, &mut views);
            }
        }
    }

    /// Loop of a spinning receive thread, which asks the driver for samples without waiting.
    pub fn spin(&self, reader: &Port) {
        let mut views = ViewBuf::new(1);
        while !self.stop.load(Acquire) {
            self.take(reader, &mut views);
        }
    }
}

/// Callbacks of a driver: pass samples to the receiver once `open` has set a receiver, and ignore samples before.
pub struct Door<S> {
    receiver: AtomicPtr<Receiver<S>>,
    log: Mutex<String>,
}

/// Largest number of bytes of log text that are kept for one session.
const LOG_LIMIT: usize = 64 * 1024;

impl<S: Sink> Default for Door<S> {
    fn default() -> Self {
        Door { receiver: AtomicPtr::new(std::ptr::null_mut()), log: Mutex::new(String::new()) }
    }
}

impl<S: Sink> Door<S> {
    /// Sets the receiver of the samples. The receiver is never freed, because a middleware thread may still be using
    /// it.
    pub fn open(&self, receiver: &Arc<Receiver<S>>) {
        self.receiver.store(Arc::into_raw(receiver.clone()).cast_mut(), Release);
    }

    /// Log text that the middleware has written so far in this session.
    pub fn log_text(&self) -> String {
        self.log.lock().map(|l| l.clone()).unwrap_or_default()
    }
}

impl<S: Sink> Callbacks for Door<S> {
    #[inline]
    fn on_sample(&self, _: &Hot, _: u64, view: &View) {
        // SAFETY: the pointer is null, or a receiver that `open` never frees.
        if let Some(receiver) = unsafe { self.receiver.load(Acquire).as_ref() } {
            receiver.view(view);
        }
    }

    fn log(&self, level: LogLevel, text: &str) {
        if let Ok(mut log) = self.log.lock()
            && log.len() < LOG_LIMIT
        {
            log.push_str(&format!("{level:?}: {}\n", text.trim_end()));
        }
    }
}
