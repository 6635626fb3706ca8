//! All that a guest has: the bundle, so placed that its loader finds it, modules in load order, other programs on request.
//!
//! ```text
//! init -> bin/tailbound         the first process
//! bin/, lib/, lib/tailbound/    as in the bundle
//! lib64 -> lib, usr/lib -> ...  where loaders look
//! modules/000-virtio.ko ...     in the order in which they are loaded; *.maybe.ko if the kernel takes them
//! ```
//!
//! It is not compressed: unpacking would be done by an emulated processor, and the memory that it takes is given back.

use crate::cache::{Cache, name_of};
use crate::cpio::Cpio;
use crate::error::GuestError;
use crate::kernel::Kernel;
use crate::modules::{self, Module, choose};
use object::read::elf::{FileHeader, ProgramHeader};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use tailbound_bundle::Contents;

/// Changes with what is made of the same input.
const FORMAT: u32 = 2;
const DIRECTORIES: [&str; 14] = [
    "bin",
    "lib",
    "lib/tailbound",
    "lib/tailbound/drivers",
    "modules",
    "usr",
    "dev",
    "proc",
    "sys",
    "run",
    "tmp",
    "etc",
    "root",
    "var",
];
/// Libraries are where every loader looks, whatever the distribution of this host.
pub(crate) const LINKS: [(&str, &str); 8] = [
    ("init", "bin/tailbound"),
    ("sbin", "bin"),
    ("lib64", "lib"),
    ("usr/lib", "../lib"),
    ("usr/lib64", "../lib"),
    ("usr/bin", "../bin"),
    ("usr/sbin", "../bin"),
    ("var/run", "../run"),
];

/// An initramfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initramfs {
    /// The file.
    pub file: PathBuf,
    /// Its size.
    pub octets: u64,
    /// Names of the modules that are loaded, in this order.
    pub modules: Vec<String>,
}

/// Makes the initramfs of `contents` for a kernel, with the modules `wanted`, and `maybe` where there are such.
///
/// # Errors
/// A module that is not of this kernel; a file that cannot be read or written.
pub fn initramfs(
    kernel: &Kernel,
    contents: &Contents,
    (wanted, maybe): (&[String], &[&str]),
    cache: &Cache,
) -> Result<Initramfs, GuestError> {
    let chosen = choose(kernel, wanted, maybe)?;
    let mut made_from = format!("{FORMAT} {}\n", contents.bundle.hash);
    for Module { file, required } in &chosen {
        let octets = file.metadata().map_err(GuestError::file("read", file))?.len();
        made_from.push_str(&format!("{} {octets} {required}\n", file.display()));
    }
    let file = cache.keep(&format!("initramfs-{}", name_of(made_from)), |path| {
        let to = File::create_new(path).map_err(GuestError::file("make", path))?;
        write(contents, &chosen, BufWriter::with_capacity(1 << 20, to), path)
    })?;
    let octets = file.metadata().map_err(GuestError::file("read", &file))?.len();
    let modules = chosen.iter().map(|m| modules::name(&m.file.to_string_lossy())).collect();
    Ok(Initramfs { file, octets, modules })
}

fn write(contents: &Contents, chosen: &[Module], to: impl io::Write, path: &Path) -> Result<(), GuestError> {
    let failed = |e| GuestError::file("write", path)(e);
    let mut cpio = Cpio::new(to);
    for directory in DIRECTORIES {
        cpio.directory(directory).map_err(failed)?;
    }
    for (link, target) in LINKS {
        cpio.link(link, target).map_err(failed)?;
    }
    for directory in contents.files().flat_map(|(file, _)| above(&file.path)).collect::<BTreeSet<_>>() {
        if !DIRECTORIES.contains(&directory) {
            cpio.directory(directory).map_err(failed)?;
        }
    }
    for (file, from) in contents.files() {
        let octets = std::fs::read(from).map_err(GuestError::file("read", from))?;
        let kept = if file.path == "bin/tailbound" { loaded_part(octets) } else { octets };
        cpio.file(&file.path, 0o755, &kept).map_err(failed)?;
    }
    for (number, Module { file, required }) in chosen.iter().enumerate() {
        let name = modules::place(number, &modules::name(&file.to_string_lossy()), *required);
        cpio.file(&name, 0o644, &modules::read(file)?).map_err(failed)?;
    }
    cpio.finish().map_err(failed)?;
    Ok(())
}

/// The directories that a file lies in.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

/// A program without what is never loaded: a guest has all of it in memory, and a debug build is half debug information.
fn loaded_part(mut program: Vec<u8>) -> Vec<u8> {
    type Header = object::elf::FileHeader64<object::Endianness>;
    let end = Header::parse(&*program).and_then(|header| {
        let endian = header.endian()?;
        let parts = header.program_headers(endian, &*program)?;
        Ok(parts.iter().map(|p| p.p_offset(endian).saturating_add(p.p_filesz(endian))).max())
    });
    if let Ok(Some(end)) = end
        && let Ok(end) = usize::try_from(end)
        && end <= program.len()
        && end >= 64
    {
        program.truncate(end);
        // e_shoff, then e_shentsize, e_shnum and e_shstrndx: there are no sections any more.
        program[0x28..0x30].fill(0);
        program[0x3a..0x40].fill(0);
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    #[test]
    fn a_program_runs_without_what_is_never_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::env::current_exe().unwrap();
        let whole = std::fs::read(&own).unwrap();
        let part = loaded_part(whole.clone());
        assert!(part.len() < whole.len());
        let program = dir.path().join("program");
        std::fs::write(&program, part).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let output = Command::new(&program).args(["--list", "what_is_written_is_read_again"]).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("what_is_written_is_read_again: test"));
        assert_eq!(loaded_part(b"text".to_vec()), b"text");
    }
}
