//! Failed calls of a driver: a code for the caller and a text for `last_error`.

use core::ffi::{c_char, c_int};
use std::borrow::Cow;
use std::cell::UnsafeCell;

use crate::{TB_ECLOSED, TB_EINVAL};

/// A failed call of a driver: the ABI's error code and a text that names the cause.
#[derive(Debug)]
pub struct Fail {
    /// Error code that the failed function of the driver returns, one of `TB_E*`.
    pub code: c_int,
    /// Text that `last_error` returns. A failure in the hot path (timed out, would block) has a static text.
    pub text: Cow<'static, str>,
}

/// Result of a function of a driver: a value, or the failure of the call.
pub type Outcome<T = ()> = Result<T, Fail>;

/// Returns `Err` with a [`Fail`] that has the given code and text.
///
/// # Errors
/// Always returns an error with the given code and text.
pub fn fail<T>(code: c_int, text: impl Into<Cow<'static, str>>) -> Outcome<T> {
    Err(Fail::new(code, text))
}

impl Fail {
    /// Makes the description of a failed call from an error code of the ABI and a text.
    pub fn new(code: c_int, text: impl Into<Cow<'static, str>>) -> Self {
        Fail { code, text: text.into() }
    }

    /// Makes the failure (`TB_EINVAL`) for a call that got an argument or option which is not valid.
    #[cold]
    pub fn invalid(text: impl Into<Cow<'static, str>>) -> Self {
        Fail::new(TB_EINVAL, text)
    }

    /// Makes the failure (`TB_ECLOSED`) for a call that names an end point which does not exist or was destroyed.
    #[cold]
    pub fn closed(ep: u32) -> Self {
        Fail::new(TB_ECLOSED, format!("end point {ep} does not exist (any more)"))
    }

    /// Stores the text of the failure for `last_error` and returns the error code.
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

/// Length in bytes of the longest text that `last_error` keeps, with its final NUL byte.
const LAST_BYTES: usize = 2048;

thread_local! {
    /// Text of the last failure of this thread. The text is changed in place, so that a failing call in the hot path
    /// allocates nothing. Drivers that are linked into one binary share this text, like `errno`.
    static LAST: UnsafeCell<[u8; LAST_BYTES]> = const { UnsafeCell::new([0; LAST_BYTES]) };
}

/// Pointer to the text of the last failure of this thread, valid until the next failing call of this thread.
pub(super) fn last() -> *const c_char {
    LAST.with(|last| last.get().cast_const().cast())
}

#[cfg(test)]
mod tests {
    use core::ffi::CStr;

    use super::*;
    use crate::TB_EIO;

    fn text() -> String {
        // SAFETY: the text always ends with a NUL byte.
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
