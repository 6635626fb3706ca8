//! Threads: their scheduling, their table in the record, their context switches, the ways of their messages through the
//! kernel, and the result of a self-test of the CPU time of an ordinary thread beside a real-time thread.

mod packets;
mod rescue;
mod scheduling;
mod switches;
mod table;

pub use packets::{HopPlace, NotFollowed, PacketDevice, PacketHop, Packets, SocketRead};
pub use rescue::RescueSeen;
pub use scheduling::{MIDDLEWARE, Policy, RoleScheduling, Scheduling};
pub use switches::{
    Attribution, Away, ClockReading, Counter, CounterMove, CounterSeries, CounterSet, CpuLimit, HostOfGuests,
    Interruption, RecordCounts, RecordedBy, Recorder, RecordingCost, SleepState, SwitchEvent, SwitchKind, SwitchScope,
    Switches, Task,
};
pub use table::{ThreadLater, ThreadRow, ThreadTable};
