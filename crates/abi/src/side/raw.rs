//! Checked access to the memory that the caller's pointers point to.

use core::ffi::{CStr, c_char};
use core::mem::MaybeUninit;

use super::fail::{Fail, Outcome};

#[cold]
fn null(what: &str) -> Fail {
    Fail::invalid(format!("{what} is null"))
}

/// Returns a reference to the memory into which the caller wants one result written, or a failure if the pointer is
/// null.
///
/// # Safety
/// `to` is null, or is writable and not used by anyone else during `'a`.
#[inline]
pub(super) unsafe fn place<'a, T>(what: &str, to: *mut T) -> Outcome<&'a mut MaybeUninit<T>> {
    // SAFETY: the caller of this function promises it.
    unsafe { to.cast::<MaybeUninit<T>>().as_mut() }.ok_or_else(|| null(what))
}

/// Returns `n` values of the caller as a slice. If `n` is 0, the pointer may be null.
///
/// # Safety
/// `from` is null or points to `n` values that are not changed during `'a`.
#[inline]
pub(super) unsafe fn many<'a, T>(what: &str, from: *const T, n: usize) -> Outcome<&'a [T]> {
    match n {
        0 => Ok(&[]),
        _ if from.is_null() => Err(null(what)),
        // SAFETY: the caller of this function promises it.
        _ => Ok(unsafe { core::slice::from_raw_parts(from, n) }),
    }
}

/// Returns `n` values of the caller as a slice that the driver may change. If `n` is 0, the pointer may be null.
///
/// # Safety
/// `from` is null or points to `n` values that nobody else uses during `'a`.
#[inline]
pub(super) unsafe fn many_mut<'a, T>(what: &str, from: *mut T, n: usize) -> Outcome<&'a mut [T]> {
    match n {
        0 => Ok(&mut []),
        _ if from.is_null() => Err(null(what)),
        // SAFETY: the caller of this function promises it.
        _ => Ok(unsafe { core::slice::from_raw_parts_mut(from, n) }),
    }
}

/// Returns a string of the caller, or a failure if it is null or not UTF-8.
///
/// # Safety
/// `text` is null or points to a string that ends with a NUL byte and is not changed during `'a`.
pub(super) unsafe fn text<'a>(what: &str, text: *const c_char) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller of this function promises it.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| Fail::invalid(format!("{what} is not UTF-8")))
}
