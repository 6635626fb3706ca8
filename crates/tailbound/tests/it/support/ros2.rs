//! Builds the driver `ros2`, which is not linked into the binary.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Target directory of the build that produced the binary under test.
fn target() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tailbound")).ancestors().nth(2).expect("a target directory")
}

/// File of the driver `ros2`, built in the directory in which the binary under test looks for drivers.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/ros2");
        let output = Command::new(script).env("CARGO_TARGET_DIR", target()).output().expect("dev/ros2");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        target().join("lib/tailbound/drivers/libtailbound_driver_ros2.so")
    })
}

/// Builds a program that prints the ROS 2 nodes that other programs announce, as Cyclone DDS receives them, and returns
/// its path.
pub fn nodes() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    // The packages and features of dev/test, so that no crate is compiled again.
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
