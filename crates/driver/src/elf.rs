//! Checks that a shared object is complete. The dynamic linker maps the parts of the file that its program headers
//! describe. If the file is too short, the first access to a missing part ends the process with SIGBUS.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Sizes in bytes of an ELF-64 header and of a program header (System V ABI, gabi 4.1).
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const PT_LOAD: u32 = 1;

/// Describes the missing part of a shared object. The result is `None` if the file is complete. It is also `None` if
/// the file is not a 64-bit ELF file of this byte order, because the dynamic linker reports this error.
pub(crate) fn damage(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    let mut header = [0; HEADER];
    file.read_exact(&mut header).ok()?;
    let native = if cfg!(target_endian = "little") { 1 } else { 2 };
    if header[..4] != *b"\x7fELF" || header[4] != 2 || header[5] != native {
        return None;
    }
    let number = |at: usize| u64::from_ne_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    let short = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let (table, entry, count) = (number(32), short(54), short(56));
    let truncated = |needed: u64| format!("the file is cut off: it has {size} bytes and needs at least {needed}");
    if usize::from(entry) != PROGRAM_HEADER {
        return None;
    }
    for index in 0..u64::from(count) {
        let at = table.checked_add(index * PROGRAM_HEADER as u64)?;
        let mut program = [0; PROGRAM_HEADER];
        if file.read_exact_at(&mut program, at).is_err() {
            return Some(truncated(at.saturating_add(PROGRAM_HEADER as u64)));
        }
        let number = |at: usize| u64::from_ne_bytes(program[at..at + 8].try_into().expect("eight bytes"));
        let kind = u32::from_ne_bytes(program[..4].try_into().expect("four bytes"));
        let end = number(8).saturating_add(number(32));
        if kind == PT_LOAD && end > size {
            return Some(truncated(end));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::damage;

    #[test]
    fn a_file_that_is_cut_off_is_told() {
        let whole = std::env::current_exe().unwrap();
        assert_eq!(damage(&whole), None);
        let bytes = std::fs::read(&whole).unwrap();
        let dir = tempfile::tempdir().unwrap();
        for length in [64, 100, 3000] {
            let cut = dir.path().join("cut.so");
            std::fs::write(&cut, &bytes[..length]).unwrap();
            assert!(damage(&cut).unwrap().contains("cut off"), "{length}");
        }
        let text = dir.path().join("text.so");
        std::fs::write(&text, "no ELF at all").unwrap();
        assert_eq!(damage(&text), None, "that is for the linker to say");
    }
}
