//! An agent as the controller sees it: a process with two pipes. For one on another host that is `ssh`, which carries them.

use super::RunError;
use super::remote::{BEAT, LEASE_NS};
use crate::hot::{FlowMemory, Memory};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tailbound_host::journal::{EntryId, Journal};
use tailbound_model::{ExitCode, FlowCounts, Undo};
use tailbound_wire::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// An agent that has been silent for this long is lost: heartbeats come every second.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

pub(super) struct Agent {
    /// For people and file names: `ping`, `pong`, `ping+pong`.
    pub name: String,
    pub pid: i32,
    /// The clock of its stamps: agents with the same word share it.
    pub clock: String,
    child: Child,
    input: Input,
    /// It is on another host.
    far: bool,
    /// Silent for this long it is lost.
    silence: Duration,
    output: ChildStdout,
    reader: FrameReader,
    entry: EntryId,
    /// The sample memory, held here too: it outlives a killed agent.
    pub held: Vec<Memory>,
    /// The counts of a flow, of each end.
    counts: Vec<FlowMemory>,
    /// When something was heard of it last.
    heard: Instant,
    /// Octets of frames heard between go and done.
    pub octets_while_silent: u64,
    pub silent: bool,
}

/// Where messages go: shared with the task that tells an agent on another host that this process is still there.
type Input = Arc<Mutex<Option<ChildStdin>>>;

/// What this side says first.
pub(super) fn hello(lease_ns: i64) -> Hello {
    Hello {
        protocol_min: PROTOCOL_MIN,
        protocol_max: PROTOCOL_MAX,
        tailbound: env!("CARGO_PKG_VERSION").into(),
        session: String::new(),
        capabilities: Vec::new(),
        lease_ns,
        boot_id: String::new(),
        clock: String::new(),
        pid: std::process::id() as i32,
    }
}

/// What the other side says first, if it can be spoken with.
pub(super) fn understood(message: Message) -> Result<Hello, String> {
    match message {
        Message::Hello(h) if h.protocol_max >= PROTOCOL_MIN && h.protocol_min <= PROTOCOL_MAX => Ok(h),
        Message::Hello(h) => Err(format!(
            "it speaks protocol {} to {}, this release {PROTOCOL_MIN} to {PROTOCOL_MAX}: use tailbound {} on both sides",
            h.protocol_min, h.protocol_max, h.tailbound
        )),
        other => Err(format!("it began with {other:?} in place of hello")),
    }
}

/// Tells the agent every few seconds that this process is still there.
fn beat(input: &Input) {
    let input = Arc::downgrade(input);
    tokio::spawn(async move {
        let mut n = 0;
        loop {
            tokio::time::sleep(BEAT).await;
            n += 1;
            let bytes = encode(&Frame::Message(Box::new(Message::Heartbeat(Heartbeat { n, received: 0 }))));
            let Some(input) = input.upgrade() else { return };
            let mut input = input.lock().await;
            // That it no longer listens is noticed where it is waited for.
            let Some(input) = &mut *input else { return };
            if input.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
}

/// An agent does not answer any more.
#[derive(Debug)]
pub(super) struct Lost(pub String);

impl Agent {
    /// Starts an agent and shakes hands. `far`: it is on another host, and silent for so long it is lost.
    pub async fn start(
        mut command: std::process::Command,
        name: &str,
        token: &str,
        journal: &Journal,
        (log, far): (std::fs::File, Option<Duration>),
    ) -> Result<Agent, RunError> {
        use std::os::unix::process::CommandExt;
        let fail = |text: String| RunError::new(ExitCode::RunFailed, format!("agent {name}: {text}"), "");
        let journal_failed = |e: tailbound_host::journal::JournalError| RunError::new(ExitCode::RunFailed, e, "");
        let entry = journal.before(Undo::EndProcessByToken { token: token.to_owned() }).map_err(journal_failed)?;
        command.args(["agent", "--run-token", token]).env(tailbound_model::RUN_TOKEN, token);
        // Ctrl-C is the controller's business; agents are told.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child =
            tokio::process::Command::from(command).spawn().map_err(|e| fail(format!("cannot be started: {e}")))?;
        let pid = child.id().map_or(0, |p| p as i32);
        if let Ok(process) = tailbound_host::process_id(pid) {
            journal
                .update(entry, Undo::EndProcess { process, what: format!("agent {name}"), token: token.to_owned() })
                .map_err(journal_failed)?;
        }
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(fail("its pipes were not made".into()));
        };
        let mut agent = Agent {
            name: name.to_owned(),
            pid,
            clock: String::new(),
            child,
            input: Arc::new(Mutex::new(Some(input))),
            far: far.is_some(),
            silence: far.unwrap_or(SILENCE),
            output,
            reader: FrameReader::default(),
            entry,
            held: Vec::new(),
            counts: Vec::new(),
            heard: Instant::now(),
            octets_while_silent: 0,
            silent: false,
        };
        agent.shake_hands().await.map_err(|lost| fail(lost.0))?;
        if agent.far {
            beat(&agent.input);
        }
        Ok(agent)
    }

    /// The process that carries its stream, where it is on another host.
    pub fn carrier(&self) -> Option<i32> {
        self.far.then_some(self.pid)
    }

    async fn shake_hands(&mut self) -> Result<(), Lost> {
        let hello = hello(if self.far { LEASE_NS } else { 0 });
        self.send(Message::Hello(hello)).await?;
        let message = self.message(Instant::now() + self.silence).await?;
        self.clock = understood(message).map_err(Lost)?.clock;
        Ok(())
    }

    pub async fn send(&mut self, message: Message) -> Result<(), Lost> {
        let bytes = encode(&Frame::Message(Box::new(message)));
        match &mut *self.input.lock().await {
            Some(input) => input.write_all(&bytes).await.map_err(|e| Lost(format!("it no longer listens ({e})"))),
            None => Err(Lost("its stream is closed".into())),
        }
    }

    /// The next frame that is not a heartbeat. Nothing is lost when the call is given up in between.
    pub async fn frame(&mut self, deadline: Instant) -> Result<Frame, Lost> {
        loop {
            let mut consumed = self.reader.consumed();
            while let Some(frame) = self.reader.next_frame().map_err(|e| Lost(e.to_string()))? {
                let octets = self.reader.consumed() - std::mem::replace(&mut consumed, self.reader.consumed());
                let is = |what: fn(&Message) -> bool| matches!(&frame, Frame::Message(m) if what(m));
                if self.silent && !is(|m| matches!(m, Message::Done(_))) {
                    self.octets_while_silent += octets;
                }
                if !is(|m| matches!(m, Message::Heartbeat(_))) {
                    return Ok(frame);
                }
            }
            let limit = deadline.min(self.heard + self.silence);
            let mut buffer = [0; 64 * 1024];
            match tokio::time::timeout_at(limit, self.output.read(&mut buffer)).await {
                Ok(Ok(0)) => return Err(Lost(self.how_it_ended().await)),
                Ok(Ok(n)) => {
                    self.heard = Instant::now();
                    self.reader.push(&buffer[..n]);
                }
                Ok(Err(e)) => return Err(Lost(format!("its stream broke ({e})"))),
                Err(_) if limit < deadline => {
                    return Err(Lost(format!("nothing was heard of it for {} s", self.silence.as_secs())));
                }
                Err(_) => return Err(Lost("it did not answer in time".into())),
            }
        }
    }

    /// The next message.
    pub async fn message(&mut self, deadline: Instant) -> Result<Message, Lost> {
        match self.frame(deadline).await? {
            Frame::Message(message) => Ok(*message),
            Frame::Memory { .. } => Err(Lost("sample memory came where a message belongs".into())),
        }
    }

    async fn how_it_ended(&mut self) -> String {
        match tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await {
            Ok(Ok(status)) => format!("it ended ({status})"),
            _ => "it closed its stream".into(),
        }
    }

    /// Maps the sample memory of an agent on this host.
    pub fn hold(&mut self, fds: &[i32], roles: &[Role], ring: bool) {
        self.held.clear();
        if self.far {
            return;
        }
        for (fd, role) in fds.iter().zip(roles) {
            let opened = std::fs::OpenOptions::new().read(true).write(true).open(format!("/proc/{}/fd/{fd}", self.pid));
            // Only a second net: without it the agent's own copy still holds the samples.
            if let Ok(memory) = opened.and_then(|file| Memory::map(file, (*role).into(), ring, false)) {
                self.held.push(memory);
            }
        }
        // Behind the samples: the counts of a flow.
        for fd in fds.iter().skip(roles.len()) {
            let opened = std::fs::OpenOptions::new().read(true).write(true).open(format!("/proc/{}/fd/{fd}", self.pid));
            self.counts.extend(opened.and_then(FlowMemory::map));
        }
    }

    /// What the ends of a flow had counted when their agent was lost.
    pub fn held_counts(&self) -> Vec<FlowCounts> {
        self.counts.iter().map(|memory| memory.cells().read()).collect()
    }

    /// Forgets the sample memory.
    pub fn let_go(&mut self) {
        for memory in self.counts.drain(..) {
            // SAFETY: counts were copied out; no reference is kept.
            unsafe { memory.unmap() };
        }
        for memory in self.held.drain(..) {
            // SAFETY: rows were copied out; no reference is kept.
            unsafe { memory.unmap() };
        }
    }

    /// Ends it: by its stream, then by force. What it still holds is saved by itself on the way.
    pub async fn end(mut self, journal: &Journal) {
        let _ = self.send(Message::Bye).await;
        drop(self.input.lock().await.take());
        if tokio::time::timeout(Duration::from_secs(10), self.child.wait()).await.is_err() {
            // Both fail only if it is gone.
            let _ = self.child.start_kill();
            let _ = self.child.wait().await;
        }
        self.let_go();
        // A journal that cannot be written keeps the entry; cleanup will find the process gone.
        let _ = journal.done(self.entry);
    }

    /// Closes the stream without goodbye, as if this process had died: the agent saves its samples.
    pub async fn abandon(mut self, journal: &Journal) {
        drop(self.input.lock().await.take());
        if tokio::time::timeout(Duration::from_secs(20), self.child.wait()).await.is_err() {
            let _ = self.child.start_kill();
            let _ = self.child.wait().await;
        }
        let _ = journal.done(self.entry);
    }
}
