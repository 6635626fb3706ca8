//! Structures of rcl, rcutils and rmw, as far as they are alike from Humble to Rolling.
//!
//! Source: the headers of these libraries in Humble and Jazzy. A structure whose size differs between distributions has more
//! room here than the largest of them.

use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;

/// Result of a function of rcl or rmw: success.
pub const RET_OK: c_int = 0;
/// Result of `rcl_wait` or `rcl_publisher_wait_for_all_acked`: the time has passed.
pub const RET_TIMEOUT: c_int = 2;
/// Result of a take: there was no message.
pub const RET_TAKE_FAILED: c_int = 401;

/// Number of the event "QoS of a peer is incompatible", for publishers and for subscriptions.
pub const EVENT_INCOMPATIBLE_QOS: c_int = 2;

/// `rcutils_allocator_t`: four functions and their argument.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Allocator(pub [*mut c_void; 5]);

/// A structure with only a pointer to its implementation: init options, publisher, subscription, event.
#[repr(C)]
pub struct Handle(pub *mut c_void);

impl Handle {
    pub const NONE: Handle = Handle(null_mut());
}

/// `rcl_context_t`: arguments, implementation, instance id.
#[repr(C)]
pub struct RclContext(pub [*mut c_void; 2], pub u64);

/// `rcl_node_t` and `rcl_guard_condition_t`: context and implementation.
#[repr(C)]
pub struct InContext(pub [*mut c_void; 2]);

impl InContext {
    pub const NONE: InContext = InContext([null_mut(); 2]);
}

/// `rmw_time_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    pub s: u64,
    pub ns: u64,
}

/// `rmw_qos_profile_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    pub history: c_int,
    pub depth: usize,
    pub reliability: c_int,
    pub durability: c_int,
    pub deadline: Time,
    pub lifespan: Time,
    pub liveliness: c_int,
    pub lease: Time,
    /// `avoid_ros_namespace_conventions`; a number, because a structure with another layout may have any value here.
    pub avoid_names: u8,
}

/// Options of a publisher, of a subscription or of a node. The profile is the first member of the options of the first two;
/// the rest is given back to rcl as it came from there.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EndOptions {
    pub profile: Profile,
    rest: MaybeUninit<[u8; 936]>,
}

/// `rcl_node_options_t`, with room.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NodeOptions(MaybeUninit<[u64; 128]>);

/// `rcutils_uint8_array_t`, which is `rmw_serialized_message_t`.
#[repr(C)]
pub struct Serialized {
    pub buffer: *mut u8,
    pub length: usize,
    pub capacity: usize,
    pub allocator: Allocator,
}

/// `rmw_message_info_t` up to the identity of the publisher, whose length differs.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MessageInfo {
    pub source_ns: i64,
    pub received_ns: i64,
    pub sequence_numbers: [u64; 2],
    pub implementation: *const c_char,
    /// The first 16 bytes of the identity of the publisher, which all middlewares write.
    pub gid: [u8; 16],
}

/// `rcl_wait_set_t`: six lists with their lengths, and the implementation.
#[repr(C)]
pub struct WaitSet {
    pub subscriptions: *mut *const Handle,
    pub subscriptions_len: usize,
    pub guards: *mut *const InContext,
    pub guards_len: usize,
    pub others: [usize; 8],
    pub implementation: *mut c_void,
}

/// `rmw_qos_incompatible_event_status_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IncompatibleQos {
    pub total: i32,
    pub change: i32,
    pub policy: c_int,
}

/// `rcutils_error_string_t`.
#[repr(C)]
pub struct ErrorString(pub [u8; 1024]);
