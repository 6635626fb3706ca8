//! Byte streams that survive a cut: a holder keeps a process running, and its client may connect again.
//!
//! ```text
//!  join ══ any pair of byte streams ══ relay ── socket ── hold ── the held process
//!  (client)   cut and opened anew      (short-lived)      (stays)
//! ```
//!
//! Input: a function that opens a connection, a command, and bytes for the held process. Output: the bytes of the
//! process, each once and in order, and the exit status of the process, however often the connection was cut. The crate
//! knows nothing of agents, pods or ssh.
//!
//! # On a connection
//!
//! Each side first sends a line of JSON. The client sends `{"session", "release", "command", "received", "resumes"}`:
//! identity of the session, release of the client, arguments of the process, number of bytes received, and whether the
//! holder has answered the session before. The holder answers `{"received", "new", "release"}`, or `{"refused"}` with a
//! sentence. Each side continues from the number of bytes that the other side has received.
//!
//! Frames follow: a kind (u8), a length (u32, little endian, at most 65,536) and a body.
//!
//! | kind | body |
//! |---|---|
//! | 0 data | the next bytes |
//! | 1 acknowledged | u64, little endian: number of bytes received so far |
//! | 2 ping | the same number |
//! | 3 end | empty: no bytes follow in this direction |
//! | 4 ended | i32, little endian: wait status of the held process; empty from the client, which confirms it |
//!
//! A byte is received once it was delivered to the held process, or to the client's output. In each direction, up to 4
//! MiB that the other side has not received are kept; if 4 MiB are kept, nothing more is read from the source.
//!
//! # Acknowledgements and pings
//!
//! Received bytes are acknowledged every 256 KiB. The client sends a ping every 5 s, and the holder answers each ping
//! with a ping. Both pings contain the number of bytes received. A ping has 13 bytes. While no data flows, only pings
//! are sent.
//!
//! A client that has received nothing for 12 s gives the connection up and opens another connection. A holder that has
//! received nothing from the client of a session for the lease ends the session. If the holder has received nothing
//! from any client for the lease, the holder ends itself.

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

/// Release of Tailbound that each side of a session sends to the other side.
pub(crate) const RELEASE: &str = env!("CARGO_PKG_VERSION");
