//! What one Linux host tells and lets us change: processes, threads, scheduling, clocks, facts, settings, and the journal
//! that every change goes through.
//!
//! In: file contents of /proc and /sys, system calls. Out: the types of `tailbound-model`. It knows nothing of studies,
//! drivers, labs or records, and it judges nothing: verdicts over facts are the business of `tailbound-doctor`.

pub mod clock;
pub mod container;
pub mod facts;
pub mod interface;
pub mod journal;
pub mod knob;
pub mod libvirt;
pub mod node;
pub mod process;
pub mod program;
pub mod rescue;
pub mod scheduling;
pub mod seen;
pub mod switches;
pub mod threads;
pub mod throttle;
pub mod undo;

mod netlink;
mod sched_call;

pub use clock::{OffsetTrack, cpu_ns_of, monotonic_ns, process_cpu_ns, read_offset, realtime_ns};
pub use interface::{InterfaceCounters, InterfaceFacts, interface_counters, interface_facts, ip_counters};
pub use journal::{CleanupReport, EntryId, Journal, JournalError, JournalState};
pub use knob::{KnobError, Knobs, Place};
pub use process::{boot_id, clock_id, is_alive, process_id, this_process};
pub use program::{ask_own_program, own_file, own_program, take_own_name};
pub use scheduling::{ApplyError, allowed_cpus, apply, read_back, verify};
pub use seen::process_seen;
pub use threads::{ThreadScan, read_later, read_threads};
pub use undo::{UndoError, Undone, undo};
