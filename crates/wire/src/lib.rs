//! The protocol between controller and agent, over any pair of byte streams.
//!
//! Input and output are frames. A frame consists of a length (u32, little endian, number of bytes of kind and body), a
//! kind (u8) and a body: the body of kind 0 is a JSON message, the body of kind 1 is a piece of sample memory. Both
//! sides begin with `hello`, which carries a range of protocol versions. Unknown fields and unknown capabilities are
//! ignored. The crate knows nothing of pipes, ssh or pods.

mod causes;
mod frame;
mod message;
mod security;
mod shortened;

pub use causes::{Absence, CAUSES, Cause, Causes};
pub use frame::{Frame, FrameReader, MAX_FRAME, WireError, encode};
pub use message::*;
pub use security::EndSecurity;
pub use shortened::shortened;
