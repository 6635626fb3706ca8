//! Receive mode listener: the callback of rcl for new messages.
//!
//! In direct mode, the loading program gets messages on the thread of the middleware, inside the callback. Otherwise the callback
//! only wakes a thread of the driver, which takes them: where the middleware holds a lock that a take needs, and where the
//! session has a reliable publisher. Such a publisher may wait for acknowledgements, which with some middlewares the thread of
//! the callback receives: an answer that is sent inside the callback could wait for ever.

use core::ffi::c_void;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use tailbound_abi::side::{Fail, Host, Outcome};
use tailbound_abi::{TB_EIO, tb_view};

use crate::reader::Reader;

/// Name of the thread that takes messages for callbacks that must not.
pub const THREAD: &str = "rcl.handover";

/// What the callback of a subscription needs; its address stays the same until the callback is removed.
struct Target {
    reader: Arc<Reader>,
    host: Host,
    tag: u64,
    /// Whether messages are taken inside the callback.
    direct: Arc<AtomicBool>,
    signal: Signal,
}

impl Target {
    /// Gives the messages that have arrived to the loading program, as long as it may go on.
    #[inline]
    fn deliver(&self) {
        while !self.signal.ended.load(Acquire) {
            match self.reader.next() {
                Ok(None) => return,
                Ok(Some((buffer, info))) => {
                    match buffer.view(&info, 0) {
                        Ok(view) => self.give(&view),
                        Err(fail) => self.report(&fail),
                    }
                    self.reader.give_back(buffer);
                }
                Err(fail) => return self.report(&fail),
            }
        }
    }

    #[inline]
    fn give(&self, view: &tb_view) {
        // SAFETY: the callback is removed before the session is closed, and the view lives during the call.
        unsafe { self.host.on_sample(self.tag, view) };
    }

    #[cold]
    fn report(&self, fail: &Fail) {
        let text = std::ffi::CString::new(fail.text.as_bytes()).unwrap_or_default();
        // SAFETY: as in `give`.
        unsafe { self.host.log(0, &text) };
    }
}

/// The way from the callback to the thread of the driver.
#[derive(Default)]
struct Signal {
    /// Whether there may be messages.
    there: Mutex<bool>,
    changed: Condvar,
    /// Whether the delivery must end.
    ended: AtomicBool,
}

impl Signal {
    fn set(&self) {
        *self.there.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    /// Waits for messages; `false` if the delivery must end.
    fn wait(&self) -> bool {
        let there = self.there.lock().unwrap_or_else(PoisonError::into_inner);
        let mut there = self.changed.wait_while(there, |there| !*there).unwrap_or_else(PoisonError::into_inner);
        *there = false;
        !self.ended.load(Acquire)
    }
}

/// A callback on a subscription. When it is dropped, the callback is removed and does not run any more.
pub struct Listening {
    target: Arc<Target>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    /// Sets the callback. `direct`: whether messages are taken inside it, which may change while it is set.
    ///
    /// # Errors
    /// The middleware refuses the callback, or no thread can be made.
    pub fn start(reader: Arc<Reader>, (host, tag): (Host, u64), direct: Arc<AtomicBool>) -> Outcome<Listening> {
        let target = Arc::new(Target { reader, host, tag, direct, signal: Signal::default() });
        let delivered = target.clone();
        let run = move || {
            while delivered.signal.wait() {
                delivered.deliver();
            }
        };
        let thread = std::thread::Builder::new().name(THREAD.to_owned()).spawn(run);
        let thread = thread.map_err(|e| Fail::new(TB_EIO, format!("cannot start a thread: {e}")))?;
        let new = Listening { target, thread: Some(thread) };
        let ros = new.target.reader.entity.ros;
        let set = ros.f.rcl_subscription_set_on_new_message_callback;
        // SAFETY: the target lives until the callback is removed in `drop`.
        let result = unsafe { set(new.target.reader.entity.pointer(), Some(called), Arc::as_ptr(&new.target).cast()) };
        ros.check("rcl_subscription_set_on_new_message_callback", result)?;
        Ok(new)
    }
}

unsafe extern "C" fn called(target: *const c_void, _number: usize) {
    // SAFETY: the argument that was given with this function.
    let target = unsafe { &*target.cast::<Target>() };
    match target.direct.load(Acquire) {
        true => target.deliver(),
        false => target.signal.set(),
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let Target { reader, signal, .. } = &*self.target;
        signal.ended.store(true, Release);
        let set = reader.entity.ros.f.rcl_subscription_set_on_new_message_callback;
        // SAFETY: rcl accepts no function, which removes the callback; it waits for one that runs.
        reader.entity.ros.ignore(unsafe { set(reader.entity.pointer(), None, std::ptr::null()) });
        signal.set();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
