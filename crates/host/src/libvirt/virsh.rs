//! The program `virsh`, and the tables that it prints.

use super::DomainError;
use std::io;
use std::process::{Command, Stdio};
use tailbound_model::{CpuList, DomainPin};

/// A connection to libvirt, by its program.
#[derive(Debug, Clone)]
pub(crate) struct Virsh {
    connect: Option<String>,
}

impl Virsh {
    pub(crate) fn new(connect: Option<&str>) -> Virsh {
        Virsh { connect: connect.map(str::to_owned) }
    }

    /// As it was given.
    pub(crate) fn connect(&self) -> Option<&str> {
        self.connect.as_deref()
    }

    /// What is connected to, in words.
    pub(crate) fn uri(&self) -> String {
        self.connect.clone().or_else(|| std::env::var("LIBVIRT_DEFAULT_URI").ok()).unwrap_or_else(|| {
            let whose = if nix::unistd::geteuid().is_root() { "system" } else { "session" };
            format!("qemu:///{whose}")
        })
    }

    /// Runs it to its end: what it printed.
    pub(crate) fn ask(&self, words: &[&str]) -> Result<String, DomainError> {
        let mut command = Command::new("virsh");
        command.args(["--quiet", "--connect", &self.uri()]).args(words).env("LC_ALL", "C").stdin(Stdio::null());
        let output = match command.output() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(DomainError::NoClient),
            other => other.map_err(|e| self.refused(words, e.to_string()))?,
        };
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = text.lines().map(|l| l.trim().trim_start_matches("error: ")).collect();
        // The last line says why; without a connection the first says so.
        let reason = lines.iter().rfind(|l| !l.is_empty()).unwrap_or(&"it says nothing");
        if lines.contains(&"failed to connect to the hypervisor") {
            return Err(DomainError::NotReachable { connect: self.uri(), reason: (*reason).to_owned() });
        }
        Err(self.refused(words, (*reason).to_owned()))
    }

    fn refused(&self, words: &[&str], reason: String) -> DomainError {
        DomainError::Refused { what: format!("virsh -c {} {}", self.uri(), words.join(" ")), reason }
    }

    /// CPUs of what can be pinned, as libvirt has them.
    pub(crate) fn pinned(&self, domain: &str, what: DomainPin) -> Result<Option<CpuList>, DomainError> {
        let (table, number) = match what {
            DomainPin::Vcpu(number) => (self.ask(&["vcpupin", domain, "--live"])?, number),
            DomainPin::Iothread(number) => (self.ask(&["iothreadinfo", domain, "--live"])?, number),
            // Quiet, it prints the CPUs and nothing else.
            DomainPin::Emulator => return Ok(self.ask(&["emulatorpin", domain, "--live"])?.parse().ok()),
        };
        Ok(rows(&table).find(|(known, _)| *known == number).map(|(_, cpus)| cpus))
    }

    /// Pins it while it runs.
    pub(crate) fn pin(&self, domain: &str, what: DomainPin, cpus: &CpuList) -> Result<(), DomainError> {
        let cpus = cpus.to_string();
        match what {
            DomainPin::Vcpu(number) => self.ask(&["vcpupin", domain, &number.to_string(), &cpus, "--live"]),
            DomainPin::Iothread(number) => self.ask(&["iothreadpin", domain, &number.to_string(), &cpus, "--live"]),
            DomainPin::Emulator => self.ask(&["emulatorpin", domain, &cpus, "--live"]),
        }
        .map(drop)
    }

    /// Numbers of its threads for input and output.
    pub(crate) fn iothreads(&self, domain: &str) -> Result<Vec<u32>, DomainError> {
        let table = self.ask(&["iothreadinfo", domain, "--live"])?;
        Ok(rows(&table).map(|(number, _)| number).collect())
    }
}

/// Rows such as ` 0      0-1`; heads and lines are none, and fall out.
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
    fn tables_of_pins_are_read() {
        let vcpus = " VCPU   CPU Affinity\n----------------------\n 0      0\n 1      0-1,3\n";
        let read = |table| rows(table).map(|(number, cpus)| format!("{number}={cpus}")).collect::<Vec<_>>().join(" ");
        assert_eq!(read(vcpus), "0=0 1=0-1,3");
        assert_eq!(read("No IOThreads found for the domain"), "");
    }
}
