//! The manifest of a bundle: reads the manifest and verifies the files of the bundle.

use crate::error::BundleError;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Version of the directory layout of bundles that this release writes.
pub const FORMAT: u32 = 1;
/// File name of a bundle's manifest.
pub const MANIFEST: &str = "bundle.json";

/// The manifest of a bundle, stored as `bundle.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// Version of the bundle's directory layout.
    pub format: u32,
    /// Tailbound release that the bundle contains.
    pub tailbound: String,
    /// Processor family of the bundle, as printed by `uname -m`.
    pub machine: String,
    /// SHA-256 hash over the paths and digests of all files: bundles with equal hashes have equal content.
    pub hash: String,
    /// File name of the dynamic loader, which is in the directory `lib` of the bundle.
    pub loader: String,
    /// Names of the drivers that are shared objects in the bundle.
    pub drivers: Vec<String>,
    /// All files of the bundle except the manifest, sorted by path.
    pub files: Vec<BundleFile>,
}

/// A file of a bundle, as the manifest lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleFile {
    /// Path of the file relative to the bundle's directory.
    pub path: String,
    /// Size of the bundle's file in bytes.
    #[serde(rename = "octets")]
    pub bytes: u64,
    /// SHA-256 hash of the content of the bundle's file.
    pub sha256: String,
    /// Path from which the file was copied, by which the package of the file can be found.
    pub from: String,
}

impl Bundle {
    /// Reads the manifest of the bundle in `directory`.
    ///
    /// # Errors
    /// The directory is not a bundle, or has a newer layout.
    pub fn read(directory: &Path) -> Result<Bundle, BundleError> {
        let not = |reason: String| BundleError::NotABundle { path: directory.to_owned(), reason };
        let text = std::fs::read(directory.join(MANIFEST)).map_err(|e| not(format!("{MANIFEST}: {e}")))?;
        let bundle: Bundle = serde_json::from_slice(&text).map_err(|e| not(format!("{MANIFEST}: {e}")))?;
        match bundle.format {
            FORMAT => Ok(bundle),
            other => Err(not(format!(
                "the layout of the bundle has version {other}, but this release supports version {FORMAT}"
            ))),
        }
    }

    /// Reads the manifest of the bundle in `directory` and verifies the content of every file.
    ///
    /// # Errors
    /// See [`read`](Bundle::read); also if a file is missing or differs from the manifest.
    pub fn verify(directory: &Path) -> Result<Bundle, BundleError> {
        let bundle = Bundle::read(directory)?;
        let not = |reason: String| BundleError::NotABundle { path: directory.to_owned(), reason };
        for file in &bundle.files {
            let found = digest(&directory.join(&file.path)).map_err(|e| not(e.to_string()))?;
            if found != (file.bytes, file.sha256.clone()) {
                return Err(not(format!("{} differs from {MANIFEST}", file.path)));
            }
        }
        match hash(&bundle.files) == bundle.hash {
            true => Ok(bundle),
            false => Err(not("the hash of the bundle does not match its files".into())),
        }
    }

    /// Name for the directory of the bundle: release, processor family and hash.
    pub fn name(&self) -> String {
        format!("tailbound-{}-{}-{}", self.tailbound, self.machine, &self.hash[..16.min(self.hash.len())])
    }

    /// Words of the command line that starts the bundle in `directory`; the caller adds the arguments.
    pub fn words(&self, directory: &Path) -> Vec<PathBuf> {
        let lib = directory.join("lib");
        vec![lib.join(&self.loader), "--library-path".into(), lib, directory.join("bin/tailbound")]
    }

    /// Makes the command that starts the bundle in `directory` on this host; the caller adds the arguments.
    pub fn start(&self, directory: &Path) -> Command {
        let words = self.words(directory);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }
}

/// Computes the size in bytes and the SHA-256 hash of a file.
pub(crate) fn digest(path: &Path) -> Result<(u64, String), BundleError> {
    let mut file = File::open(path).map_err(BundleError::file("cannot open", path))?;
    let mut hasher = Sha256::new();
    let (mut bytes, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).map_err(BundleError::file("cannot read", path))? {
            0 => return Ok((bytes, hex(&hasher.finalize()))),
            n => {
                hasher.update(&buffer[..n]);
                bytes += n as u64;
            }
        }
    }
}

/// Computes one hash of all files of a bundle from their paths and hashes.
pub(crate) fn hash(files: &[BundleFile]) -> String {
    let mut hasher = Sha256::new();
    for file in files {
        hasher.update(format!("{} {}\n", file.sha256, file.path));
    }
    hex(&hasher.finalize())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
