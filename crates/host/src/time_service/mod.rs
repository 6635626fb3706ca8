//! Clients of the programs that keep clocks in step: `ptp4l` of linuxptp, by its socket for management messages, and chrony, by
//! its program `chronyc`.
//!
//! Input: the path of a socket, or nothing. Output: offsets from the master, states of ports, and the master, as the service
//! reports them. Nothing is set, except that `ptp4l` is asked to report events to this client.

mod chrony;
mod error;
mod ptp4l;
mod ptp_message;

pub use chrony::{ChronyTracking, chrony_tracking};
pub use error::TimeServiceError;
pub use ptp_message::{DataSet, NotAMessage, PtpAnswer, TimeStatus, parse};
pub use ptp4l::Ptp4l;
