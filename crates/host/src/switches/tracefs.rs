//! The number of a tracepoint, from tracefs: where it is mounted, else from a mount that nobody else sees.

use super::ring::WakePoint;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const MOUNTED: &str = "/sys/kernel/tracing";
const WAKING: &str = "events/sched/sched_waking";
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
/// Inode of the first PID namespace (linux/proc_ns.h): tracepoints speak of threads by their numbers there.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The tracepoint that fires when somebody begins to wake a thread; `None` where it cannot be had.
pub(super) fn waking() -> Option<WakePoint> {
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    if namespace.to_str() != Some(FIRST_PID_NAMESPACE) {
        return None;
    }
    let mounted = File::open(MOUNTED).ok().map(OwnedFd::from);
    let read = |root: &OwnedFd| point(root).ok().flatten();
    mounted.as_ref().and_then(read).or_else(|| read(&private_mount().ok()?))
}

/// tracefs on a descriptor, at no place of the file system; gone with the descriptor.
fn private_mount() -> io::Result<OwnedFd> {
    let owned = |fd: libc::c_long| {
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that the kernel has just made for us.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    };
    // SAFETY: plain system calls on names and descriptors of ours.
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

/// `field:pid_t pid; offset:24; size:4; signed:1;`
fn offset_of_pid(format: &str) -> Option<usize> {
    let line = format.lines().find(|l| l.trim_start().starts_with("field:pid_t pid;"))?;
    line.split("offset:").nth(1)?.split(';').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_thread_is_found_in_the_format() {
        let format = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n";
        assert_eq!(super::offset_of_pid(format), Some(24));
        assert_eq!(super::offset_of_pid("field:int common_pid;\toffset:4;"), None);
    }
}
