//! Which PTP hardware clocks a machine has, and to which network interfaces they belong.

use super::error::PtpError;
use crate::interface::{Ethtool, interface_counters};
use std::path::{Path, PathBuf};

/// Directory in which the kernel lists PTP hardware clocks.
const LIST: &str = "/sys/class/ptp";

/// A PTP hardware clock that the kernel lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PtpDevice {
    /// Number of the clock: N in /dev/ptpN.
    pub number: u32,
    /// Name that the driver gives to the clock.
    pub name: String,
    /// Network interfaces of the calling thread's network namespace whose time stamps come from this clock.
    pub interfaces: Vec<String>,
}

impl PtpDevice {
    /// Path of the clock's device.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/ptp{}", self.number))
    }
}

/// All PTP hardware clocks of this machine, by their number.
///
/// # Errors
/// This machine has no PTP hardware clock.
pub fn ptp_devices() -> Result<Vec<PtpDevice>, PtpError> {
    let interfaces = interface_counters().unwrap_or_default();
    let clock_of = |name: &str| Ethtool::open(name).ok()?.hardware_clock().ok().flatten();
    let of_interfaces: Vec<(String, u32)> =
        interfaces.into_iter().filter_map(|i| clock_of(&i.name).map(|number| (i.name, number))).collect();
    listed(Path::new(LIST), &of_interfaces)
}

/// Number of the PTP hardware clock of a network interface: N in /dev/ptpN.
///
/// # Errors
/// The calling thread's network namespace has no such interface, or the interface has no clock.
pub fn ptp_device_of(interface: &str) -> Result<u32, PtpError> {
    let is_there = interface_counters().unwrap_or_default().iter().any(|i| i.name == interface);
    if !is_there {
        return Err(PtpError::NoInterface(interface.to_owned()));
    }
    let without = |why: String| PtpError::NoClockOfInterface(interface.to_owned(), why);
    let number = Ethtool::open(interface).and_then(|tool| tool.hardware_clock()).map_err(without)?;
    number.ok_or_else(|| without("its driver makes no time stamps in hardware".to_owned()))
}

fn listed(directory: &Path, of_interfaces: &[(String, u32)]) -> Result<Vec<PtpDevice>, PtpError> {
    let entries = std::fs::read_dir(directory).map_err(|_| PtpError::NoClock)?;
    let device = |entry: std::fs::DirEntry| {
        let number = entry.file_name().to_str()?.strip_prefix("ptp")?.parse().ok()?;
        let name = std::fs::read_to_string(entry.path().join("clock_name")).unwrap_or_default();
        let interfaces = of_interfaces.iter().filter(|(_, of)| *of == number).map(|(name, _)| name.clone()).collect();
        Some(PtpDevice { number, name: name.trim().to_owned(), interfaces })
    };
    let mut devices: Vec<PtpDevice> = entries.flatten().filter_map(device).collect();
    devices.sort_by_key(|device| device.number);
    if devices.is_empty() { Err(PtpError::NoClock) } else { Ok(devices) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_listed_by_their_number_with_their_interfaces() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(listed(dir.path(), &[]), Err(PtpError::NoClock)));
        assert!(matches!(listed(&dir.path().join("gone"), &[]), Err(PtpError::NoClock)));
        for (clock, name) in [("ptp10", "igb\n"), ("ptp2", "Mock-up PTP clock\n"), ("other", "x")] {
            std::fs::create_dir(dir.path().join(clock)).unwrap();
            std::fs::write(dir.path().join(clock).join("clock_name"), name).unwrap();
        }
        let of_interfaces = [("eth1".to_owned(), 10), ("eth0".to_owned(), 10), ("eth2".to_owned(), 3)];
        let found = listed(dir.path(), &of_interfaces).unwrap();
        let seen: Vec<_> = found.iter().map(|d| (d.path(), d.name.as_str(), d.interfaces.join(" "))).collect();
        let expected = [("/dev/ptp2", "Mock-up PTP clock", ""), ("/dev/ptp10", "igb", "eth1 eth0")]
            .map(|(path, name, interfaces)| (PathBuf::from(path), name, interfaces.to_owned()));
        assert_eq!(seen, expected);
    }
}
