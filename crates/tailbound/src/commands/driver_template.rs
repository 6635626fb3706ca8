//! Runs `tailbound driver new`: writes an example driver, as the start of a new driver.

use crate::failure::{CommandResult, Failure};
use crate::output::outln;
use std::io::{ErrorKind, Write};
use std::path::Path;
use tailbound_model::ExitCode;

/// Name and text of each file of the example driver. The first file is the source to compile.
type Files = &'static [(&'static str, &'static str)];

const HEADER: &str = include_str!("../../embedded/tailbound_driver.h");
const C: Files = &[
    ("skeleton.c", include_str!("../../embedded/skeleton/skeleton.c")),
    ("loopback.h", include_str!("../../embedded/skeleton/loopback.h")),
    ("tailbound_driver.h", HEADER),
];
const CXX: Files = &[
    ("skeleton.cpp", include_str!("../../embedded/skeleton/skeleton.cpp")),
    ("loopback.hpp", include_str!("../../embedded/skeleton/loopback.hpp")),
    ("tailbound_driver.h", HEADER),
];

pub fn write(directory: &Path, cxx: bool) -> CommandResult {
    let (files, compiler) = if cxx { (CXX, "c++ -std=c++17") } else { (C, "cc -std=c11") };
    let failed = |path: &Path, e: std::io::Error| {
        let text = format!("cannot write {}: {e}", path.display());
        Failure::bad_input(text).help("name a directory that can be created or written to")
    };
    // All files are checked before the first is written, so that a refused command changes nothing.
    if let Some(path) = files.iter().map(|(name, _)| directory.join(name)).find(|p| p.symlink_metadata().is_ok()) {
        return Err(exists(&path));
    }
    std::fs::create_dir_all(directory).map_err(|e| failed(directory, e))?;
    for (name, text) in files {
        let path = directory.join(name);
        let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
        match file.and_then(|mut f| f.write_all(text.as_bytes())) {
            Ok(()) => outln!("{}", path.display()),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Err(exists(&path)),
            Err(e) => return Err(failed(&path, e)),
        }
    }
    let source = files[0].0;
    outln!("\nNext, in that directory:");
    outln!("  {compiler} -Wall -Wextra -O2 -shared -fPIC -pthread -o libtailbound_driver_skeleton.so {source}");
    outln!("  tailbound driver check ./libtailbound_driver_skeleton.so");
    Ok(ExitCode::Done)
}

fn exists(path: &Path) -> Failure {
    Failure::bad_input(format!("{} exists already and is not overwritten", path.display()))
        .help("name an empty or a new directory, or move the file away")
}
