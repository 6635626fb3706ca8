//! Writes cpio archives in the format `newc`, which the kernel unpacks
//! (Documentation/driver-api/early-userspace/buffer-format.rst).

use std::io::{self, Write};

/// File types (regular file, directory, link) in the mode of an archive entry.
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// Writer of a cpio archive that contains neither times nor owners.
#[derive(Debug)]
pub(crate) struct Cpio<W> {
    to: W,
    entries: u32,
}

impl<W: Write> Cpio<W> {
    pub fn new(to: W) -> Cpio<W> {
        Cpio { to, entries: 0 }
    }

    pub fn directory(&mut self, path: &str) -> io::Result<()> {
        self.entry(path, DIRECTORY | 0o755, &[])
    }

    /// Adds a symbolic link at `path` with the target `target` to the archive.
    pub fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.entry(path, LINK | 0o777, target.as_bytes())
    }

    pub fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        self.entry(path, REGULAR | mode, content)
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.entries = 0;
        self.entry("TRAILER!!!", 0, &[])?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        self.entries += 1;
        let size = u32::try_from(content.len())
            .map_err(|_| io::Error::other(format!("{path} is larger than 4 GiB, which an initramfs cannot hold")))?;
        // Inode, mode, user, group, links, time, size, four device numbers, length of the name, checksum.
        let numbers = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, path.len() as u32 + 1, 0];
        let mut head = String::from("070701");
        for number in numbers {
            head.push_str(&format!("{number:08x}"));
        }
        head.push_str(path);
        // The name ends with a zero byte; header and content are padded to multiples of four bytes.
        let named = head.len() + 1;
        self.to.write_all(head.as_bytes())?;
        self.to.write_all(&[0; 4][..1 + named.wrapping_neg() % 4])?;
        self.to.write_all(content)?;
        self.to.write_all(&[0; 3][..content.len().wrapping_neg() % 4])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_documented_format() {
        let mut cpio = Cpio::new(Vec::new());
        cpio.directory("bin").unwrap();
        cpio.file("bin/a", 0o755, b"hello").unwrap();
        cpio.link("init", "bin/a").unwrap();
        let archive = cpio.finish().unwrap();
        assert_eq!(archive.len() % 4, 0);
        let head = |inode: u32, mode: &str, size: u32, name: u32| {
            format!(
                "070701{inode:08x}{mode}{:08x}{:08x}{:08x}{:08x}{size:08x}{:032x}{name:08x}{:08x}",
                0, 0, 1, 0, 0, 0
            )
        };
        let wanted = [
            head(1, "000041ed", 0, 4) + "bin\0\0\0",
            head(2, "000081ed", 5, 6) + "bin/a\0hello\0\0\0",
            head(3, "0000a1ff", 5, 5) + "init\0\0bin/a\0\0\0",
            head(1, "00000000", 0, 11) + "TRAILER!!!\0\0\0\0",
        ];
        assert_eq!(String::from_utf8(archive).unwrap(), wanted.concat());
    }
}
