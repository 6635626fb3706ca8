//! Reads RTPS messages, the datagrams of DDS: which samples of which writers they contain, when the samples were written,
//! how the protocol repeats them, and what participants announce about topics and types.
//!
//! Input: the payload of a UDP datagram, or its first bytes. Format: OMG DDSI-RTPS 2.5 (formal/2022-04-01), clauses 9.3 to
//! 9.6. Crates that implement RTPS (rustdds, dust_dds, rtps-parser) read whole messages only; the kernel's records and the
//! copies of a capture have the first bytes. Nothing here allocates, but the names in announcements.

mod content;
mod discovery;
mod message;
mod numbers;
mod parameters;
mod sample;

pub use content::{AckNack, Content, Gap, Heartbeat, SequenceSet, Time};
pub use discovery::{Announced, Announcement, Durability, EndpointFound, ParticipantFound};
pub use message::{Message, Submessage};
pub use sample::{EntityId, Guid, GuidPrefix, Sample, VendorId};
