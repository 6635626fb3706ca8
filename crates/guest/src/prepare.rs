//! From a spec to what a machine is started with.

use crate::cache::Cache;
use crate::error::GuestError;
use crate::initramfs::{Initramfs, initramfs};
use crate::kernel::Kernel;
use crate::trial;
use std::io;
use std::process::Command;
use tailbound_bundle::Contents;
use tailbound_model::{Accelerator, VmSpec};

/// QEMU for guests of this processor family.
pub(crate) const PROGRAM: &str = "qemu-system-x86_64";
/// The first release with sockets for datagrams and with `hostfwd` as it is used here.
const OLDEST: (u32, u32) = (7, 2);

/// A guest that is ready to be started, as often as is wanted.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// What it boots.
    pub kernel: Kernel,
    /// What it finds there.
    pub initramfs: Initramfs,
    /// KVM runs it; else it is emulated.
    pub kvm: bool,
    /// QEMU's release.
    pub qemu: String,
    /// Why KVM does not run it, where it was to if it could.
    pub without_kvm: Option<String>,
}

/// Looks for QEMU, finds the kernel, makes the initramfs of `contents`, and finds out who is to run the guest.
///
/// # Errors
/// One of them is missing, or KVM was asked for and does not work: what to do.
pub fn prepare(spec: &VmSpec, contents: &Contents, maybe: &[&str], cache: &Cache) -> Result<Prepared, GuestError> {
    let named = |e: GuestError| GuestError::new(format!("guest {}: {}", spec.name, e.what), e.mend);
    let qemu = qemu().map_err(named)?;
    let kernel = Kernel::find(&spec.kernel, cache).map_err(named)?;
    let initramfs = initramfs(&kernel, contents, (&spec.modules, maybe), cache).map_err(named)?;
    let kvm = match spec.accelerator {
        Accelerator::Emulated => Ok(()),
        _ => trial::kvm(spec, &kernel, &initramfs, &qemu, cache)?,
    };
    let (kvm, without_kvm) = match (spec.accelerator, kvm) {
        (Accelerator::Emulated, _) => (false, None),
        (_, Ok(())) => (true, None),
        (Accelerator::Any, Err(why)) => (false, Some(why)),
        (Accelerator::Kvm, Err(why)) => {
            let mend = "ask for the accelerator `any` or `emulated`: what an emulated guest measures is functional only; \
                        or take a host with KVM";
            return Err(GuestError::new(format!("guest {}: {why}", spec.name), mend));
        }
    };
    Ok(Prepared { kernel, initramfs, kvm, qemu, without_kvm })
}

/// The release of QEMU on this host.
///
/// # Errors
/// It is missing, or too old.
pub fn qemu() -> Result<String, GuestError> {
    let output = Command::new(PROGRAM).arg("--version").output().map_err(|e| no_qemu(&e))?;
    let text = String::from_utf8_lossy(&output.stdout);
    fitting(text.lines().next().unwrap_or_default())
}

pub(crate) fn no_qemu(e: &io::Error) -> GuestError {
    let mend = "install QEMU for x86_64 (Debian: qemu-system-x86; Fedora: qemu-system-x86-core), 7.2 or later";
    GuestError::new(format!("cannot run {PROGRAM}: {e}"), mend)
}

/// `QEMU emulator version 7.2.22 (Debian ...)` -> `7.2.22 (Debian ...)`.
fn fitting(line: &str) -> Result<String, GuestError> {
    let version = line.strip_prefix("QEMU emulator version ").unwrap_or_default();
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) >= OLDEST => Ok(version.to_owned()),
        (Some(_), _) => Err(GuestError::new(
            format!("{PROGRAM} is release {version}; guests need 7.2 or later"),
            "install a later QEMU",
        )),
        _ => Err(GuestError::new(format!("{PROGRAM} does not tell its release: `{line}`"), "install QEMU anew")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_qemu_is_told() {
        assert_eq!(fitting("QEMU emulator version 7.2.22 (Debian 1:7.2)").unwrap(), "7.2.22 (Debian 1:7.2)");
        assert!(fitting("QEMU emulator version 10.0.2").is_ok());
        let told = |line| fitting(line).unwrap_err().to_string();
        insta::assert_snapshot!([told("QEMU emulator version 6.2.0 (Debian 1:6.2)"), told("hello")].join("\n"));
    }
}
