//! The root directory of an image, as an archive that is the same for the same bundle.

use super::Failed;
use crate::closure::loader;
use crate::error::BundleError;
use crate::manifest::MANIFEST;
use crate::pack::Contents;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// Writes the bundle's files, the directories that runtimes mount on, and a /tmp.
pub(super) fn layer(contents: &Contents, to: impl Write) -> Result<(), Failed> {
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

/// Writes the bundle's files alone, for whoever unpacks them into a directory of their own.
pub(crate) fn plain(contents: &Contents, to: impl Write) -> Result<(), Failed> {
    let mut archive = Builder::new(to);
    files(contents, &mut archive)?;
    archive.into_inner()?.flush()?;
    Ok(())
}

fn files(contents: &Contents, archive: &mut Builder<impl Write>) -> Result<(), Failed> {
    let bundle = &contents.bundle;
    let manifest = contents.manifest();
    archive.append(&entry(MANIFEST, EntryType::Regular, 0o644, manifest.len() as u64)?, &*manifest)?;
    for (file, from) in bundle.files.iter().zip(&contents.sources) {
        let content = std::fs::read(from).map_err(BundleError::file("cannot read", from)).map_err(Failed::Source)?;
        if crate::manifest::hex(&Sha256::digest(&content)) != file.sha256 {
            return Err(Failed::Source(BundleError::Changed(from.clone())));
        }
        // Which bits a host has set on a library says nothing about the bundle.
        let mode = if file.path.starts_with("bin/") || file.path.ends_with(&bundle.loader) { 0o755 } else { 0o644 };
        let mut header = header(EntryType::Regular, mode, file.octets);
        archive.append_data(&mut header, &file.path, &*content)?;
    }
    Ok(())
}

/// The directory in which the program looks for its loader, where that is not /lib: as another name of /lib it makes
/// `tailbound` a command that can be given as it is.
fn alias(contents: &Contents) -> Option<String> {
    let program = contents.bundle.files.iter().position(|f| f.path == "bin/tailbound")?;
    let loader = loader(&contents.sources[program]).ok()?;
    let directory = loader.parent()?.strip_prefix("/").ok()?.to_str()?.to_owned();
    (!directory.is_empty() && directory != "lib" && !directory.contains('/')).then_some(directory)
}

/// The head of an entry that tells no time and no owner.
fn header(kind: EntryType, mode: u32, octets: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(octets);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// The same for a short path, ready to be written.
pub(super) fn entry(path: &str, kind: EntryType, mode: u32, octets: u64) -> io::Result<Header> {
    let mut header = header(kind, mode, octets);
    header.set_path(path)?;
    header.set_cksum();
    Ok(header)
}
