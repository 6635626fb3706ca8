//! The calls that may be made while measuring.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use tailbound_abi::{TB_ETIMEDOUT, TB_OK, TB_SEND_BATCH, TB_WOKEN, tb_driver, tb_send, tb_sink, tb_view};

use crate::error::{Code, DriverError};
use crate::session::Endpoint;
use crate::view::ViewBuf;

/// How a `wait` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Bit i: the i-th reader of the list has a sample.
    Ready(u64),
    /// Somebody called `wake`.
    Woken,
    /// The deadline passed.
    TimedOut,
}

type SendFn = unsafe extern "C" fn(*mut c_void, u32, u64, *const u8, u64, *const tb_send) -> c_int;
type WaitFn = unsafe extern "C" fn(*mut c_void, *const u32, usize, i64, *mut u64) -> c_int;
type TakeFn = unsafe extern "C" fn(*mut c_void, u32, *mut tb_view, u32, *mut u32) -> c_int;
type ReleaseFn = unsafe extern "C" fn(*mut c_void, u32, *mut tb_view, u32) -> c_int;
type QueryFn = unsafe extern "C" fn(*mut c_void, u32, *const c_char, tb_sink, *mut c_void) -> c_int;

/// The hot calls of one open session: nothing here allocates, locks or logs on the host's side.
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
    /// Calls over a table that passed [`crate::table::check`]; the session comes later, by [`Hot::opened`].
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
    /// [`Code::EWOULDBLOCK`] and [`Code::ETIMEDOUT`] are the middleware's back-pressure, [`Code::ETOOBIG`] a payload over
    /// the end point's maximum; the text of any is had by [`Hot::error`] on the same thread.
    #[inline]
    pub fn send(&self, ep: Endpoint, seq: u64, payload: &[u8]) -> Result<(), Code> {
        // SAFETY: the session is open (it closes only when nobody holds a `&Hot`), the payload is readable.
        let rc =
            unsafe { (self.send)(self.handle(), ep.0, seq, payload.as_ptr(), payload.len() as u64, std::ptr::null()) };
        if rc == TB_OK { Ok(()) } else { Err(Code(rc)) }
    }

    /// Sends one sample at `txtime_ns` (`CLOCK_TAI`; 0 = at once), or lets it wait in a batch.
    ///
    /// # Errors
    /// As [`Hot::send`]; [`Code::EUNSUPPORTED`] without the capability.
    #[inline]
    pub fn send_with(&self, ep: Endpoint, seq: u64, payload: &[u8], txtime_ns: i64, batch: bool) -> Result<(), Code> {
        let flags = if batch { TB_SEND_BATCH } else { 0 };
        let opt = tb_send { size: size_of::<tb_send>() as u32, flags, txtime_ns };
        // SAFETY: as in `send`; `opt` lives through the call.
        let rc =
            unsafe { (self.send)(self.handle(), ep.0, seq, payload.as_ptr(), payload.len() as u64, &raw const opt) };
        if rc == TB_OK { Ok(()) } else { Err(Code(rc)) }
    }

    /// Blocks until one of up to 64 readers has a sample, `deadline_ns` (absolute `CLOCK_MONOTONIC`) passes, or `wake`.
    ///
    /// # Errors
    /// What the driver returned; a deadline that passed is not an error.
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

    /// Takes what is there, up to the buffer's capacity, without blocking; 0 when nothing is. What the buffer still held
    /// must have been released.
    ///
    /// # Errors
    /// What the driver returned.
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

    /// Gives back what [`Hot::take`] put into the buffer.
    ///
    /// # Errors
    /// What the driver returned; the buffer is empty afterwards all the same.
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

    /// The error of a call that just failed on this thread, with the driver's text. Allocates.
    #[cold]
    pub fn error(&self, call: &'static str, code: Code) -> DriverError {
        error(self.table, self.driver, call, code)
    }
}

/// An error with the text of `last_error`.
#[cold]
pub(crate) fn error(table: &tb_driver, driver: &str, call: &'static str, code: Code) -> DriverError {
    // SAFETY: `last_error` is mandatory and returns null or a NUL-terminated string of the calling thread.
    let text = table.last_error.map(|f| unsafe { f() }).filter(|p| !p.is_null());
    // SAFETY: as above.
    let text = text.map(|p| unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()).filter(|t| !t.is_empty());
    DriverError {
        driver: driver.to_owned(),
        call,
        code,
        text: text.unwrap_or_else(|| "the driver gave no reason".to_owned()),
    }
}
