//! What a driver has to do.

use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;

use super::fail::Outcome;
use super::host::Host;
use super::pair::Pair;
use crate::tb_view;

/// Readers that one `wait` takes: as many as there are bits in its answer.
pub const MAX_READERS: usize = u64::BITS as usize;

/// What `create` asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// `TB_WRITER` or `TB_READER`.
    pub kind: c_int,
    /// `TB_LISTENER`, `TB_BLOCK` or `TB_SPIN`; without meaning for a writer.
    pub mode: c_int,
    /// Topic as the host calls it.
    pub topic: &'a str,
    /// Largest payload, at most [`Session::MAX_PAYLOAD_BYTES`].
    pub max_len: u64,
    /// QoS policies.
    pub qos: &'a [Pair<'a>],
    /// Comes back in callbacks.
    pub tag: u64,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Bits of the readers that have samples.
    Ready(u64),
    /// `wake` was called.
    Woken,
}

/// One participant of a driver; dropping it closes the participant and all that is left in it.
///
/// The functions are those of [`tb_driver`](crate::tb_driver), which says what each has to do, and may be called from any
/// thread. Of their arguments is true what is checked without knowing the end points: pointers, sizes, kind, mode and
/// limits. `send`, `take`, `release` and `wait` are the hot path: no allocation, no lock that another end point holds, no
/// log.
pub trait Session: Sized + Send + Sync + 'static {
    /// Longest payload of any end point.
    const MAX_PAYLOAD_BYTES: u64;

    /// JSON by `schema/driver.json`, the same each time.
    fn describe() -> &'static CStr;

    /// Opens a participant. `host` may be called until it is dropped.
    ///
    /// # Errors
    /// `TB_EINVAL` names an option that is unknown or not valid.
    fn open(options: &[Pair<'_>], host: Host) -> Outcome<Self>;

    /// The host that opened the session.
    fn host(&self) -> &Host;

    /// Creates an end point and gives its number: from 1, never given twice.
    ///
    /// # Errors
    /// `TB_EQOS` names a policy that is unknown or not valid.
    fn create(&self, wanted: &Wanted<'_>) -> Outcome<u32>;

    /// Waits until `ep` has at least `peers` matched peers.
    ///
    /// # Errors
    /// `TB_ETIMEDOUT` after `deadline_ns`.
    fn wait_matched(&self, ep: u32, peers: u32, deadline_ns: i64) -> Outcome;

    /// Sends one sample; with `batch` it may wait until `flush`.
    ///
    /// # Errors
    /// `TB_EWOULDBLOCK` and `TB_ETIMEDOUT`, with a static text, are the middleware's back-pressure; `TB_ETOOBIG` is a
    /// payload over the end point's maximum.
    fn send(&self, ep: u32, seq: u64, payload: &[u8], batch: bool) -> Outcome;

    /// Blocks until one of 1 to [`MAX_READERS`] readers has a sample, or `wake`.
    ///
    /// # Errors
    /// `TB_ETIMEDOUT`, with a static text, after `deadline_ns`.
    fn wait(&self, eps: &[u32], deadline_ns: i64) -> Outcome<Waited>;

    /// Writes samples into the first places of `out`, without blocking, and gives their number.
    ///
    /// # Errors
    /// `TB_ECLOSED` when there is no such reader. Nothing to take is no error.
    fn take(&self, ep: u32, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize>;

    /// Gives back samples that `take` of this reader handed out; the host promises that they are.
    ///
    /// # Errors
    /// What the driver can tell of views that are not.
    fn release(&self, ep: u32, views: &mut [tb_view]) -> Outcome;

    /// From any thread: a blocked `wait` returns [`Waited::Woken`] within 100 ms.
    ///
    /// # Errors
    /// The middleware's refusal.
    fn wake(&self) -> Outcome;

    /// Pushes a pending batch out.
    ///
    /// # Errors
    /// `TB_ECLOSED` when there is no such end point.
    fn flush(&self, ep: u32, deadline_ns: i64) -> Outcome;

    /// Waits until all that a reliable writer sent is acknowledged. A driver without acknowledgements leaves it as it is.
    ///
    /// # Errors
    /// `TB_ETIMEDOUT` after `deadline_ns`.
    fn wait_acked(&self, ep: u32, deadline_ns: i64) -> Outcome {
        self.flush(ep, deadline_ns)
    }

    /// Answers `what` about an end point, or about the session if `ep` is 0: UTF-8 JSON, or the bytes of a `tb_clock`.
    ///
    /// # Errors
    /// `TB_EUNSUPPORTED` when the driver does not know `what`.
    fn query(&self, ep: u32, what: &str) -> Outcome<Vec<u8>>;

    /// Destroys an end point; a `wait` on it ends first.
    ///
    /// # Errors
    /// `TB_ECLOSED` when there is no such end point.
    fn destroy(&self, ep: u32) -> Outcome;
}
