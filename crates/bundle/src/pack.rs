//! From files of this host to a bundle.

use crate::closure::{libraries, loader};
use crate::error::BundleError;
use crate::manifest::{Bundle, BundleFile, FORMAT, MANIFEST, digest, hash};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a bundle says of itself, and where its files lie now: not yet in one directory, or in that of a bundle.
#[derive(Debug)]
pub struct Contents {
    /// What it says of itself.
    pub bundle: Bundle,
    /// A file for each of `bundle.files`.
    pub(crate) sources: Vec<PathBuf>,
}

impl Contents {
    /// Finds all that `program` and `drivers` (name and shared object of each) need on this host.
    ///
    /// # Errors
    /// A library is missing on this host; a file cannot be read.
    pub fn gather(program: &Path, release: &str, drivers: &[(String, PathBuf)]) -> Result<Contents, BundleError> {
        let loader = loader(program)?;
        let (mut files, mut sources) = (Vec::new(), Vec::new());
        for (path, from) in wanted(program, &loader, drivers)? {
            let (octets, sha256) = digest(&from)?;
            files.push(BundleFile { path, octets, sha256, from: from.display().to_string() });
            sources.push(from);
        }
        let bundle = Bundle {
            format: FORMAT,
            tailbound: release.to_owned(),
            machine: std::env::consts::ARCH.to_owned(),
            hash: hash(&files),
            loader: name_of(&loader),
            drivers: drivers.iter().map(|(name, _)| name.clone()).collect(),
            files,
        };
        Ok(Contents { bundle, sources })
    }

    /// The bundle that lies in `directory`.
    ///
    /// # Errors
    /// As [`Bundle::verify`].
    pub fn within(directory: &Path) -> Result<Contents, BundleError> {
        let bundle = Bundle::verify(directory)?;
        let sources = bundle.files.iter().map(|f| directory.join(&f.path)).collect();
        Ok(Contents { bundle, sources })
    }

    /// Writes it as a tar archive, for another host. A file whose content has changed since it was gathered is an error.
    ///
    /// # Errors
    /// A file cannot be read or has changed; `to` takes no more.
    pub fn tar(&self, to: impl std::io::Write) -> Result<(), BundleError> {
        crate::image::plain(self, to).map_err(|e| e.at(Path::new("the other host")))
    }

    /// Its files, and where each of them lies now.
    pub fn files(&self) -> impl Iterator<Item = (&BundleFile, &Path)> {
        self.bundle.files.iter().zip(self.sources.iter().map(PathBuf::as_path))
    }

    /// Takes another file along as `at`, a program with its libraries. The loader of the bundle has to suit it.
    ///
    /// # Errors
    /// A library is missing on this host; a file cannot be read; another one is there as `at`.
    pub fn add(&mut self, at: &str, file: &Path) -> Result<(), BundleError> {
        let mut files = vec![(at.to_owned(), file.to_owned())];
        // What is no program, or one that is linked statically, needs none.
        if let Ok(loader) = loader(file) {
            files.extend(libraries(&loader, file)?.into_iter().map(|(name, path)| (format!("lib/{name}"), path)));
        }
        for (path, from) in files {
            let there = self.bundle.files.iter().zip(&self.sources).find(|(f, _)| f.path == path);
            if there.is_some_and(|(_, first)| *first == from) {
                continue;
            }
            let (octets, sha256) = digest(&from)?;
            match there {
                Some((file, first)) if file.sha256 != sha256 => {
                    return Err(BundleError::Twice { first: first.clone(), second: from });
                }
                Some(_) => {}
                None => {
                    self.bundle.files.push(BundleFile { path, octets, sha256, from: from.display().to_string() });
                    self.sources.push(from);
                }
            }
        }
        self.bundle.hash = hash(&self.bundle.files);
        Ok(())
    }

    /// `bundle.json`.
    pub(crate) fn manifest(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(&self.bundle).expect("strings and numbers only");
        text.push(b'\n');
        text
    }

    /// Copies all files.
    fn fill(&self, directory: &Path) -> Result<(), BundleError> {
        for sub in ["bin", "lib/tailbound/drivers"] {
            let sub = directory.join(sub);
            std::fs::create_dir_all(&sub).map_err(BundleError::file("cannot make", &sub))?;
        }
        for (file, from) in self.bundle.files.iter().zip(&self.sources) {
            let to = directory.join(&file.path);
            std::fs::copy(from, &to).map_err(BundleError::file("cannot copy", from))?;
            if digest(&to)? != (file.octets, file.sha256.clone()) {
                return Err(BundleError::Changed(from.clone()));
            }
        }
        let manifest = directory.join(MANIFEST);
        std::fs::write(&manifest, self.manifest()).map_err(BundleError::file("cannot write", &manifest))
    }
}

/// Makes the bundle `directory` of `program` and `drivers` (name and shared object of each). The directory appears when
/// it is whole.
///
/// # Errors
/// `directory` exists; a library is missing on this host; a file cannot be read or written.
pub fn pack(
    program: &Path,
    release: &str,
    drivers: &[(String, PathBuf)],
    directory: &Path,
) -> Result<Bundle, BundleError> {
    if directory.exists() {
        return Err(BundleError::Exists { path: directory.to_owned(), what: "directory" });
    }
    let contents = Contents::gather(program, release, drivers)?;
    let partial = partial(directory);
    let made = contents
        .fill(&partial)
        .and_then(|()| std::fs::rename(&partial, directory).map_err(BundleError::file("cannot name", directory)));
    if made.is_err() {
        // The first error is the one to tell.
        let _ = std::fs::remove_dir_all(&partial);
    }
    made.map(|()| contents.bundle)
}

/// The name under which `path` is made, beside it, until it is whole.
pub(crate) fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    PathBuf::from(name)
}

/// Path in the bundle -> file of this host.
fn wanted(
    program: &Path,
    loader: &Path,
    drivers: &[(String, PathBuf)],
) -> Result<BTreeMap<String, PathBuf>, BundleError> {
    let mut wanted = BTreeMap::from([
        ("bin/tailbound".to_owned(), program.to_owned()),
        (format!("lib/{}", name_of(loader)), loader.to_owned()),
    ]);
    for file in [program].into_iter().chain(drivers.iter().map(|(_, path)| path.as_path())) {
        for (name, path) in libraries(loader, file)? {
            let path_in = format!("lib/{name}");
            if let Some(first) = wanted.get(&path_in) {
                if *first != path && digest(first)? != digest(&path)? {
                    return Err(BundleError::Twice { first: first.clone(), second: path });
                }
                continue;
            }
            wanted.insert(path_in, path);
        }
    }
    for (name, path) in drivers {
        wanted.insert(format!("lib/tailbound/drivers/libtailbound_driver_{name}.so"), path.clone());
    }
    Ok(wanted)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
