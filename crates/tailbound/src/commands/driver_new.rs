//! `tailbound driver new`: what a driver of one's own begins with, as files.

use crate::exit::{Failure, Outcome};
use crate::say::outln;
use std::io::{ErrorKind, Write};
use std::path::Path;
use tailbound_model::ExitCode;

/// Name and text. The first one is the source that is compiled.
type Files = &'static [(&'static str, &'static str)];

macro_rules! embedded {
    ($($name:literal: $path:literal),*) => { &[$(($name, include_str!(concat!("../../../../", $path)))),*] };
}
const C: Files = embedded!(
    "skeleton.c": "drivers/skeleton/skeleton.c",
    "loopback.h": "drivers/skeleton/loopback.h",
    "tailbound_driver.h": "include/tailbound_driver.h"
);
const CXX: Files = embedded!(
    "skeleton.cpp": "drivers/skeleton/skeleton.cpp",
    "loopback.hpp": "drivers/skeleton/loopback.hpp",
    "tailbound_driver.h": "include/tailbound_driver.h"
);

pub fn new(directory: &Path, cxx: bool) -> Outcome {
    let (files, compiler) = if cxx { (CXX, "c++ -std=c++17") } else { (C, "cc -std=c11") };
    let failed = |path: &Path, e: std::io::Error| {
        let text = format!(
            "{}: cannot be written: {e}\n  what to do: name a directory that can be made or written to",
            path.display()
        );
        Failure::new(ExitCode::BadInput, text)
    };
    // All are looked at before one is written: a refusal leaves the directory as it was.
    if let Some(path) = files.iter().map(|(name, _)| directory.join(name)).find(|p| p.symlink_metadata().is_ok()) {
        return Err(there_already(&path));
    }
    std::fs::create_dir_all(directory).map_err(|e| failed(directory, e))?;
    for (name, text) in files {
        let path = directory.join(name);
        let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
        match file.and_then(|mut f| f.write_all(text.as_bytes())) {
            Ok(()) => outln!("{}", path.display()),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Err(there_already(&path)),
            Err(e) => return Err(failed(&path, e)),
        }
    }
    let source = files[0].0;
    outln!("\nNext, in that directory:");
    outln!("  {compiler} -Wall -Wextra -O2 -shared -fPIC -pthread -o libtailbound_driver_skeleton.so {source}");
    outln!("  tailbound driver check ./libtailbound_driver_skeleton.so");
    Ok(ExitCode::Done)
}

fn there_already(path: &Path) -> Failure {
    let text = format!(
        "{}: is there already, and is not written over\n  what to do: name an empty or a new directory, or move the \
         file away",
        path.display()
    );
    Failure::new(ExitCode::BadInput, text)
}
