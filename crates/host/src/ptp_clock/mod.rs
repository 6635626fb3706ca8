//! PTP hardware clocks (/dev/ptpN): which there are, to which network interface they belong, and how far they are from the
//! clocks of the kernel.
//!
//! Input: /sys/class/ptp, the devices, and the ethtool requests of interfaces. Output: [`PtpDevice`], [`PtpClock`] and
//! [`PtpReading`]. Each reading is a bracket: the kernel's clock before, the hardware clock, the kernel's clock after. Nothing is
//! set.

mod call;
mod clock;
mod device;
mod error;

pub use clock::{PtpClock, PtpInterface, PtpReading, system_reading};
pub use device::{PtpDevice, ptp_device_of, ptp_devices};
pub use error::PtpError;
