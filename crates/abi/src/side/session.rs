//! The functions of a driver's session that a driver in Rust implements.

use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;

use super::fail::{Outcome, fail};
use super::host::Host;
use super::pair::Pair;
use crate::{TB_EUNSUPPORTED, tb_view};

/// Largest number of readers in one call of `wait`, which is the number of bits in its result.
pub const MAX_READERS: usize = u64::BITS as usize;

/// The end point that the loading program wants `create` to make.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Kind of the end point to be created: `TB_WRITER` or `TB_READER`.
    pub kind: c_int,
    /// Receive mode of the wanted reader: `TB_LISTENER`, `TB_BLOCK` or `TB_SPIN`; has no meaning for a writer.
    pub mode: c_int,
    /// Name of the topic of the end point to be created.
    pub topic: &'a str,
    /// Largest payload of the wanted end point in bytes, at most [`Session::MAX_PAYLOAD_BYTES`].
    pub max_len: u64,
    /// QoS policies of the end point to be created.
    pub qos: &'a [Pair<'a>],
    /// Number that identifies the end point to be created in the arguments of callbacks.
    pub tag: u64,
}

/// Result of the driver's function `wait`, which waits for samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Some readers have samples: bit i is set if the i-th reader has samples.
    Ready(u64),
    /// The wait for samples ended because the function `wake` was called.
    Woken,
}

/// One participant of a driver. When the session is dropped, the participant and everything in it is closed.
///
/// The functions of this trait are the functions of [`tb_driver`](crate::tb_driver), where their duties are documented;
/// any thread may call them. Before a function is called, pointers, sizes, kind, mode and limits were checked, but not
/// whether an end point exists. `send`, `take`, `release` and `wait` are the hot path: they allocate nothing, take no
/// lock that another end point uses, and log nothing.
pub trait Session: Sized + Send + Sync + 'static {
    /// Longest payload in bytes that an end point can have.
    const MAX_PAYLOAD_BYTES: u64;

    /// Returns the driver's description: JSON that follows `schema/driver.json`. Every call returns the same text.
    fn describe() -> &'static CStr;

    /// Opens a participant. The session may call the functions of `host` until the session is dropped.
    ///
    /// # Errors
    /// Returns `TB_EINVAL` with a text that names an option that is unknown or not valid.
    fn open(options: &[Pair<'_>], host: Host) -> Outcome<Self>;

    /// The functions of the loading program that opened the session.
    fn host(&self) -> &Host;

    /// Creates an end point and returns its number. Numbers start at 1 and are never used twice.
    ///
    /// # Errors
    /// Returns `TB_EQOS` with a text that names a policy that is unknown or not valid.
    fn create(&self, wanted: &Wanted<'_>) -> Outcome<u32>;

    /// Waits until the end point `ep` has at least `peers` matched peers.
    ///
    /// # Errors
    /// `TB_ETIMEDOUT` after `deadline_ns`.
    fn wait_matched(&self, ep: u32, peers: u32, deadline_ns: i64) -> Outcome;

    /// Sends one sample; with `batch` the sample may wait until `flush`.
    ///
    /// # Errors
    /// `TB_EWOULDBLOCK` and `TB_ETIMEDOUT`, with a static text, report back-pressure of the middleware; `TB_ETOOBIG`
    /// reports a payload over the end point's maximum.
    fn send(&self, ep: u32, seq: u64, payload: &[u8], batch: bool) -> Outcome;

    /// Sends one sample that is to leave at `txtime_ns`, in ns of `CLOCK_TAI`. Only drivers with the capability `txtime` have
    /// this function.
    ///
    /// # Errors
    /// The errors of [`Session::send`].
    fn send_at(&self, _ep: u32, _seq: u64, _payload: &[u8], _txtime_ns: i64) -> Outcome {
        fail(TB_EUNSUPPORTED, "the driver cannot send a message at a given time")
    }

    /// Blocks until one of 1 to [`MAX_READERS`] readers has a sample, or until `wake` is called.
    ///
    /// # Errors
    /// `TB_ETIMEDOUT`, with a static text, after `deadline_ns`.
    fn wait(&self, eps: &[u32], deadline_ns: i64) -> Outcome<Waited>;

    /// Writes samples into the first elements of `out`, without blocking, and returns their number.
    ///
    /// # Errors
    /// `TB_ECLOSED` if there is no such reader. It is not an error if there is no sample.
    fn take(&self, ep: u32, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize>;

    /// Returns to the driver the samples that `take` of this reader delivered; the loading program promises that the
    /// samples come from this reader.
    ///
    /// # Errors
    /// The driver found a view that `take` of this reader did not return.
    fn release(&self, ep: u32, views: &mut [tb_view]) -> Outcome;

    /// Makes a blocked `wait` return [`Waited::Woken`] within 100 ms. Any thread may call this function.
    ///
    /// # Errors
    /// The middleware refused the call.
    fn wake(&self) -> Outcome;

    /// Sends the messages of an end point that wait in a batch.
    ///
    /// # Errors
    /// `TB_ECLOSED` if there is no such end point.
    fn flush(&self, ep: u32, deadline_ns: i64) -> Outcome;

    /// Waits until every message that a reliable writer sent is acknowledged. A driver without acknowledgements keeps
    /// this default implementation, which only calls `flush`.
    ///
    /// # Errors
    /// `TB_ETIMEDOUT` after `deadline_ns`.
    fn wait_acked(&self, ep: u32, deadline_ns: i64) -> Outcome {
        self.flush(ep, deadline_ns)
    }

    /// Returns the answer to the query `what` about an end point, or about the session if `ep` is 0: UTF-8 JSON, or the
    /// bytes of a `tb_clock`.
    ///
    /// # Errors
    /// `TB_EUNSUPPORTED` if the driver does not know `what`.
    fn query(&self, ep: u32, what: &str) -> Outcome<Vec<u8>>;

    /// Destroys an end point. A `wait` on the end point ends before this call returns.
    ///
    /// # Errors
    /// `TB_ECLOSED` if there is no such end point.
    fn destroy(&self, ep: u32) -> Outcome;
}
