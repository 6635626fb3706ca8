//! What went wrong: a code for the caller, a text for `last_error`.

use core::ffi::{CStr, c_char, c_int};
use std::cell::RefCell;
use std::ffi::CString;

use tailbound_abi as abi;

use crate::ffi;

/// A failed call: the ABI's code and a text that names the culprit.
#[derive(Debug)]
pub struct Fail {
    /// One of `TB_E*` (or `TB_WOKEN`, which needs no text).
    pub code: c_int,
    /// For `last_error`.
    pub text: String,
}

impl Fail {
    /// A failure with a code of the ABI.
    pub fn new(code: c_int, text: impl Into<String>) -> Self {
        Fail { code, text: text.into() }
    }

    /// An argument or option that is not valid.
    pub fn invalid(text: impl Into<String>) -> Self {
        Fail::new(abi::TB_EINVAL, text)
    }

    /// The end point or session is gone.
    pub fn closed(ep: u32) -> Self {
        Fail::new(abi::TB_ECLOSED, format!("end point {ep} does not exist (any more)"))
    }

    /// A return code of Cyclone DDS from the call named `call`.
    pub fn dds(call: &str, ret: i32) -> Self {
        let code = match ret {
            ffi::DDS_RETCODE_BAD_PARAMETER => abi::TB_EINVAL,
            ffi::DDS_RETCODE_OUT_OF_RESOURCES => abi::TB_ENOMEM,
            ffi::DDS_RETCODE_TIMEOUT => abi::TB_ETIMEDOUT,
            ffi::DDS_RETCODE_ALREADY_DELETED => abi::TB_ECLOSED,
            ffi::DDS_RETCODE_UNSUPPORTED => abi::TB_EUNSUPPORTED,
            ffi::DDS_RETCODE_IMMUTABLE_POLICY | ffi::DDS_RETCODE_INCONSISTENT_POLICY => abi::TB_EQOS,
            _ => abi::TB_EIO,
        };
        // SAFETY: dds_strretcode returns a static string for every value.
        let text = unsafe { CStr::from_ptr(ffi::dds_strretcode(ret)) }.to_string_lossy();
        Fail::new(code, format!("Cyclone DDS: {call}: {text}"))
    }
}

/// Result of the driver's inner functions.
pub type Outcome<T> = Result<T, Fail>;

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Stores the text of a failure for `last_error` and returns its code.
pub fn report(fail: Fail) -> c_int {
    let text = CString::new(fail.text.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = text);
    fail.code
}

/// The text of this thread's last failure; valid until its next failing call.
pub fn last_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// Checks an entity handle or return code: negative values are errors.
pub fn check(call: &str, ret: i32) -> Outcome<i32> {
    if ret < 0 { Err(Fail::dds(call, ret)) } else { Ok(ret) }
}
