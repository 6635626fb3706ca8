//! How arrivals get from a driver to an end: in a callback, by a blocking thread, by a spinning thread, with or without
//! a hand-off to a second thread.

use super::{Mailbox, Port};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr};
use std::sync::{Arc, Mutex};
use tailbound_abi::TB_FOREVER;
use tailbound_driver::{Callbacks, Hot, LogLevel, View, ViewBuf, Wait};

/// A sample that has been received.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Sequence number.
    pub seq: u64,
    /// Kernel receive stamp (CLOCK_REALTIME), 0 = none.
    pub kernel_rx_ns: i64,
    /// When the receive thread had it.
    pub received_ns: i64,
    /// The octets.
    pub payload: &'a [u8],
}

/// An end, as the receiving side sees it.
pub trait Sink: Send + Sync + 'static {
    /// The end's clock.
    fn now(&self) -> i64;
    /// Takes an arrival.
    fn process(&self, arrival: &Arrival<'_>);
}

/// Hands a driver's view on: at once, or through the mailbox.
pub struct Receiver<S> {
    /// The end.
    pub sink: Arc<S>,
    /// The hand-off, if the study asks for one.
    pub mailbox: Option<Arc<Mailbox>>,
    /// Ends the loops.
    pub stop: AtomicBool,
}

impl<S: Sink> Receiver<S> {
    #[inline]
    fn view(&self, view: &View) {
        let received_ns = self.sink.now();
        let arrival =
            Arrival { seq: view.seq(), kernel_rx_ns: view.kernel_rx_ns(), received_ns, payload: view.payload() };
        match &self.mailbox {
            None => self.sink.process(&arrival),
            Some(mailbox) => mailbox.put(&arrival),
        }
    }

    #[inline]
    pub(super) fn take(&self, reader: &Port, views: &mut ViewBuf) {
        let (hot, ep) = (reader.hot(), reader.endpoint());
        if matches!(hot.take(ep, views), Ok(n) if n > 0) {
            for view in views.iter() {
                self.view(view);
            }
            // A driver that cannot take its views back will not lend more: the samples show it as lost.
            let _ = hot.release(ep, views);
        }
    }

    /// The loop of a blocking receive thread. One sample at a time: the next wait costs no call when more are there.
    pub fn block(&self, reader: &Port) {
        let mut views = ViewBuf::new(1);
        let readers = [reader.endpoint()];
        while !self.stop.load(Acquire) {
            if matches!(reader.hot().wait(&readers, TB_FOREVER), Ok(Wait::Ready(_))) {
                self.take(reader, &mut views);
            }
        }
    }

    /// The loop of a spinning receive thread.
    pub fn spin(&self, reader: &Port) {
        let mut views = ViewBuf::new(1);
        while !self.stop.load(Acquire) {
            self.take(reader, &mut views);
        }
    }
}

/// What a driver's callback finds: the receiver, once there is one. Samples before that are nobody's.
pub struct Door<S> {
    receiver: AtomicPtr<Receiver<S>>,
    log: Mutex<String>,
}

/// Octets of log that are kept of one session.
const LOG_LIMIT: usize = 64 * 1024;

impl<S: Sink> Default for Door<S> {
    fn default() -> Self {
        Door { receiver: AtomicPtr::new(std::ptr::null_mut()), log: Mutex::new(String::new()) }
    }
}

impl<S: Sink> Door<S> {
    /// Opens the door. The receiver is kept for the life of the process: a middleware thread may still be in it.
    pub fn open(&self, receiver: &Arc<Receiver<S>>) {
        self.receiver.store(Arc::into_raw(receiver.clone()).cast_mut(), Release);
    }

    /// What the middleware said so far.
    pub fn log_text(&self) -> String {
        self.log.lock().map(|l| l.clone()).unwrap_or_default()
    }
}

impl<S: Sink> Callbacks for Door<S> {
    #[inline]
    fn on_sample(&self, _: &Hot, _: u64, view: &View) {
        // SAFETY: null or a receiver that `open` leaked.
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
