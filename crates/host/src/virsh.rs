//! Runs the program `virsh` and parses the tables that it prints.

use std::fs;
use std::io;
use std::process::{Command, Stdio};
use tailbound_model::{CpuList, DomainPin};

/// Reason why a command of `virsh` failed.
#[derive(Debug, thiserror::Error)]
pub enum VirshError {
    /// Error: the program virsh is not installed.
    #[error("this host has no program `virsh`: install it (Debian: package libvirt-clients)")]
    NoClient,
    /// Error: the daemon of libvirt does not answer.
    #[error(
        "libvirt does not answer at {connect} ({reason}): start its daemon (libvirtd, or virtqemud), or give the URI \
         of the running daemon, such as qemu:///system"
    )]
    NotReachable {
        /// URI of the connection to libvirt.
        connect: String,
        /// Error message that the program virsh printed.
        reason: String,
    },
    /// Error: libvirt refused the command of virsh.
    #[error("`{what}` was refused: {reason}")]
    Refused {
        /// Command line of virsh that was refused.
        what: String,
        /// Error message that the program virsh printed.
        reason: String,
    },
}

/// A connection to libvirt by the program `virsh`.
#[derive(Debug, Clone)]
pub(crate) struct Virsh {
    connect: Option<String>,
}

impl Virsh {
    pub(crate) fn new(connect: Option<&str>) -> Virsh {
        Virsh { connect: connect.map(str::to_owned) }
    }

    /// Connection URI of libvirt given by the user, if any.
    pub(crate) fn connect(&self) -> Option<&str> {
        self.connect.as_deref()
    }

    /// Connection URI of libvirt that is used; if the user gave none, the default.
    pub(crate) fn uri(&self) -> String {
        self.connect.clone().or_else(|| std::env::var("LIBVIRT_DEFAULT_URI").ok()).unwrap_or_else(|| {
            let whose = if nix::unistd::geteuid().is_root() { "system" } else { "session" };
            format!("qemu:///{whose}")
        })
    }

    /// Runs virsh with these arguments to its end and returns its output.
    pub(crate) fn ask(&self, words: &[&str]) -> Result<String, VirshError> {
        let mut command = Command::new("virsh");
        command.args(["--quiet", "--connect", &self.uri()]).args(words).env("LC_ALL", "C").stdin(Stdio::null());
        let output = match command.output() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(VirshError::NoClient),
            other => other.map_err(|e| self.refused(words, e.to_string()))?,
        };
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = text.lines().map(|l| l.trim().trim_start_matches("error: ")).collect();
        // The last line contains the reason; a missing connection is reported in the first line.
        let reason = lines.iter().rfind(|l| !l.is_empty()).unwrap_or(&"virsh printed no error message");
        if lines.contains(&"failed to connect to the hypervisor") {
            return Err(VirshError::NotReachable { connect: self.uri(), reason: (*reason).to_owned() });
        }
        Err(self.refused(words, (*reason).to_owned()))
    }

    fn refused(&self, words: &[&str], reason: String) -> VirshError {
        VirshError::Refused { what: format!("virsh -c {} {}", self.uri(), words.join(" ")), reason }
    }

    /// Reads from libvirt the CPUs to which a vCPU, an I/O thread or the emulator is pinned; `None` if libvirt does not
    /// list the pin.
    pub(crate) fn pinned(&self, domain: &str, what: DomainPin) -> Result<Option<CpuList>, VirshError> {
        let (table, number) = match what {
            DomainPin::Vcpu(number) => (self.ask(&["vcpupin", domain, "--live"])?, number),
            DomainPin::Iothread(number) => (self.ask(&["iothreadinfo", domain, "--live"])?, number),
            // With `--quiet` virsh prints only the CPUs.
            DomainPin::Emulator => return Ok(self.ask(&["emulatorpin", domain, "--live"])?.parse().ok()),
        };
        Ok(rows(&table).find(|(known, _)| *known == number).map(|(_, cpus)| cpus))
    }

    /// Pins a vCPU, an I/O thread or the emulator of the running libvirt domain to CPUs.
    pub(crate) fn pin(&self, domain: &str, what: DomainPin, cpus: &CpuList) -> Result<(), VirshError> {
        let cpus = cpus.to_string();
        match what {
            DomainPin::Vcpu(number) => self.ask(&["vcpupin", domain, &number.to_string(), &cpus, "--live"]),
            DomainPin::Iothread(number) => self.ask(&["iothreadpin", domain, &number.to_string(), &cpus, "--live"]),
            DomainPin::Emulator => self.ask(&["emulatorpin", domain, &cpus, "--live"]),
        }
        .map(drop)
    }

    /// Numbers of the I/O threads of a libvirt domain.
    pub(crate) fn iothreads(&self, domain: &str) -> Result<Vec<u32>, VirshError> {
        let table = self.ask(&["iothreadinfo", domain, "--live"])?;
        Ok(rows(&table).map(|(number, _)| number).collect())
    }
}

/// Whether a process is the QEMU of the libvirt domain with this UUID, that is, whether the process was started with
/// `-uuid UUID`.
pub(crate) fn is_qemu_of(pid: i32, uuid: &str) -> bool {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments: Vec<&[u8]> = arguments.split(|&b| b == 0).collect();
    arguments.windows(2).any(|pair| pair[0] == b"-uuid" && pair[1] == uuid.as_bytes())
}

/// Parses the rows of a table of virsh, such as ` 0      0-1`, into number and CPUs; header and separator lines are
/// skipped.
fn rows(table: &str) -> impl Iterator<Item = (u32, CpuList)> {
    table.lines().filter_map(|line| {
        let (number, cpus) = line.trim().split_once(char::is_whitespace)?;
        Some((number.parse().ok()?, cpus.trim().parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_pins_are_parsed() {
        let vcpus = " VCPU   CPU Affinity\n----------------------\n 0      0\n 1      0-1,3\n";
        let read = |table| rows(table).map(|(number, cpus)| format!("{number}={cpus}")).collect::<Vec<_>>().join(" ");
        assert_eq!(read(vcpus), "0=0 1=0-1,3");
        assert_eq!(read("No IOThreads found for the domain"), "");
    }
}
