//! The table of functions that a driver provides to the program that loads the driver.

use crate::{tb_host, tb_kv, tb_send, tb_sink, tb_view};
use core::ffi::{c_char, c_int, c_void};

/// The table of functions of one driver. All functions except `loan` and `commit` are mandatory; these two are null
/// pointers if the driver lacks the capability `loan`.
///
/// A session is one participant; one process may have many sessions. End points are numbers that the driver assigns and
/// never uses again within a session. `send`, `take`, `release` and `wait` are the hot path: they allocate nothing,
/// take no lock that another end point uses, and log nothing.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tb_driver {
    /// Major version of the ABI ([`crate::TB_ABI_MAJOR`]). The loading program checks this member before it reads any
    /// other member.
    pub abi_major: u32,
    /// Minor version of the ABI for which the driver was built.
    pub abi_minor: u32,
    /// Number of bytes of the driver's table of functions that the driver filled in.
    pub size: u32,
    /// Reserved member of the table of functions that a driver provides; always 0.
    pub flags: u32,
    /// Returns the driver's description, JSON that follows `schema/driver.json`: name, versions, capabilities, limits,
    /// options, qos, receive_modes, packages, roles.
    pub describe: Option<unsafe extern "C" fn() -> *const c_char>,
    /// Opens one participant of the middleware, with the driver options `kv`.
    pub open: Option<
        unsafe extern "C" fn(kv: *const tb_kv, n: usize, host: *const tb_host, session: *mut *mut c_void) -> c_int,
    >,
    /// Creates a writer or reader of `topic` for payloads of at most `max_len` bytes. Callbacks about this end point
    /// get `tag` as an argument.
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
    /// Waits until the end point `ep` has at least `peers` matched peers.
    pub wait_matched:
        Option<unsafe extern "C" fn(session: *mut c_void, ep: u32, peers: u32, deadline_ns: i64) -> c_int>,
    /// Sends one sample of a writer. Returns `TB_OK`, `TB_EWOULDBLOCK`, `TB_ETIMEDOUT`, `TB_ETOOBIG` or another error
    /// code.
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
    /// Blocks until one of the readers `ep[0..n]` has a sample (n <= 64). Bit i of `ready` is set if the reader `ep[i]`
    /// has a sample.
    pub wait: Option<
        unsafe extern "C" fn(
            session: *mut c_void,
            ep: *const u32,
            n: usize,
            deadline_ns: i64,
            ready: *mut u64,
        ) -> c_int,
    >,
    /// Takes at most `cap` samples of a reader without blocking.
    pub take:
        Option<unsafe extern "C" fn(session: *mut c_void, ep: u32, out: *mut tb_view, cap: u32, n: *mut u32) -> c_int>,
    /// Returns taken samples to the driver, which may then use their memory again.
    pub release: Option<unsafe extern "C" fn(session: *mut c_void, ep: u32, views: *mut tb_view, n: u32) -> c_int>,
    /// Makes a blocked `wait` of this session return `TB_WOKEN` within 100 ms. Any thread may call this function.
    pub wake: Option<unsafe extern "C" fn(session: *mut c_void) -> c_int>,
    /// Sends the messages of an end point that wait in a batch.
    pub flush: Option<unsafe extern "C" fn(session: *mut c_void, ep: u32, deadline_ns: i64) -> c_int>,
    /// Waits until every message that a reliable writer sent is acknowledged.
    pub wait_acked: Option<unsafe extern "C" fn(session: *mut c_void, ep: u32, deadline_ns: i64) -> c_int>,
    /// Passes the answer to the query `what` (qos stats peers unmatched transport threads clock far_clock flow) to
    /// `sink`; `ep` 0 means that the query is about the session.
    pub query: Option<
        unsafe extern "C" fn(
            session: *mut c_void,
            ep: u32,
            what: *const c_char,
            sink: tb_sink,
            ctx: *mut c_void,
        ) -> c_int,
    >,
    /// Destroys an end point. A `wait` on the end point ends before this call returns.
    pub destroy: Option<unsafe extern "C" fn(session: *mut c_void, ep: u32) -> c_int>,
    /// Closes the participant and all end points that still exist in the driver's session.
    pub close: Option<unsafe extern "C" fn(session: *mut c_void)>,
    /// Returns the text of the last error of the calling thread.
    pub last_error: Option<unsafe extern "C" fn() -> *const c_char>,
    /// Lends the caller a buffer for `len` payload bytes (capability `loan`).
    pub loan: Option<unsafe extern "C" fn(session: *mut c_void, ep: u32, len: u64, buf: *mut *mut c_void) -> c_int>,
    /// Sends the sample in a buffer that the driver's function `loan` lent.
    pub commit: Option<unsafe extern "C" fn(session: *mut c_void, ep: u32, seq: u64, buf: *mut c_void) -> c_int>,
    /// Reserved members of the table of functions that a driver provides; always null pointers.
    pub reserved: [*mut c_void; 8],
}

// SAFETY: a table consists of constant data and function pointers; a driver never changes the table after the host has
// received it.
unsafe impl Sync for tb_driver {}
// SAFETY: the table is constant, see `Sync`.
unsafe impl Send for tb_driver {}
