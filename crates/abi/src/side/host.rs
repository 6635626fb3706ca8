//! The host, as a session calls it.

use core::ffi::{CStr, c_char, c_int, c_void};

use super::fail::{Fail, Outcome};
use crate::{tb_host, tb_view};

/// The callbacks of the host that opened a session; those that it does not offer are passed over.
///
/// A copy of the host's table, so that each end point can keep one beside what else it needs for a sample.
#[derive(Clone, Copy)]
pub struct Host {
    ctx: *mut c_void,
    on_sample: Option<unsafe extern "C" fn(*mut c_void, u64, *const tb_view)>,
    on_match: Option<unsafe extern "C" fn(*mut c_void, u64, i32)>,
    log: Option<unsafe extern "C" fn(*mut c_void, c_int, *const c_char)>,
}

// SAFETY: by the rules of the ABI a host's functions may be called from any thread, with the host's own context.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

impl Host {
    /// # Safety
    /// `host` is null or points to a table of which `size` bytes are readable.
    pub(super) unsafe fn read(host: *const tb_host) -> Outcome<Host> {
        if host.is_null() {
            return Err(Fail::invalid("host is null"));
        }
        // SAFETY: every version of the ABI begins `tb_host` with its size.
        if (unsafe { (*host).size } as usize) < size_of::<tb_host>() {
            return Err(Fail::invalid("the host's table is too short for ABI 1.0"));
        }
        // SAFETY: all of it is readable, as just checked.
        let tb_host { ctx, on_sample, on_match, log, .. } = unsafe { *host };
        Ok(Host { ctx, on_sample, on_match, log })
    }

    /// Whether it wants samples by callback.
    pub(super) fn listens(&self) -> bool {
        self.on_sample.is_some()
    }

    /// Hands over a sample of the reader with this tag.
    ///
    /// # Safety
    /// The session that the host opened is not closed, and what `view` points to is valid during the call.
    #[inline]
    pub unsafe fn on_sample(&self, tag: u64, view: &tb_view) {
        if let Some(f) = self.on_sample {
            // SAFETY: function and context belong together; the host outlives the session.
            unsafe { f(self.ctx, tag, view) };
        }
    }

    /// Tells that the end point with this tag now has `now` matched peers.
    ///
    /// # Safety
    /// The session that the host opened is not closed.
    pub unsafe fn on_match(&self, tag: u64, now: i32) {
        if let Some(f) = self.on_match {
            // SAFETY: as in `on_sample`.
            unsafe { f(self.ctx, tag, now) };
        }
    }

    /// Passes on a message of the middleware; level 0 error, 1 warning, 2 info, 3 debug.
    ///
    /// # Safety
    /// The session that the host opened is not closed.
    pub unsafe fn log(&self, level: c_int, text: &CStr) {
        if let Some(f) = self.log {
            // SAFETY: as in `on_sample`.
            unsafe { f(self.ctx, level, text.as_ptr()) };
        }
    }
}
