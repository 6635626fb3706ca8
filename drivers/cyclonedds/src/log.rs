//! Log messages of Cyclone, none of which is printed to stdout or stderr. The messages are passed to the loading
//! program of the session. While a Cyclone domain instance is created, its messages are also stored, for the text of an
//! error and for the effective configuration.

use core::ffi::{c_int, c_void};
use std::cell::RefCell;
use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, Once};

use tailbound_abi::side::Host;

use crate::ffi;

/// A log message that Cyclone wrote.
pub struct Message {
    /// Category of the log message, as `DDS_LC_*` bits.
    pub category: u32,
    /// Text of the log message without its header and line end.
    pub text: String,
}

thread_local! {
    static CAPTURE: RefCell<Option<Vec<Message>>> = const { RefCell::new(None) };
}

struct Listening {
    number: u64,
    domain: u32,
    host: Host,
}

static HOSTS: Mutex<Vec<Listening>> = Mutex::new(Vec::new());
static INSTALL: Once = Once::new();

unsafe extern "C" fn sink(_: *mut c_void, data: *const ffi::dds_log_data_t) {
    // SAFETY: Cyclone passes a message of `size` bytes that lives until this function returns.
    let (category, domain, text) = unsafe {
        let data = &*data;
        let bytes = core::slice::from_raw_parts(data.message.cast::<u8>(), data.size);
        (data.priority, data.domid, String::from_utf8_lossy(bytes).trim_end().to_owned())
    };
    let captured = CAPTURE.try_with(|c| match c.borrow_mut().as_mut() {
        Some(messages) => {
            messages.push(Message { category, text: text.clone() });
            true
        }
        None => false,
    });
    if captured == Ok(true) {
        return;
    }
    forward(domain, level(category), &text);
}

fn level(category: u32) -> c_int {
    if category & (ffi::DDS_LC_FATAL | ffi::DDS_LC_ERROR) != 0 {
        0
    } else if category & ffi::DDS_LC_WARNING != 0 {
        1
    } else if category & ffi::DDS_LC_INFO != 0 {
        2
    } else {
        3
    }
}

fn forward(domain: u32, level: c_int, text: &str) {
    let Ok(text) = CString::new(text.replace('\0', " ")) else { return };
    let hosts = HOSTS.lock().unwrap_or_else(|e| e.into_inner());
    for entry in hosts.iter().filter(|h| h.domain == domain || domain == u32::MAX) {
        // SAFETY: a session removes its host from the list, under the lock, before it is closed.
        unsafe { entry.host.log(level, &text) };
    }
}

/// Redirects Cyclone's log to this module until the process ends.
pub fn install() {
    // SAFETY: the sink is a static function and needs no data.
    INSTALL.call_once(|| unsafe { ffi::dds_set_log_sink(Some(sink), core::ptr::null_mut()) });
}

/// Runs `f` and returns the messages that Cyclone wrote on this thread during the call; with `trace`, also the text
/// that Cyclone writes into its trace file.
///
/// A process has only one trace sink, so no two threads may call this function at the same time.
pub fn capture<T>(trace: bool, f: impl FnOnce() -> T) -> (T, Vec<Message>) {
    CAPTURE.with(|c| *c.borrow_mut() = Some(Vec::new()));
    if trace {
        // SAFETY: the sink is a static function and needs no data.
        unsafe { ffi::dds_set_trace_sink(Some(sink), core::ptr::null_mut()) };
    }
    let value = f();
    if trace {
        // SAFETY: null restores Cyclone's own sink, which writes to the file of each domain's configuration.
        unsafe { ffi::dds_set_trace_sink(None, core::ptr::null_mut()) };
    }
    let messages = CAPTURE.with(|c| c.borrow_mut().take()).unwrap_or_default();
    (value, messages)
}

/// Returns the errors and warnings among `messages`, as one text.
pub fn complaints(messages: &[Message]) -> String {
    let bad = ffi::DDS_LC_FATAL | ffi::DDS_LC_ERROR | ffi::DDS_LC_WARNING;
    let texts: Vec<&str> = messages.iter().filter(|m| m.category & bad != 0).map(|m| m.text.as_str()).collect();
    texts.join("; ")
}

/// Passes Cyclone's log messages about the domain instance `domain` to the loading program `host`, until [`forget`] is
/// called with the returned number.
pub fn listen(domain: u32, host: Host) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    HOSTS.lock().unwrap_or_else(|e| e.into_inner()).push(Listening { number, domain, host });
    number
}

/// Stops passing log messages to the loading program for which [`listen`] returned `number`.
pub fn forget(number: u64) {
    HOSTS.lock().unwrap_or_else(|e| e.into_inner()).retain(|h| h.number != number);
}
