//! The drivers in Rust that are workspaces of their own, and not linked into the binary.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Target directory of the build that produced the binary under test.
pub fn target() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tailbound")).ancestors().nth(2).expect("a target directory")
}

fn script(arguments: &[&str], profile: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/rust-driver");
    let mut command = Command::new(script);
    command.args(arguments).env("CARGO_TARGET_DIR", target()).env("TAILBOUND_DRIVER_PROFILE", profile);
    let output = command.output().expect("dev/rust-driver");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Builds a driver with a profile of Cargo in the directory in which the binary under test looks for drivers, and returns its file.
pub fn build(name: &str, profile: &str) -> PathBuf {
    script(&[name], profile);
    target().join(format!("lib/tailbound/drivers/libtailbound_driver_{name}.so"))
}

/// Builds an example of a driver, and returns its file.
pub fn example(driver: &str, name: &str) -> PathBuf {
    script(&["--examples", driver], "dev");
    target().join(format!("{driver}/debug/examples/{name}"))
}

/// Builds a driver for tests: most of it is optimised, and it is compiled in less time than for measurements.
pub fn for_tests(name: &str) -> PathBuf {
    build(name, "dev")
}
