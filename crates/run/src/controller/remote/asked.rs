//! The agent that answers for another host.

use super::explain::last;
use super::{BEAT, LEASE_NS};
use crate::controller::agent::{hello, understood};
use crate::pipe::Connection;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tailbound_model::{Ask, Told};
use tailbound_wire::*;

/// How long it may take to put settings back and go.
const LEAVE: Duration = Duration::from_secs(10);

/// The agent that answers for a host.
pub(super) struct Asked {
    child: Child,
    connection: Connection,
    /// How long an answer may take: milliseconds, but for what waits for a datagram, or for a stream that was cut.
    patience: Duration,
    /// Why it answers no more.
    gone: Option<String>,
}

impl Asked {
    /// Starts it by this command of this host, and shakes hands; else what went wrong, with what was written there.
    pub fn start(mut command: Command, patience: Duration) -> Result<(Asked, Hello), String> {
        let text = |e: io::Error| e.to_string();
        let mut errors = tempfile::tempfile().map_err(text)?;
        let told = errors.try_clone().map_err(text)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(told);
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|e| format!("{program} cannot be started: {e}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let pipe = |fd: Option<OwnedFd>| File::from(fd.expect("it was asked for"));
        let connection = Connection::new(pipe(output.map(OwnedFd::from)), pipe(input.map(OwnedFd::from)));
        let mut asked = Asked { child, connection, patience, gone: None };
        let hello = asked.shake_hands().map_err(|e| {
            let mut said = String::new();
            // What it wrote is a help only.
            let _ = errors.rewind().and_then(|()| errors.read_to_string(&mut said));
            format!("Tailbound does not start there: {e}{}", last(&said))
        })?;
        Ok((asked, hello))
    }

    fn shake_hands(&mut self) -> io::Result<Hello> {
        self.connection.send(Message::Hello(hello(LEASE_NS)))?;
        understood(self.hear()?).map_err(io::Error::other)
    }

    fn hear(&mut self) -> io::Result<Message> {
        match self.connection.receive_within(self.patience)? {
            Some(message) => Ok(message),
            None => Err(io::Error::other("its stream has ended")),
        }
    }

    pub fn ask(&mut self, ask: Ask) -> io::Result<Told> {
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

    /// The process that carries its stream.
    pub fn carrier(&self) -> i32 {
        self.child.id() as i32
    }

    /// It has answered until now.
    pub fn answers(&self) -> bool {
        self.gone.is_none()
    }

    /// Tells it to go, and waits until its stream has ended.
    pub fn leave(&mut self) {
        let _ = self.connection.send(Message::Bye);
        self.gone.get_or_insert_with(|| "it was left".into());
        end_within(&mut self.child, LEAVE);
    }
}

/// Tells it every few seconds that this process is still there, for as long as it is asked anything.
pub(super) fn beat(asked: &Arc<Mutex<Asked>>) {
    let asked = Arc::downgrade(asked);
    // A thread, because guests may be started, or programs be asked, for longer than the lease of this one.
    let job = move || {
        let mut n = 0;
        loop {
            std::thread::sleep(BEAT);
            let Some(asked) = asked.upgrade() else { return };
            let Ok(mut asked) = asked.lock() else { return };
            n += 1;
            let beat = Message::Heartbeat(Heartbeat { n, received: 0 });
            if !asked.answers() || asked.connection.send(beat).is_err() {
                return;
            }
        }
    };
    // Without it the lease ends, which is told.
    let _ = std::thread::Builder::new().name("tb-beat".into()).spawn(job);
}

/// Waits until a process that carries a stream has ended, and ends it if it does not.
pub(super) fn end_within(child: &mut Child, limit: Duration) {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Both fail only if it is gone.
    let _ = child.kill();
    let _ = child.wait();
}
