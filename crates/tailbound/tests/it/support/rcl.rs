//! A ROS 2 for the driver `rcl`: the real one of this machine, or a stand-in that keeps messages inside the process.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The variables that a sourced ROS 2 sets, as far as the driver needs them.
pub struct Ros {
    prefix: PathBuf,
    distribution: String,
    /// Keeps the stand-in on the disk.
    _directory: Option<tempfile::TempDir>,
}

/// The real ROS 2 of this machine, by AMENT_PREFIX_PATH or TAILBOUND_ROS; `None`, with a line that says so, without one.
pub fn real() -> Option<Ros> {
    let paths = ["TAILBOUND_ROS", "AMENT_PREFIX_PATH"].map(|name| std::env::var_os(name).unwrap_or_default());
    let mut prefixes = paths.iter().flat_map(std::env::split_paths);
    let Some(prefix) = prefixes.find(|prefix| prefix.join("lib/librcl.so").exists()) else {
        println!("skipped: no ROS 2 is sourced, and TAILBOUND_ROS names none");
        return None;
    };
    let distribution = std::env::var("ROS_DISTRO").unwrap_or_else(|_| "jazzy".into());
    Some(Ros { prefix, distribution, _directory: None })
}

/// The stand-in, compiled with these definitions; `None`, with a line that says so, without a C compiler.
pub fn stand_in(definitions: &[&str]) -> Option<Ros> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let prefix = directory.path().to_owned();
    let ros = Ros { prefix, distribution: "stub".into(), _directory: Some(directory) };
    ros.compile("librcl.so", definitions)?;
    ros.compile("libstd_msgs__rosidl_typesupport_c.so", &["-DTYPES"])?;
    ros.state_version("9.2.0");
    Some(ros)
}

impl Ros {
    fn compile(&self, library: &str, definitions: &[&str]) -> Option<()> {
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drivers/rcl/tests/stub.c");
        std::fs::create_dir_all(self.library("")).unwrap();
        let mut command = Command::new(&compiler);
        command
            .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-pthread"])
            .args(definitions);
        match command.arg(source).arg("-o").arg(self.library(library)).output() {
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                Some(())
            }
            Err(_) => {
                println!("skipped: no C compiler ({compiler})");
                None
            }
        }
    }

    /// Path of a library of this ROS 2.
    pub fn library(&self, name: &str) -> PathBuf {
        self.prefix.join("lib").join(name)
    }

    /// Directory of this ROS 2.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Writes the file with the version of rcl.
    pub fn state_version(&self, version: &str) {
        let package = self.prefix.join("share/rcl");
        std::fs::create_dir_all(&package).unwrap();
        std::fs::write(package.join("package.xml"), format!("<package><version>{version}</version></package>"))
            .unwrap();
    }

    /// Version of a package, by its file.
    pub fn version(&self, package: &str) -> String {
        let file = self.prefix.join("share").join(package).join("package.xml");
        let text = std::fs::read_to_string(file).unwrap();
        let version = text.split_once("<version>").unwrap().1.split_once("</version>").unwrap().0;
        version.trim().to_owned()
    }

    /// Gives a command the variables that sourcing this ROS 2 sets, and no others of ROS 2.
    pub fn source(&self, command: &mut Command) {
        forget(command);
        command.env("AMENT_PREFIX_PATH", &self.prefix).env("LD_LIBRARY_PATH", self.library(""));
        command.env("ROS_DISTRO", &self.distribution);
    }
}

/// Removes the variables of ROS 2 from a command.
pub fn forget(command: &mut Command) {
    let is_of_ros = |name: &str| {
        ["ROS_", "RMW_", "CYCLONEDDS_", "FASTDDS_", "FASTRTPS_", "ZENOH_"].iter().any(|begin| name.starts_with(begin))
            || ["AMENT_PREFIX_PATH", "LD_LIBRARY_PATH"].contains(&name)
    };
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| is_of_ros(name)) {
        command.env_remove(name);
    }
}
