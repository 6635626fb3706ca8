//! QEMU on this host: the name of the program, and whether its release is recent enough.

use crate::error::guest_error;
use std::io;
use std::process::Command;
use tailbound_model::Problem;

/// Name of the QEMU program for guests with x86_64 processors.
pub(crate) const PROGRAM: &str = "qemu-system-x86_64";
/// Oldest release of QEMU that Tailbound can use: it has datagram sockets and the needed form of `hostfwd`.
const OLDEST: (u32, u32) = (7, 2);

/// Release of QEMU on this host.
///
/// # Errors
/// QEMU is missing or too old.
pub fn qemu() -> Result<String, Problem> {
    let output = Command::new(PROGRAM).arg("--version").output().map_err(|e| no_qemu(&e))?;
    let text = String::from_utf8_lossy(&output.stdout);
    fitting(text.lines().next().unwrap_or_default())
}

pub(crate) fn no_qemu(e: &io::Error) -> Problem {
    let remedy = "install QEMU for x86_64 (Debian: qemu-system-x86; Fedora: qemu-system-x86-core), 7.2 or later";
    guest_error(format!("cannot run {PROGRAM}: {e}"), remedy)
}

/// Release of QEMU from a line such as `QEMU emulator version 7.2.22 (Debian ...)`, if it is recent enough.
fn fitting(line: &str) -> Result<String, Problem> {
    let version = line.strip_prefix("QEMU emulator version ").unwrap_or_default();
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) >= OLDEST => Ok(version.to_owned()),
        (Some(_), _) => Err(guest_error(
            format!("{PROGRAM} is release {version}; guests need 7.2 or later"),
            "install a later QEMU",
        )),
        _ => Err(guest_error(format!("the release of {PROGRAM} cannot be read from `{line}`"), "reinstall QEMU")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_qemu_is_reported() {
        assert_eq!(fitting("QEMU emulator version 7.2.22 (Debian 1:7.2)").unwrap(), "7.2.22 (Debian 1:7.2)");
        assert!(fitting("QEMU emulator version 10.0.2").is_ok());
        let refused = |line| fitting(line).unwrap_err().paragraph();
        insta::assert_snapshot!([refused("QEMU emulator version 6.2.0 (Debian 1:6.2)"), refused("hello")].join("\n"));
    }
}
