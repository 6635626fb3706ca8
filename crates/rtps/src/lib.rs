//! Reads the first bytes of RTPS messages, the datagrams of DDS: which samples of which writers they contain.
//!
//! Input: the payload of a UDP datagram, or its first bytes. Output: the DATA and DATA_FRAG submessages with their
//! writer, sequence number and the begin of their data. Format: OMG DDSI-RTPS 2.5 (formal/2022-04-01), clauses 9.4.4 and
//! 9.4.5. Crates that implement RTPS (rustdds, dust_dds, rtps-parser) read whole messages only; the kernel's records have
//! the first bytes.

mod message;
mod sample;

pub use message::{Message, Submessage};
pub use sample::{EntityId, GuidPrefix, Sample};
