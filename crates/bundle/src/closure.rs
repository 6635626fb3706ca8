//! Finds the loader (dynamic linker) of a program, and the libraries that this loader finds for the program.

use crate::error::BundleError;
use object::read::elf::{FileHeader, ProgramHeader};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Reads the path of the dynamic loader that an ELF program names.
pub(crate) fn loader(program: &Path) -> Result<PathBuf, BundleError> {
    let bad = |reason: String| BundleError::Program { path: program.to_owned(), reason };
    let content = std::fs::read(program).map_err(BundleError::file("cannot read", program))?;
    let found = object::elf::FileHeader64::<object::Endianness>::parse(&*content).and_then(|header| {
        let endian = header.endian()?;
        let all = header.program_headers(endian, &*content)?;
        Ok(all.iter().find_map(|h| h.interpreter(endian, &*content).ok().flatten().map(<[u8]>::to_vec)))
    });
    match found {
        Ok(Some(path)) => Ok(PathBuf::from(String::from_utf8_lossy(&path).into_owned())),
        Ok(None) => Err(bad("the file names no loader: it is linked statically, or is a library".into())),
        Err(e) => Err(bad(format!("the file is not a 64-bit ELF file ({e})"))),
    }
}

/// Finds the libraries that `loader` maps for `file`: the requested name and the path of each. The loader itself is
/// asked, so that the bundle contains the same libraries that would be used on this host.
pub(crate) fn libraries(loader: &Path, file: &Path) -> Result<Vec<(String, PathBuf)>, BundleError> {
    let output = Command::new(loader).arg("--list").arg(file).output();
    let output = output.map_err(BundleError::file("cannot run the loader", loader))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(BundleError::Program { path: file.to_owned(), reason });
    }
    listed(&String::from_utf8_lossy(&output.stdout))
        .map_err(|library| BundleError::Library { needs: file.to_owned(), library })
}

/// Parses the output of the loader's option `--list`: `name => path (address)`, `name => not found`, and lines without
/// a file (the vDSO of the kernel, the loader). The error is the name of a missing library.
fn listed(text: &str) -> Result<Vec<(String, PathBuf)>, String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let Some((name, rest)) = line.trim().split_once(" => ") else { continue };
        if rest.starts_with("not found") {
            return Err(name.to_owned());
        }
        let path = rest.rsplit_once(" (0x").map_or(rest, |(path, _)| path);
        // The name can be a path if the file was linked with a path.
        let name = Path::new(name).file_name().unwrap_or_default().to_string_lossy().into_owned();
        found.push((name, PathBuf::from(path)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_the_loader_is_parsed() {
        let text = "\tlinux-vdso.so.1 (0x00007f70e1e01000)\n\tlibm.so.6 => /lib/with space (old)/libm.so.6 (0x00007f70e1cef000)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f70e1e03000)\n";
        let found = listed(text).unwrap();
        assert_eq!(found, [("libm.so.6".to_owned(), PathBuf::from("/lib/with space (old)/libm.so.6"))]);
        assert_eq!(listed("\tlibgone.so.3 => not found\n"), Err("libgone.so.3".to_owned()));
    }

    #[test]
    fn a_program_names_its_loader_and_text_does_not() {
        let own = loader(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.file_name().unwrap().to_string_lossy().starts_with("ld-"), "{own:?}");
        let refused = loader(Path::new(file!().rsplit_once("crates/bundle/").unwrap().1)).unwrap_err().to_string();
        assert!(refused.ends_with(')') && refused.contains("the file is not a 64-bit ELF file"), "{refused}");
    }
}
