//! Finds the driver `fastdds`, which is not linked into the binary.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// File of the driver `fastdds`, built next to the binary under test; `None`, and a printed line, if the Fast DDS
/// library is missing.
pub fn built() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let path = BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_BIN_EXE_tailbound")).ancestors().nth(2).expect("a target directory");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/fastdds");
        let output = Command::new(script).env("CARGO_TARGET_DIR", target).output().expect("dev/fastdds");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(3) => None,
            _ => {
                assert!(output.status.success(), "{text}");
                Some(target.join("lib/tailbound/drivers/libtailbound_driver_fastdds.so"))
            }
        }
    });
    if path.is_none() {
        println!("skipped: there is no Fast DDS to build the driver fastdds with");
    }
    path.as_deref()
}
