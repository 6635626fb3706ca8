//! The content of a bundle (Tailbound's program, drivers and libraries, packed for another host), and the files of this
//! host from which the bundle is made.

use crate::closure::{libraries, loader};
use crate::error::BundleError;
use crate::manifest::{Bundle, BundleFile, FORMAT, digest, hash};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The manifest of a bundle, and the present path of each of its files: anywhere on this host, or in the directory of a
/// bundle.
#[derive(Debug)]
pub struct Contents {
    /// The manifest of the bundle: its files with their hashes.
    pub bundle: Bundle,
    /// The path where each file of the bundle is now, in the order of `bundle.files`.
    pub(crate) sources: Vec<PathBuf>,
}

impl Contents {
    /// Finds all files on this host that `program` and `drivers` (name and shared object of each driver) need, and the
    /// tracer of the program's installation.
    ///
    /// # Errors
    /// A library is missing on this host, or a file cannot be read.
    pub fn gather(program: &Path, release: &str, drivers: &[(String, PathBuf)]) -> Result<Contents, BundleError> {
        let loader = loader(program)?;
        let (mut files, mut sources) = (Vec::new(), Vec::new());
        for (path, from) in wanted(program, &loader, drivers)? {
            let (size, sha256) = digest(&from)?;
            files.push(BundleFile { path, bytes: size, sha256, from: from.display().to_string() });
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

    /// Reads and verifies the content of the bundle in `directory`.
    ///
    /// # Errors
    /// See [`Bundle::verify`].
    pub fn within(directory: &Path) -> Result<Contents, BundleError> {
        let bundle = Bundle::verify(directory)?;
        let sources = bundle.files.iter().map(|f| directory.join(&f.path)).collect();
        Ok(Contents { bundle, sources })
    }

    /// All files of the bundle, each with the path at which it is now on this host.
    pub fn files(&self) -> impl Iterator<Item = (&BundleFile, &Path)> {
        self.bundle.files.iter().zip(self.sources.iter().map(PathBuf::as_path))
    }

    /// Adds another file to the bundle at the path `at`: a program with its libraries. The program must work with the
    /// loader of the bundle.
    ///
    /// # Errors
    /// A library is missing on this host, a file cannot be read, or the bundle has a different file at `at`.
    pub fn add(&mut self, at: &str, file: &Path) -> Result<(), BundleError> {
        let mut files = vec![(at.to_owned(), file.to_owned())];
        // A file that is not a program, or is linked statically, needs no libraries.
        if let Ok(loader) = loader(file) {
            files.extend(libraries(&loader, file)?.into_iter().map(|(name, path)| (format!("lib/{name}"), path)));
        }
        for (path, from) in files {
            let there = self.bundle.files.iter().zip(&self.sources).find(|(f, _)| f.path == path);
            if there.is_some_and(|(_, first)| *first == from) {
                continue;
            }
            let (size, sha256) = digest(&from)?;
            match there {
                Some((file, first)) if file.sha256 != sha256 => {
                    return Err(BundleError::Twice { first: first.clone(), second: from });
                }
                Some(_) => {}
                None => {
                    self.bundle.files.push(BundleFile { path, bytes: size, sha256, from: from.display().to_string() });
                    self.sources.push(from);
                }
            }
        }
        self.bundle.hash = hash(&self.bundle.files);
        Ok(())
    }

    /// Makes the content of `bundle.json`, the manifest file of the bundle.
    pub(crate) fn manifest(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(&self.bundle).expect("strings and numbers only");
        text.push(b'\n');
        text
    }
}

/// Path of the tracer in a bundle, relative to the directory of the bundle; the program searches it there.
const TRACER: &str = "lib/tailbound/drivers/libtailbound_tracer.so";

/// The tracer of the installation of `program`, if it has one: beside the program, or in the directory of its drivers.
fn tracer_of(program: &Path) -> Option<PathBuf> {
    let beside = program.parent()?;
    let places = [beside.join(name_of(Path::new(TRACER))), beside.join("..").join(TRACER)];
    places.into_iter().find(|file| file.exists())
}

/// Finds the files that a bundle needs: for each path in the bundle, the path on this host.
fn wanted(
    program: &Path,
    loader: &Path,
    drivers: &[(String, PathBuf)],
) -> Result<BTreeMap<String, PathBuf>, BundleError> {
    let mut wanted = BTreeMap::from([
        ("bin/tailbound".to_owned(), program.to_owned()),
        (format!("lib/{}", name_of(loader)), loader.to_owned()),
    ]);
    let tracer = tracer_of(program);
    let drivers_and_tracer = drivers.iter().map(|(_, path)| path.as_path()).chain(tracer.as_deref());
    for file in [program].into_iter().chain(drivers_and_tracer) {
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
    wanted.extend(tracer.map(|file| (TRACER.to_owned(), file)));
    Ok(wanted)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
