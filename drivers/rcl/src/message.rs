//! The bytes of a message on the wire: a serialized `std_msgs/msg/UInt8MultiArray`.
//!
//! CDR in the byte order of the sender, 4 bytes each: encapsulation, number of dimensions (0), data offset (0), length of the
//! data; then the data: 8 bytes of sequence number, least significant byte first, and the payload.

use tailbound_abi::side::{Outcome, fail};
use tailbound_abi::{TB_EIO, TB_ENOMEM, tb_view};

use crate::library::Ros;
use crate::types::{MessageInfo, Serialized};

/// Largest payload of a sample in bytes.
pub const MAX_PAYLOAD_BYTES: u64 = 4 << 20;

/// Name of the message type in the graph of ROS 2.
pub const TYPE: &str = "std_msgs/msg/UInt8MultiArray";

/// Bytes before the sequence number.
const HEADER: usize = 16;
/// Bytes before the payload.
const BEFORE_PAYLOAD: usize = HEADER + 8;
/// Second byte of the encapsulation of plain CDR with the least significant byte first.
const LITTLE_ENDIAN: u8 = 1;

/// Memory for one serialized message. A library of ROS 2 may replace it by longer memory.
pub struct Buffer {
    raw: Serialized,
    free: unsafe extern "C" fn(*mut u8, *mut core::ffi::c_void),
}

// SAFETY: the memory belongs to the buffer; the allocator of rcutils may be called from any thread.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Makes memory for messages with payloads up to this length.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(ros: &Ros, max_len: u64) -> Outcome<Box<Buffer>> {
        // SAFETY: the function has no argument.
        let allocator = unsafe { (ros.f.rcutils_get_default_allocator)() };
        let [allocate, free, ..] = allocator.0;
        // Some middlewares align the length of a message to 4 bytes.
        let capacity = BEFORE_PAYLOAD + max_len as usize + 4;
        // SAFETY: the first two members of the allocator are these functions, and the last one is their argument.
        unsafe {
            let allocate: unsafe extern "C" fn(usize, *mut core::ffi::c_void) -> *mut u8 =
                core::mem::transmute(allocate);
            let free = core::mem::transmute::<
                *mut core::ffi::c_void,
                unsafe extern "C" fn(*mut u8, *mut core::ffi::c_void),
            >(free);
            let buffer = allocate(capacity, allocator.0[4]);
            if buffer.is_null() {
                return fail(TB_ENOMEM, "no memory for a message");
            }
            buffer.write_bytes(0, capacity);
            Ok(Box::new(Buffer { raw: Serialized { buffer, length: 0, capacity, allocator }, free }))
        }
    }

    /// The structure for rcl.
    #[inline]
    pub fn raw(&mut self) -> *mut Serialized {
        &raw mut self.raw
    }

    /// Writes a message. The payload is not longer than the buffer was made for.
    #[inline]
    pub fn write(&mut self, seq: u64, payload: &[u8]) {
        let data = 8 + payload.len();
        self.raw.length = HEADER + data;
        debug_assert!(self.raw.length <= self.raw.capacity);
        // SAFETY: the buffer has at least this length.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.raw.buffer, self.raw.length) };
        bytes[..HEADER].copy_from_slice(&[0; HEADER]);
        bytes[1] = LITTLE_ENDIAN;
        bytes[12..HEADER].copy_from_slice(&(data as u32).to_le_bytes());
        bytes[HEADER..BEFORE_PAYLOAD].copy_from_slice(&seq.to_le_bytes());
        bytes[BEFORE_PAYLOAD..].copy_from_slice(payload);
    }

    /// Makes the view of a received message; `loan` is the handle for the release.
    #[inline]
    pub fn view(&self, info: &MessageInfo, loan: u64) -> Outcome<tb_view> {
        let length = self.raw.length;
        // SAFETY: rcl wrote this number of bytes.
        let bytes = unsafe { std::slice::from_raw_parts(self.raw.buffer, length) };
        let Some((header, data)) = bytes.split_at_checked(HEADER) else { return malformed(length) };
        let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let announced = u32_at(12) as usize;
        let fits = header[1] == LITTLE_ENDIAN && u32_at(4) == 0 && (8..=data.len()).contains(&announced);
        let Some((seq, payload)) = data.split_first_chunk::<8>().filter(|_| fits) else { return malformed(length) };
        // Middlewares put what distinguishes writers into the first or into the second half.
        let gid = u128::from_be_bytes(info.gid);
        Ok(tb_view {
            seq: u64::from_le_bytes(*seq),
            data: payload.as_ptr(),
            len: (announced - 8) as u64,
            writer: (gid >> 64) as u64 ^ gid as u64,
            source_ns: info.source_ns.max(0),
            loan,
            ..tb_view::default()
        })
    }
}

#[cold]
fn malformed(length: usize) -> Outcome<tb_view> {
    fail(TB_EIO, format!("a message of {length} B is not a {TYPE} of the driver rcl"))
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the memory comes from this allocator.
        unsafe { (self.free)(self.raw.buffer, self.raw.allocator.0[4]) };
    }
}
