//! The ssh connection to another host, over which Tailbound's bundle is copied to that host.

use super::host_agent::end_within;
use super::ssh_command::{quoted, script, ssh};
use super::ssh_errors::{not_copied, unreachable};
use super::{DriverFiles, not_fit};
use crate::connection::readable;
use crate::controller::RunError;
use crate::controller::agent_protocol::HEARTBEAT;
use crate::controller::context::RunContext;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use tailbound_bundle::Contents;
use tailbound_host::journal::{EntryId, journal_dir};
use tailbound_model::{ExitCode, Problem, SshSpec, Undo};

/// First word of the line that the other host writes once the login is done. Output of the login before that line is
/// skipped.
const MARK: &str = "TAILBOUND";
/// Shell commands that keep the ssh connection open on the other host. The commands end with their stream, or when no
/// line has arrived for 30 s, for example because the network is cut and the ssh server does not notice.
const KEEP_OPEN: &str =
    "command -v timeout >/dev/null || exec cat >/dev/null; while [ -n \"$(timeout 30 head -n 1)\" ]; do :; done";
/// Longest time for an ssh login to a host, because the login may run long scripts.
const LOGIN: Duration = Duration::from_secs(60);

/// The ssh connection that all other connections to the host use. It stays open as long as this process keeps the pipe
/// of the connection open.
pub(super) struct Link {
    host: String,
    child: Child,
    /// Sending half of a channel. When it is dropped, the thread that keeps the connection open ends the connection.
    held: Sender<()>,
    /// Path of the control socket. ssh removes the socket when ssh ends, even if this process was killed.
    control: PathBuf,
    entry: EntryId,
    /// Processor family of the host, as `uname -m` prints it.
    pub machine: String,
    /// Directory for Tailbound's bundles in the user's cache directory on the host.
    pub cache: String,
}

impl Link {
    /// Opens the ssh connection to a host.
    ///
    /// # Errors
    /// The host cannot be reached, or does not run Linux.
    pub fn open(spec: &SshSpec, token: &str, context: &RunContext) -> Result<Link, RunError> {
        let failed = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound => not_fit("this host has no program `ssh`", "install openssh-client"),
            _ => RunError::new(ExitCode::RunFailed, format!("ssh cannot be started: {e}"), ""),
        };
        let journal_failed = |e: tailbound_host::journal::JournalError| RunError::of(ExitCode::RunFailed, e);
        let control = control(token);
        let hello = format!(
            "echo {MARK} \"$(uname -s)\" \"$(uname -m)\" \"${{XDG_CACHE_HOME:-$HOME/.cache}}/tailbound\"; {KEEP_OPEN}"
        );
        let mut command = ssh(&spec.host, &control, true);
        command.arg(script(&hello)).stdin(Stdio::piped()).env(tailbound_model::RUN_TOKEN, token);
        // Ctrl-C must reach only the controller.
        command.process_group(0);
        let entry =
            context.journal.before(Undo::EndProcessByToken { token: token.to_owned() }).map_err(journal_failed)?;
        let mut child = command.spawn().map_err(failed)?;
        let held = keep_open(child.stdin.take());
        let line = read_mark(&mut child);
        let Some([system, machine, cache]) = line.as_deref().and_then(words) else {
            drop(held);
            let written = end(&mut child);
            let _ = context.journal.done(entry);
            return Err(unreachable(&spec.host, &written));
        };
        let link = Link { host: spec.host.clone(), child, held, control, entry, machine, cache };
        if system != "Linux" {
            let text = format!("host {} runs {system}, and Tailbound measures on Linux only", link.host);
            link.close(context);
            return Err(not_fit(text, ""));
        }
        Ok(link)
    }

    /// Makes an `ssh` command that uses this open connection.
    pub fn ssh(&self) -> std::process::Command {
        ssh(&self.host, &self.control, false)
    }

    /// Runs a script on the host and waits for its end. Returns whether the script succeeded, and the output of the
    /// script.
    pub fn run(&self, text: &str) -> std::io::Result<(bool, String)> {
        let output = self.ssh().arg(script(text)).output()?;
        let written = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&written).into_owned()))
    }

    /// Closes this ssh connection to a host.
    pub fn close(mut self, context: &RunContext) {
        drop(self.held);
        end(&mut self.child);
        let _ = context.journal.done(self.entry);
    }
}

/// Path of the control socket of an ssh connection: next to the directory of journals, or in the temporary directory if
/// that path is too long. The path of a socket has at most 107 bytes, and ssh adds 17.
fn control(token: &str) -> PathBuf {
    // Only characters that are safe in a file name are kept; the run id and the process id make the name unique.
    let name: String = token.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    let name = format!("ssh-{}-{name}", std::process::id());
    let next_to_journals = journal_dir().ok().and_then(|dir| Some(dir.parent()?.join(&name)));
    let next_to_journals = next_to_journals.filter(|p| p.as_os_str().len() < 90);
    next_to_journals.unwrap_or_else(|| std::env::temp_dir().join(name))
}

/// Starts a thread that writes a line to the ssh connection every few seconds, also while this process is busy. The
/// thread ends when the returned half of a channel is dropped.
fn keep_open(input: Option<ChildStdin>) -> Sender<()> {
    let (held, end) = mpsc::channel::<()>();
    let job = move || {
        let Some(mut input) = input else { return };
        while end.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) && input.write_all(b"still here\n").is_ok()
        {
        }
    };
    // Without the thread the connection ends after 30 s, and the next use of it fails.
    let _ = std::thread::Builder::new().name("tb-ssh".into()).spawn(job);
    held
}

/// Reads the output of ssh until the line that begins with [`MARK`], and returns that line. `None` = the stream has
/// ended, or the time is over.
fn read_mark(child: &mut Child) -> Option<String> {
    let output = child.stdout.as_mut()?;
    let (deadline, mut read) = (Instant::now() + LOGIN, Vec::new());
    loop {
        let left = deadline.checked_duration_since(Instant::now())?;
        let mut buffer = [0; 4096];
        match readable(output, left) {
            Ok(true) => match output.read(&mut buffer) {
                Ok(n) if n > 0 => read.extend_from_slice(&buffer[..n]),
                _ => return None,
            },
            Ok(false) => return None,
            Err(_) => return None,
        }
        let text = String::from_utf8_lossy(&read);
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        if let Some(line) = whole.lines().find(|l| l.starts_with(MARK)) {
            return Some(line.to_owned());
        }
    }
}

fn words(line: &str) -> Option<[String; 3]> {
    let mut words = line.splitn(4, ' ').skip(1).map(str::to_owned);
    Some([words.next()?, words.next()?, words.next()?])
}

/// Ends the ssh connection. Returns the text that ssh wrote to standard error.
fn end(child: &mut Child) -> String {
    end_within(child, Duration::from_secs(3));
    let mut written = String::new();
    if let Some(mut error) = child.stderr.take() {
        let _ = error.read_to_string(&mut written);
    }
    written
}

/// Tailbound's bundle: this program with the files that it needs. The contents of the bundle are gathered when the
/// first host or guest needs them.
pub(super) struct Ship {
    driver_files: DriverFiles,
    contents: Option<Contents>,
}

impl Ship {
    pub fn new(driver_files: DriverFiles) -> Ship {
        Ship { driver_files, contents: None }
    }

    /// Returns the contents of Tailbound's bundle, which are gathered at the first call.
    ///
    /// # Errors
    /// A file of the bundle cannot be read.
    pub fn contents(&mut self) -> Result<&Contents, RunError> {
        if self.contents.is_none() {
            let failed = |problem: Problem| {
                let problem = problem.context("the bundle of this program cannot be created");
                RunError::of(ExitCode::RunFailed, problem)
            };
            let program =
                tailbound_host::own_file().map_err(|e| failed(Problem::new("own_file", e.to_string(), "")))?;
            let files = (self.driver_files)();
            let gathered = Contents::gather(&program, env!("CARGO_PKG_VERSION"), &files);
            self.contents = Some(gathered.map_err(|e| failed(e.problem()))?);
        }
        Ok(self.contents.as_ref().expect("the contents of the bundle are missing"))
    }

    /// Copies the bundle to the host, unless the host already has it. Returns the directory of the bundle on the host,
    /// and the command line that starts the bundle.
    ///
    /// # Errors
    /// The host has another processor family, or the bundle cannot be copied.
    pub fn to(&mut self, link: &Link, spec: &SshSpec, run_id: &str) -> Result<(String, Vec<String>), RunError> {
        let contents = self.contents()?;
        let bundle = &contents.bundle;
        if let Some(error) = other_machine(&spec.host, &link.machine, (&bundle.machine, &bundle.tailbound)) {
            return Err(error);
        }
        let parent = spec.directory.clone().unwrap_or_else(|| link.cache.clone());
        let directory = format!("{}/{}", parent.trim_end_matches('/'), bundle.name());
        let lost = |e: std::io::Error| not_copied(&spec.host, &parent, &e.to_string());
        let (there, _) = link.run(&format!("test -f {}", quoted(&format!("{directory}/bundle.json")))).map_err(lost)?;
        if !there {
            // The copy is made under another name, so that a directory with the final name is always complete.
            let (partial, target) = (quoted(&format!("{directory}.partial-{run_id}")), quoted(&directory));
            let text = format!(
                "mkdir -p {partial} && tar -xf - -C {partial} && {{ mv -T {partial} {target} || test -f {target}/bundle.json; }}; \
                 was=$?; rm -rf {partial}; exit $was"
            );
            let mut copy =
                link.ssh().arg(script(&text)).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().map_err(lost)?;
            let input = copy.stdin.take().expect("standard input is piped");
            let sent = contents.tar(std::io::BufWriter::new(input));
            let output = copy.wait_with_output().map_err(lost)?;
            let written = String::from_utf8_lossy(&output.stderr);
            if !output.status.success() {
                return Err(not_copied(&spec.host, &parent, &written));
            }
            sent.map_err(|e| not_copied(&spec.host, &parent, &e.to_string()))?;
        }
        let words = bundle.words(Path::new(&directory));
        Ok((directory, words.iter().map(|w| w.display().to_string()).collect()))
    }
}

/// Makes the error for a host that cannot run Tailbound's bundle because the host has another processor family; `None`
/// = the host has the same processor family.
fn other_machine(host: &str, theirs: &str, (ours, release): (&str, &str)) -> Option<RunError> {
    (theirs != ours).then(|| {
        let remedy = format!("install Tailbound {release} for {theirs} on {host}, and name it with `program`");
        let text = format!("host {host} has the processor family {theirs}, but the bundle of this host is for {ours}");
        not_fit(text, remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_processor_family_is_reported_with_a_remedy() {
        let error = other_machine("pi", "aarch64", ("x86_64", "0.1.0")).unwrap().to_string();
        let expected = "host pi has the processor family aarch64, but the bundle of this host is for x86_64\n  help: \
                        install Tailbound 0.1.0 for aarch64 on pi, and name it with `program`";
        assert_eq!(error, expected);
        assert!(other_machine("pi", "x86_64", ("x86_64", "0.1.0")).is_none());
    }

    #[test]
    fn the_directory_of_a_host_may_contain_spaces() {
        let words = words("TAILBOUND Linux x86_64 /home/a b/.cache/tailbound").unwrap();
        assert_eq!(words, ["Linux", "x86_64", "/home/a b/.cache/tailbound"]);
    }
}
