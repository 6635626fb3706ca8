//! Finds the uncompressed kernel inside a compressed image. QEMU starts an uncompressed kernel with a PVH entry (Xen's
//! x86/HVM direct boot ABI) directly; a compressed kernel needs firmware and unpacks itself, which takes longer.

use crate::error::guest_error;
use object::read::elf::{FileHeader, ProgramHeader};
use std::io::Write;
use std::process::{Command, Stdio};
use tailbound_model::Problem;

/// Type of the ELF note that contains the PVH entry (include/xen/interface/elfnote.h).
const PHYS32_ENTRY: u32 = 18;
/// For each compression: first bytes of the compressed data, program that unpacks it, and Debian package of the
/// program.
const PACKED: [(&[u8], &str, &str); 4] = [
    (b"\xfd7zXZ\0", "xz", "xz-utils"),
    (b"\x02\x21\x4c\x18", "lz4", "lz4"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd"),
    (b"\x1f\x8b", "gzip", "gzip"),
];
/// Error text for a kernel image whose uncompressed kernel has no PVH entry.
pub(crate) const NO_PVH_ENTRY: &str = "the kernel has no PVH entry point";

/// Whether the kernel image is uncompressed and has a PVH entry.
pub(crate) fn is_pvh(image: &[u8]) -> bool {
    let found = object::elf::FileHeader64::<object::Endianness>::parse(image).and_then(|header| {
        let endian = header.endian()?;
        for part in header.program_headers(endian, image)? {
            let Some(mut notes) = part.notes(endian, image)? else { continue };
            while let Some(note) = notes.next()? {
                if note.name() == b"Xen" && note.n_type(endian) == PHYS32_ENTRY {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    });
    found.unwrap_or(false)
}

/// Returns a function that unpacks the kernel in a bzImage; `None` if the image is not a bzImage or its compression is
/// not known.
pub(crate) fn inner(image: &[u8]) -> Option<impl FnOnce() -> Result<Vec<u8>, Problem> + '_> {
    let number = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    // Documentation/arch/x86/boot.rst: payload_offset counts from the end of the setup sectors; 0 there means 4.
    let sectors = match image[0x1f1] {
        0 => 4,
        n => usize::from(n),
    };
    let begin = (sectors + 1) * 512 + number(0x248)?;
    let packed = image.get(begin..begin + number(0x24c)?)?;
    let (_, program, package) = PACKED.into_iter().find(|(magic, ..)| packed.starts_with(magic))?;
    Some(move || {
        let plain = unpack(packed, program, package)?;
        if is_pvh(&plain) { Ok(plain) } else { Err(guest_error(NO_PVH_ENTRY, "")) }
    })
}

/// Unpacks a compressed kernel with a program. Errors of the program are ignored, because the kernel appends the length
/// to the compressed data.
pub(crate) fn unpack(packed: &[u8], program: &str, package: &str) -> Result<Vec<u8>, Problem> {
    let failed = |e: std::io::Error| {
        guest_error(format!("cannot run {program}: {e}"), format!("install the package {package} (Debian's name)"))
    };
    let mut command = Command::new(program);
    command.args(["-d", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    let mut input = child.stdin.take();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // The program may end before it has read all input.
            let _ = input.take().map(|mut to| to.write_all(packed));
        });
        child.wait_with_output().map(|output| output.stdout).map_err(failed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packed_kernel_is_found_by_the_header() {
        let mut child = Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"a plain kernel").unwrap();
        let mut packed = child.wait_with_output().unwrap().stdout;
        packed.extend(14u32.to_le_bytes());
        assert_eq!(unpack(&packed, "gzip", "gzip").unwrap(), b"a plain kernel");

        let mut image = vec![0; 512 * 2 + 16];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&(packed.len() as u32).to_le_bytes());
        image.extend(&packed);
        let refused = inner(&image).expect("the image is packed")().unwrap_err();
        assert_eq!(refused.what, NO_PVH_ENTRY);
        assert!(inner(&image[..600]).is_none() && inner(b"short").is_none());
        let missing = unpack(&packed, "no-such-program", "none").unwrap_err().to_string();
        assert!(
            missing.starts_with("cannot run no-such-program: ")
                && missing.ends_with("install the package none (Debian's name)")
        );
    }
}
