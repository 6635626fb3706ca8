//! The part of the driver `rclcpp` that is compiled against the real ROS 2 of this machine.

use super::rcl::Ros;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The text of all files that are compiled.
fn sources() -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drivers/rclcpp");
    let of = |directory: PathBuf| std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = of(directory.clone()).chain(of(directory.join("msg"))).collect();
    files.retain(|path| path.is_file());
    files.sort_unstable();
    files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// The directory of drivers for this ROS 2. The first test that needs it builds it, with `tailbound driver build`.
pub fn built(ros: &Ros) -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_tailbound")).ancestors().nth(2).expect("a target directory");
    let directory = target.join("rclcpp");
    std::fs::create_dir_all(&directory).unwrap();
    // The tests are processes of their own.
    let lock = std::fs::File::create(directory.join("lock")).unwrap();
    lock.lock().unwrap();
    let (stamp, wanted) = (directory.join("built-from"), format!("{}\n{}", ros.prefix().display(), sources()));
    if std::fs::read_to_string(&stamp).is_ok_and(|of| of == wanted) {
        return directory;
    }
    let output = build(ros, &directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::write(stamp, wanted).unwrap();
    directory
}

/// The command that builds the libraries into a directory of drivers, with what sourcing this ROS 2 sets.
pub fn build(ros: &Ros, into: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailbound"));
    ros.source(command.args(["driver", "build", "rclcpp", "--into"]).arg(into));
    let old = std::env::var("PATH").unwrap_or_default();
    command.env("CMAKE_PREFIX_PATH", ros.prefix());
    command.env("PATH", format!("{}:{old}", ros.prefix().join("bin").display()));
    let mut python =
        std::fs::read_dir(ros.library("")).unwrap().flatten().map(|entry| entry.path().join("site-packages"));
    command.env("PYTHONPATH", python.find(|path| path.is_dir()).unwrap_or_default());
    command
}
