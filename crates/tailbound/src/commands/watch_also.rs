//! Captures at a second host too (`watch --also ssh:HOST`), by the program `ssh` and a Tailbound there.

use crate::cli::Watch;
use crate::failure::Failure;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tailbound_host::realtime_ns;
use tailbound_model::plain;
use tailbound_report::{WatchReport, WatchedAlso};
use tailbound_watch::{CapturedAt, CapturedRow, ClockExchange, join};

/// The longest time in which the other host begins to capture, and in which it answers.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest time between two lines of the other host after its capture ended.
const PATIENCE_AT_END: Duration = Duration::from_secs(60);
/// Time between two readings of its clock.
const BETWEEN_READINGS: Duration = Duration::from_millis(100);
/// Options of the connection: it is not interactive, and a silent one ends.
const OPTIONS: [&str; 4] = ["BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"];

/// What the other host captured.
struct Other {
    report: WatchReport,
    rows: Vec<CapturedRow>,
    exchanges: Vec<ClockExchange>,
}

/// A capture at another host, which runs.
pub struct Also {
    host: String,
    end: Sender<()>,
    reader: JoinHandle<Result<Other, Failure>>,
}

impl Also {
    /// Starts the capture at the host of `--also`, and waits until it has begun.
    ///
    /// # Errors
    /// The host cannot be reached, has no Tailbound of this version, or cannot capture.
    pub fn begin(args: &Watch, host: &str) -> Result<Also, Failure> {
        let mut words = vec![args.also_program.clone(), "watch".to_owned(), "--along".to_owned()];
        if let Some(interface) = &args.also_interface {
            words.extend(["--interface".to_owned(), interface.clone()]);
        }
        let words: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        let mut command = Command::new("ssh");
        command.args(OPTIONS.iter().flat_map(|option| ["-o", option])).args(["-T", "--", host]);
        command.arg(format!("exec {}", words.join(" "))).env("LC_ALL", "C");
        // Ctrl-C is meant for this program, which ends the other one and reads what it captured.
        command.process_group(0);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.map_err(|e| {
            Failure::not_fit(format!("--also ssh:{host}: ssh cannot be started: {e}"))
                .help("install the package openssh-client")
        })?;
        let mut line = Line::new(child, host);
        let first = line.next(PATIENCE)?;
        if first.strip_prefix("watching ") != Some(crate::cli::BUILD) {
            let what = format!("--also ssh:{host}: the Tailbound there is another one (it says `{}`)", plain(&first));
            return Err(Failure::not_fit(what).help(format!(
                "install the same version there, {}, or name its program with --also-program",
                crate::cli::BUILD
            )));
        }
        let (end, ended) = channel();
        let reader = std::thread::spawn(move || line.until(&ended));
        Ok(Also { host: host.to_owned(), end, reader })
    }

    /// Ends the capture there, and joins what both hosts captured.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn finish(self, report: &WatchReport, rows: &[CapturedRow]) -> Result<WatchedAlso, Failure> {
        // If the reader has ended, it says why.
        let _ = self.end.send(());
        let other = self.reader.join().map_err(|_| Failure::unexpected("the reader of the other host panicked"))??;
        let other_host = CapturedAt { report: &other.report, rows: &other.rows };
        Ok(join(CapturedAt { report, rows }, other_host, &self.host, &other.exchanges))
    }
}

/// The lines of the program on the other host.
struct Line {
    host: String,
    child: Child,
    /// `None` once the capture was ended.
    stdin: Option<ChildStdin>,
    lines: Receiver<(String, i64)>,
}

impl Line {
    fn new(mut child: Child, host: &str) -> Line {
        let (tell, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    // The time at which it was there, for readings of the clock.
                    if tell.send((line, realtime_ns())).is_err() {
                        break;
                    }
                }
            });
        }
        Line { host: host.to_owned(), stdin: child.stdin.take(), child, lines }
    }

    /// The next line, or why there is none.
    fn next(&mut self, patience: Duration) -> Result<String, Failure> {
        self.next_at(patience).map(|(line, _)| line)
    }

    fn next_at(&mut self, patience: Duration) -> Result<(String, i64), Failure> {
        self.lines.recv_timeout(patience).map_err(|e| match e {
            RecvTimeoutError::Timeout => self.lost(&format!("it was silent for {} s", patience.as_secs())),
            RecvTimeoutError::Disconnected => {
                let mut said = String::new();
                if let Some(stderr) = &mut self.child.stderr {
                    let _ = stderr.read_to_string(&mut said);
                }
                let mut lines = said.lines().map(str::trim);
                let last = lines.rfind(|line| !line.is_empty() && !line.starts_with("help:"));
                self.lost(last.map_or("it ended without a word", |line| line.trim_start_matches("error: ")))
            }
        })
    }

    fn lost(&self, why: &str) -> Failure {
        let what = format!("--also ssh:{}: the capture there failed: {}", self.host, plain(why));
        Failure::not_fit(what).help(format!(
            "`ssh {} tailbound --version` must work without a question, and capturing there needs root: see the documentation of watch",
            self.host
        ))
    }

    /// Reads the clock of the other host again and again until `ended` says so, and then what it captured.
    fn until(mut self, ended: &Receiver<()>) -> Result<Other, Failure> {
        let mut exchanges = Vec::new();
        loop {
            let sent_ns = realtime_ns();
            self.say("clock")?;
            let (line, received_ns) = self.next_at(PATIENCE)?;
            let Some(other_ns) = line.strip_prefix("clock ").and_then(|ns| ns.parse().ok()) else {
                return Err(self.lost(&format!("it answered `{line}`")));
            };
            exchanges.push(ClockExchange { sent_ns, other_ns, received_ns });
            if ended.recv_timeout(BETWEEN_READINGS) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
        self.say("end")?;
        self.stdin = None;
        let mut report = None;
        let mut rows = Vec::new();
        loop {
            let line = self.next(PATIENCE_AT_END)?;
            if line == "end" {
                break;
            } else if let Some(json) = line.strip_prefix("report ") {
                report = Some(serde_json::from_str(json).map_err(|e| self.lost(&format!("its report is wrong: {e}")))?);
            } else {
                let row = line.strip_prefix("sample ").and_then(row);
                rows.push(row.ok_or_else(|| self.lost(&format!("it said `{line}`")))?);
            }
        }
        let report = report.ok_or_else(|| self.lost("it gave no report"))?;
        Ok(Other { report, rows, exchanges })
    }

    fn say(&mut self, word: &str) -> Result<(), Failure> {
        let sent = self.stdin.as_mut().map(|stdin| writeln!(stdin, "{word}").and_then(|()| stdin.flush()));
        match sent {
            Some(Ok(())) => Ok(()),
            // The lines say why it ended.
            _ => self.next(PATIENCE).and_then(|line| Err(self.lost(&line))),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // The end of its input ends the program there.
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn row(text: &str) -> Option<CapturedRow> {
    let mut cells = text.split(',');
    let (guid, number) = (cells.next()?.to_owned(), cells.next()?.parse().ok()?);
    let source = cells.next()?;
    let source_ns = if source.is_empty() { None } else { Some(source.parse().ok()?) };
    Some(CapturedRow { guid, number, source_ns, stamp_ns: cells.next()?.parse().ok()? })
}
