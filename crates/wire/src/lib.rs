//! What controller and agent say to each other, over any pair of byte streams.
//!
//! What goes in and comes out: frames. A frame is a length (u32, little endian, of what follows), a kind (u8) and a body:
//! kind 0 is a JSON message, kind 1 a piece of sample memory. Both sides begin with `hello`, which carries a range of
//! protocol versions; unknown fields and unknown capabilities are ignored. It knows nothing of pipes, ssh or pods.

mod frame;
mod message;

pub use frame::{Frame, FrameReader, MAX_FRAME, WireError, encode};
pub use message::*;
