//! Checks a driver's table of functions. After the check, every mandatory function pointer is known to be valid.

use std::mem::offset_of;

use tailbound_abi::{TB_ABI_MAJOR, tb_driver};

use crate::error::LoadError;

macro_rules! mandatory {
    ($($name:ident),*) => {
        /// Names of the mandatory functions in a driver's table of functions, and their offsets in bytes.
        pub(crate) const MANDATORY: &[(&str, usize)] = &[$((stringify!($name), offset_of!(tb_driver, $name))),*];
    };
}
mandatory!(
    describe,
    open,
    create,
    wait_matched,
    send,
    wait,
    take,
    release,
    wake,
    flush,
    wait_acked,
    query,
    destroy,
    close,
    last_error
);

/// Number of bytes in a driver's table of version 1.0, up to and including `commit`; the member `reserved` after it may
/// be absent.
pub(crate) const NEEDED: u32 = offset_of!(tb_driver, reserved) as u32;

/// Checks and copies a driver's table. If the table is shorter than the struct of this version, only the existing part
/// is read.
///
/// # Safety
/// `table` is null or points to a table that lives as long as the process and has `size` readable bytes.
pub(crate) unsafe fn check(place: &str, table: *const tb_driver) -> Result<&'static tb_driver, LoadError> {
    let place = || place.to_owned();
    if table.is_null() {
        return Err(LoadError::NoTable { place: place() });
    }
    // SAFETY: every version of the ABI has the first three members.
    let (major, size) = unsafe { ((*table).abi_major, (*table).size) };
    if major != TB_ABI_MAJOR {
        return Err(LoadError::WrongAbi { place: place(), found: major });
    }
    if size < NEEDED {
        return Err(LoadError::TableTooShort { place: place(), found: size, needed: NEEDED });
    }
    for (function, offset) in MANDATORY {
        // SAFETY: the offset lies within `size`, and a null function pointer reads as zero.
        if unsafe { table.byte_add(*offset).cast::<usize>().read() } == 0 {
            return Err(LoadError::FunctionMissing { place: place(), function });
        }
    }
    // SAFETY: null is a valid value for every member of the table.
    let mut copy: Box<tb_driver> = Box::new(unsafe { std::mem::zeroed() });
    let known = (size as usize).min(size_of::<tb_driver>());
    // SAFETY: `known` bytes are readable at `table` and writable at `copy`.
    unsafe { std::ptr::copy_nonoverlapping(table.cast::<u8>(), (&raw mut *copy).cast::<u8>(), known) };
    Ok(Box::leak(copy))
}
