//! Tests whether KVM runs a kernel by booting it. A device /dev/kvm that can be opened is not enough: on nested and
//! paravirtual hosts usual kernels may still not boot.

use crate::cache::{Cache, name_of};
use crate::error::{file_error, guest_error};
use crate::init::READY;
use crate::initramfs::Initramfs;
use crate::kernel::Kernel;
use crate::line::{Line, Mode};
use crate::machine::{base, console, kernel_line};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tailbound_model::{Problem, VmSpec};

const DEVICE: &str = "/dev/kvm";
/// Longest time for the boot of the tested kernel; with KVM a kernel boots in one or two seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// Reasons of failed tests of KVM, by cache key. The reasons are kept only in this process, because a signal or a busy
/// host can cause a failure.
static REFUSED: Mutex<BTreeMap<String, Problem>> = Mutex::new(BTreeMap::new());

/// Result of the test whether KVM runs a kernel on this host; the error says why KVM does not run the kernel.
type Verdict = Result<(), Problem>;

/// Tests whether KVM runs the kernel; the inner error is the reason why it does not. A success is cached for the same
/// kernel, QEMU, host and processor model.
///
/// # Errors
/// The test of KVM cannot be made.
pub(crate) fn kvm(
    spec: &VmSpec,
    kernel: &Kernel,
    initramfs: &Initramfs,
    qemu: &str,
    cache: &Cache,
) -> Result<Verdict, Problem> {
    // This is checked each time, because permissions are not part of the cache key.
    if let Err(e) = File::options().read(true).write(true).open(DEVICE) {
        return Ok(Err(no_device(&e)));
    }
    let host = nix::sys::utsname::uname().map_err(|e| guest_error(format!("this host's kernel: {e}"), ""))?;
    let small = VmSpec { huge_pages: false, lock_memory: false, ..spec.clone() };
    let words = base(&small, true, &kernel.image, Path::new(""));
    let key = format!("{words:?} {} {qemu} {:?} {:?}", kernel.version, host.release(), host.version());
    verdict(&name_of(key), cache, || attempt(&small, kernel, initramfs))
}

/// Returns the stored result of the KVM test for `key`, or runs the test `attempt` and stores its result.
fn verdict(key: &str, cache: &Cache, attempt: impl FnOnce() -> Result<Verdict, Problem>) -> Result<Verdict, Problem> {
    // The lock is kept during the attempt, so that the next guest waits for this verdict.
    let mut refused = REFUSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = refused.get(key) {
        return Ok(Err(why.clone()));
    }
    let mut reason = None;
    let kept = cache.keep(&format!("kvm-works-{key}"), |path| match attempt()? {
        Ok(()) => std::fs::write(path, "").map_err(file_error("write", path)),
        Err(why) => Err(guest_error(&reason.insert(why).what, "")),
    });
    match reason {
        Some(why) => {
            refused.insert(key.to_owned(), why.clone());
            Ok(Err(why))
        }
        None => kept.map(|_| Ok(())),
    }
}

/// Makes the [`Problem`] that says why KVM does not run a kernel.
fn no_kvm(what: String) -> Problem {
    Problem::new("no_kvm", what, "")
}

fn no_device(e: &std::io::Error) -> Problem {
    no_kvm(match e.kind() {
        std::io::ErrorKind::NotFound => format!("this host has no KVM: there is no {DEVICE}"),
        std::io::ErrorKind::PermissionDenied => {
            format!("this user may not use KVM ({DEVICE}: {e}; members of the group kvm may)")
        }
        _ => format!("KVM does not work on this host: {DEVICE}: {e}"),
    })
}

/// Boots the kernel with KVM until its first process reports that it runs; the inner error is the reason why it does
/// not.
fn attempt(spec: &VmSpec, kernel: &Kernel, initramfs: &Initramfs) -> Result<Verdict, Problem> {
    let parent = std::env::temp_dir();
    let directory = tempfile::Builder::new()
        .prefix("tailbound-kvm-")
        .tempdir()
        .map_err(file_error("make a directory in", &parent))?;
    boot(spec, kernel, initramfs, directory.path())
}

fn boot(spec: &VmSpec, kernel: &Kernel, initramfs: &Initramfs, directory: &Path) -> Result<Verdict, Problem> {
    let log = console::qemu_log(directory);
    let log = File::create(&log).map_err(file_error("make", &log))?;
    let line = Line { name: spec.name.clone(), mode: Mode::Probe, channel: None, nics: Vec::new(), irq_cpus: None };
    let mut command = Command::new(crate::qemu::PROGRAM);
    command
        .args(base(spec, true, &kernel.image, &initramfs.file))
        .args(["-append", &kernel_line(spec, true, None, &line)]);
    command.arg("-serial").arg(format!("file:{}", console::file(directory).display()));
    // Ctrl-C must not reach QEMU, because it is not a verdict on KVM.
    command.process_group(0);
    // SAFETY: between fork and exec the closure makes one system call with plain numbers, and allocates nothing.
    unsafe { command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?)) };
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().map_err(|e| crate::qemu::no_qemu(&e))?;
    let deadline = Instant::now() + LIMIT;
    let verdict = loop {
        let output = std::fs::read(console::file(directory)).unwrap_or_default();
        if String::from_utf8_lossy(&output).contains(READY) {
            break Ok(());
        }
        let ended = child.try_wait().ok().flatten().map(|status| format!("QEMU ends ({status})"));
        let late =
            (Instant::now() > deadline).then(|| format!("the kernel has not booted after {} s", LIMIT.as_secs()));
        if let Some(what) = ended.or(late) {
            let text = format!("KVM does not run this kernel on this host: {DEVICE} can be opened, but {what}");
            break Err(no_kvm(format!("{text}{}", console::last_output(directory))));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    // kill fails only if QEMU has just ended.
    let _ = child.kill();
    let _ = child.wait();
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[test]
    fn the_reason_for_missing_kvm_is_reported() {
        let reason = |kind: ErrorKind| no_device(&Error::from(kind)).what;
        assert_eq!(reason(ErrorKind::NotFound), "this host has no KVM: there is no /dev/kvm");
        let refused = reason(ErrorKind::PermissionDenied);
        assert_eq!(refused, "this user may not use KVM (/dev/kvm: permission denied; members of the group kvm may)");
    }

    #[test]
    fn only_a_success_is_kept_for_the_next_run() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().into());
        let kept = || std::fs::read_dir(dir.path()).unwrap().count();
        let refuses = verdict("a refusal", &cache, || Ok(Err(no_kvm("QEMU ends (signal: 2)".into()))));
        assert_eq!(refuses, Ok(Err(no_kvm("QEMU ends (signal: 2)".into()))));
        assert_eq!(verdict("a refusal", &cache, || panic!("it is tried twice in one run")), refuses);
        assert_eq!(kept(), 0);
        assert_eq!(verdict("it works", &cache, || Ok(Ok(()))), Ok(Ok(())));
        assert_eq!(verdict("it works", &cache, || panic!("it is tried again")), Ok(Ok(())));
        assert_eq!(kept(), 1);
    }
}
