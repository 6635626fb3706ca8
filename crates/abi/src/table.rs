//! The driver table itself.

use crate::{tb_host, tb_kv, tb_send, tb_sink, tb_view};
use core::ffi::{c_char, c_int, c_void};

/// One driver. Every pointer of the first block is mandatory; `loan` and `commit` are null without the capability `loan`.
///
/// A session is one participant; many may exist in one process. End points are numbers that the driver hands out, never
/// reused within a session. `send`, `take`, `release` and `wait` are the hot path: no allocation, no lock that another
/// end point holds, no log.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tb_driver {
    /// Major ABI version ([`crate::TB_ABI_MAJOR`]). Checked before anything else is touched.
    pub abi_major: u32,
    /// Minor ABI version.
    pub abi_minor: u32,
    /// Bytes of this table that the driver fills.
    pub size: u32,
    /// Reserved, 0.
    pub flags: u32,
    /// JSON by `schema/driver.json`: name, versions, capabilities, limits, options, qos, receive_modes, packages, roles.
    pub describe: Option<unsafe extern "C" fn() -> *const c_char>,
    /// Opens one participant.
    pub open: Option<
        unsafe extern "C" fn(kv: *const tb_kv, n: usize, host: *const tb_host, session: *mut *mut c_void) -> c_int,
    >,
    /// Creates a writer or reader of `topic` for payloads up to `max_len`; `tag` comes back in callbacks.
    pub create: Option<
        unsafe extern "C" fn(
            session: *mut c_void,
            kind: c_int,
            mode: c_int,
            topic: *const c_char,
            max_len: u64,
            qos: *const tb_kv,
            n: usize,
            tag: u64,
            ep: *mut u32,
        ) -> c_int,
    >,
    /// Waits until `ep` has at least `peers` matched peers.
    pub wait_matched:
        Option<unsafe extern "C" fn(session: *mut c_void, ep: u32, peers: u32, deadline_ns: i64) -> c_int>,
    /// Sends one sample: `TB_OK`, `TB_EWOULDBLOCK`, `TB_ETIMEDOUT`, `TB_ETOOBIG` or another error.
    pub send: Option<
        unsafe extern "C" fn(
            session: *mut c_void,
            ep: u32,
            seq: u64,
            data: *const u8,
            len: u64,
            opt: *const tb_send,
        ) -> c_int,
    >,
    /// Blocks until a reader of `ep[0..n]` has a sample; bit i of `ready` is `ep[i]` (n <= 64).
    pub wait: Option<
        unsafe extern "C" fn(
            session: *mut c_void,
            ep: *const u32,
            n: usize,
            deadline_ns: i64,
            ready: *mut u64,
        ) -> c_int,
    >,
    /// Takes up to `cap` samples without blocking.
    pub take:
        Option<unsafe extern "C" fn(session: *mut c_void, ep: u32, out: *mut tb_view, cap: u32, n: *mut u32) -> c_int>,
    /// Gives taken samples back.
    pub release: Option<unsafe extern "C" fn(session: *mut c_void, ep: u32, views: *mut tb_view, n: u32) -> c_int>,
    /// From any thread: a blocked `wait` of this session returns `TB_WOKEN` within 100 ms.
    pub wake: Option<unsafe extern "C" fn(session: *mut c_void) -> c_int>,
    /// Pushes a pending batch out.
    pub flush: Option<unsafe extern "C" fn(session: *mut c_void, ep: u32, deadline_ns: i64) -> c_int>,
    /// Waits until all that a reliable writer sent is acknowledged.
    pub wait_acked: Option<unsafe extern "C" fn(session: *mut c_void, ep: u32, deadline_ns: i64) -> c_int>,
    /// Answers `what` (qos stats peers unmatched transport threads clock flow) into `sink`; `ep` 0 is the session.
    pub query: Option<
        unsafe extern "C" fn(
            session: *mut c_void,
            ep: u32,
            what: *const c_char,
            sink: tb_sink,
            ctx: *mut c_void,
        ) -> c_int,
    >,
    /// Destroys an end point; a `wait` on it ends first.
    pub destroy: Option<unsafe extern "C" fn(session: *mut c_void, ep: u32) -> c_int>,
    /// Closes the participant and all that is left in it.
    pub close: Option<unsafe extern "C" fn(session: *mut c_void)>,
    /// Text of the last error of the calling thread.
    pub last_error: Option<unsafe extern "C" fn() -> *const c_char>,
    /// Lends a buffer for `len` payload octets (capability `loan`).
    pub loan: Option<unsafe extern "C" fn(session: *mut c_void, ep: u32, len: u64, buf: *mut *mut c_void) -> c_int>,
    /// Sends a lent buffer.
    pub commit: Option<unsafe extern "C" fn(session: *mut c_void, ep: u32, seq: u64, buf: *mut c_void) -> c_int>,
    /// Null.
    pub reserved: [*mut c_void; 8],
}

// SAFETY: a table is constant data and function pointers; a driver never changes it after handing it out.
unsafe impl Sync for tb_driver {}
// SAFETY: as above.
unsafe impl Send for tb_driver {}
