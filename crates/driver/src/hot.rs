//! The functions of a driver that may be called during a measurement.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use tailbound_abi::{TB_ETIMEDOUT, TB_OK, TB_SEND_BATCH, TB_WOKEN, tb_driver, tb_send, tb_sink, tb_view};

use crate::endpoint::Endpoint;
use crate::error::{Code, DriverError};
use crate::view::ViewBuf;

/// Result of waiting for samples with [`Hot::wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// At least one reader has a sample: bit i is set if the i-th reader of the list has a sample.
    Ready(u64),
    /// The wait for samples ended because the function `wake` was called.
    Woken,
    /// The wait for samples ended because its deadline passed.
    TimedOut,
}

type SendFn = unsafe extern "C" fn(*mut c_void, u32, u64, *const u8, u64, *const tb_send) -> c_int;
type WaitFn = unsafe extern "C" fn(*mut c_void, *const u32, usize, i64, *mut u64) -> c_int;
type TakeFn = unsafe extern "C" fn(*mut c_void, u32, *mut tb_view, u32, *mut u32) -> c_int;
type ReleaseFn = unsafe extern "C" fn(*mut c_void, u32, *mut tb_view, u32) -> c_int;
type QueryFn = unsafe extern "C" fn(*mut c_void, u32, *const c_char, tb_sink, *mut c_void) -> c_int;

/// The functions of one open session that may be called during a measurement. In the loading program, these calls
/// allocate nothing, take no lock and log nothing.
pub struct Hot {
    pub(crate) table: &'static tb_driver,
    pub(crate) driver: &'static str,
    handle: AtomicPtr<c_void>,
    send: SendFn,
    wait: WaitFn,
    take: TakeFn,
    release: ReleaseFn,
    pub(crate) query: QueryFn,
}

impl Hot {
    /// Takes the functions from a table that passed [`crate::table::check`]; [`Hot::opened`] adds the session later.
    pub(crate) fn new(table: &'static tb_driver, driver: &'static str) -> Option<Hot> {
        Some(Hot {
            table,
            driver,
            handle: AtomicPtr::new(std::ptr::null_mut()),
            send: table.send?,
            wait: table.wait?,
            take: table.take?,
            release: table.release?,
            query: table.query?,
        })
    }

    pub(crate) fn opened(&self, handle: *mut c_void) {
        self.handle.store(handle, Ordering::Release);
    }

    #[inline]
    pub(crate) fn handle(&self) -> *mut c_void {
        self.handle.load(Ordering::Relaxed)
    }

    /// Sends one sample.
    ///
    /// # Errors
    /// [`Code::EWOULDBLOCK`] and [`Code::ETIMEDOUT`] report back-pressure of the middleware, [`Code::ETOOBIG`] a
    /// payload that is longer than the end point's maximum. [`Hot::error`], called on the same thread, returns the
    /// driver's text.
    #[inline]
    pub fn send(&self, ep: Endpoint, seq: u64, payload: &[u8]) -> Result<(), Code> {
        // SAFETY: the session is open, because it closes only when no `&Hot` exists, and the payload is readable.
        let rc =
            unsafe { (self.send)(self.handle(), ep.0, seq, payload.as_ptr(), payload.len() as u64, std::ptr::null()) };
        if rc == TB_OK { Ok(()) } else { Err(Code(rc)) }
    }

    /// Sends one sample at `txtime_ns` (ns of `CLOCK_TAI`; 0 means immediately), or lets the sample wait in a batch.
    ///
    /// # Errors
    /// The errors of [`Hot::send`], and [`Code::EUNSUPPORTED`] if the driver lacks the capability.
    #[inline]
    pub fn send_with(&self, ep: Endpoint, seq: u64, payload: &[u8], txtime_ns: i64, batch: bool) -> Result<(), Code> {
        let flags = if batch { TB_SEND_BATCH } else { 0 };
        let opt = tb_send { size: size_of::<tb_send>() as u32, flags, txtime_ns };
        // SAFETY: the session is open and the payload is readable; `opt` lives until the call returns.
        let rc =
            unsafe { (self.send)(self.handle(), ep.0, seq, payload.as_ptr(), payload.len() as u64, &raw const opt) };
        if rc == TB_OK { Ok(()) } else { Err(Code(rc)) }
    }

    /// Blocks until one of up to 64 readers has a sample, until `deadline_ns` (absolute `CLOCK_MONOTONIC`) passes, or
    /// until `wake` is called.
    ///
    /// # Errors
    /// The error code of the driver. A deadline that passes is not an error.
    #[inline]
    pub fn wait(&self, readers: &[Endpoint], deadline_ns: i64) -> Result<Wait, Code> {
        let mut ready = 0u64;
        // SAFETY: `Endpoint` is a transparent u32; `ready` is writable; the session is open.
        let rc =
            unsafe { (self.wait)(self.handle(), readers.as_ptr().cast(), readers.len(), deadline_ns, &raw mut ready) };
        match rc {
            TB_OK => Ok(Wait::Ready(ready)),
            TB_WOKEN => Ok(Wait::Woken),
            TB_ETIMEDOUT => Ok(Wait::TimedOut),
            _ => Err(Code(rc)),
        }
    }

    /// Takes the available samples without blocking, at most as many as the buffer's capacity, and returns their
    /// number. Samples that were in the buffer before must have been released.
    ///
    /// # Errors
    /// The error code of the driver.
    #[inline]
    pub fn take(&self, reader: Endpoint, into: &mut ViewBuf) -> Result<usize, Code> {
        debug_assert_eq!(into.taken, 0, "release before taking again");
        let mut n = 0u32;
        // SAFETY: the buffer has room for `len` views; the session is open.
        let rc = unsafe {
            (self.take)(self.handle(), reader.0, into.views.as_mut_ptr(), into.views.len() as u32, &raw mut n)
        };
        if rc != TB_OK {
            return Err(Code(rc));
        }
        into.taken = (n as usize).min(into.views.len());
        Ok(into.taken)
    }

    /// Returns to the driver the samples that [`Hot::take`] put into the buffer.
    ///
    /// # Errors
    /// The error code of the driver; the buffer is empty afterwards in any case.
    #[inline]
    pub fn release(&self, reader: Endpoint, views: &mut ViewBuf) -> Result<(), Code> {
        let n = std::mem::take(&mut views.taken);
        if n == 0 {
            return Ok(());
        }
        // SAFETY: the first `n` views came from `take` of this reader.
        let rc = unsafe { (self.release)(self.handle(), reader.0, views.views.as_mut_ptr(), n as u32) };
        if rc == TB_OK { Ok(()) } else { Err(Code(rc)) }
    }

    /// Makes the error of a call that has just failed on this thread, with the driver's text. This function allocates
    /// memory.
    #[cold]
    pub fn error(&self, call: &'static str, code: Code) -> DriverError {
        error(self.table, self.driver, call, code)
    }
}

/// Makes the error of a failed call of the driver, with the text of the driver's `last_error`.
#[cold]
pub(crate) fn error(table: &tb_driver, driver: &str, call: &'static str, code: Code) -> DriverError {
    // SAFETY: `last_error` is mandatory and returns null or a string of the calling thread that ends with a NUL byte.
    let text = table.last_error.map(|f| unsafe { f() }).filter(|p| !p.is_null());
    // SAFETY: the pointer is not null, so it points to such a string.
    let text = text.map(|p| unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()).filter(|t| !t.is_empty());
    DriverError {
        driver: driver.to_owned(),
        call,
        code,
        text: text.unwrap_or_else(|| "the driver gave no reason".to_owned()),
    }
}
