//! The message on its way out and in.

use std::fmt;

use ros2_client::MessageInfo;
use serde::de::{Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use tailbound_abi::tb_view;

/// Name of the type on the wire: that of the message `tailbound_msgs/msg/Sample`.
pub const TYPE: &str = "tailbound_msgs::msg::dds_::Sample_";

/// A message to publish. The payload is the caller's, lent for the call.
#[derive(Serialize)]
pub struct Outgoing {
    pub seq: u64,
    #[serde(serialize_with = "octets")]
    pub payload: &'static [u8],
}

/// As one run of octets: serde would otherwise go through them one by one.
fn octets<S: Serializer>(payload: &&[u8], s: S) -> Result<S::Ok, S::Error> {
    s.serialize_bytes(payload)
}

/// A received message.
#[derive(Deserialize)]
pub struct Incoming {
    seq: u64,
    #[serde(deserialize_with = "owned")]
    payload: Vec<u8>,
}

fn owned<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
    struct Octets;
    impl Visitor<'_> for Octets {
        type Value = Vec<u8>;
        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("octets")
        }
        fn visit_byte_buf<E>(self, octets: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(octets)
        }
    }
    d.deserialize_byte_buf(Octets)
}

/// The view of a message. The payload stays where it is; the view owns it until [`give_back`].
pub fn lend((message, info): (Incoming, MessageInfo)) -> tb_view {
    let mut payload = std::mem::ManuallyDrop::new(message.payload);
    let mut writer = [0; 8];
    // Host, process and participant are the first twelve octets of the identity, the end point the last four.
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

/// Frees what a view owns.
///
/// # Safety
/// The view came from [`lend`] and was not given back since; length and place of its payload were not changed.
pub unsafe fn give_back(view: &mut tb_view) {
    let capacity = std::mem::take(&mut view.loan) as usize;
    if capacity > 0 {
        // SAFETY: the parts of the vector that `lend` took apart.
        drop(unsafe { Vec::from_raw_parts(view.data.cast_mut(), view.len as usize, capacity) });
    }
}
