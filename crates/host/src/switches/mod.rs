//! Context switches and interrupts recorded by the kernel: for whole CPUs if permitted, else only for given threads; and
//! the ways of messages through the kernel.
//!
//! Input: the watched threads, the CPUs on which these threads may run, their process, and the wanted level. Output: context switches,
//! wake-ups, interrupts and page faults in the order of time, and names of the other threads in these events. The kernel writes the
//! events into ring buffers, by programs of the tracer (BPF) or as perf events; the watched threads execute no code for
//! this.

mod awake;
mod cost;
mod events;
mod faults;
mod follow;
mod kept;
mod kernel_clock;
mod level_packets;
mod loopback;
mod opening;
mod pairs;
mod points;
mod records;
mod ring;
mod task;
mod tracefs;
mod tracer;
mod watch;
mod windows;

pub use opening::{Wanted, cpus_to_watch, online_cpus};
pub use tracer::TRACER_FILE;
pub(crate) use tracer::{TEXT, refused, table_of};
pub use watch::SwitchWatch;
