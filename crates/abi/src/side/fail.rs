//! What went wrong: a code for the caller, a text for `last_error`.

use core::ffi::{c_char, c_int};
use std::borrow::Cow;
use std::cell::UnsafeCell;

use crate::{TB_ECLOSED, TB_EINVAL};

/// A failed call: the ABI's code and a text that names the culprit.
#[derive(Debug)]
pub struct Fail {
    /// One of `TB_E*`.
    pub code: c_int,
    /// For `last_error`. Failures that belong to the hot path (timed out, would block) have a static text.
    pub text: Cow<'static, str>,
}

/// Result of a driver's calls.
pub type Outcome<T = ()> = Result<T, Fail>;

/// A failed outcome.
///
/// # Errors
/// Always: the code and the text given.
pub fn fail<T>(code: c_int, text: impl Into<Cow<'static, str>>) -> Outcome<T> {
    Err(Fail::new(code, text))
}

impl Fail {
    /// A failure with a code of the ABI.
    pub fn new(code: c_int, text: impl Into<Cow<'static, str>>) -> Self {
        Fail { code, text: text.into() }
    }

    /// An argument or option that is not valid.
    #[cold]
    pub fn invalid(text: impl Into<Cow<'static, str>>) -> Self {
        Fail::new(TB_EINVAL, text)
    }

    /// The end point is gone, or never was.
    #[cold]
    pub fn closed(ep: u32) -> Self {
        Fail::new(TB_ECLOSED, format!("end point {ep} does not exist (any more)"))
    }

    /// Stores the text for `last_error` and returns the code.
    #[cold]
    pub(super) fn report(self) -> c_int {
        let mut n = self.text.len().min(LAST_BYTES - 1);
        while !self.text.is_char_boundary(n) {
            n -= 1;
        }
        LAST.with(|last| {
            // SAFETY: only this thread has access, and no reference to the buffer outlives this function.
            let last = unsafe { &mut *last.get() };
            for (to, from) in last.iter_mut().zip(self.text.as_bytes()[..n].iter().chain(&[0])) {
                *to = *from;
            }
            last[..n].iter_mut().filter(|b| **b == 0).for_each(|b| *b = b' ');
        });
        self.code
    }
}

/// Longest text that `last_error` keeps, with its NUL.
const LAST_BYTES: usize = 2048;

thread_local! {
    /// In place, so that a failing call of the hot path allocates nothing. Drivers that are linked into one binary share
    /// it, as they would `errno`.
    static LAST: UnsafeCell<[u8; LAST_BYTES]> = const { UnsafeCell::new([0; LAST_BYTES]) };
}

/// The text of this thread's last failure; valid until its next failing call.
pub(super) fn last() -> *const c_char {
    LAST.with(|last| last.get().cast_const().cast())
}

#[cfg(test)]
mod tests {
    use core::ffi::CStr;

    use super::*;
    use crate::TB_EIO;

    fn text() -> String {
        // SAFETY: always NUL-terminated.
        unsafe { CStr::from_ptr(last()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn the_last_text_is_kept_whole_or_cut_at_a_character() {
        assert_eq!(Fail::invalid("one\0two").report(), TB_EINVAL);
        assert_eq!(text(), "one two");
        Fail::new(TB_EIO, "\u{20ac}".repeat(LAST_BYTES)).report();
        assert_eq!(text().len(), (LAST_BYTES - 1) / 3 * 3);
        Fail::new(TB_EIO, "").report();
        assert_eq!(text(), "");
    }
}
