//! The files of DDS Security of an end, which the driver reads by their addresses.
//!
//! They are anonymous files in the memory of this process: private keys are on no disk, and the files end with the process.

use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use tailbound_wire::EndSecurity;

/// The open files of an end, with the name of the driver option and the address of each.
#[derive(Default)]
pub(crate) struct SecurityFiles {
    /// Value of each driver option: the address of a file.
    pub options: Vec<(&'static str, String)>,
    /// Keeps the files open until the driver has read them.
    _open: Vec<OwnedFd>,
}

impl SecurityFiles {
    /// Opens the files of an end in memory.
    ///
    /// # Errors
    /// The kernel gives no memory or no descriptor.
    pub fn open(security: &EndSecurity) -> io::Result<SecurityFiles> {
        let mut files = SecurityFiles::default();
        for (option, text) in security.files() {
            let mut file = File::from(memfd_create(c"tailbound-security", MFdFlags::MFD_CLOEXEC)?);
            file.write_all(text.as_bytes())?;
            files.options.push((option, format!("file:///proc/self/fd/{}", file.as_raw_fd())));
            files._open.push(file.into());
        }
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_reads_each_file_more_than_once() {
        let security = EndSecurity {
            identity_ca: "a".into(),
            identity_certificate: "b".into(),
            private_key: "c".into(),
            permissions_ca: "d".into(),
            governance: "e".into(),
            permissions: "f".into(),
        };
        let files = SecurityFiles::open(&security).unwrap();
        let read = || -> String {
            let path = |address: &String| address.strip_prefix("file://").unwrap().to_owned();
            files.options.iter().map(|(_, at)| std::fs::read_to_string(path(at)).unwrap()).collect()
        };
        assert_eq!((read(), read()), ("abcdef".into(), "abcdef".into()));
    }
}
