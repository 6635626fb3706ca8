//! The driver `ros2`, which is no part of the binary.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The directory that holds what is built beside the binary under test.
fn target() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tailbound")).ancestors().nth(2).expect("a target directory")
}

/// The driver's file, built where the binary under test looks for it.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/ros2");
        let output = Command::new(script).env("CARGO_TARGET_DIR", target()).output().expect("dev/ros2");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        target().join("lib/tailbound/drivers/libtailbound_driver_ros2.so")
    })
}

/// The program that prints the nodes which others announce, as Cyclone DDS receives them.
pub fn nodes() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    // The selection of dev/test, so that nothing is compiled anew.
    cargo.args(["build", "--locked", "--quiet", "--workspace", "--features", "tailbound/system-tests"]);
    cargo.args(["--example", "ros_nodes"]);
    let output = cargo
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .arg("--target-dir")
        .arg(target())
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target().join("debug/examples/ros_nodes")
}
