//! Builds shared objects for the conformance test: the cdylibs of the workspace, and drivers in C.

use std::path::{Path, PathBuf};
use std::process::Command;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Builds the shared object of a driver of the workspace, in the target directory of this test.
pub fn cdylib(name: &str) -> Result<PathBuf, String> {
    // target/<profile>/deps/<this test>
    let me = std::env::current_exe().map_err(|e| e.to_string())?;
    let profile = me.ancestors().nth(2).ok_or("no target directory")?;
    let target = profile.parent().ok_or("no target directory")?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(workspace()).args(["build", "--quiet", "-p", &format!("tailbound-{name}-so")]);
    cargo.arg("--target-dir").arg(target);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let out = cargo.output().map_err(|e| e.to_string())?;
    let path = profile.join(format!("libtailbound_driver_{name}_so.so"));
    match out.status.success() && path.is_file() {
        true => Ok(path),
        false => Err(format!("cargo build of {}: {}", path.display(), String::from_utf8_lossy(&out.stderr))),
    }
}

/// Returns the command of a C compiler that can be started: $CC or cc.
pub fn compiler() -> Option<String> {
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    Command::new(&cc).arg("--version").output().is_ok_and(|o| o.status.success()).then_some(cc)
}

/// Compiles the source of a driver in C against the committed C header.
pub fn c_driver(cc: &str, source: &str, more: &[&str], to: &Path) -> Result<PathBuf, String> {
    compiled(cc, "-std=c11", source, more, to)
}

/// Compiles the source of a driver in C++ against the committed C header, by c++ or $CXX.
pub fn cxx_driver(source: &str, to: &Path) -> Result<PathBuf, String> {
    compiled(&std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()), "-std=c++17", source, &[], to)
}

fn compiled(cc: &str, standard: &str, source: &str, more: &[&str], to: &Path) -> Result<PathBuf, String> {
    let root = workspace();
    let mut command = Command::new(cc);
    command.args([standard, "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-pthread"]).args(more);
    command.arg("-I").arg(root.join("include")).arg(root.join(source)).arg("-o").arg(to);
    let out = command.output().map_err(|e| e.to_string())?;
    match out.status.success() {
        true => Ok(to.to_owned()),
        false => Err(format!("{cc}: {}", String::from_utf8_lossy(&out.stderr))),
    }
}
