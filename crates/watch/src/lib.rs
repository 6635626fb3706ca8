//! From captured packets to what the messages of other programs did on the wire: which topics, how late, and what the protocol
//! had to repeat.
//!
//! Input: the first bytes of packets with their time stamps ([`Seen`]), in the order of the capture. Output: the document
//! [`WatchReport`](tailbound_document::WatchReport). This crate captures nothing and reads no clock; [`read_capture`] reads what other programs captured. Definitions: wire lateness
//! is the capture stamp of the last fragment of the first transmission of a sample, minus the source timestamp of the sample.

mod again;
mod also;
mod bag;
mod budget;
mod calls;
mod chain;
mod compare;
mod copies;
mod file;
mod header;
mod incidents;
mod known;
mod lateness;
mod names;
mod packet;
mod parts;
mod reader;
mod report;
mod study;
mod topics;
mod trace;
mod vendor;
mod waits;
mod watch;
mod writer;

pub use also::{CapturedAt, CapturedRow, ClockExchange, join};
pub use bag::{Bag, BagError, read_mcap};
pub use budget::{BudgetMisfit, judge};
pub use calls::{Call, CallKind, Calls};
pub use compare::compare;
pub use file::{CaptureFile, CaptureFileError, read_capture};
pub use incidents::HostTime;
pub use names::guid_words;
pub use study::{NoStudy, SavedStudy, study};
pub use topics::CaptureRecord;
pub use trace::{NoTrace, Trace, TraceCounts};
pub use watch::{Captured, Seen, Watch};
