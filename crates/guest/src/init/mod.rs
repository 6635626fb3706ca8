//! The first process of a guest, which prepares the guest for agents. Its input is the kernel command line. The process
//! ends only with the guest, and writes errors to the console.

mod console;
mod interfaces;
mod relay;
mod serve;

pub(crate) use console::READY;
pub use serve::{serve, serve_named};

use crate::line::{Line, Mode};
use crate::modules::MAYBE;
use console::{ready, say};
use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::Pid;
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// File systems that the first process of a guest mounts: type, mount point, options.
const MOUNTS: [(&str, &str, &str); 9] = [
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", "mode=0755"),
    ("devpts", "/dev/pts", "mode=0620,ptmxmode=0666"),
    ("tmpfs", "/dev/shm", "mode=1777"),
    ("tmpfs", "/run", "mode=0755"),
    ("tmpfs", "/tmp", "mode=1777"),
    ("tracefs", "/sys/kernel/tracing", ""),
    ("cgroup2", "/sys/fs/cgroup", ""),
];

/// Runs as the first process of a guest until the guest ends.
pub fn init() -> ! {
    match begin() {
        Ok(never) => match never {},
        Err(e) => say(&format!("tailbound guest FAILED: {e}")),
    }
    end()
}

fn begin() -> io::Result<Infallible> {
    let mounted = mount_all();
    let line = Line::read(&std::fs::read_to_string("/proc/cmdline")?).map_err(io::Error::other)?;
    if line.mode == Mode::Probe {
        ready();
        end();
    }
    mounted?;
    load_modules(line.mode)?;
    nix::unistd::sethostname(&line.name)?;
    std::fs::write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")?;
    std::fs::write("/etc/group", "root:x:0:\n")?;
    std::fs::write("/etc/hosts", format!("127.0.0.1 localhost\n127.0.1.1 {}\n", line.name))?;
    interfaces::set_up(&line)?;
    let mut command = match line.mode {
        Mode::Shell => shell()?,
        _ => {
            let mut command = tailbound_host::own_program()?;
            command.args(["guest", "init"]);
            command
        }
    };
    command.env_clear().env("PATH", "/bin").env("HOME", "/root").env("TERM", "linux").current_dir("/root");
    let child = Pid::from_raw(command.spawn()?.id() as i32);
    // The loop collects all children, so no other code in this process may wait for a child.
    loop {
        match wait() {
            Ok(WaitStatus::Exited(ended, _) | WaitStatus::Signaled(ended, ..)) if ended == child => end(),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Mounts the file systems of the guest; some kernels do not have all of them.
fn mount_all() -> io::Result<()> {
    for (kind, at, options) in MOUNTS {
        // Mount points inside the kernel's own file systems exist already and cannot be made.
        let _ = std::fs::create_dir(at);
        let flags = MsFlags::MS_NOSUID;
        match mount(Some(kind), at, Some(kind), flags, Some(options)) {
            Err(e) if matches!(kind, "proc" | "sysfs" | "devtmpfs" | "tmpfs") => {
                return Err(io::Error::other(format!("cannot mount {kind} at {at}: {e}")));
            }
            _ => {}
        }
    }
    Ok(())
}

fn load_modules(mode: Mode) -> io::Result<()> {
    let mut files: Vec<_> = std::fs::read_dir("/modules")?.flatten().map(|e| e.path()).collect();
    files.sort();
    for file in files {
        match finit_module(File::open(&file)?, c"", ModuleInitFlags::empty()) {
            Ok(()) | Err(nix::errno::Errno::EEXIST) => {}
            Err(e) => refused(&file, &e.to_string(), mode)?,
        }
        // The file is removed because it takes memory and is not read again.
        let _ = std::fs::remove_file(file);
    }
    Ok(())
}

/// Reports a module that the kernel refused. A missing required module is an error, except if the guest runs a shell,
/// where the user can look for the reason.
fn refused(file: &Path, why: &str, mode: Mode) -> io::Result<()> {
    let text = format!("the kernel refuses the module {}: {why}", file.display());
    if mode == Mode::Shell || file.to_string_lossy().ends_with(MAYBE) {
        say(&format!("tailbound guest: {text}"));
        return Ok(());
    }
    Err(io::Error::other(text))
}

/// Command that starts a shell in the guest. The console is the terminal of the shell.
fn shell() -> io::Result<Command> {
    if File::open("/bin/busybox").is_ok() {
        // Existing commands stay. A command that busybox cannot install is simply missing.
        let _ = Command::new("/bin/busybox").args(["--install", "-s", "/bin"]).stderr(Stdio::null()).status();
    }
    let terminal = File::options().read(true).write(true).open("/dev/ttyS0")?;
    let mut command = Command::new("/bin/sh");
    command.arg("-i").stdin(terminal.try_clone()?).stdout(terminal.try_clone()?).stderr(terminal);
    // SAFETY: between fork and exec the closure makes two system calls with plain numbers, and allocates nothing.
    unsafe {
        command.pre_exec(|| match (libc::setsid(), libc::ioctl(0, libc::TIOCSCTTY, 0)) {
            (_, 0) => Ok(()),
            _ => Err(io::Error::last_os_error()),
        })
    };
    Ok(command)
}

/// Switches the guest off from inside; this function never returns.
fn end() -> ! {
    // What a shell wrote last may still be in the terminal's buffer.
    if let Ok(terminal) = File::options().write(true).open("/dev/ttyS0") {
        // SAFETY: waits for the output of an open terminal; no memory is passed.
        unsafe { libc::tcdrain(terminal.as_raw_fd()) };
    }
    nix::unistd::sync();
    let Err(e) = reboot(RebootMode::RB_POWER_OFF);
    say(&format!("tailbound guest: the guest cannot be switched off: {e}"));
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::place;

    #[test]
    fn a_guest_without_a_required_module_does_not_start() {
        let handled = |required, mode| refused(Path::new(&place(7, "sch_taprio", required)), "ENOEXEC", mode);
        let error = handled(true, Mode::Agents).unwrap_err().to_string();
        assert_eq!(error, "the kernel refuses the module modules/007-sch_taprio.ko: ENOEXEC");
        assert!(handled(false, Mode::Agents).is_ok() && handled(true, Mode::Shell).is_ok());
    }
}
