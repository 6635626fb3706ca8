//! What the caller of the table points at.

use core::ffi::{CStr, c_char};
use core::mem::MaybeUninit;

use super::fail::{Fail, Outcome};

#[cold]
fn null(what: &str) -> Fail {
    Fail::invalid(format!("{what} is null"))
}

/// A place of the caller's for a result.
///
/// # Safety
/// `to` is null, or writable and nobody else's for `'a`.
#[inline]
pub(super) unsafe fn place<'a, T>(what: &str, to: *mut T) -> Outcome<&'a mut MaybeUninit<T>> {
    // SAFETY: the caller's promise.
    unsafe { to.cast::<MaybeUninit<T>>().as_mut() }.ok_or_else(|| null(what))
}

/// `n` values of the caller's; none need no pointer.
///
/// # Safety
/// `from` is null or points to `n` values that are not changed during `'a`.
#[inline]
pub(super) unsafe fn many<'a, T>(what: &str, from: *const T, n: usize) -> Outcome<&'a [T]> {
    match n {
        0 => Ok(&[]),
        _ if from.is_null() => Err(null(what)),
        // SAFETY: the caller's promise.
        _ => Ok(unsafe { core::slice::from_raw_parts(from, n) }),
    }
}

/// As [`many`], for values that the driver may change.
///
/// # Safety
/// `from` is null or points to `n` values that are nobody else's for `'a`.
#[inline]
pub(super) unsafe fn many_mut<'a, T>(what: &str, from: *mut T, n: usize) -> Outcome<&'a mut [T]> {
    match n {
        0 => Ok(&mut []),
        _ if from.is_null() => Err(null(what)),
        // SAFETY: the caller's promise.
        _ => Ok(unsafe { core::slice::from_raw_parts_mut(from, n) }),
    }
}

/// A string of the caller's.
///
/// # Safety
/// `text` is null or a NUL-terminated string that is not changed during `'a`.
pub(super) unsafe fn text<'a>(what: &str, text: *const c_char) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| Fail::invalid(format!("{what} is not UTF-8")))
}
