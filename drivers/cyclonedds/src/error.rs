//! What went wrong: a code for the caller, a text for `last_error`.

use core::ffi::{CStr, c_char, c_int};
use std::borrow::Cow;
use std::cell::UnsafeCell;

use tailbound_abi as abi;

use crate::ffi;

/// A failed call: the ABI's code and a text that names the culprit.
#[derive(Debug)]
pub struct Fail {
    /// One of `TB_E*` (or `TB_WOKEN`, which needs no text).
    pub code: c_int,
    /// For `last_error`. Failures that belong to the hot path (timed out, would block) have a static text.
    pub text: Cow<'static, str>,
}

impl Fail {
    /// A failure with a code of the ABI.
    pub fn new(code: c_int, text: impl Into<Cow<'static, str>>) -> Self {
        Fail { code, text: text.into() }
    }

    /// An argument or option that is not valid.
    pub fn invalid(text: impl Into<Cow<'static, str>>) -> Self {
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

/// Longest text that `last_error` keeps, with its NUL.
const LAST_BYTES: usize = 2048;

thread_local! {
    /// In place, so that a failing call of the hot path allocates nothing.
    static LAST: UnsafeCell<[u8; LAST_BYTES]> = const { UnsafeCell::new([0; LAST_BYTES]) };
}

/// Stores the text of a failure for `last_error` and returns its code.
pub fn report(fail: Fail) -> c_int {
    let mut n = fail.text.len().min(LAST_BYTES - 1);
    while !fail.text.is_char_boundary(n) {
        n -= 1;
    }
    LAST.with(|last| {
        // SAFETY: only this thread has access, and no reference to the buffer outlives this function.
        let last = unsafe { &mut *last.get() };
        for (to, from) in last.iter_mut().zip(fail.text.as_bytes()[..n].iter().chain(&[0])) {
            *to = *from;
        }
        last[..n].iter_mut().filter(|b| **b == 0).for_each(|b| *b = b' ');
    });
    fail.code
}

/// The text of this thread's last failure; valid until its next failing call.
pub fn last_error() -> *const c_char {
    LAST.with(|last| last.get().cast_const().cast())
}

/// Checks an entity handle or return code: negative values are errors.
pub fn check(call: &str, ret: i32) -> Outcome<i32> {
    if ret < 0 { Err(Fail::dds(call, ret)) } else { Ok(ret) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: always NUL-terminated.
        unsafe { CStr::from_ptr(last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn the_last_text_is_kept_whole_or_cut_at_a_character() {
        assert_eq!(report(Fail::invalid("one\0two")), abi::TB_EINVAL);
        assert_eq!(last(), "one two");
        report(Fail::new(abi::TB_EIO, "\u{20ac}".repeat(LAST_BYTES)));
        assert_eq!(last().len(), (LAST_BYTES - 1) / 3 * 3);
        report(Fail::new(abi::TB_EIO, ""));
        assert_eq!(last(), "");
    }
}
