//! Types and constants of the values that the loading program and a driver exchange.

use core::ffi::{c_char, c_int, c_void};

/// Major version of the ABI. A driver with another major version is refused.
pub const TB_ABI_MAJOR: u32 = 1;
/// Minor version of the ABI. A driver with a lower minor version is accepted; the functions that its table lacks are
/// not called.
pub const TB_ABI_MINOR: u32 = 0;

/// Result code of a driver's function: success.
pub const TB_OK: c_int = 0;
/// Result code: a wait ended because `wake` was called. This is not an error.
pub const TB_WOKEN: c_int = 1;
/// Error code: an argument or option is not valid; the text of `last_error` names it.
pub const TB_EINVAL: c_int = -1;
/// Error code of a driver's function: memory or another resource ran out.
pub const TB_ENOMEM: c_int = -2;
/// Error code of a driver's function: the deadline of the call passed.
pub const TB_ETIMEDOUT: c_int = -3;
/// Error code: the call would have to block, but the caller does not want to block.
pub const TB_EWOULDBLOCK: c_int = -4;
/// Error code: the driver does not have the function, mode or option.
pub const TB_EUNSUPPORTED: c_int = -5;
/// Error code: the payload is longer than the end point's `max_len` or the driver's limit.
pub const TB_ETOOBIG: c_int = -6;
/// Error code: the end point or the driver's session does not exist, or was closed.
pub const TB_ECLOSED: c_int = -7;
/// Error code: the middleware or the operating system refused the call; `last_error` returns its text.
pub const TB_EIO: c_int = -8;
/// Error code: a QoS policy is not supported or contradicts another policy; the text of `last_error` names it.
pub const TB_EQOS: c_int = -9;

/// Deadline for calls of a driver's function that wait without a time limit.
pub const TB_FOREVER: i64 = 0x7fff_ffff_ffff_ffff;

/// Kind of end point: a writer, which sends samples.
pub const TB_WRITER: c_int = 0;
/// Kind of end point: a reader, which receives samples.
pub const TB_READER: c_int = 1;

/// Receive mode: the driver calls `tb_host.on_sample` on a thread of the middleware.
pub const TB_LISTENER: c_int = 0;
/// Receive mode: a thread of the loading program blocks in `wait`, then calls `take`.
pub const TB_BLOCK: c_int = 1;
/// Receive mode: a thread of the loading program calls `take` without pause.
pub const TB_SPIN: c_int = 2;

/// Flag of [`tb_view`]: the middleware marked the sample as delivered inside the process.
pub const TB_VIEW_LOCAL: u32 = 1;

/// Flag of [`tb_send`]: the message may wait in a batch until `flush`.
pub const TB_SEND_BATCH: u32 = 1;

/// One received sample. The sample is valid until the callback returns or until `release` is called.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tb_view {
    /// Number of bytes of this struct that were filled in.
    pub size: u32,
    /// Flags of the received sample: a combination of `TB_VIEW_*`.
    pub flags: u32,
    /// Sequence number that the sender wrote into the sample.
    pub seq: u64,
    /// Payload bytes of the sample; the sequence number is not part of the payload.
    pub data: *const u8,
    /// Length of the sample's payload in bytes.
    pub len: u64,
    /// Identity of the sample's writer within the session; 0 if the writer is not known.
    pub writer: u64,
    /// Source timestamp of the sample in ns of `CLOCK_REALTIME`; 0 if not known.
    pub source_ns: i64,
    /// Software receive timestamp of the kernel for the sample, in ns of `CLOCK_REALTIME`; 0 if not known.
    pub kernel_rx_ns: i64,
    /// Hardware receive timestamp of the sample, in ns of the clock of the network card; 0 if not known.
    pub hw_rx_ns: i64,
    /// Handle of the received sample that the driver needs in `release`; 0 if nothing must be released.
    pub loan: u64,
}

/// Makes a view of zeros whose `size` says that every field of this version exists.
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

/// Options of one `send` call. A null pointer means that there are no options.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tb_send {
    /// Number of bytes of this struct that were filled in.
    pub size: u32,
    /// Flags of the `send` call: a combination of `TB_SEND_*`.
    pub flags: u32,
    /// Time at which the sample is to be sent, in ns of `CLOCK_TAI`; 0 means immediately.
    pub txtime_ns: i64,
}

/// Key and value of an option or QoS policy, both UTF-8 strings that end with a NUL byte.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tb_kv {
    /// Key of an option or QoS policy. Every driver may get these keys in `open`: domain interface address peers
    /// multicast discovery_server transport naming config data unacked_limit payload.
    pub key: *const c_char,
    /// Value of the driver option or QoS policy.
    pub value: *const c_char,
}

/// Functions of the loading program that a driver may call. The functions exist longer than the session.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tb_host {
    /// Number of bytes of this struct that the loading program filled in.
    pub size: u32,
    /// Reserved member of the table of callbacks that the loading program gives to a driver; always 0.
    pub reserved: u32,
    /// Pointer of the loading program that the driver passes back in every call.
    pub ctx: *mut c_void,
    /// Receives a sample (listener mode). The driver calls this function on a thread of the middleware; the function
    /// may call `send` and `take` of the driver, but no other function.
    pub on_sample: Option<unsafe extern "C" fn(ctx: *mut c_void, tag: u64, view: *const tb_view)>,
    /// Receives the new number of matched peers, `now`, of an end point.
    pub on_match: Option<unsafe extern "C" fn(ctx: *mut c_void, tag: u64, now: i32)>,
    /// Receives a log message of the middleware; level 0 is an error, 1 a warning, 2 information, 3 debugging output.
    pub log: Option<unsafe extern "C" fn(ctx: *mut c_void, level: c_int, text: *const c_char)>,
}

/// Receives the answer of `query`: UTF-8 JSON, or for `clock` and `far_clock` the bytes of a [`tb_clock`]. The far
/// clock is the clock of the receiving ends, if a calibration gives these ends another clock than the clock of the
/// session.
pub type tb_sink = Option<unsafe extern "C" fn(ctx: *mut c_void, bytes: *const c_char, len: usize)>;

/// A clock that a driver provides in place of the machine's clock. Only the calibration driver provides such a clock.
///
/// `now` and `sleep_until` replace `CLOCK_MONOTONIC`, `realtime` replaces `CLOCK_REALTIME`. These functions and `ctx`
/// stay valid until the process ends, so a thread may read the clock while its session closes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tb_clock {
    /// Number of bytes of this struct that the driver filled in.
    pub size: u32,
    /// Reserved member of the struct that describes a driver's own clock; always 0.
    pub reserved: u32,
    /// Pointer of the driver that the loading program passes back in every call of the clock.
    pub ctx: *mut c_void,
    /// Reads the monotonic time of the driver's own clock in ns.
    pub now: Option<unsafe extern "C" fn(ctx: *mut c_void) -> i64>,
    /// Lets the time of the driver's own clock pass until `deadline_ns`. Callbacks may run during this call.
    pub sleep_until: Option<unsafe extern "C" fn(ctx: *mut c_void, deadline_ns: i64)>,
    /// Reads the wall-clock time of the driver's own clock, in ns since 1970.
    pub realtime: Option<unsafe extern "C" fn(ctx: *mut c_void) -> i64>,
}
