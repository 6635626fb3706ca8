//! Commands that start this program again: directly or, in a bundle, by the dynamic loader in the bundle's directory of
//! libraries.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Builds a command that starts this program again; the caller adds the arguments.
///
/// # Errors
/// The path of this program cannot be read, for example because /proc is not mounted.
pub fn own_program() -> io::Result<Command> {
    let running = std::env::current_exe()?;
    let Some(program) = bundled(&running) else { return Ok(Command::new(running)) };
    let mut command = Command::new(&running);
    command.arg("--library-path").arg(running.parent().unwrap_or(Path::new("/"))).arg(program);
    Ok(command)
}

/// Starts this program again with these arguments, writes `input` to its standard input and waits until it ends. It is
/// not an error if the started program does not read all of `input`.
///
/// # Errors
/// The program cannot be started.
pub fn ask_own_program(args: &[&str], input: &[u8]) -> io::Result<Output> {
    ask_program(own_program()?, args, input)
}

/// Adds `args` to a command of [`own_program`], whose environment the caller may have changed, and starts the command.
/// Writes `input` to the standard input of the started program, and waits until the program ends.
///
/// # Errors
/// The program cannot be started, or its input cannot be written.
pub fn ask_program(mut command: Command, args: &[&str], input: &[u8]) -> io::Result<Output> {
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

/// Path of this program's executable file; in a bundle this is not the loader.
///
/// # Errors
/// The path of this program cannot be read, for example because /proc is not mounted.
pub fn own_file() -> io::Result<PathBuf> {
    let running = std::env::current_exe()?;
    Ok(bundled(&running).unwrap_or(running))
}

/// Path of the program in a bundle, if the running file is the bundle's loader `lib/ld-*`: the kernel knows only the
/// loader.
fn bundled(running: &Path) -> Option<PathBuf> {
    let name = running.file_name()?.to_str()?;
    let program = running.parent()?.parent()?.join("bin/tailbound");
    (name.starts_with("ld-") && program.is_file()).then_some(program)
}

/// In a bundle, gives the first thread of this program the name `tailbound`, because the kernel would name the thread
/// after the loader.
pub fn take_own_name() {
    let running = std::env::current_exe().ok();
    if running.as_deref().and_then(bundled).is_some() {
        // A failure changes only how the process is shown.
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
