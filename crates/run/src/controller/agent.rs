//! The controller's connection to an agent: a process with two pipes. For an agent on another host, the process is
//! `ssh` or a similar program, which passes on the control stream.

use super::RunError;
use super::agent_protocol::{HEARTBEAT, LEASE_NS, Lost, SILENCE, accept_hello, hello};
use super::context::RunContext;
use crate::hot::{FlowMemory, Memory};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tailbound_host::journal::EntryId;
use tailbound_model::{ExitCode, FlowCounts, Undo};
use tailbound_wire::*;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

/// Longest time for an agent to end by itself after `bye`.
const ENDING: Duration = Duration::from_secs(10);
/// Longest time for an agent to save its samples after its stream was closed without `bye`.
const SAVING: Duration = Duration::from_secs(20);

/// The controller's connection to a started agent.
pub(super) struct Agent {
    /// Name of the agent in messages and file names, for example `ping`, `pong` or `ping+pong`.
    pub name: String,
    /// Process id of the agent or, for an agent on another host, of the program that passes on its control stream.
    pub pid: i32,
    /// Identifier of the clock of the agent's timestamps. Agents with the same identifier share one clock.
    pub clock: String,
    /// Process of the agent or, for an agent on another host, of the program that passes on its control stream.
    /// `None` = the agent is part of a test.
    process: Option<Child>,
    input: Input,
    /// True if the agent runs on another host than the controller.
    remote: bool,
    /// Time without received bytes after which the agent counts as lost.
    silence: Duration,
    output: Output,
    reader: FrameReader,
    entry: Option<EntryId>,
    /// Sample memory of the agent's ends, also mapped in the controller so that it outlives an agent that is killed.
    pub samples: Vec<Memory>,
    /// Memory with the message counts of a flow, one for each end of the agent.
    counts: Vec<FlowMemory>,
    /// Time at which the last bytes from the agent were received.
    last_received: Instant,
    /// Number of bytes of the frames received between `go` and `done`, when the agent must be silent.
    pub bytes_while_silent: u64,
    /// True while the ends measure, so that the agent must be silent.
    pub silent: bool,
    /// Whether the agent understands that it should keep the events of a time span.
    pub spares: bool,
    /// Whether the agent sends summaries of late messages while a trial runs.
    pub has_summaries: bool,
    /// Whether the agent finds causes of late messages while a trial runs.
    pub has_causes: bool,
    /// Channel for what the agent reports while its ends measure, and the number of this agent: time spans whose events the other
    /// agents should keep (`Spare`), summaries of late messages (`SoFar`), round trips (`Figures`), and what they need to find causes (`Absence`,
    /// `Causes`).
    pub meanwhile: Option<(usize, UnboundedSender<(usize, Message)>)>,
}

type Output = Box<dyn AsyncRead + Unpin + Send>;

/// Stream for messages to an agent. The stream is shared with the task that sends heartbeats to an agent on another
/// host.
type Input = Arc<Mutex<Option<Box<dyn AsyncWrite + Unpin + Send>>>>;

/// Sends messages to an agent while another task receives its messages.
pub(super) struct Writer(Input);

impl Writer {
    /// Sends a message of the controller to the agent.
    pub async fn send(&self, message: Message) -> Result<(), Lost> {
        let bytes = encode(&Frame::Message(Box::new(message)));
        match &mut *self.0.lock().await {
            Some(input) => input.write_all(&bytes).await.map_err(|e| Lost::NotReading(e.to_string())),
            None => Err(Lost::StreamEnded("its stream is closed".into())),
        }
    }
}

/// Parameters for starting an agent, from the controller.
pub(super) struct AgentOrder {
    /// Program that runs the agent, or that passes on the control stream to an agent on another host. The arguments of
    /// the agent are added.
    pub command: std::process::Command,
    /// Name of the agent in messages and file names.
    pub name: String,
    /// Token that identifies the agent's process in the journal.
    pub token: String,
    /// Log file for the standard error of the agent's process.
    pub log: std::fs::File,
    /// For an agent on another host: time without received bytes after which the agent counts as lost. `None` = the
    /// agent is on this host.
    pub remote_silence: Option<Duration>,
}

/// Sends heartbeats to an agent on another host until its stream is closed.
fn send_heartbeats(input: &Input) {
    let input = Arc::downgrade(input);
    tokio::spawn(async move {
        let mut n = 0;
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            n += 1;
            let bytes =
                encode(&Frame::Message(Box::new(Message::Heartbeat(Heartbeat { n, received: 0, spare: None }))));
            let Some(input) = input.upgrade() else { return };
            let mut input = input.lock().await;
            // The code that waits for an answer notices that the agent no longer reads.
            let Some(input) = &mut *input else { return };
            if input.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
}

impl Agent {
    /// Starts an agent and exchanges hello messages.
    ///
    /// # Errors
    /// The agent cannot be started or does not answer.
    pub async fn start(order: AgentOrder, context: &RunContext) -> Result<Agent, RunError> {
        use std::os::unix::process::CommandExt;
        let AgentOrder { mut command, name, token, log, remote_silence } = order;
        let fail = |text: String| RunError::new(ExitCode::RunFailed, format!("agent {name}: {text}"), "");
        let journal_failed = |e: tailbound_host::journal::JournalError| RunError::of(ExitCode::RunFailed, e);
        let journal = &context.journal;
        let entry = journal.before(Undo::EndProcessByToken { token: token.clone() }).map_err(journal_failed)?;
        command.args(["agent", "--run-token", &token]).env(tailbound_model::RUN_TOKEN, &token);
        // Ctrl-C must reach only the controller, which ends its agents.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child =
            tokio::process::Command::from(command).spawn().map_err(|e| fail(format!("cannot be started: {e}")))?;
        let pid = child.id().map_or(0, |p| p as i32);
        if let Ok(process) = tailbound_host::process_id(pid) {
            journal
                .update(entry, Undo::EndProcess { process, what: format!("agent {name}"), token: token.clone() })
                .map_err(journal_failed)?;
        }
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(fail("the pipes to the agent could not be created".into()));
        };
        let mut agent = Agent::over(&name, Box::new(input), Box::new(output), remote_silence.unwrap_or(SILENCE));
        (agent.pid, agent.process, agent.entry, agent.remote) =
            (pid, Some(child), Some(entry), remote_silence.is_some());
        tracing::info!(agent = agent.name, pid, token, "agent started");
        agent.exchange_hello().await.map_err(|lost| fail(lost.to_string()))?;
        if agent.remote {
            send_heartbeats(&agent.input);
        }
        Ok(agent)
    }

    /// Makes the connection to an agent over two streams. Hello messages are exchanged afterwards.
    fn over(name: &str, input: Box<dyn AsyncWrite + Unpin + Send>, output: Output, silence: Duration) -> Agent {
        Agent {
            name: name.to_owned(),
            pid: 0,
            clock: String::new(),
            process: None,
            input: Arc::new(Mutex::new(Some(input))),
            remote: false,
            silence,
            output,
            reader: FrameReader::default(),
            entry: None,
            samples: Vec::new(),
            counts: Vec::new(),
            last_received: Instant::now(),
            bytes_while_silent: 0,
            silent: false,
            spares: false,
            has_summaries: false,
            has_causes: false,
            meanwhile: None,
        }
    }

    /// Id of the process (for example `ssh`) that passes on the agent's control stream; `None` = the agent is on this
    /// host.
    pub fn carrier(&self) -> Option<i32> {
        self.remote.then_some(self.pid)
    }

    async fn exchange_hello(&mut self) -> Result<(), Lost> {
        let hello = hello(if self.remote { LEASE_NS } else { 0 });
        self.send(Message::Hello(hello)).await?;
        let message = self.message(Instant::now() + self.silence).await?;
        let hello = accept_hello(message)?;
        let has = |capability: &str| hello.capabilities.iter().any(|word| word == capability);
        (self.spares, self.has_summaries, self.has_causes) = (has(SPARES), has(SO_FAR), has(CAUSES));
        self.clock = hello.clock;
        Ok(())
    }

    /// Sends a message of the controller to the agent.
    pub async fn send(&mut self, message: Message) -> Result<(), Lost> {
        self.writer().send(message).await
    }

    /// What sends messages to the agent while another task receives its messages.
    pub fn writer(&self) -> Writer {
        Writer(self.input.clone())
    }

    /// Receives the next frame from the agent that is not a heartbeat. If the future is dropped, no frame is lost.
    pub async fn frame(&mut self, deadline: Instant) -> Result<Frame, Lost> {
        loop {
            let mut consumed = self.reader.consumed();
            while let Some(frame) = self.reader.next_frame()? {
                let bytes = self.reader.consumed() - std::mem::replace(&mut consumed, self.reader.consumed());
                let is = |what: fn(&Message) -> bool| matches!(&frame, Frame::Message(m) if what(m));
                if self.silent && !is(|m| matches!(m, Message::Done(_) | Message::Stamped(_))) {
                    self.bytes_while_silent += bytes;
                }
                match &frame {
                    Frame::Message(message) => match &**message {
                        Message::Heartbeat(Heartbeat { spare: Some(spare), .. }) => {
                            self.report(Message::Spare(*spare));
                        }
                        Message::Heartbeat(_) => {}
                        Message::SoFar(_) | Message::Absence(_) | Message::Causes(_) | Message::Figures(_) => {
                            self.report((**message).clone())
                        }
                        _ => return Ok(frame),
                    },
                    Frame::Memory { .. } => return Ok(frame),
                }
            }
            let limit = deadline.min(self.last_received + self.silence);
            let mut buffer = [0; 64 * 1024];
            match tokio::time::timeout_at(limit, self.output.read(&mut buffer)).await {
                Ok(Ok(0)) => return Err(Lost::StreamEnded(self.how_it_ended().await)),
                Ok(Ok(n)) => {
                    self.last_received = Instant::now();
                    self.reader.push(&buffer[..n]);
                }
                Ok(Err(e)) => return Err(Lost::StreamBroken(e.to_string())),
                Err(_) if limit < deadline => return Err(Lost::Silent(self.silence)),
                Err(_) => return Err(Lost::NoAnswer),
            }
        }
    }

    /// Receives the next message from the agent that is not a heartbeat.
    pub async fn message(&mut self, deadline: Instant) -> Result<Message, Lost> {
        match self.frame(deadline).await? {
            Frame::Message(message) => Ok(*message),
            Frame::Memory { .. } => Err(Lost::BadMemory("sample memory was received instead of a message")),
        }
    }

    /// Passes on what the agent reports while its ends measure.
    fn report(&self, message: Message) {
        if let Some((number, meanwhile)) = &self.meanwhile {
            // Nobody receives it after the trial.
            let _ = meanwhile.send((*number, message));
        }
    }

    async fn how_it_ended(&mut self) -> String {
        let ended = async {
            match &mut self.process {
                Some(process) => process.wait().await.ok(),
                None => None,
            }
        };
        match tokio::time::timeout(Duration::from_secs(2), ended).await {
            Ok(Some(status)) => format!("it ended ({status})"),
            _ => "it closed its stream".into(),
        }
    }

    /// Maps the sample memory and the flow counts of the agent, if the agent is on this host.
    pub fn map_memory(&mut self, fds: &[i32], roles: &[Role], ring: bool) {
        self.samples.clear();
        if self.remote {
            return;
        }
        for (fd, role) in fds.iter().zip(roles) {
            // If this mapping fails, the samples are still in the agent's mapping.
            if let Ok(memory) = self.open_fd(*fd).and_then(|file| Memory::map(file, (*role).into(), ring, false)) {
                self.samples.push(memory);
            }
        }
        // The descriptors of the flow counts follow the descriptors of the sample memory.
        for fd in fds.iter().skip(roles.len()) {
            self.counts.extend(self.open_fd(*fd).and_then(FlowMemory::map));
        }
    }

    /// Opens the file behind a file descriptor of the agent's process.
    fn open_fd(&self, fd: i32) -> std::io::Result<std::fs::File> {
        std::fs::OpenOptions::new().read(true).write(true).open(format!("/proc/{}/fd/{fd}", self.pid))
    }

    /// Reads the flow counts of the agent's ends from the memory that the controller has mapped.
    pub fn mapped_counts(&self) -> Vec<FlowCounts> {
        self.counts.iter().map(|memory| memory.cells().read()).collect()
    }

    /// Unmaps the sample memory and the flow counts of the agent.
    pub fn unmap_memory(&mut self) {
        for memory in self.counts.drain(..) {
            // SAFETY: counts were copied out; no reference is kept.
            unsafe { memory.unmap() };
        }
        for memory in self.samples.drain(..) {
            // SAFETY: rows were copied out; no reference is kept.
            unsafe { memory.unmap() };
        }
    }

    /// Ends the agent: sends `bye` and closes the stream. If the agent then does not end in time, it is killed. On
    /// `bye`, the agent saves the samples that it has.
    pub async fn end(mut self, context: &RunContext) {
        let _ = self.send(Message::Bye).await;
        self.close(ENDING, context).await;
        self.unmap_memory();
    }

    /// Closes the stream to the agent without `bye`, as if the controller had died. The agent then saves its samples.
    pub async fn abandon(mut self, context: &RunContext) {
        self.close(SAVING, context).await;
    }

    async fn close(&mut self, limit: Duration, context: &RunContext) {
        drop(self.input.lock().await.take());
        if let Some(process) = &mut self.process
            && tokio::time::timeout(limit, process.wait()).await.is_err()
        {
            tracing::warn!(agent = self.name, "the agent did not end by itself and is killed");
            // Both calls fail only if the process is gone.
            let _ = process.start_kill();
            let _ = process.wait().await;
        }
        // If the journal cannot be written, it keeps the entry; cleanup then finds no such process.
        self.entry.take().map(|entry| context.journal.done(entry));
    }
}

#[cfg(test)]
mod tests;
