//! Threads: their scheduling, their table in the record, their context switches, and the result of a self-test of the
//! CPU time of an ordinary thread beside a real-time thread.

mod rescue;
mod scheduling;
mod switches;
mod table;

pub use rescue::RescueSeen;
pub use scheduling::{MIDDLEWARE, Policy, RoleScheduling, Scheduling};
pub use switches::{
    Attribution, Counter, CounterMove, CounterSeries, CpuLimit, Interruption, RecordedBy, Recorder, RecordingCost,
    SleepState, SwitchEvent, SwitchKind, SwitchScope, Switches, Task,
};
pub use table::{ThreadLater, ThreadRow, ThreadTable};
