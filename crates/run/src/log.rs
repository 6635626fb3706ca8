//! Diagnostics log of a run, kept in the directory `logs` of the record.
//!
//! `TAILBOUND_LOG` sets the level: `off`, `error`, `warn`, `info` (the default), `debug` or `trace`. Nothing is written
//! to the terminal, and hot loops never log.
//!
//! | process | while ends measure | its lines reach the record |
//! |---|---|---|
//! | controller | writes to `controller.log` | directly |
//! | agent of an end | keeps its lines in memory | with the message `done`; later lines on standard error |
//! | host agent | keeps its lines in memory | when the controller leaves the host and asks for them |
//! | holder of agents | writes to a file beside its socket | the host agent reads the file when it is asked |
//! | `tailbound pod` | keeps its lines in memory | at its end, in the file that the controller names |

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use tracing::Level;
use tracing::level_filters::LevelFilter;

/// Name of the environment variable that sets the level of Tailbound's diagnostics log.
const VARIABLE: &str = "TAILBOUND_LOG";
/// Name of the environment variable with the log file of a process that the controller starts on its own host.
pub(crate) const FILE_VARIABLE: &str = "TAILBOUND_LOG_FILE";
/// Name of the environment variable with the log file of the holder, for the processes that the holder starts.
const HOLDER_VARIABLE: &str = "TAILBOUND_HOLDER_LOG";
/// First characters of the entry in the hello message that carries the log level to agents.
const CAPABILITY: &str = "log:";
/// Largest number of bytes of log that one process keeps. Later lines are dropped.
const MOST_BYTES: usize = 256 << 10;

/// Destination to which lines of the diagnostics log are written.
enum Target {
    Nowhere,
    File(File),
    /// File that takes at most [`MOST_BYTES`] bytes; the number is the size so far.
    Limited(File, usize),
    Memory(Vec<u8>),
}

static TARGET: Mutex<Target> = Mutex::new(Target::Nowhere);

fn set_target(target: Target) -> Target {
    let mut present = TARGET.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    std::mem::replace(&mut *present, target)
}

/// Writes whole lines of the diagnostics log to their present destination.
struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *TARGET.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            // A log that cannot be written must not end a run.
            Target::File(file) => drop(file.write_all(bytes)),
            Target::Limited(file, size) if *size < MOST_BYTES => {
                *size += bytes.len();
                drop(file.write_all(bytes));
            }
            Target::Memory(lines) if lines.len() < MOST_BYTES => lines.extend_from_slice(bytes),
            Target::Limited(..) | Target::Memory(_) | Target::Nowhere => {}
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Level of the diagnostics log that the user asks for.
fn level() -> LevelFilter {
    std::env::var(VARIABLE).ok().and_then(|word| word.parse().ok()).unwrap_or(LevelFilter::INFO)
}

fn subscribe(level: LevelFilter) {
    let subscriber =
        tracing_subscriber::fmt().with_max_level(level).with_ansi(false).with_target(false).with_writer(|| Lines);
    // A second run in one process keeps the subscriber of the first.
    let _ = tracing::subscriber::set_global_default(subscriber.finish());
}

/// Guard of the controller's diagnostics log: the log ends when the guard is dropped.
pub(crate) struct ControllerLog(());

impl Drop for ControllerLog {
    fn drop(&mut self) {
        set_target(Target::Nowhere);
    }
}

fn appended(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// Begins the diagnostics log of the controller in a directory.
pub(crate) fn controller(directory: &Path) -> ControllerLog {
    subscribe(level());
    // Without the file the run has no log, and is complete otherwise.
    if let Ok(file) = appended(&directory.join("controller.log")) {
        set_target(Target::File(file));
    }
    ControllerLog(())
}

/// Capability in the controller's hello message that sets the log level of agents.
pub(crate) fn capability() -> String {
    format!("{CAPABILITY}{}", level())
}

/// Begins the log of an agent, with the level from the capabilities of the controller's hello message. Returns the
/// level.
pub(crate) fn agent(capabilities: &[String]) -> LevelFilter {
    let level = capabilities.iter().find_map(|word| word.strip_prefix(CAPABILITY)?.parse().ok());
    let level = level.unwrap_or(LevelFilter::INFO);
    subscribe(level);
    set_target(Target::Memory(Vec::new()));
    level
}

/// Takes the log lines that this process has kept in memory so far.
pub(crate) fn take() -> String {
    match &mut *TARGET.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        Target::Memory(lines) => String::from_utf8_lossy(&std::mem::take(lines)).into_owned(),
        _ => String::new(),
    }
}

/// Appends log lines of an agent to the file `NAME.log` in a directory.
pub(crate) fn keep(directory: &Path, name: &str, lines: &str) {
    if lines.is_empty() {
        return;
    }
    // Without these lines the record is complete otherwise.
    let _ = appended(&directory.join(format!("{name}.log"))).and_then(|mut file| file.write_all(lines.as_bytes()));
}

/// Part of a file name for the name of a host: each run of other characters than letters, digits and `.` is one `-`.
pub(crate) fn file_name(host: &str) -> String {
    let words = host.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// Path of the holder's log file, for the processes that the holder starts.
static HOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Begins the log of a holder of agents in a file beside its socket. The file has lines of all levels, because a holder
/// begins before it has a controller: the agent that reads the file selects the lines. A holder logs only when a
/// session begins, is interrupted or ends. The file is removed when the returned guard is dropped; if the holder is
/// killed, the next holder at the socket removes the file.
pub fn holder(socket: &Path) -> HolderLog {
    let mut path = socket.as_os_str().to_owned();
    path.push(format!(".{}.log", std::process::id()));
    let path = PathBuf::from(path);
    if let Some(directory) = path.parent() {
        // The holder itself reports a directory that cannot be made.
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    }
    remove_left_logs(socket);
    // Without the file the holder has no log, and holds agents all the same.
    let Ok(file) = File::options().create_new(true).append(true).mode(0o600).open(&path) else {
        return HolderLog(None);
    };
    subscribe(LevelFilter::TRACE);
    set_target(Target::Limited(file, 0));
    let _ = HOLDER.set(path.clone());
    HolderLog(Some(path))
}

/// Removes the log files that killed holders of agents have left beside `socket`, as the next holder replaces their
/// socket. Nothing is removed while a holder answers at the socket. A file whose process exists stays, because a holder
/// makes its log file before its socket.
fn remove_left_logs(socket: &Path) {
    let (Some(directory), Some(name)) = (socket.parent(), socket.file_name()) else { return };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    // This holder may have the process id of a killed holder, for example in a container that was started again.
    let ended = |pid: u32| pid == std::process::id() || !Path::new(&format!("/proc/{pid}")).exists();
    let is_left = |file: &OsStr| {
        let rest = file.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
        let pid =
            rest.and_then(|rest| str::from_utf8(rest).ok()?.strip_prefix('.')?.strip_suffix(".log")?.parse().ok());
        pid.is_some_and(ended)
    };
    if std::os::unix::net::UnixStream::connect(socket).is_ok() {
        return;
    }
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if is_left(&entry.file_name()) {
            // A file that is left is small, and only its user can read it.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Guard of the log of a holder of agents: the file is removed when the guard is dropped.
pub struct HolderLog(Option<PathBuf>);

impl Drop for HolderLog {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // A file that is left is small, and only its user can read it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Returns the command that starts a process of a holder. The process learns the path of its holder's log file.
///
/// # Errors
/// The path of this program cannot be read.
pub fn held_program() -> io::Result<std::process::Command> {
    let mut command = tailbound_host::own_program()?;
    command.envs(HOLDER.get().map(|path| (HOLDER_VARIABLE, path)));
    Ok(command)
}

/// Reads the log lines of the holder that has started this process, if there is a holder.
pub(crate) fn of_holder(level: LevelFilter) -> String {
    let lines = std::env::var_os(HOLDER_VARIABLE).and_then(|path| std::fs::read_to_string(path).ok());
    selected(&lines.unwrap_or_default(), level)
}

/// Selects the lines of a log that are at most as detailed as `level`. The second word of a line is its level.
fn selected(lines: &str, level: LevelFilter) -> String {
    let of = |line: &&str| line.split_whitespace().nth(1).and_then(|word| word.parse::<Level>().ok());
    let wanted = lines.split_inclusive('\n').filter(|line| of(line).is_some_and(|of| of <= level));
    wanted.collect()
}

/// Guard of the log of a process that the controller starts on its own host: when the guard is dropped, the lines are
/// appended to the log file.
pub struct OwnProcessLog(Option<PathBuf>);

impl Drop for OwnProcessLog {
    fn drop(&mut self) {
        let lines = take();
        if let Some(path) = &self.0
            && !lines.is_empty()
        {
            // Without these lines the record is complete otherwise.
            let _ = appended(path).and_then(|mut file| file.write_all(lines.as_bytes()));
        }
    }
}

/// Begins the log of a process that the controller starts on its own host, if the controller has named a log file. The
/// lines are kept in memory until the process ends: the process may carry the messages between controller and agent,
/// and writing a file during a trial could disturb the ends.
pub fn own_process() -> OwnProcessLog {
    let path = std::env::var_os(FILE_VARIABLE).map(PathBuf::from);
    if path.is_some() {
        subscribe(level());
        set_target(Target::Memory(Vec::new()));
    }
    OwnProcessLog(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_holder_are_selected_by_their_level() {
        let lines = "2026-01-01T00:00:00.0Z  INFO session begins\n2026-01-01T00:00:01.0Z DEBUG connection replaced\n\
                     2026-01-01T00:00:02.0Z  WARN session refused\n";
        let of = |level| selected(lines, level).lines().count();
        let levels = [LevelFilter::OFF, LevelFilter::ERROR, LevelFilter::WARN, LevelFilter::INFO, LevelFilter::TRACE];
        assert_eq!(levels.map(of), [0, 0, 1, 2, 3]);
        assert!(selected(lines, LevelFilter::WARN).ends_with("WARN session refused\n"));
    }

    #[test]
    fn a_holder_removes_the_logs_of_killed_holders_and_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("agent.sock");
        let own = std::process::id();
        // No process has this id: it is above the largest id that Linux gives.
        let killed = "agent.sock.4294967295.log";
        let names = [
            killed.to_owned(),
            format!("agent.sock.{own}.log"),
            "agent.sock.1.log".to_owned(),
            "agent.sock.x.log".to_owned(),
            "other.sock.4294967295.log".to_owned(),
        ];
        let make = || names.iter().for_each(|name| std::fs::write(dir.path().join(name), "").unwrap());
        let left = || names.each_ref().map(|name| dir.path().join(name).exists());
        make();
        remove_left_logs(&socket);
        assert_eq!(left(), [false, false, true, true, true]);
        make();
        let holder = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        remove_left_logs(&socket);
        assert_eq!(left(), [true; 5], "a holder answers");
        drop(holder);
        remove_left_logs(&socket);
        assert_eq!(left(), [false, false, true, true, true], "the socket of a killed holder");
    }

    #[test]
    fn the_name_of_a_host_becomes_a_file_name() {
        assert_eq!(file_name("pod pong-1 on node-2.local (host network)"), "pod-pong-1-on-node-2.local-host-network");
        assert_eq!(file_name("guest ../x #2"), "guest-..-x-2");
    }
}
