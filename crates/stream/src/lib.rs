//! Byte streams that survive a cut: a process is held beside a socket, and whoever speaks with it may come back.
//!
//! ```text
//!  join ══ any pair of byte streams ══ relay ── socket ── hold ── the held process
//!  (client)   cut and opened anew      (short-lived)      (stays)
//! ```
//!
//! In: a way to open a connection, a command, octets for the held process. Out: its octets, each once and in order, and how
//! it ended, however often the connection was cut. It knows nothing of agents, pods or ssh.
//!
//! # On a connection
//!
//! First a line of JSON each way. The client says `{"session", "release", "command", "received", "resumes"}`: the session's
//! identity, its release, the arguments of the process, how many octets it has received, and whether the session was answered
//! before. The holder answers `{"received", "new", "release"}`, or `{"refused"}` with a sentence. Each side goes on from the
//! octet that the other has received.
//!
//! Frames follow: a kind (u8), a length (u32, little endian, at most 65,536) and a body.
//!
//! | kind | body |
//! |---|---|
//! | 0 data | the next octets |
//! | 1 acknowledged | u64, little endian: octets received so far |
//! | 2 ping | the same count |
//! | 3 end | empty: no octets follow in this direction |
//! | 4 ended | text: how the held process ended; empty from the client, which knows it now |
//!
//! An octet is received once it has been handed on: to the held process, or to the client's output. Up to 4 MiB that the
//! other side has not received are kept in each direction; beyond that nothing is read from the source.
//!
//! # What is sent when
//!
//! Received octets are acknowledged every 256 KiB. A client sends a ping every 5 s, the holder answers it; both carry the
//! count, so that nothing else is acknowledged. A ping is 13 octets. While no data flows nothing but pings is sent.
//!
//! A client that has heard nothing for 12 s takes the connection for dead and opens another. A holder that has heard nothing
//! from a session's client for the lease ends the session; if from nobody, itself.

mod carry;
mod frame;
mod greeting;
mod hold;
mod join;
mod relay;
mod session;
mod side;

pub use hold::{HoldError, Over, hold};
pub use join::{Ended, JoinError, join};
pub use relay::{RelayError, carry, relay};

/// The release of which each side tells the other.
pub(crate) const RELEASE: &str = env!("CARGO_PKG_VERSION");
