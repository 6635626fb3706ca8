//! Whether KVM runs a kernel: it is tried. A device that opens says little: nested and paravirtual hosts may have one that
//! no usual kernel boots on.

use crate::cache::{Cache, name_of};
use crate::error::GuestError;
use crate::init::READY;
use crate::initramfs::Initramfs;
use crate::kernel::Kernel;
use crate::line::{Line, Mode};
use crate::machine::{base, console, kernel_line};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tailbound_model::VmSpec;

const DEVICE: &str = "/dev/kvm";
/// With KVM a kernel boots in a second or two.
const LIMIT: Duration = Duration::from_secs(20);
/// What the file of a verdict holds where it works.
const WORKS: &str = "works";

/// Tries it; why it does not work, where it does not. A verdict is kept for the same kernel, QEMU, host and processor model.
///
/// # Errors
/// It cannot be tried.
pub(crate) fn kvm(
    spec: &VmSpec,
    kernel: &Kernel,
    initramfs: &Initramfs,
    qemu: &str,
    cache: &Cache,
) -> Result<Result<(), String>, GuestError> {
    // Permissions change without anything else that a verdict depends on.
    if let Err(e) = File::options().read(true).write(true).open(DEVICE) {
        return Ok(Err(no_device(&e)));
    }
    let host = nix::sys::utsname::uname().map_err(|e| GuestError::new(format!("this host's kernel: {e}"), ""))?;
    let small = VmSpec { huge_pages: false, lock_memory: false, ..spec.clone() };
    let words = base(&small, true, &kernel.image, Path::new(""));
    let key = format!("{words:?} {} {qemu} {:?} {:?}", kernel.version, host.release(), host.version());
    let verdict = cache.keep(&format!("kvm-{}", name_of(key)), |path| {
        let verdict = attempt(&small, kernel, initramfs)?;
        std::fs::write(path, verdict.map_or_else(|why| why, |()| WORKS.into())).map_err(GuestError::file("write", path))
    })?;
    match std::fs::read_to_string(&verdict).map_err(GuestError::file("read", &verdict))?.as_str() {
        WORKS => Ok(Ok(())),
        why => Ok(Err(why.to_owned())),
    }
}

fn no_device(e: &std::io::Error) -> String {
    match e.kind() {
        std::io::ErrorKind::NotFound => format!("this host has no KVM: there is no {DEVICE}"),
        std::io::ErrorKind::PermissionDenied => format!("this user may not use KVM ({DEVICE}: {e}; the group kvm may)"),
        _ => format!("KVM does not work on this host: {DEVICE}: {e}"),
    }
}

/// Boots the kernel until the first process says that it is there.
fn attempt(spec: &VmSpec, kernel: &Kernel, initramfs: &Initramfs) -> Result<Result<(), String>, GuestError> {
    let directory = std::env::temp_dir().join(format!("tailbound-kvm-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(GuestError::file("make", &directory))?;
    let tried = boot(spec, kernel, initramfs, &directory);
    std::fs::remove_dir_all(&directory).map_err(GuestError::file("remove", &directory))?;
    tried
}

fn boot(
    spec: &VmSpec,
    kernel: &Kernel,
    initramfs: &Initramfs,
    directory: &Path,
) -> Result<Result<(), String>, GuestError> {
    let log = console::qemu_log(directory);
    let log = File::create(&log).map_err(GuestError::file("make", &log))?;
    let line = Line { name: spec.name.clone(), mode: Mode::Probe, channel: None, nics: Vec::new(), irq_cpus: None };
    let mut command = Command::new(super::prepare::PROGRAM);
    command
        .args(base(spec, true, &kernel.image, &initramfs.file))
        .args(["-append", &kernel_line(spec, true, None, &line)]);
    command.arg("-serial").arg(format!("file:{}", console::file(directory).display()));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|e| super::prepare::no_qemu(&e))?;
    let deadline = Instant::now() + LIMIT;
    let verdict = loop {
        let said = std::fs::read(console::file(directory)).unwrap_or_default();
        if String::from_utf8_lossy(&said).contains(READY) {
            break Ok(());
        }
        let ended = child.try_wait().ok().flatten().map(|status| format!("QEMU ends ({status})"));
        let late = (Instant::now() > deadline).then(|| format!("it has not booted after {} s", LIMIT.as_secs()));
        if let Some(what) = ended.or(late) {
            let text = format!("KVM does not run this kernel here: {DEVICE} opens, and {what}");
            break Err(format!("{text}{}", console::said(directory)));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    // It has ended otherwise.
    let _ = child.kill();
    let _ = child.wait();
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[test]
    fn why_there_is_no_kvm_is_told() {
        let told = |kind: ErrorKind| no_device(&Error::from(kind));
        assert_eq!(told(ErrorKind::NotFound), "this host has no KVM: there is no /dev/kvm");
        let refused = told(ErrorKind::PermissionDenied);
        assert_eq!(refused, "this user may not use KVM (/dev/kvm: permission denied; the group kvm may)");
    }
}
