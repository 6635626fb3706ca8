//! Writes the root directory of an image as an archive. The same bundle always gives the same archive.

use super::archive_error::ArchiveError;
use crate::closure::loader;
use crate::contents::Contents;
use crate::error::BundleError;
use crate::manifest::MANIFEST;

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// Writes the root directory of a container image as a tar archive to `to`: the bundle's files, the directories on
/// which container runtimes mount file systems, and /tmp.
pub(super) fn layer(contents: &Contents, to: impl Write) -> Result<(), ArchiveError> {
    let mut archive = Builder::new(to);
    let bundle = &contents.bundle;
    let parents = bundle.files.iter().flat_map(|f| Path::new(&f.path).ancestors().skip(1));
    let parents = parents.filter_map(Path::to_str).filter(|p| !p.is_empty());
    let directories: BTreeSet<&str> = parents.chain(["dev", "etc", "proc", "sys", "tmp"]).collect();
    for directory in directories {
        let mode = if directory == "tmp" { 0o1777 } else { 0o755 };
        archive.append(&entry(&format!("{directory}/"), EntryType::Directory, mode, 0)?, io::empty())?;
    }
    if let Some(alias) = alias(contents) {
        let mut header = header(EntryType::Symlink, 0o777, 0);
        archive.append_link(&mut header, alias, "lib")?;
    }
    files(contents, &mut archive)?;
    archive.into_inner()?.flush()?;
    Ok(())
}

impl Contents {
    /// Writes the bundle's files as a tar archive for another host.
    ///
    /// # Errors
    /// A file cannot be read or has changed since it was gathered, or `to` cannot be written.
    pub fn tar(&self, to: impl std::io::Write) -> Result<(), BundleError> {
        let written = || {
            let mut archive = Builder::new(to);
            files(self, &mut archive)?;
            Ok(archive.into_inner()?.flush()?)
        };
        written().map_err(|e: ArchiveError| e.at(Path::new("the other host")))
    }
}

fn files(contents: &Contents, archive: &mut Builder<impl Write>) -> Result<(), ArchiveError> {
    let bundle = &contents.bundle;
    let manifest = contents.manifest();
    archive.append(&entry(MANIFEST, EntryType::Regular, 0o644, manifest.len() as u64)?, &*manifest)?;
    for (file, from) in bundle.files.iter().zip(&contents.sources) {
        let content =
            std::fs::read(from).map_err(BundleError::file("cannot read", from)).map_err(ArchiveError::Source)?;
        if crate::manifest::hex(&Sha256::digest(&content)) != file.sha256 {
            return Err(ArchiveError::Source(BundleError::Changed(from.clone())));
        }
        // Permissions of libraries on this host are not copied, so that they do not change the bundle.
        let mode = if file.path.starts_with("bin/") || file.path.ends_with(&bundle.loader) { 0o755 } else { 0o644 };
        let mut header = header(EntryType::Regular, mode, file.bytes);
        archive.append_data(&mut header, &file.path, &*content)?;
    }
    Ok(())
}

/// Finds the directory in which the program expects its loader; `None` if the directory is /lib. A link from this
/// directory to /lib makes `tailbound` work as a plain command.
fn alias(contents: &Contents) -> Option<String> {
    let program = contents.bundle.files.iter().position(|f| f.path == "bin/tailbound")?;
    let loader = loader(&contents.sources[program]).ok()?;
    let directory = loader.parent()?.strip_prefix("/").ok()?.to_str()?.to_owned();
    (!directory.is_empty() && directory != "lib" && !directory.contains('/')).then_some(directory)
}

/// Makes the header of an archive entry without time and owner.
fn header(kind: EntryType, mode: u32, bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(bytes);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Makes the complete header of an archive entry with a short path.
pub(super) fn entry(path: &str, kind: EntryType, mode: u32, bytes: u64) -> io::Result<Header> {
    let mut header = header(kind, mode, bytes);
    header.set_path(path)?;
    header.set_cksum();
    Ok(header)
}
