//! Values that cross the seam.

use core::ffi::{c_char, c_int, c_void};

/// Major version of the ABI: a driver of another major version is refused.
pub const TB_ABI_MAJOR: u32 = 1;
/// Minor version of the ABI: a driver of a lower minor version is accepted, its missing tail is not called.
pub const TB_ABI_MINOR: u32 = 0;

/// Success.
pub const TB_OK: c_int = 0;
/// A wait ended because `wake` was called. Not an error.
pub const TB_WOKEN: c_int = 1;
/// An argument or option is not valid; `last_error` names it.
pub const TB_EINVAL: c_int = -1;
/// Memory or another resource ran out.
pub const TB_ENOMEM: c_int = -2;
/// The deadline passed.
pub const TB_ETIMEDOUT: c_int = -3;
/// The call would have to block and was told not to.
pub const TB_EWOULDBLOCK: c_int = -4;
/// The driver does not have this function, mode or option.
pub const TB_EUNSUPPORTED: c_int = -5;
/// The payload is longer than the end point's `max_len` or the driver's limit.
pub const TB_ETOOBIG: c_int = -6;
/// The end point or session does not exist (any more).
pub const TB_ECLOSED: c_int = -7;
/// The middleware or the operating system refused; `last_error` carries its text.
pub const TB_EIO: c_int = -8;
/// A QoS policy is not supported or contradictory; `last_error` names it.
pub const TB_EQOS: c_int = -9;

/// No deadline.
pub const TB_FOREVER: i64 = 0x7fff_ffff_ffff_ffff;

/// Kind of end point: a data writer.
pub const TB_WRITER: c_int = 0;
/// Kind of end point: a data reader.
pub const TB_READER: c_int = 1;

/// Receive mode: `tb_host.on_sample` is called on the middleware's thread.
pub const TB_LISTENER: c_int = 0;
/// Receive mode: a thread of the host blocks in `wait`, then calls `take`.
pub const TB_BLOCK: c_int = 1;
/// Receive mode: a thread of the host calls `take` without pause.
pub const TB_SPIN: c_int = 2;

/// Flag of [`tb_view`]: the middleware marked the sample as delivered inside the process.
pub const TB_VIEW_LOCAL: u32 = 1;

/// Flag of [`tb_send`]: the message may wait in a batch until `flush`.
pub const TB_SEND_BATCH: u32 = 1;

/// One received sample, valid until the callback returns or until `release`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tb_view {
    /// Bytes of this struct that the writer filled.
    pub size: u32,
    /// `TB_VIEW_*`.
    pub flags: u32,
    /// Sequence number that the sender gave.
    pub seq: u64,
    /// Payload octets (the sequence number is not among them).
    pub data: *const u8,
    /// Number of payload octets.
    pub len: u64,
    /// Identity of the writer within the session; 0 = not known.
    pub writer: u64,
    /// Source time stamp, `CLOCK_REALTIME` ns; 0 = not known.
    pub source_ns: i64,
    /// Kernel software receive time stamp, `CLOCK_REALTIME` ns; 0 = not known.
    pub kernel_rx_ns: i64,
    /// Hardware receive time stamp, ns of the NIC's clock; 0 = not known.
    pub hw_rx_ns: i64,
    /// The driver's own handle for `release`; 0 = nothing to release.
    pub loan: u64,
}

/// A zeroed view whose `size` says that all fields of this version are known.
impl Default for tb_view {
    fn default() -> Self {
        tb_view {
            size: size_of::<tb_view>() as u32,
            flags: 0,
            seq: 0,
            data: core::ptr::null(),
            len: 0,
            writer: 0,
            source_ns: 0,
            kernel_rx_ns: 0,
            hw_rx_ns: 0,
            loan: 0,
        }
    }
}

/// Options of one `send`; a null pointer means none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tb_send {
    /// Bytes of this struct that the writer filled.
    pub size: u32,
    /// `TB_SEND_*`.
    pub flags: u32,
    /// Launch time, `CLOCK_TAI` ns; 0 = at once.
    pub txtime_ns: i64,
}

/// A key and a value, both NUL-terminated UTF-8.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tb_kv {
    /// Key. Well-known for `open`: domain interface address peers multicast discovery_server transport naming config
    /// data unacked_limit payload.
    pub key: *const c_char,
    /// Value.
    pub value: *const c_char,
}

/// What the host offers to a driver. It outlives the session.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tb_host {
    /// Bytes of this struct that the host filled.
    pub size: u32,
    /// Reserved, 0.
    pub reserved: u32,
    /// Passed back in every call.
    pub ctx: *mut c_void,
    /// A sample arrived (listener mode), on the middleware's thread; it may call `send` and `take`, nothing else.
    pub on_sample: Option<unsafe extern "C" fn(ctx: *mut c_void, tag: u64, view: *const tb_view)>,
    /// The number of matched peers of an end point changed to `now`.
    pub on_match: Option<unsafe extern "C" fn(ctx: *mut c_void, tag: u64, now: i32)>,
    /// A message of the middleware; level 0 error, 1 warning, 2 info, 3 debug.
    pub log: Option<unsafe extern "C" fn(ctx: *mut c_void, level: c_int, text: *const c_char)>,
}

/// Receives the answer of `query`: UTF-8 JSON, or for `clock` and `far_clock` the bytes of a [`tb_clock`]. The far clock
/// stamps what the ends do that receive, where a calibration gives them another clock than that of the session.
pub type tb_sink = Option<unsafe extern "C" fn(ctx: *mut c_void, bytes: *const c_char, len: usize)>;

/// A clock that a driver brings along (only the calibration driver does), in place of the machine's.
///
/// `now` and `sleep_until` stand for `CLOCK_MONOTONIC`, `realtime` for `CLOCK_REALTIME`. The functions and `ctx` stay
/// valid until the process ends, so that a thread may read the clock while its session closes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tb_clock {
    /// Bytes of this struct that the driver filled.
    pub size: u32,
    /// Reserved, 0.
    pub reserved: u32,
    /// Passed back in every call.
    pub ctx: *mut c_void,
    /// Monotonic time, ns.
    pub now: Option<unsafe extern "C" fn(ctx: *mut c_void) -> i64>,
    /// Lets time pass until `deadline_ns`; callbacks may run in it.
    pub sleep_until: Option<unsafe extern "C" fn(ctx: *mut c_void, deadline_ns: i64)>,
    /// Wall-clock time, ns since 1970.
    pub realtime: Option<unsafe extern "C" fn(ctx: *mut c_void) -> i64>,
}
