//! Changes to a host: settings, how they are undone, and the requests of a lab that an agent carries out on another
//! host.

mod knob;
mod preemption;
mod queues;
mod site;
mod stamping;
mod undo;

pub use knob::{DEFAULT_QUEUE, HostSettings, KVM_HALT_POLL, KnobDone, KnobSpec, NicSetting};
pub use preemption::MergeLayer;
pub use queues::{QueueDiscipline, ROOT};
pub use site::{Answer, Ask, DeviceAnswer, ProbeMessage, RestoreAnswer};
pub use stamping::CardStamping;
pub use undo::{DomainPin, JournalEntry, NetnsId, ProcessId, RUN_TOKEN, Undo};
