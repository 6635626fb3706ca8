//! The hot loops: the code that runs while messages are measured.
//!
//! The input is a driver's table of functions, sample memory and a clock; the output is cells in the sample memory. The
//! code here neither allocates, locks nor logs, and makes system calls only through the driver, the clock and the
//! sleep. The test `tests/hot_count.rs` counts allocations and system calls.

mod arrival;
mod card_receipts;
mod clock;
#[cfg(test)]
mod drained_rings;
mod executor;
mod flow;
mod mailbox;
mod memory;
mod ping;
mod pong;
mod port;
mod receive;

pub use arrival::{Arrival, thread_id};
pub use card_receipts::CardReceipts;
pub use clock::{Clock, Machine, Scripted};
pub use executor::{Asleep, Between, Executor, Serve};
pub use flow::{CounterStatus, FlowCells, FlowMemory, FlowPace, Publisher, Received, Subscriber};
pub use mailbox::Mailbox;
pub use memory::{Drained, Header, Memory, MemoryKind, Ring};
pub use ping::{Hook, NoHook, Pace, Ping};
pub use pong::Pong;
pub use port::Port;
pub use receive::{Door, Receiver, Sink};
