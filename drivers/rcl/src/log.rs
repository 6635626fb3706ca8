//! Log messages of ROS 2: they go to the loading program and not to standard error.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use tailbound_abi::side::Host;

/// Length in bytes of the longest message that is passed on.
const LONGEST: usize = 1024;

/// The loading programs of the sessions that are open, by the numbers of their registrations.
static HOSTS: Mutex<(u64, Vec<(u64, Host)>)> = Mutex::new((0, Vec::new()));

/// The registration of a session's loading program: while it exists, the program can get log messages. Contexts of one process
/// have one output, so that the session that was opened last gets the messages of all.
pub struct Registration(u64);

impl Registration {
    pub fn new(host: Host) -> Registration {
        let mut hosts = HOSTS.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.0 += 1;
        let number = hosts.0;
        hosts.1.push((number, host));
        Registration(number)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        HOSTS.lock().unwrap_or_else(PoisonError::into_inner).1.retain(|(number, _)| *number != self.0);
    }
}

unsafe extern "C" {
    // `va_list` is passed as a pointer by the calling conventions of x86-64 and of 64-bit ARM.
    fn vsnprintf(to: *mut c_char, size: usize, format: *const c_char, arguments: *mut c_void) -> c_int;
}

/// Formats a message of ROS 2 and passes it on.
pub unsafe extern "C" fn handler(
    _place: *const c_void,
    severity: c_int,
    _logger: *const c_char,
    _time_ns: i64,
    format: *const c_char,
    arguments: *mut c_void,
) {
    let mut text = [0_u8; LONGEST];
    // SAFETY: ROS 2 gives a format with its arguments; the text has the stated length.
    unsafe { vsnprintf(text.as_mut_ptr().cast(), text.len(), format, arguments) };
    // Severities of rcutils: 10 debug, 20 information, 30 warning, 40 error, 50 fatal.
    let level = match severity {
        40.. => 0,
        30.. => 1,
        20.. => 2,
        _ => 3,
    };
    let text = CStr::from_bytes_until_nul(&text).map(CStr::to_owned).unwrap_or_else(|_| CString::default());
    // The lock is held, so that a session that ends waits for this call.
    if let Some((_, host)) = HOSTS.lock().unwrap_or_else(PoisonError::into_inner).1.last() {
        // SAFETY: the session removes its host before it ends.
        unsafe { host.log(level, &text) };
    }
}
