//! Callbacks: the functions of the loading program (the program that loads a driver) that a session of the driver
//! calls.

use core::ffi::{CStr, c_char, c_int, c_void};

use super::fail::{Fail, Outcome};
use crate::{tb_host, tb_view};

/// The callbacks of the loading program that opened a session of the driver. A callback that the loading program does
/// not provide is skipped.
///
/// This is a copy of the loading program's table of callbacks, so that each end point can store its own copy next to
/// the other data that it uses for each sample.
#[derive(Clone, Copy)]
pub struct Host {
    ctx: *mut c_void,
    on_sample: Option<unsafe extern "C" fn(*mut c_void, u64, *const tb_view)>,
    on_match: Option<unsafe extern "C" fn(*mut c_void, u64, i32)>,
    log: Option<unsafe extern "C" fn(*mut c_void, c_int, *const c_char)>,
}

// SAFETY: by the rules of the ABI a host's functions may be called from any thread, with the host's own context.
unsafe impl Send for Host {}
// SAFETY: the functions may be called from any thread, see `Send`.
unsafe impl Sync for Host {}

impl Host {
    /// Copies the table of callbacks that the loading program passed to `open`.
    ///
    /// # Safety
    /// `host` is null or points to a table with `size` readable bytes.
    pub(super) unsafe fn read(host: *const tb_host) -> Outcome<Host> {
        if host.is_null() {
            return Err(Fail::invalid("host is null"));
        }
        // SAFETY: every version of the ABI begins `tb_host` with its size.
        if (unsafe { (*host).size } as usize) < size_of::<tb_host>() {
            return Err(Fail::invalid("the callback table of the loading program is too short for ABI 1.0"));
        }
        // SAFETY: the whole struct is readable, which was checked above.
        let tb_host { ctx, on_sample, on_match, log, .. } = unsafe { *host };
        Ok(Host { ctx, on_sample, on_match, log })
    }

    /// Whether the program that loaded the driver wants to receive samples by callback.
    pub(super) fn listens(&self) -> bool {
        self.on_sample.is_some()
    }

    /// Passes a sample of the reader with this tag to the loading program.
    ///
    /// # Safety
    /// The session that the loading program opened is not closed, and what `view` points to is valid during the call.
    #[inline]
    pub unsafe fn on_sample(&self, tag: u64, view: &tb_view) {
        if let Some(f) = self.on_sample {
            // SAFETY: function and context belong together; the host outlives the session.
            unsafe { f(self.ctx, tag, view) };
        }
    }

    /// Reports to the loading program that the end point with this tag now has `now` matched peers.
    ///
    /// # Safety
    /// The session that the loading program opened is not closed.
    pub unsafe fn on_match(&self, tag: u64, now: i32) {
        if let Some(f) = self.on_match {
            // SAFETY: function and context belong together; the host outlives the session.
            unsafe { f(self.ctx, tag, now) };
        }
    }

    /// Passes a log message of the middleware to the loading program; level 0 is an error, 1 a warning, 2 information,
    /// 3 debugging output.
    ///
    /// # Safety
    /// The session that the loading program opened is not closed.
    pub unsafe fn log(&self, level: c_int, text: &CStr) {
        if let Some(f) = self.log {
            // SAFETY: function and context belong together; the host outlives the session.
            unsafe { f(self.ctx, level, text.as_ptr()) };
        }
    }
}
