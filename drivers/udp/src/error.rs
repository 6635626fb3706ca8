//! Error codes with their text, kept per thread for `last_error`.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};

use tailbound_abi::TB_OK;

/// A refused call: code of the ABI and reason.
#[derive(Debug)]
pub struct Fail {
    pub code: c_int,
    pub text: String,
}

/// Result of a call.
pub type Outcome<T = ()> = Result<T, Fail>;

/// A refusal with its reason.
pub fn fail<T>(code: c_int, text: impl Into<String>) -> Outcome<T> {
    Err(Fail { code, text: text.into() })
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// The code of an outcome; its text becomes this thread's last error.
pub fn code(outcome: Outcome) -> c_int {
    match outcome {
        Ok(()) => TB_OK,
        Err(Fail { code, text }) => {
            let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
            LAST.with(|last| last.replace(text));
            code
        }
    }
}

/// Text of this thread's last error.
pub fn last() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// The code for a refusal by the operating system, with what was tried.
pub fn os<T>(what: impl std::fmt::Display, error: &std::io::Error) -> Outcome<T> {
    fail(tailbound_abi::TB_EIO, format!("{what}: {error}"))
}
