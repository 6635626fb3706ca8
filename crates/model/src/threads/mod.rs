//! Threads: their scheduling, their table in the record, their context switches, and their rescue.

mod rescue;
mod scheduling;
mod switches;
mod table;

pub use rescue::RescueSeen;
pub use scheduling::{MIDDLEWARE, Policy, RoleScheduling, Scheduling};
pub use switches::{SwitchEvent, SwitchKind, SwitchScope, Switches, Task};
pub use table::{ThreadLater, ThreadRow, ThreadTable};
