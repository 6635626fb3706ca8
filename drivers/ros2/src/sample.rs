//! The message type of ROS 2 for samples, for sending and receiving.

use std::fmt;

use ros2_client::MessageInfo;
use serde::de::{Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use tailbound_abi::tb_view;

/// Largest payload of a sample in bytes.
pub const MAX_PAYLOAD_BYTES: u64 = 4 << 20;

/// Name in DDS of the type of the message `tailbound_msgs/msg/Sample`.
pub const TYPE: &str = "tailbound_msgs::msg::dds_::Sample_";

/// A message to publish. The payload is borrowed from the caller during the call.
#[derive(Serialize)]
pub struct Outgoing {
    pub seq: u64,
    #[serde(serialize_with = "bytes")]
    pub payload: &'static [u8],
}

/// Serialises the payload as one block; otherwise serde would process each byte separately.
fn bytes<S: Serializer>(payload: &&[u8], s: S) -> Result<S::Ok, S::Error> {
    s.serialize_bytes(payload)
}

/// A received message: a sample with its sequence number and payload.
#[derive(Deserialize)]
pub struct Incoming {
    seq: u64,
    #[serde(deserialize_with = "owned")]
    payload: Vec<u8>,
}

fn owned<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
    struct Bytes;
    impl Visitor<'_> for Bytes {
        type Value = Vec<u8>;
        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("bytes")
        }
        fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }
    }
    d.deserialize_byte_buf(Bytes)
}

/// Makes the view of a received message. The payload is not copied; the view owns the payload until [`give_back`].
pub fn lend((message, info): (Incoming, MessageInfo)) -> tb_view {
    let mut payload = std::mem::ManuallyDrop::new(message.payload);
    let mut writer = [0; 8];
    // The first twelve bytes of the identity are host, process and participant; the last four bytes are the end point.
    writer.copy_from_slice(&info.publisher_gid().as_bytes()[8..16]);
    tb_view {
        seq: message.seq,
        data: payload.as_mut_ptr(),
        len: payload.len() as u64,
        writer: u64::from_be_bytes(writer),
        source_ns: info.source_timestamp().map_or(0, |t| t.to_nanos().max(0)),
        loan: payload.capacity() as u64,
        ..tb_view::default()
    }
}

/// Frees the payload that a view owns.
///
/// # Safety
/// The view came from [`lend`] and was not given back since; length and address of its payload were not changed.
pub unsafe fn give_back(view: &mut tb_view) {
    let capacity = std::mem::take(&mut view.loan) as usize;
    if capacity > 0 {
        // SAFETY: these are the parts of the vector that `lend` took apart.
        drop(unsafe { Vec::from_raw_parts(view.data.cast_mut(), view.len as usize, capacity) });
    }
}
