//! Arithmetic of gate schedules (IEEE 802.1Q, time-aware shaping; the queue discipline `taprio` of Linux): when a frame of a
//! traffic class may be sent, and how long it waits until then.
//!
//! Input: a schedule, a traffic class, and the time that a frame needs on the wire. Output: the waits of frames that are ready
//! at any time of the cycle. All times are whole nanoseconds, as in the kernel. [`recover`] does the reverse: from the times of
//! messages, it finds the schedule that they met. Nothing is measured here.

mod behind;
mod check;
mod frame;
mod gate;
mod launch_gate;
mod prediction;
mod recovery;
mod schedule;
#[cfg(test)]
mod simulation;
mod tc;

pub use behind::{SendingInterface, priority_behind};
pub use check::{check, class_of_messages, priority_of_messages, unknown_speeds, windows_of_classes};
pub use frame::{ETHERNET_BYTES, Frame, IP_UDP_BYTES, Speed, WIRE_BYTES};
pub use gate::Gate;
pub use launch_gate::LaunchGate;
pub use prediction::{Prediction, predict};
pub use recovery::{
    ConfiguredGate, NearestWindow, NotRecovered, Probe, Recovered, RecoveredWindow, Recovery, recover, used_send_times,
};
pub use schedule::{Entry, Rule, Schedule, Windows};
pub use tc::{Configured, schedules};
