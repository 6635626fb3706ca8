//! Reads the id of a tracepoint from tracefs: from the usual mount, or else from a private mount.

use super::ring::WakePoint;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const MOUNTED: &str = "/sys/kernel/tracing";
const WAKING: &str = "events/sched/sched_waking";
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
/// Name of the first PID namespace (linux/proc_ns.h); tracepoints use the thread ids of this namespace.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Finds the tracepoint `sched_waking`; `None` if it is not available to this process.
pub(super) fn waking() -> Option<WakePoint> {
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    if namespace.to_str() != Some(FIRST_PID_NAMESPACE) {
        return None;
    }
    let mounted = File::open(MOUNTED).ok().map(OwnedFd::from);
    let read = |root: &OwnedFd| point(root).ok().flatten();
    mounted.as_ref().and_then(read).or_else(|| read(&private_mount().ok()?))
}

/// Mounts tracefs without a mount point; the mount ends when the descriptor is closed.
fn private_mount() -> io::Result<OwnedFd> {
    let owned = |fd: libc::c_long| {
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    };
    // SAFETY: plain system calls with valid names and descriptors of this function.
    unsafe {
        let made = owned(libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), 1u32))?;
        let nothing = std::ptr::null::<libc::c_char>();
        if libc::syscall(libc::SYS_fsconfig, made.as_raw_fd(), FSCONFIG_CMD_CREATE, nothing, nothing, 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        owned(libc::syscall(libc::SYS_fsmount, made.as_raw_fd(), 1u32, 0u32))
    }
}

fn point(root: &OwnedFd) -> io::Result<Option<WakePoint>> {
    let text = |name: &str| {
        let flags = nix::fcntl::OFlag::O_RDONLY | nix::fcntl::OFlag::O_CLOEXEC;
        let path = format!("{WAKING}/{name}");
        let mut file = File::from(nix::fcntl::openat(root, path.as_str(), flags, nix::sys::stat::Mode::empty())?);
        let mut text = String::new();
        file.read_to_string(&mut text).map(|_| text)
    };
    let id = text("id")?.trim().parse().ok();
    let format = text("format")?;
    Ok(id.zip(offset_of_pid(&format)).map(|(id, thread_at)| WakePoint { id, thread_at }))
}

/// Offset from the line of `pid` in the format of a tracepoint, such as `field:pid_t pid; offset:24; size:4;
/// signed:1;`.
fn offset_of_pid(format: &str) -> Option<usize> {
    let line = format.lines().find(|l| l.trim_start().starts_with("field:pid_t pid;"))?;
    line.split("offset:").nth(1)?.split(';').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_offset_of_the_thread_is_found_in_the_format() {
        let format = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n";
        assert_eq!(super::offset_of_pid(format), Some(24));
        assert_eq!(super::offset_of_pid("field:int common_pid;\toffset:4;"), None);
    }
}
