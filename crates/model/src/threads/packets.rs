//! Ways of messages through the kernel, from the send call to the socket of the receiver.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Ways of messages that one agent recorded: of the messages that its ends sent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Packets {
    /// Begin and end of each time span whose hops are in `hops`, monotonic ns, in rising order and without overlap.
    pub windows: Vec<(i64, i64)>,
    /// Begin and end of each time span in which records were lost or not kept, monotonic ns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<(i64, i64)>,
    /// Devices of the hops.
    pub devices: Vec<PacketDevice>,
    /// Hops of the messages of these time spans, in the order of time.
    pub hops: Vec<PacketHop>,
    /// The places at which the kernel dropped messages of the whole trial, at most 10,000, in the order of time. Their
    /// place is always `dropped`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<PacketHop>,
    /// Datagrams that threads read from the sockets of the ends in these time spans, in the order of time.
    pub reads: Vec<SocketRead>,
    /// The kernel's names of the reasons for which packets were dropped, by number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<u32, String>,
    /// Numbers of datagrams of the whole trial that were sent and were not followed, by the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_followed: BTreeMap<NotFollowed, u64>,
}

/// A device through which packets passed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PacketDevice {
    /// Name of the network device.
    pub name: String,
    /// Number of the device's network namespace.
    pub namespace: u32,
    /// Kind of the queue discipline of the device, e.g. `tbf`; absent if no packet was queued there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discipline: Option<String>,
}

/// One place of one message in the kernel, and the time at which the message was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketHop {
    /// Time at which the message was at this place, monotonic ns.
    pub at_ns: i64,
    /// Sequence number of the message: `stream << 48 | slot counter`. If the datagram could not be read, the number of the
    /// datagram with the stream [`IN_PAGES`](crate::IN_PAGES) or [`PROTECTED`](crate::PROTECTED): it is followed by its packet
    /// buffer.
    pub seq: u64,
    /// The place of the message at this time.
    pub at: HopPlace,
    /// CPU that handled the message.
    pub cpu: u32,
    /// Id of the thread that ran on this CPU. It has to do with the message only at the place `queued`.
    pub thread: i32,
    /// Number of the kernel's packet buffer. Hops of a message with the same number belong to the same packet, unless the
    /// kernel used the buffer again after it had freed the packet.
    pub buffer: u32,
    /// Index of the device in `devices`; absent at a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u16>,
    /// Offset of the IP fragment in the datagram, bytes; 0 for the first fragment and for whole datagrams.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: u16,
    /// Number of the first part of the message in this datagram, from 1, if the middleware divided the message among
    /// several datagrams (DATA_FRAG); 0 or absent if the datagram contains the whole message.
    #[serde(default, skip_serializing_if = "is_none")]
    pub part: u32,
    /// Number of the run of soft interrupts of the CPU that handled the message at this place; 0 or absent if none did. A
    /// run is one poll of a device: between two places of a message in one run, no program had the message.
    #[serde(default, skip_serializing_if = "is_none")]
    pub run: u32,
    /// Number of the kernel's reason for a drop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(offset: &u16) -> bool {
    *offset == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(number: &u32) -> bool {
    *number == 0
}

/// Places of a message in the kernel, in the order in which a message passes them on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HopPlace {
    /// The message reaches the queue discipline of a device.
    Queued,
    /// The driver of a device gets the message for transmission.
    Transmitted,
    /// A device has received the message, which waits for the soft interrupt that receives packets.
    Backlog,
    /// The soft interrupt that receives packets handles the message.
    Received,
    /// The message is in the receive buffer of a socket.
    InSocket,
    /// The kernel dropped the message.
    Dropped,
}

/// A thread read a datagram from a socket of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketRead {
    /// Time at which the kernel had copied the datagram for the thread, monotonic ns.
    pub at_ns: i64,
    /// Id of the thread that read the datagram.
    pub thread: i32,
    /// Port of the socket.
    pub port: u16,
}

/// Reasons why a datagram that an end sent was not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotFollowed {
    /// The first bytes of the datagram were in a page of their own, which is not read. Only in records of earlier releases: such
    /// datagrams are followed by their packet buffer.
    InPages,
    /// The datagram was encrypted or signed. Only in records of earlier releases, as above.
    Protected,
    /// The first fragment of the datagram was not seen.
    NoFirstFragment,
    /// The datagram had a part of a message that the middleware divided among several datagrams, and the datagram with the
    /// first part was not seen.
    Divided,
}
