//! One other host: its connection, and the agent there that answers for it.

use super::explain::last;
use super::link::{Link, Ship, end_within};
use super::shell::quoted;
use super::{BEAT, LEASE_NS, not_fit};
use crate::controller::RunError;
use crate::pipe::Connection;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tailbound_host::journal::Journal;
use tailbound_lab::Far;
use tailbound_model::*;
use tailbound_wire::*;

/// Every question is answered within milliseconds, but for what waits for a datagram.
const ANSWER: Duration = Duration::from_secs(10);

/// How long its agent may take to put settings back and go.
const LEAVE: Duration = Duration::from_secs(10);

/// Another host, reached.
pub(in crate::controller) struct Host {
    pub spec: SshSpec,
    link: Mutex<Option<Link>>,
    /// The words that start Tailbound there.
    words: Vec<String>,
    /// The bundle there.
    directory: Option<String>,
    /// CPUs that an agent may use there.
    pub cpus: Vec<u32>,
    pub facts: HostFacts,
    asked: Arc<Mutex<Asked>>,
}

/// The agent that answers for the host.
struct Asked {
    child: Child,
    connection: Connection,
    /// Why it answers no more.
    gone: Option<String>,
}

impl Host {
    pub(super) fn reach(
        spec: &SshSpec,
        ship: &mut Ship,
        (run_id, journal): (&str, &Journal),
        here: &str,
    ) -> Result<Host, RunError> {
        let link = Link::open(spec, &format!("{run_id}-{}", spec.host), journal)?;
        match Host::over(&link, spec, ship, run_id) {
            Ok(mut host) => {
                // The record knows it by the name that the user gave it; two hosts may call themselves the same.
                host.facts.host.clone_from(&spec.host);
                if host.facts.host == here {
                    host.facts.host.push_str(" (ssh)");
                }
                *host.link.lock().expect("nobody panics with it") = Some(link);
                Ok(host)
            }
            Err(e) => {
                link.close(journal);
                Err(e)
            }
        }
    }

    fn over(link: &Link, spec: &SshSpec, ship: &mut Ship, run_id: &str) -> Result<Host, RunError> {
        let (directory, words) = match &spec.program {
            Some(program) => (None, vec![program.clone()]),
            None => ship.to(link, spec, run_id).map(|(directory, words)| (Some(directory), words))?,
        };
        let fail = |text: String| not_fit(format!("host {}: {text}", spec.host), "");
        let mut errors = tempfile::tempfile().map_err(|e| fail(e.to_string()))?;
        let told = errors.try_clone().map_err(|e| fail(e.to_string()))?;
        let mut command = started(link, &words);
        command.args(["agent", "--run-token", run_id]).stdin(Stdio::piped()).stderr(told);
        let mut child = command.spawn().map_err(|e| fail(format!("ssh cannot be started: {e}")))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let pipe = |fd: Option<OwnedFd>| File::from(fd.expect("it was asked for"));
        let connection = Connection::new(pipe(output.map(OwnedFd::from)), pipe(input.map(OwnedFd::from)));
        let mut asked = Asked { child, connection, gone: None };
        let hello = asked.shake_hands().map_err(|e| {
            let mut said = String::new();
            // What it wrote is a help only.
            let _ = errors.rewind().and_then(|()| errors.read_to_string(&mut said));
            let text = format!("Tailbound does not start there: {e}{}", last(&said));
            let program = spec.program.as_ref().map_or_else(String::new, |p| format!(" ({p})"));
            not_fit(format!("host {}{program}: {text}", spec.host), "run it there by hand to see why")
        })?;
        if hello.tailbound != env!("CARGO_PKG_VERSION") {
            let (theirs, ours) = (hello.tailbound, env!("CARGO_PKG_VERSION"));
            let text = format!("host {} has Tailbound {theirs}, this is {ours}", spec.host);
            let mend = "install the same release there, or leave `program` out: it is then copied";
            return Err(not_fit(text, mend));
        }
        let (Told::Cpus(cpus), Told::Facts(facts)) = (
            asked.ask(Ask::Cpus).map_err(|e| fail(e.to_string()))?,
            asked.ask(Ask::Facts).map_err(|e| fail(e.to_string()))?,
        ) else {
            return Err(fail("its agent answers something else than it was asked".into()));
        };
        let asked = Arc::new(Mutex::new(asked));
        beat(&asked);
        let link = Mutex::new(None);
        Ok(Host { spec: spec.clone(), link, words, directory, cpus, facts: *facts, asked })
    }

    /// It has answered until now.
    pub fn answers(&self) -> bool {
        self.asked.lock().is_ok_and(|asked| asked.gone.is_none())
    }

    /// Makes settings there.
    pub fn set(&self, run_id: &str, settings: &[KnobSpec]) -> Result<Vec<KnobDone>, RunError> {
        let (run, settings) = (format!("{run_id}-there"), settings.to_vec());
        match Far::ask(self, Ask::Set { run, settings }) {
            Ok(Told::Set(done)) => Ok(done.into_iter().map(|d| self.named(d)).collect()),
            Ok(Told::Failed(text, _)) => Err(not_fit(format!("host {}: {text}", self.spec.host), "")),
            Ok(other) => Err(not_fit(format!("host {}: it said {other:?} in place of settings", self.spec.host), "")),
            Err(e) => Err(not_fit(e, "")),
        }
    }

    /// What of them is not so any more.
    pub fn changed(&self) -> Vec<String> {
        match Far::ask(self, Ask::Changed) {
            Ok(Told::Changed(texts)) => texts.into_iter().map(|t| format!("host {}: {t}", self.spec.host)).collect(),
            Ok(other) => vec![format!("host {}: it said {other:?} in place of its settings", self.spec.host)],
            // A host that is lost is told of where it is missed.
            Err(_) => Vec::new(),
        }
    }

    /// Puts them back; they are put back by its agent, too, when it ends.
    pub fn put_back(&self) -> PutBackTold {
        let host = |text: String| format!("host {}: {text}", self.spec.host);
        match Far::ask(self, Ask::PutBack) {
            Ok(Told::PutBack(PutBackTold { settings, left_alone, failed })) => PutBackTold {
                settings: settings.into_iter().map(|d| self.named(d)).collect(),
                left_alone: left_alone.into_iter().map(host).collect(),
                failed: failed.into_iter().map(host).collect(),
            },
            _ => PutBackTold::default(),
        }
    }

    fn named(&self, done: KnobDone) -> KnobDone {
        KnobDone { at: format!("host {}", self.spec.host), ..done }
    }

    /// Leaves it; why the bundle could not be removed, if it was to be.
    pub fn leave(&self, journal: &Journal) -> Option<String> {
        if let Ok(mut asked) = self.asked.lock() {
            let _ = asked.connection.send(Message::Bye);
            asked.gone.get_or_insert_with(|| "it was left".into());
            end_within(&mut asked.child, LEAVE);
        }
        let link = self.link.lock().ok()?.take()?;
        let remove = self.directory.as_ref().filter(|_| self.spec.remove);
        let left = remove.and_then(|directory| match link.run(&format!("rm -rf {}", quoted(directory))) {
            Ok((true, _)) => None,
            Ok((false, said)) => Some(format!("host {}: {directory} is still there: {}", self.spec.host, said.trim())),
            Err(e) => Some(format!("host {}: {directory} is still there: {e}", self.spec.host)),
        });
        link.close(journal);
        left
    }
}

/// Tells it every few seconds that this process is still there, for as long as it is asked anything.
fn beat(asked: &Arc<Mutex<Asked>>) {
    let asked = Arc::downgrade(asked);
    tokio::spawn(async move {
        let mut n = 0;
        loop {
            tokio::time::sleep(BEAT).await;
            let Some(asked) = asked.upgrade() else { return };
            let Ok(mut asked) = asked.lock() else { return };
            n += 1;
            if asked.gone.is_some() || asked.connection.send(Message::Heartbeat(Heartbeat { n, received: 0 })).is_err()
            {
                return;
            }
        }
    });
}

/// A command that starts Tailbound on the other host; arguments follow.
fn started(link: &Link, words: &[String]) -> Command {
    let mut command = link.ssh();
    command.arg("exec").args(words.iter().map(|w| quoted(w)));
    command
}

impl Asked {
    fn shake_hands(&mut self) -> io::Result<Hello> {
        self.connection.send(Message::Hello(crate::controller::agent::hello(LEASE_NS)))?;
        match self.hear()? {
            Message::Hello(h) if h.protocol_max >= PROTOCOL_MIN && h.protocol_min <= PROTOCOL_MAX => Ok(h),
            Message::Hello(h) => Err(io::Error::other(format!(
                "it speaks protocol {} to {}, this release {PROTOCOL_MIN} to {PROTOCOL_MAX}: use tailbound {} on both sides",
                h.protocol_min, h.protocol_max, h.tailbound
            ))),
            other => Err(io::Error::other(format!("it began with {other:?} in place of hello"))),
        }
    }

    fn hear(&mut self) -> io::Result<Message> {
        match self.connection.receive_within(ANSWER)? {
            Some(message) => Ok(message),
            None => Err(io::Error::other("its stream has ended")),
        }
    }

    fn ask(&mut self, ask: Ask) -> io::Result<Told> {
        if let Some(why) = &self.gone {
            return Err(io::Error::other(why.clone()));
        }
        let told = self.connection.send(Message::Ask(ask)).and_then(|()| self.hear());
        match told {
            Ok(Message::Told(told)) => Ok(told),
            Ok(other) => Err(io::Error::other(format!("it said {other:?} in place of an answer"))),
            Err(e) => {
                // An answer that comes late would be taken for that to the next question.
                self.gone = Some(format!("it no longer answers: {e}"));
                Err(e)
            }
        }
    }
}

impl Far for Host {
    fn name(&self) -> &str {
        &self.spec.host
    }

    fn ask(&self, ask: Ask) -> io::Result<Told> {
        let mut asked = self.asked.lock().map_err(|_| io::Error::other("its agent is not to be had"))?;
        asked.ask(ask).map_err(|e| io::Error::new(e.kind(), format!("host {}: {e}", self.spec.host)))
    }

    fn program(&self) -> Command {
        match self.link.lock().ok().as_ref().and_then(|link| link.as_ref()) {
            Some(link) => started(link, &self.words),
            // It was left: nothing can be started there any more.
            None => Command::new("false"),
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", self.spec.host)
    }
}
