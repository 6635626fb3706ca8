//! Host settings that are files below /proc or /sys.

use super::setting::Setting;
use crate::setting_text::normalised;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tailbound_model::{NetnsId, Undo};

/// A host setting whose value is the content of one file.
#[derive(Debug)]
pub(super) struct FileSetting {
    pub path: PathBuf,
    /// Network namespace to which the value in the file belongs.
    pub netns: Option<NetnsId>,
    /// Name of the host setting in messages: the name of the sysctl, or the path of the file.
    pub label: String,
}

impl FileSetting {
    /// The file of the sysctl with this dotted name; as in sysctl(8), `/` in the name means a dot within a part of the
    /// name.
    pub fn sysctl(name: &str, netns: Option<NetnsId>) -> FileSetting {
        let swap = |c: char| match c {
            '.' => '/',
            '/' => '.',
            c => c,
        };
        FileSetting::of(PathBuf::from("/proc/sys").join(name.chars().map(swap).collect::<String>()), netns)
    }

    /// A file setting whose name in messages is its path.
    pub fn of(path: PathBuf, netns: Option<NetnsId>) -> FileSetting {
        FileSetting { label: path.display().to_string(), path, netns }
    }
}

impl Setting for FileSetting {
    fn what(&self) -> String {
        self.label.clone()
    }

    fn read(&self) -> io::Result<String> {
        fs::read_to_string(&self.path).map(|text| normalised(&text))
    }

    fn write(&mut self, value: &str) -> io::Result<()> {
        fs::write(&self.path, value)
    }

    fn may_write(&self) -> io::Result<()> {
        // Root can open a file for writing even if its mode forbids writing.
        if fs::metadata(&self.path)?.permissions().mode() & 0o222 == 0 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel lets no user write this file"));
        }
        OpenOptions::new().write(true).open(&self.path).map(drop)
    }

    fn undo(&self, before: &str, set: &str) -> Undo {
        Undo::RestoreSetting {
            path: self.path.display().to_string(),
            before: before.to_owned(),
            set: set.to_owned(),
            netns: self.netns.clone(),
        }
    }

    fn spelled(&self, value: &str) -> String {
        normalised(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sysctls_become_paths_as_with_the_command() {
        let path = |name: &str| FileSetting::sysctl(name, None).what();
        assert_eq!(path("kernel.sched_rt_runtime_us"), "/proc/sys/kernel/sched_rt_runtime_us");
        assert_eq!(path("net.ipv4.conf.eth0/5.forwarding"), "/proc/sys/net/ipv4/conf/eth0.5/forwarding");
    }

    #[test]
    fn a_read_only_file_is_recognised_without_writing() {
        let error = FileSetting::sysctl("kernel.osrelease", None).may_write().unwrap_err();
        assert_eq!(error.to_string(), "the kernel lets no user write this file");
    }
}
