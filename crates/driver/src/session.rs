//! Sessions of a driver: each session is one participant of the middleware.

use std::any::Any;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ops::Deref;
use std::sync::Arc;

use tailbound_abi::{TB_EINVAL, TB_OK, TB_READER, TB_WRITER, tb_clock, tb_host};

use crate::callbacks::{self, Callbacks, Shared};
use crate::clock::DriverClock;
use crate::description::ReceiveMode;
use crate::endpoint::Endpoint;
use crate::error::{Code, DriverError};
use crate::hot::{Hot, error};
use crate::kv::Kv;
use crate::load::Driver;

/// Kind of an end point of a driver's session: writer or reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Kind of end point: a writer, which sends samples.
    Writer,
    /// A reader, which receives samples in the given receive mode.
    Reader(ReceiveMode),
}

/// One open participant of a driver. Several threads may use a session; dropping the session closes the participant.
///
/// The functions that may be called during a measurement are the methods of [`Hot`], to which a session dereferences.
pub struct Session {
    hot: *const Hot,
    // The order matters: the session closes in `drop`, then the host table is freed, then the callbacks.
    _host: Box<tb_host>,
    _shared: Box<dyn Any + Send + Sync>,
}

// SAFETY: by the rules of the ABI any thread may call the functions of a table; `hot` points into `_shared`.
unsafe impl Send for Session {}
// SAFETY: any thread may call the functions, see `Send`.
unsafe impl Sync for Session {}

impl Deref for Session {
    type Target = Hot;

    #[inline]
    fn deref(&self) -> &Hot {
        // SAFETY: `hot` points into the box that `_shared` owns.
        unsafe { &*self.hot }
    }
}

impl Session {
    /// Opens a participant; the functions of `callbacks` may be called until the session is dropped.
    ///
    /// # Errors
    /// The driver refused to open the participant, for example because of an unknown option or a missing interface.
    pub fn open<C: Callbacks>(driver: &Driver, options: &Kv, callbacks: Arc<C>) -> Result<Session, DriverError> {
        let fail = |code, text: &str| DriverError {
            driver: driver.name().to_owned(),
            call: "open",
            code: Code(code),
            text: text.to_owned(),
        };
        let table = driver.table();
        let hot = Hot::new(table, driver.name()).ok_or_else(|| fail(TB_EINVAL, "the table is incomplete"))?;
        let shared = Box::new(Shared { hot, callbacks });
        let host = Box::new(callbacks::host(&raw const *shared));
        let open = table.open.ok_or_else(|| fail(TB_EINVAL, "the table is incomplete"))?;
        let mut handle: *mut c_void = std::ptr::null_mut();
        // SAFETY: keys, values and the host table live until the call returns; the host table outlives the session.
        let rc = options
            .with_c(|kv, n| unsafe { open(kv, n, &raw const *host, &raw mut handle) })
            .map_err(|(code, text)| fail(code, &text))?;
        if rc != TB_OK {
            return Err(error(table, driver.name(), "open", Code(rc)));
        }
        if handle.is_null() {
            return Err(fail(TB_EINVAL, "the driver reported success, but returned no session"));
        }
        shared.hot.opened(handle);
        Ok(Session { hot: &raw const shared.hot, _host: host, _shared: shared })
    }

    /// Creates a writer or reader of `topic` for payloads of at most `max_len` bytes. Callbacks about the end point get
    /// `tag` as an argument.
    ///
    /// # Errors
    /// The driver refused to create the end point, for example because of an unknown QoS policy or receive mode.
    pub fn create(&self, kind: Kind, topic: &str, max_len: u64, qos: &Kv, tag: u64) -> Result<Endpoint, DriverError> {
        let (kind, mode) = match kind {
            Kind::Writer => (TB_WRITER, 0),
            Kind::Reader(mode) => (TB_READER, mode.raw()),
        };
        let fail =
            |code, text: String| DriverError { driver: self.driver.to_owned(), call: "create", code: Code(code), text };
        let topic =
            CString::new(topic).map_err(|_| fail(TB_EINVAL, "the topic's name contains a NUL character".to_owned()))?;
        let mut ep = 0u32;
        let create = self.table.create;
        let rc = qos
            .with_c(|kv, n| {
                // SAFETY: all pointers live until the call returns; the table was checked when the driver was loaded.
                create.map_or(TB_EINVAL, |f| unsafe {
                    f(self.handle(), kind, mode, topic.as_ptr(), max_len, kv, n, tag, &raw mut ep)
                })
            })
            .map_err(|(code, text)| fail(code, text))?;
        self.ok("create", rc)?;
        Ok(Endpoint(ep))
    }

    /// Waits until the end point `ep` has at least `peers` matched peers.
    ///
    /// # Errors
    /// [`Code::ETIMEDOUT`] after `deadline_ns` (absolute `CLOCK_MONOTONIC`); a [`Session::query`] for `unmatched` then
    /// returns the reason.
    pub fn wait_matched(&self, ep: Endpoint, peers: u32, deadline_ns: i64) -> Result<(), DriverError> {
        // SAFETY: the function is mandatory in a checked table; the session is open.
        let rc = self.table.wait_matched.map_or(TB_EINVAL, |f| unsafe { f(self.handle(), ep.0, peers, deadline_ns) });
        self.ok("wait_matched", rc)
    }

    /// Makes a blocked [`Hot::wait`] of this session return within 100 ms.
    ///
    /// # Errors
    /// The error of the driver.
    pub fn wake(&self) -> Result<(), DriverError> {
        // SAFETY: the function is mandatory in a checked table; the session is open.
        let rc = self.table.wake.map_or(TB_EINVAL, |f| unsafe { f(self.handle()) });
        self.ok("wake", rc)
    }

    /// Sends the messages of an end point that wait in a batch.
    ///
    /// # Errors
    /// The error of the driver.
    pub fn flush(&self, ep: Endpoint, deadline_ns: i64) -> Result<(), DriverError> {
        // SAFETY: the function is mandatory in a checked table; the session is open.
        let rc = self.table.flush.map_or(TB_EINVAL, |f| unsafe { f(self.handle(), ep.0, deadline_ns) });
        self.ok("flush", rc)
    }

    /// Waits until every message that a reliable writer sent is acknowledged.
    ///
    /// # Errors
    /// The error of the driver, for example [`Code::ETIMEDOUT`].
    pub fn wait_acked(&self, ep: Endpoint, deadline_ns: i64) -> Result<(), DriverError> {
        // SAFETY: the function is mandatory in a checked table; the session is open.
        let rc = self.table.wait_acked.map_or(TB_EINVAL, |f| unsafe { f(self.handle(), ep.0, deadline_ns) });
        self.ok("wait_acked", rc)
    }

    /// Asks the driver for `qos`, `stats`, `peers`, `unmatched`, `transport`, `threads` or `flow`, as JSON.
    ///
    /// # Errors
    /// [`Code::EUNSUPPORTED`] if the driver does not know `what`.
    pub fn query(&self, ep: Endpoint, what: &str) -> Result<String, DriverError> {
        Ok(String::from_utf8_lossy(&self.query_bytes(ep, what)?).into_owned())
    }

    /// The clock that the driver provides; `None` without the capability `scripted_clock`, or if the session runs in
    /// real time.
    ///
    /// # Errors
    /// The error of the driver, other than "unsupported".
    pub fn clock(&self) -> Result<Option<DriverClock>, DriverError> {
        self.clock_called("clock")
    }

    /// The clock of the receiving ends, if a calibration gives these ends another clock than the clock of the session.
    ///
    /// # Errors
    /// The error of the driver, other than "unsupported".
    pub fn far_clock(&self) -> Result<Option<DriverClock>, DriverError> {
        self.clock_called("far_clock")
    }

    fn clock_called(&self, what: &str) -> Result<Option<DriverClock>, DriverError> {
        let bytes = match self.query_bytes(Endpoint::SESSION, what) {
            Err(e) if e.code == Code::EUNSUPPORTED => return Ok(None),
            other => other?,
        };
        if bytes.len() < size_of::<tb_clock>() {
            return Ok(None);
        }
        // SAFETY: by the ABI the answer is a `tb_clock`, and there are enough bytes for it.
        let clock = unsafe { bytes.as_ptr().cast::<tb_clock>().read_unaligned() };
        Ok(DriverClock::new(clock))
    }

    fn query_bytes(&self, ep: Endpoint, what: &str) -> Result<Vec<u8>, DriverError> {
        unsafe extern "C" fn sink(ctx: *mut c_void, bytes: *const c_char, len: usize) {
            if !bytes.is_null() {
                // SAFETY: `ctx` is the vector of the caller below; the driver promises `len` bytes.
                unsafe { (*ctx.cast::<Vec<u8>>()).extend_from_slice(std::slice::from_raw_parts(bytes.cast(), len)) };
            }
        }
        let mut answer: Vec<u8> = Vec::new();
        let name = CString::new(what).unwrap_or_default();
        // SAFETY: `name` and `answer` live until the call returns, and the sink gets the context that belongs to it.
        let rc = unsafe { (self.query)(self.handle(), ep.0, name.as_ptr(), Some(sink), (&raw mut answer).cast()) };
        self.ok("query", rc)?;
        Ok(answer)
    }

    /// Destroys an end point. A wait on the end point ends before this call returns, and no callback about the end
    /// point runs afterwards.
    ///
    /// # Errors
    /// [`Code::ECLOSED`] if there is no such end point.
    pub fn destroy(&self, ep: Endpoint) -> Result<(), DriverError> {
        // SAFETY: the function is mandatory in a checked table; the session is open.
        let rc = self.table.destroy.map_or(TB_EINVAL, |f| unsafe { f(self.handle(), ep.0) });
        self.ok("destroy", rc)
    }

    /// Name of the driver to which the session belongs.
    pub fn driver_name(&self) -> &'static str {
        self.driver
    }

    fn ok(&self, call: &'static str, rc: c_int) -> Result<(), DriverError> {
        if rc == TB_OK { Ok(()) } else { Err(self.error(call, Code(rc))) }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(close) = self.table.close {
            // SAFETY: the session is open, and no other reference to it exists.
            unsafe { close(self.handle()) };
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("driver", &self.driver).finish_non_exhaustive()
    }
}
