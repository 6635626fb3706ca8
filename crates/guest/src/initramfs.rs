//! The initramfs of a guest: Tailbound's bundle in a place where its loader finds it, modules in load order, and
//! further programs on request.
//!
//! ```text
//! init -> bin/tailbound         the first process
//! bin/, lib/, lib/tailbound/    as in the bundle
//! lib64 -> lib, usr/lib -> ...  links, because loaders of other distributions search these directories
//! modules/000-virtio.ko ...     kernel modules in load order; *.maybe.ko: modules that the guest can do without
//! ```
//!
//! The initramfs is not compressed, because an emulated processor would have to unpack it; its memory is freed after
//! the boot.

use crate::cache::{Cache, name_of, name_of_file};
use crate::cpio::Cpio;
use crate::error::file_error;
use crate::kernel::Kernel;
use crate::module_file;
use crate::modules::{self, Module, choose};
use object::read::elf::{FileHeader, ProgramHeader};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use tailbound_bundle::Contents;
use tailbound_model::Problem;

/// Version of the content of an initramfs; it changes when the same input gives another initramfs.
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
/// Symbolic links in the initramfs (path, target) by which the loaders of all distributions find the libraries.
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

/// An initramfs file that was made for a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initramfs {
    /// Path of the initramfs file.
    pub file: PathBuf,
    /// Size of the initramfs file in bytes.
    pub bytes: u64,
    /// Names of the modules in the initramfs, in load order.
    pub modules: Vec<String>,
}

/// Makes the initramfs of `contents` for a kernel, with all modules of `wanted`, and the modules of `maybe` that the
/// kernel has.
///
/// # Errors
/// The kernel does not have a wanted module, or a file cannot be read or written.
pub fn initramfs(
    kernel: &Kernel,
    contents: &Contents,
    (wanted, maybe): (&[String], &[&str]),
    cache: &Cache,
) -> Result<Initramfs, Problem> {
    let chosen = choose(kernel, wanted, maybe)?;
    let mut made_from = format!("{FORMAT} {}\n", contents.bundle.hash);
    for Module { file, is_own, required } in &chosen {
        // The files of a kernel release stay as they are; the module of a user may have been built anew.
        let content = match is_own {
            true => name_of_file(file)?,
            false => file.metadata().map_err(file_error("read", file))?.len().to_string(),
        };
        made_from.push_str(&format!("{} {content} {required}\n", file.display()));
    }
    let file = cache.keep(&format!("initramfs-{}", name_of(made_from)), |path| {
        let to = File::create_new(path).map_err(file_error("make", path))?;
        write(contents, &chosen, BufWriter::with_capacity(1 << 20, to), path)
    })?;
    let bytes = file.metadata().map_err(file_error("read", &file))?.len();
    let modules = chosen.iter().map(|m| module_file::name(&m.file.to_string_lossy())).collect();
    Ok(Initramfs { file, bytes, modules })
}

fn write(contents: &Contents, chosen: &[Module], to: impl io::Write, path: &Path) -> Result<(), Problem> {
    let failed = |e| file_error("write", path)(e);
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
        let content = std::fs::read(from).map_err(file_error("read", from))?;
        let kept = if file.path == "bin/tailbound" { loaded_part(content) } else { content };
        cpio.file(&file.path, 0o755, &kept).map_err(failed)?;
    }
    for (number, Module { file, required, .. }) in chosen.iter().enumerate() {
        let name = modules::place(number, &module_file::name(&file.to_string_lossy()), *required);
        cpio.file(&name, 0o644, &module_file::read(file)?).map_err(failed)?;
    }
    cpio.finish().map_err(failed)?;
    Ok(())
}

/// All parent directories of a file's path in the initramfs, from the top.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

/// Removes the parts of a program that are never loaded, because a guest keeps the whole file in memory, and half of a
/// debug build is debug information.
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
        // e_shoff, e_shentsize, e_shnum and e_shstrndx become 0, because there are no sections any more.
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
    fn a_program_runs_without_the_parts_that_are_never_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::env::current_exe().unwrap();
        let whole = std::fs::read(&own).unwrap();
        let part = loaded_part(whole.clone());
        assert!(part.len() < whole.len());
        let program = dir.path().join("program");
        std::fs::write(&program, part).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let output =
            Command::new(&program).args(["--list", "settings_are_parsed_as_they_were_written"]).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("settings_are_parsed_as_they_were_written: test"));
        assert_eq!(loaded_part(b"text".to_vec()), b"text");
    }
}
