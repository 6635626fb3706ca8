//! Reads descriptions of tracepoints from tracefs: from the usual mount, or else from a private mount.

use nix::fcntl::{OFlag, openat};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const MOUNTED: &str = "/sys/kernel/tracing";
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

/// An open mount of tracefs.
pub(super) struct Tracefs(OwnedFd);

/// Id and format of a tracepoint, as tracefs gives them.
pub(super) struct Description {
    pub id: u16,
    format: String,
}

impl Tracefs {
    /// Opens the usual mount of tracefs, or else a private mount; `None` if this process may read neither.
    pub fn open() -> Option<Tracefs> {
        // The directory exists, and is empty, if tracefs is not mounted.
        let usual = File::open(MOUNTED).ok().map(|dir| Tracefs(dir.into()));
        usual.filter(|tracefs| tracefs.text("events/header_page").is_ok()).or_else(|| private_mount().ok().map(Tracefs))
    }

    /// Reads the description of a tracepoint such as `sched/sched_waking`; `None` if the kernel does not have it.
    pub fn describe(&self, tracepoint: &str) -> Option<Description> {
        let text = |name: &str| self.text(&format!("events/{tracepoint}/{name}")).ok();
        Some(Description { id: text("id")?.trim().parse().ok()?, format: text("format")? })
    }

    fn text(&self, path: &str) -> io::Result<String> {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(&self.0, path, flags, nix::sys::stat::Mode::empty())?);
        let mut text = String::new();
        file.read_to_string(&mut text).map(|_| text)
    }
}

impl Description {
    /// Offset in bytes of a field of `size` bytes, from its line in the format, such as `field:pid_t pid; offset:24;
    /// size:4; signed:1;`.
    pub fn offset(&self, field: &str, size: usize) -> Option<usize> {
        let declared = |line: &&str| {
            let declaration = line.trim_start().strip_prefix("field:").and_then(|rest| rest.split(';').next());
            declaration.and_then(|d| d.rsplit(' ').next()) == Some(field)
        };
        let line = self.format.lines().find(declared)?;
        let value = |key: &str| line.split(key).nth(1)?.split(';').next()?.trim().parse::<usize>().ok();
        value("offset:").filter(|_| value("size:") == Some(size))
    }

    /// Names of the numbers of a field that is printed as words: `{ 2, "NOT_SPECIFIED" }`.
    pub fn numbers(&self) -> Vec<(u32, String)> {
        let pair = |text: &str| {
            let (number, name) = text.split('}').next()?.split_once(',')?;
            Some((number.trim().parse().ok()?, name.trim().trim_matches('"').to_owned()))
        };
        self.format.split('{').skip(1).filter_map(pair).collect()
    }

    /// Bits of a field that is printed as letters, with the letter of each bit: `{ 0x00000001, "S" }`.
    pub fn letters(&self) -> Vec<(i64, char)> {
        let pair = |text: &str| {
            let (bit, letter) = text.split('}').next()?.split_once(',')?;
            let bit = i64::from_str_radix(bit.trim().strip_prefix("0x")?, 16).ok()?;
            Some((bit, letter.trim().trim_matches('"').chars().next()?))
        };
        self.format.split('{').skip(1).filter_map(pair).collect()
    }
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

#[cfg(test)]
mod tests {
    use super::Description;

    #[test]
    fn the_offset_of_a_field_is_found_in_the_format() {
        let format = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
                      \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
                      \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n";
        let description = Description { id: 1, format: format.into() };
        assert_eq!(description.offset("pid", 4), Some(24));
        assert_eq!(description.offset("common_pid", 4), Some(4));
        assert_eq!(description.offset("pid", 8), None);
        assert_eq!(description.offset("prio", 4), None);
    }

    #[test]
    fn the_letters_of_bits_are_found_in_the_format() {
        let format = r#"print fmt: "%s", REC->state & 3 ? __print_flags(REC->state, "|", { 0x00000001, "S" }, { 0x00000002, "D" }) : "R""#;
        let description = Description { id: 1, format: format.into() };
        assert_eq!(description.letters(), [(1, 'S'), (2, 'D')]);
    }
}
