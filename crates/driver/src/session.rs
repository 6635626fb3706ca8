//! One participant of one driver.

use std::any::Any;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ops::Deref;
use std::sync::Arc;

use tailbound_abi::{TB_EINVAL, TB_OK, TB_READER, TB_WRITER, tb_clock, tb_host};

use crate::callbacks::{self, Callbacks, Shared};
use crate::clock::DriverClock;
use crate::description::ReceiveMode;
use crate::error::{Code, DriverError};
use crate::hot::{Hot, error};
use crate::kv::Kv;
use crate::load::Driver;

/// An end point of a session: the number that the driver gave. 0 stands for the session itself.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint(pub u32);

impl Endpoint {
    /// The session itself, for [`Session::query`].
    pub const SESSION: Endpoint = Endpoint(0);
}

/// What an end point does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It sends.
    Writer,
    /// It receives, in one of the modes.
    Reader(ReceiveMode),
}

/// One open participant. Usable from several threads; dropping it closes the participant.
///
/// The hot calls are those of [`Hot`], to which a session dereferences.
pub struct Session {
    hot: *const Hot,
    // In this order: the session closes in `drop`, then its host table goes, then the callbacks.
    _host: Box<tb_host>,
    _shared: Box<dyn Any + Send + Sync>,
}

// SAFETY: the functions of a table may be called from any thread (rules of the ABI); `hot` points into `_shared`.
unsafe impl Send for Session {}
// SAFETY: as above.
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
    /// Opens a participant; `callbacks` is called until the session is dropped.
    ///
    /// # Errors
    /// The driver's refusal: an option it does not know, an interface that is not there.
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
        // SAFETY: keys, values and the host table live through the call; the host table outlives the session.
        let rc = options
            .with_c(|kv, n| unsafe { open(kv, n, &raw const *host, &raw mut handle) })
            .map_err(|(code, text)| fail(code, &text))?;
        if rc != TB_OK {
            return Err(error(table, driver.name(), "open", Code(rc)));
        }
        if handle.is_null() {
            return Err(fail(TB_EINVAL, "the driver reported success and gave no session"));
        }
        shared.hot.opened(handle);
        Ok(Session { hot: &raw const shared.hot, _host: host, _shared: shared })
    }

    /// Creates a writer or reader of `topic` for payloads of up to `max_len` octets. `tag` comes back in the callbacks.
    ///
    /// # Errors
    /// The driver's refusal: a QoS policy it does not have, a mode it does not serve.
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
                // SAFETY: all pointers live through the call; the table was checked when the driver was loaded.
                create.map_or(TB_EINVAL, |f| unsafe {
                    f(self.handle(), kind, mode, topic.as_ptr(), max_len, kv, n, tag, &raw mut ep)
                })
            })
            .map_err(|(code, text)| fail(code, text))?;
        self.ok("create", rc)?;
        Ok(Endpoint(ep))
    }

    /// Waits until `ep` has `peers` matched peers.
    ///
    /// # Errors
    /// [`Code::ETIMEDOUT`] after `deadline_ns` (absolute `CLOCK_MONOTONIC`); ask [`Session::query`] for `unmatched` then.
    pub fn wait_matched(&self, ep: Endpoint, peers: u32, deadline_ns: i64) -> Result<(), DriverError> {
        // SAFETY: mandatory function of a checked table; the session is open.
        let rc = self.table.wait_matched.map_or(TB_EINVAL, |f| unsafe { f(self.handle(), ep.0, peers, deadline_ns) });
        self.ok("wait_matched", rc)
    }

    /// Makes a blocked [`Hot::wait`] of this session return within 100 ms.
    ///
    /// # Errors
    /// What the driver returned.
    pub fn wake(&self) -> Result<(), DriverError> {
        // SAFETY: as in `wait_matched`.
        let rc = self.table.wake.map_or(TB_EINVAL, |f| unsafe { f(self.handle()) });
        self.ok("wake", rc)
    }

    /// Pushes a batch out.
    ///
    /// # Errors
    /// What the driver returned.
    pub fn flush(&self, ep: Endpoint, deadline_ns: i64) -> Result<(), DriverError> {
        // SAFETY: as in `wait_matched`.
        let rc = self.table.flush.map_or(TB_EINVAL, |f| unsafe { f(self.handle(), ep.0, deadline_ns) });
        self.ok("flush", rc)
    }

    /// Waits until all that a reliable writer sent is acknowledged.
    ///
    /// # Errors
    /// What the driver returned, [`Code::ETIMEDOUT`] among it.
    pub fn wait_acked(&self, ep: Endpoint, deadline_ns: i64) -> Result<(), DriverError> {
        // SAFETY: as in `wait_matched`.
        let rc = self.table.wait_acked.map_or(TB_EINVAL, |f| unsafe { f(self.handle(), ep.0, deadline_ns) });
        self.ok("wait_acked", rc)
    }

    /// Asks for `qos`, `stats`, `peers`, `unmatched`, `transport`, `threads` or `flow`: JSON.
    ///
    /// # Errors
    /// [`Code::EUNSUPPORTED`] when the driver does not know `what`.
    pub fn query(&self, ep: Endpoint, what: &str) -> Result<String, DriverError> {
        Ok(String::from_utf8_lossy(&self.query_bytes(ep, what)?).into_owned())
    }

    /// The driver's own clock; `None` without the capability `scripted_clock` or when the session runs in real time.
    ///
    /// # Errors
    /// What the driver returned, other than "unsupported".
    pub fn clock(&self) -> Result<Option<DriverClock>, DriverError> {
        self.clock_called("clock")
    }

    /// The clock of the ends that receive, where a calibration gives them another one than that of the session.
    ///
    /// # Errors
    /// The same.
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
        // SAFETY: such an answer is a `tb_clock` in the form of the ABI, and there are bytes enough for it.
        let clock = unsafe { bytes.as_ptr().cast::<tb_clock>().read_unaligned() };
        Ok(DriverClock::new(clock))
    }

    fn query_bytes(&self, ep: Endpoint, what: &str) -> Result<Vec<u8>, DriverError> {
        unsafe extern "C" fn sink(ctx: *mut c_void, bytes: *const c_char, len: usize) {
            if !bytes.is_null() {
                // SAFETY: `ctx` is the vector below; the driver promises `len` bytes.
                unsafe { (*ctx.cast::<Vec<u8>>()).extend_from_slice(std::slice::from_raw_parts(bytes.cast(), len)) };
            }
        }
        let mut answer: Vec<u8> = Vec::new();
        let name = CString::new(what).unwrap_or_default();
        // SAFETY: `name` and `answer` live through the call, and the sink knows what its context is.
        let rc = unsafe { (self.query)(self.handle(), ep.0, name.as_ptr(), Some(sink), (&raw mut answer).cast()) };
        self.ok("query", rc)?;
        Ok(answer)
    }

    /// Destroys an end point; a wait on it ends first, and no callback of it runs afterwards.
    ///
    /// # Errors
    /// [`Code::ECLOSED`] when there is no such end point.
    pub fn destroy(&self, ep: Endpoint) -> Result<(), DriverError> {
        // SAFETY: as in `wait_matched`.
        let rc = self.table.destroy.map_or(TB_EINVAL, |f| unsafe { f(self.handle(), ep.0) });
        self.ok("destroy", rc)
    }

    /// Name of the driver.
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
            // SAFETY: the session is open, and nobody else holds a reference to it.
            unsafe { close(self.handle()) };
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("driver", &self.driver).finish_non_exhaustive()
    }
}
