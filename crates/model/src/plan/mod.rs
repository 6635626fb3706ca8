//! The plan: conditions and trials, their measurement, flows, loads and receive modes.

mod arrangement;
mod flow;
mod load;
mod middleware;
mod receive;
mod security;
mod stream;
mod trial;
mod until;

pub use arrangement::Arrangement;
pub use flow::*;
pub use load::{LoadDone, LoadKind, LoadPart, LoadSpec, LoadStart, Participant, TopicLoad, UdpStream};
pub use middleware::MiddlewareSettings;
pub use receive::ReceiveMode;
pub use security::{Governance, Protection, Protections, SecuritySpec};
pub use stream::*;
pub use trial::*;
pub use until::{UntilCondition, UntilTerm};
