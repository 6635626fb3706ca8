//! The connection to another host, and the bundle that goes over it.

use super::asked::end_within;
use super::explain::{not_copied, unreachable};
use super::shell::{quoted, script, ssh};
use super::{BEAT, DriverFiles, not_fit};
use crate::controller::RunError;
use crate::pipe::readable;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use tailbound_bundle::Contents;
use tailbound_host::journal::{EntryId, Journal, journal_dir};
use tailbound_model::{ExitCode, SshSpec, Undo};

/// The line that the other host writes once it is reached; whatever its login writes before that is passed over.
const MARK: &str = "TAILBOUND";
/// Holds the connection on the other side: it ends with its stream, or when no line has come for half a minute, as when
/// the way there is cut and the ssh server does not notice.
const HOLD: &str =
    "command -v timeout >/dev/null || exec cat >/dev/null; while [ -n \"$(timeout 30 head -n 1)\" ]; do :; done";
/// Logins may run long scripts.
const LOGIN: Duration = Duration::from_secs(60);

/// The connection that all others go through; it lasts as long as this process holds its pipe.
pub(super) struct Link {
    host: String,
    child: Child,
    /// Dropped, it ends the connection.
    held: Sender<()>,
    /// Its control socket, which ssh removes at its end, whatever becomes of this process.
    control: PathBuf,
    entry: EntryId,
    /// `uname -m`.
    pub machine: String,
    /// Its cache directory.
    pub cache: String,
}

impl Link {
    pub fn open(spec: &SshSpec, token: &str, journal: &Journal) -> Result<Link, RunError> {
        let failed = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound => not_fit("there is no program `ssh` here", "install openssh-client"),
            _ => RunError::new(ExitCode::RunFailed, format!("ssh cannot be started: {e}"), ""),
        };
        let journal_failed = |e: tailbound_host::journal::JournalError| RunError::new(ExitCode::RunFailed, e, "");
        let control = control(token);
        let hello = format!(
            "echo {MARK} \"$(uname -s)\" \"$(uname -m)\" \"${{XDG_CACHE_HOME:-$HOME/.cache}}/tailbound\"; {HOLD}"
        );
        let mut command = ssh(&spec.host, &control, true);
        command.arg(script(&hello)).stdin(Stdio::piped()).env(tailbound_model::RUN_TOKEN, token);
        // Ctrl-C is this process's business.
        command.process_group(0);
        let entry = journal.before(Undo::EndProcessByToken { token: token.to_owned() }).map_err(journal_failed)?;
        let mut child = command.spawn().map_err(failed)?;
        let held = hold(child.stdin.take());
        let said = hear_mark(&mut child);
        let Some([system, machine, cache]) = said.as_deref().and_then(words) else {
            drop(held);
            let said = end(&mut child);
            let _ = journal.done(entry);
            return Err(unreachable(&spec.host, &said));
        };
        let link = Link { host: spec.host.clone(), child, held, control, entry, machine, cache };
        if system != "Linux" {
            let text = format!("host {} runs {system}, and Tailbound measures on Linux only", link.host);
            link.close(journal);
            return Err(not_fit(text, ""));
        }
        Ok(link)
    }

    /// `ssh` through this connection.
    pub fn ssh(&self) -> std::process::Command {
        ssh(&self.host, &self.control, false)
    }

    /// Runs a script there to its end; what it wrote, and whether it failed.
    pub fn run(&self, text: &str) -> std::io::Result<(bool, String)> {
        let output = self.ssh().arg(script(text)).output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
    }

    pub fn close(mut self, journal: &Journal) {
        drop(self.held);
        end(&mut self.child);
        let _ = journal.done(self.entry);
    }
}

/// Beside the journals, unless that is too far down: the name of a socket has 107 octets, of which ssh wants 17 for itself.
fn control(token: &str) -> PathBuf {
    // Of a host only what is safe in a name: the run's id and the process tell runs apart.
    let name: String = token.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    let name = format!("ssh-{}-{name}", std::process::id());
    let beside = journal_dir().ok().and_then(|dir| Some(dir.parent()?.join(&name)));
    let beside = beside.filter(|p| p.as_os_str().len() < 90);
    beside.unwrap_or_else(|| std::env::temp_dir().join(name))
}

/// Writes a line to the connection every few seconds, also while this process is busy copying; ends with its handle.
fn hold(input: Option<ChildStdin>) -> Sender<()> {
    let (held, end) = mpsc::channel::<()>();
    let job = move || {
        let Some(mut input) = input else { return };
        while end.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) && input.write_all(b"still here\n").is_ok() {}
    };
    // Without it the connection ends after half a minute, which is told.
    let _ = std::thread::Builder::new().name("tb-ssh".into()).spawn(job);
    held
}

/// Waits for the line with the mark; `None` when the stream ends or the time is over.
fn hear_mark(child: &mut Child) -> Option<String> {
    let output = child.stdout.as_mut()?;
    let (deadline, mut said) = (Instant::now() + LOGIN, Vec::new());
    loop {
        let left = deadline.checked_duration_since(Instant::now())?;
        let mut buffer = [0; 4096];
        match readable(output, left) {
            Ok(true) => match output.read(&mut buffer) {
                Ok(n) if n > 0 => said.extend_from_slice(&buffer[..n]),
                _ => return None,
            },
            Ok(false) => return None,
            Err(_) => return None,
        }
        let text = String::from_utf8_lossy(&said);
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

/// Ends the connection; what ssh wrote on standard error.
fn end(child: &mut Child) -> String {
    end_within(child, Duration::from_secs(3));
    let mut said = String::new();
    if let Some(mut error) = child.stderr.take() {
        let _ = error.read_to_string(&mut said);
    }
    said
}

/// The bundle of this program, gathered when the first host wants it.
pub(super) struct Ship {
    driver_files: DriverFiles,
    contents: Option<Contents>,
}

impl Ship {
    pub fn new(driver_files: DriverFiles) -> Ship {
        Ship { driver_files, contents: None }
    }

    pub fn contents(&mut self) -> Result<&Contents, RunError> {
        if self.contents.is_none() {
            let failed = |e: String| RunError::new(ExitCode::RunFailed, format!("no bundle can be made: {e}"), "");
            let program = tailbound_host::own_file().map_err(|e| failed(e.to_string()))?;
            let files = (self.driver_files)();
            let gathered = Contents::gather(&program, env!("CARGO_PKG_VERSION"), &files);
            self.contents = Some(gathered.map_err(|e| failed(e.to_string()))?);
        }
        Ok(self.contents.as_ref().expect("it was gathered"))
    }

    /// Sees to it that the bundle is on the other host; its directory there, and the words that start it.
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
            // Made under another name: what lies under its own is whole.
            let (partial, target) = (quoted(&format!("{directory}.partial-{run_id}")), quoted(&directory));
            let text = format!(
                "mkdir -p {partial} && tar -xf - -C {partial} && {{ mv -T {partial} {target} || test -f {target}/bundle.json; }}; \
                 was=$?; rm -rf {partial}; exit $was"
            );
            let mut copy =
                link.ssh().arg(script(&text)).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().map_err(lost)?;
            let input = copy.stdin.take().expect("it was asked for");
            let sent = contents.tar(std::io::BufWriter::new(input));
            let output = copy.wait_with_output().map_err(lost)?;
            let said = String::from_utf8_lossy(&output.stderr);
            if !output.status.success() {
                return Err(not_copied(&spec.host, &parent, &said));
            }
            sent.map_err(|e| not_copied(&spec.host, &parent, &e.to_string()))?;
        }
        let words = bundle.words(Path::new(&directory));
        Ok((directory, words.iter().map(|w| w.display().to_string()).collect()))
    }
}

/// A host of another processor family cannot run what is copied from here.
fn other_machine(host: &str, theirs: &str, (ours, release): (&str, &str)) -> Option<RunError> {
    (theirs != ours).then(|| {
        let mend = format!("install Tailbound {release} for {theirs} there, and name it with `program`");
        not_fit(format!("host {host} is {theirs}, and the bundle of this host is for {ours}"), mend)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_processor_family_is_told_with_what_to_do() {
        let error = other_machine("pi", "aarch64", ("x86_64", "0.1.0")).unwrap().to_string();
        let expected = "host pi is aarch64, and the bundle of this host is for x86_64\n  what to do: install Tailbound \
                        0.1.0 for aarch64 there, and name it with `program`";
        assert_eq!(error, expected);
        assert!(other_machine("pi", "x86_64", ("x86_64", "0.1.0")).is_none());
    }

    #[test]
    fn the_line_of_a_host_has_its_directory_with_blanks() {
        let words = words("TAILBOUND Linux x86_64 /home/a b/.cache/tailbound").unwrap();
        assert_eq!(words, ["Linux", "x86_64", "/home/a b/.cache/tailbound"]);
    }
}
