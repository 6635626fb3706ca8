//! The first process of a guest: makes it a place where agents run. In: the kernel command line. It never ends but with the
//! guest, and says on the console what went wrong.

mod interfaces;
mod relay;
mod serve;

pub use serve::{serve, serve_named};

use crate::line::{Line, Mode};
use crate::modules::MAYBE;
use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::Pid;
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// What stands on the console when a guest is up; the probe of KVM looks for it.
pub(crate) const READY: &str = "tailbound guest READY";

/// File systems: type, place, options.
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

/// Is the first process, until the guest ends.
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
    // Nothing but this: no two processes wait for the same child.
    loop {
        match wait() {
            Ok(WaitStatus::Exited(ended, _) | WaitStatus::Signaled(ended, ..)) if ended == child => end(),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Mounts what there is of the file systems; a kernel need not have all of them.
fn mount_all() -> io::Result<()> {
    for (kind, at, options) in MOUNTS {
        // Those of the kernel's own file systems cannot be made, and are there.
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
            Err(e) => not_taken(&file, &e.to_string(), mode)?,
        }
        // It takes memory, and nobody reads it again.
        let _ = std::fs::remove_file(file);
    }
    Ok(())
}

/// A module that somebody relies on ends a guest that is to measure; in a shell one looks for the reason.
fn not_taken(file: &Path, why: &str, mode: Mode) -> io::Result<()> {
    let text = format!("the kernel does not take the module {}: {why}", file.display());
    if mode == Mode::Shell || file.to_string_lossy().ends_with(MAYBE) {
        say(&format!("tailbound guest: {text}"));
        return Ok(());
    }
    Err(io::Error::other(text))
}

/// A shell that has the console as its terminal.
fn shell() -> io::Result<Command> {
    if File::open("/bin/busybox").is_ok() {
        // What is there already stays. What it cannot make is missed when it is typed.
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

/// Tells whoever reads the console that the guest is up, and since when its kernel runs.
fn ready() {
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    let version = std::fs::read_to_string("/proc/sys/kernel/version").unwrap_or_default();
    let since = uptime.split(' ').next().unwrap_or_default();
    say(&format!("{READY} {} after {since} s, {}", env!("CARGO_PKG_VERSION"), version.trim()));
}

/// A line on the console; where nobody reads it there is nobody to tell.
fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(io::stderr(), "{text}");
}

/// Ends the guest.
fn end() -> ! {
    // What is written now is on the console before it ends.
    nix::unistd::sync();
    let Err(e) = reboot(RebootMode::RB_POWER_OFF);
    say(&format!("tailbound guest: it cannot be switched off: {e}"));
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::place;

    #[test]
    fn a_guest_that_lacks_a_module_that_was_asked_for_refuses_to_serve() {
        let told = |required, mode| not_taken(Path::new(&place(7, "sch_taprio", required)), "ENOEXEC", mode);
        let refused = told(true, Mode::Agents).unwrap_err().to_string();
        assert_eq!(refused, "the kernel does not take the module modules/007-sch_taprio.ko: ENOEXEC");
        assert!(told(false, Mode::Agents).is_ok() && told(true, Mode::Shell).is_ok());
    }
}
