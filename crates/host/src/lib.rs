//! Everything that can be read and changed on one Linux host: processes, threads, scheduling, clocks, facts, settings,
//! and the journal to which every change is written.
//!
//! Input: file contents of /proc and /sys, system calls. Output: the types of `tailbound-model`. This crate does not
//! depend on studies, drivers, labs or records. The crate judges nothing: `tailbound-doctor` gives verdicts on facts.

pub mod calls;
pub mod capture;
pub mod clock;
pub mod container;
pub mod counters;
pub mod facts;
pub mod ingress;
pub mod interface;
pub mod journal;
pub mod knob;
pub mod libvirt;
pub mod node;
pub mod pod_process;
pub mod process;
pub mod process_resources;
pub mod program;
pub mod ptp_clock;
pub mod queues;
pub mod rescue;
pub mod scheduling;
pub mod shared_memory;
pub mod switches;
pub mod threads;
pub mod throttle;
pub mod time_service;
pub mod undo;

mod interrupts;
mod namespace;
mod netlink;
mod sched_call;
mod setting_text;
mod steal;
mod virsh;

pub use capture::{Capture, CaptureError, Packet};
pub use clock::{
    OffsetTrack, cpu_ns_of, monotonic_ns, process_cpu_ns, read_offset, realtime_ns, tai_offset_s, unadjusted_ns,
};
pub use interface::{InterfaceCounters, InterfaceFacts, interface_counters, interface_facts, ip_counters};
pub use journal::{CleanupReport, EntryId, Journal, JournalError, JournalState};
pub use knob::{KnobError, Knobs, Place};
pub use namespace::namespace_cpu;
pub use process::{boot_id, clock_id, is_alive, process_id, this_process};
pub use process_resources::process_resources;
pub use program::{ask_own_program, ask_program, own_file, own_program, take_own_name};
pub use ptp_clock::{
    PtpClock, PtpDevice, PtpError, PtpInterface, PtpReading, ptp_device_of, ptp_devices, system_reading,
};
pub use scheduling::{ApplyError, allowed_cpus, apply, pinnable_cpus, read_back, verify};
pub use steal::{CpuTimes, cpu_times};
pub use threads::{ThreadScan, read_later, read_threads};
pub use undo::{UndoError, Undone, undo};
