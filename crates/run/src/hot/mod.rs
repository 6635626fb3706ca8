//! The hot loops: what runs between the clock reads.
//!
//! What goes in: a driver's table, sample memory, a clock. What comes out: cells in the sample memory. Nothing here
//! allocates, locks, logs or calls the system but through the driver, the clock and the sleep; `tests/hot_count.rs`
//! counts it.

mod clock;
mod executor;
mod flow;
mod mailbox;
mod memory;
mod ping;
mod pong;
mod port;
mod receive;

pub use clock::{Clock, Machine, Scripted};
pub use executor::{Asleep, Between, Executor, Serve};
pub use flow::{FlowCells, FlowMemory, FlowPace, Publisher, Seen, Sight, Subscriber};
pub use mailbox::Mailbox;
pub use memory::{Drained, Header, Memory, MemoryKind, Ring};
pub use ping::{Hook, NoHook, Pace, Ping};
pub use pong::Pong;
pub use port::Port;
pub use receive::{Arrival, Door, Receiver, Sink};
