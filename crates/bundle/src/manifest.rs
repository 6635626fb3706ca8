//! What a bundle says of itself, and whether it is so.

use crate::error::BundleError;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Version of the layout.
pub const FORMAT: u32 = 1;
/// Name of the file that describes a bundle.
pub const MANIFEST: &str = "bundle.json";

/// A bundle: `bundle.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// Version of the layout.
    pub format: u32,
    /// Release of Tailbound in it.
    pub tailbound: String,
    /// Processor family as `uname -m` has it.
    pub machine: String,
    /// SHA-256 over paths and digests of all files: two bundles with the same hash are the same.
    pub hash: String,
    /// File name of the loader in `lib`.
    pub loader: String,
    /// Drivers that are files.
    pub drivers: Vec<String>,
    /// All files but this one, sorted by path.
    pub files: Vec<BundleFile>,
}

/// A file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleFile {
    /// Path within the bundle.
    pub path: String,
    /// Octets.
    pub octets: u64,
    /// SHA-256 of its content.
    pub sha256: String,
    /// Where it was taken from; its package can be found by it.
    pub from: String,
}

impl Bundle {
    /// Reads what `directory` says of itself.
    ///
    /// # Errors
    /// No bundle, or one of a later layout.
    pub fn read(directory: &Path) -> Result<Bundle, BundleError> {
        let not = |reason: String| BundleError::NotABundle { path: directory.to_owned(), reason };
        let text = std::fs::read(directory.join(MANIFEST)).map_err(|e| not(format!("{MANIFEST}: {e}")))?;
        let bundle: Bundle = serde_json::from_slice(&text).map_err(|e| not(format!("{MANIFEST}: {e}")))?;
        match bundle.format {
            FORMAT => Ok(bundle),
            other => Err(not(format!("its layout is {other}, this release knows {FORMAT}"))),
        }
    }

    /// Reads `directory` and looks at the content of every file.
    ///
    /// # Errors
    /// As [`read`](Bundle::read); a file that is missing or not what the manifest says.
    pub fn verify(directory: &Path) -> Result<Bundle, BundleError> {
        let bundle = Bundle::read(directory)?;
        let not = |reason: String| BundleError::NotABundle { path: directory.to_owned(), reason };
        for file in &bundle.files {
            let found = digest(&directory.join(&file.path)).map_err(|e| not(e.to_string()))?;
            if found != (file.octets, file.sha256.clone()) {
                return Err(not(format!("{} is not what {MANIFEST} says", file.path)));
            }
        }
        match hash(&bundle.files) == bundle.hash {
            true => Ok(bundle),
            false => Err(not("its hash does not fit its files".into())),
        }
    }

    /// Name of a directory for it: release, processor family and hash.
    pub fn name(&self) -> String {
        format!("tailbound-{}-{}-{}", self.tailbound, self.machine, &self.hash[..16.min(self.hash.len())])
    }

    /// The words that start it where it lies in `directory`; arguments follow.
    pub fn words(&self, directory: &Path) -> Vec<PathBuf> {
        let lib = directory.join("lib");
        vec![lib.join(&self.loader), "--library-path".into(), lib, directory.join("bin/tailbound")]
    }

    /// The command that starts it on this host; arguments follow.
    pub fn start(&self, directory: &Path) -> Command {
        let words = self.words(directory);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }
}

/// Octets and SHA-256 of a file.
pub(crate) fn digest(path: &Path) -> Result<(u64, String), BundleError> {
    let mut file = File::open(path).map_err(BundleError::file("cannot open", path))?;
    let mut hasher = Sha256::new();
    let (mut octets, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).map_err(BundleError::file("cannot read", path))? {
            0 => return Ok((octets, hex(&hasher.finalize()))),
            n => {
                hasher.update(&buffer[..n]);
                octets += n as u64;
            }
        }
    }
}

/// The hash of a bundle's content.
pub(crate) fn hash(files: &[BundleFile]) -> String {
    let mut hasher = Sha256::new();
    for file in files {
        hasher.update(format!("{} {}\n", file.sha256, file.path));
    }
    hex(&hasher.finalize())
}

pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|b| format!("{b:02x}")).collect()
}
