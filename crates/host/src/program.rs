//! How this program is started again: as itself, or, in a bundle, by the loader that lies beside its libraries.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A command that starts this program again; arguments follow.
///
/// # Errors
/// /proc is not there.
pub fn own_program() -> io::Result<Command> {
    let running = std::env::current_exe()?;
    let Some(program) = bundled(&running) else { return Ok(Command::new(running)) };
    let mut command = Command::new(&running);
    command.arg("--library-path").arg(running.parent().unwrap_or(Path::new("/"))).arg(program);
    Ok(command)
}

/// Runs this program with these arguments to its end, and gives it `input`. One that does not read it says why in its
/// output.
///
/// # Errors
/// It cannot be started.
pub fn ask_own_program(args: &[&str], input: &[u8]) -> io::Result<Output> {
    let mut command = own_program()?;
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(input) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => return Err(e),
            _ => {}
        }
    }
    child.wait_with_output()
}

/// The file that holds this program: not the loader, in a bundle.
///
/// # Errors
/// /proc is not there.
pub fn own_file() -> io::Result<PathBuf> {
    let running = std::env::current_exe()?;
    Ok(bundled(&running).unwrap_or(running))
}

/// What runs is a bundle's loader `lib/ld-*`: the program beside it. The kernel knows the loader only.
fn bundled(running: &Path) -> Option<PathBuf> {
    let name = running.file_name()?.to_str()?;
    let program = running.parent()?.parent()?.join("bin/tailbound");
    (name.starts_with("ld-") && program.is_file()).then_some(program)
}

/// In a bundle the kernel names the first thread after the loader: it gets the name that it has elsewhere.
pub fn take_own_name() {
    let running = std::env::current_exe().ok();
    if running.as_deref().and_then(bundled).is_some() {
        // A name that is not taken is a matter of looks.
        let _ = nix::sys::prctl::set_name(c"tailbound");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loader_beside_the_program_is_a_bundle_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["lib", "bin"] {
            std::fs::create_dir(dir.path().join(sub)).unwrap();
        }
        let (loader, program) = (dir.path().join("lib/ld-linux-x86-64.so.2"), dir.path().join("bin/tailbound"));
        assert_eq!(bundled(&loader), None);
        std::fs::write(&program, "").unwrap();
        assert_eq!(bundled(&loader), Some(program.clone()));
        assert_eq!(bundled(&program), None);
    }
}
