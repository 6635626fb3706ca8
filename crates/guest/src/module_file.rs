//! A kernel module that a user names by its file: for which kernel release it was built, and which modules it needs.
//!
//! Input: the file, compressed or not. Output: what its section `.modinfo` says (kernel: include/linux/module.h,
//! scripts/mod/modpost.c): entries `key=value`, each of which ends with a zero byte.

use crate::error::{file_error, guest_error};
use crate::kernel::Kernel;
use crate::pvh::unpack;
use object::read::elf::FileHeader;
use std::path::{Path, PathBuf};
use tailbound_model::Problem;

/// Name of a kernel module from its file name: `-` becomes `_`, and the compression suffix is removed.
pub(crate) fn name(file: &str) -> String {
    let file = file.rsplit('/').next().unwrap_or(file);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

/// Reads a kernel module in the uncompressed form that the kernel loads.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>, Problem> {
    let content = std::fs::read(file).map_err(file_error("read", file))?;
    match file.extension().and_then(|e| e.to_str()) {
        Some("xz") => unpack(&content, "xz", "xz-utils"),
        Some("zst") => unpack(&content, "zstd", "zstd"),
        Some("gz") => unpack(&content, "gzip", "gzip"),
        _ => Ok(content),
    }
}

/// What the file of a kernel module says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModuleFile {
    /// Absolute path of the file.
    pub path: PathBuf,
    /// Names of the modules whose symbols the module uses.
    pub needs: Vec<String>,
}

/// Whether a user means a file, and not a module by its name: a file has a `/` in its path, or the end `.ko` in its name.
pub(crate) fn is_file(word: &str) -> bool {
    word.contains('/') || word.contains(".ko")
}

impl ModuleFile {
    /// Reads the file of a module for this kernel.
    ///
    /// # Errors
    /// The file cannot be read, is not a kernel module, or was built for another kernel release.
    pub fn read(word: &str, kernel: &Kernel) -> Result<ModuleFile, Problem> {
        let path = std::path::absolute(word).map_err(file_error("find", Path::new(word)))?;
        let content = read(&path)?;
        let Some(entries) = entries(&content) else {
            return Err(guest_error(
                format!("{word} is not a kernel module for x86_64"),
                "give the path of a file NAME.ko, or the name of a module of the guest's kernel",
            ));
        };
        let value = |key: &str| entries.iter().find_map(|entry| entry.strip_prefix(key)?.strip_prefix('='));
        let release = value("vermagic").and_then(|magic| magic.split(' ').next()).unwrap_or_default();
        if release != kernel.version {
            return Err(guest_error(
                format!("the module {word} was built for the kernel {release}, but the guest boots {}", kernel.version),
                "build the module for the guest's kernel, or name the other kernel with --kernel",
            ));
        }
        let needs = value("depends").unwrap_or_default().split(',').filter(|name| !name.is_empty());
        Ok(ModuleFile { path, needs: needs.map(str::to_owned).collect() })
    }

    /// File of a module of this name in the directory of this file.
    pub fn beside(&self, wanted: &str) -> Option<PathBuf> {
        let directory = std::fs::read_dir(self.path.parent()?).ok()?;
        let is_named = |path: &PathBuf| {
            path.file_name().and_then(|file| file.to_str()).is_some_and(|file| is_file(file) && name(file) == wanted)
        };
        directory.flatten().map(|entry| entry.path()).find(is_named)
    }
}

/// Entries of the section `.modinfo` of a module; `None` if the file is not a module for x86_64.
fn entries(content: &[u8]) -> Option<Vec<String>> {
    type Header = object::elf::FileHeader64<object::Endianness>;
    let header = Header::parse(content).ok()?;
    let endian = header.endian().ok()?;
    if header.e_type(endian) != object::elf::ET_REL || header.e_machine(endian) != object::elf::EM_X86_64 {
        return None;
    }
    let sections = header.sections(endian, content).ok()?;
    let (_, section) = sections.section_by_name(endian, b".modinfo")?;
    let bytes = object::read::elf::SectionHeader::data(section, endian, content).ok()?;
    Some(bytes.split(|byte| *byte == 0).map(|entry| String::from_utf8_lossy(entry).into_owned()).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Writes the smallest file with the section `.modinfo` that a module of this kernel release has.
    pub fn module(at: &Path, release: &str, needs: &str) {
        let info = format!("license=GPL\0depends={needs}\0vermagic={release} SMP preempt mod_unload \0");
        let names = b"\0.modinfo\0.shstrtab\0";
        let mut bytes = vec![0; 64];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        // e_type, e_machine, e_version, e_shoff, e_ehsize, e_shentsize, e_shnum, e_shstrndx
        put(16, &1u16.to_le_bytes());
        put(18, &62u16.to_le_bytes());
        put(20, &1u32.to_le_bytes());
        put(40, &64u64.to_le_bytes());
        put(52, &64u16.to_le_bytes());
        put(58, &64u16.to_le_bytes());
        put(60, &3u16.to_le_bytes());
        put(62, &2u16.to_le_bytes());
        let begin = 64 + 3 * 64;
        let mut section = |name: u32, kind: u32, offset: usize, size: usize| {
            let mut header = vec![0; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&(offset as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
            bytes.extend(header);
        };
        section(0, 0, 0, 0);
        section(1, 1, begin, info.len());
        section(10, 3, begin + info.len(), names.len());
        bytes.extend(info.as_bytes());
        bytes.extend(names);
        std::fs::write(at, bytes).unwrap();
    }
}
