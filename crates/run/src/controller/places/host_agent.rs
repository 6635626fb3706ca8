//! The host agent: an agent that answers questions about another host, for example about facts, settings, counters and
//! sockets.

use super::ssh_errors::last_line;
use crate::connection::Connection;
use crate::controller::agent_protocol::{HEARTBEAT, LEASE_NS, accept_hello, hello};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tailbound_model::{Answer, Ask, Problem};
use tailbound_wire::*;

/// Longest time for the host agent to restore settings and end.
const LEAVE: Duration = Duration::from_secs(10);

/// The connection to the agent that answers questions about a host.
pub(super) struct HostAgent {
    child: Child,
    connection: Connection,
    /// Longest time for an answer. Most answers take milliseconds; some wait for a datagram, or for a stream to resume.
    patience: Duration,
    /// Reason why the host agent no longer answers; `None` = the host agent answers.
    gone: Option<String>,
}

impl HostAgent {
    /// Starts the host agent with a command that runs on this machine, and exchanges hello messages.
    ///
    /// # Errors
    /// The agent does not start. The text has the reason and the last line that was written on the host.
    pub fn start(mut command: Command, patience: Duration) -> Result<(HostAgent, Hello), Problem> {
        let failed = |what: String| Problem::new("host_agent", what, "");
        let text = |e: io::Error| failed(e.to_string());
        let mut errors = tempfile::tempfile().map_err(text)?;
        let stderr = errors.try_clone().map_err(text)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|e| failed(format!("{program} cannot be started: {e}")))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let pipe = |fd: Option<OwnedFd>| File::from(fd.expect("the stream is piped"));
        let connection = Connection::new(pipe(output.map(OwnedFd::from)), pipe(input.map(OwnedFd::from)));
        let mut agent = HostAgent { child, connection, patience, gone: None };
        let hello = agent.exchange_hello().map_err(|e| {
            let mut written = String::new();
            // If this text cannot be read, only the explanation is missing.
            let _ = errors.rewind().and_then(|()| errors.read_to_string(&mut written));
            failed(format!("Tailbound does not start: {e}{}", last_line(&written)))
        })?;
        Ok((agent, hello))
    }

    fn exchange_hello(&mut self) -> io::Result<Hello> {
        self.connection.send(Message::Hello(hello(LEASE_NS)))?;
        accept_hello(self.receive()?).map_err(io::Error::other)
    }

    fn receive(&mut self) -> io::Result<Message> {
        match self.connection.receive_within(self.patience)? {
            Some(message) => Ok(message),
            None => Err(io::Error::other("the control stream of the agent has ended")),
        }
    }

    /// Asks the host agent one question and waits for the answer.
    ///
    /// # Errors
    /// The agent no longer answers.
    pub fn ask(&mut self, ask: Ask) -> io::Result<Answer> {
        match self.exchange(Message::Ask(ask))? {
            Message::Answer(answer) => Ok(answer),
            other => Err(io::Error::other(format!("the agent sent {other:?} instead of an answer"))),
        }
    }

    /// Sends a message to the host agent and waits for the message with which the agent answers.
    ///
    /// # Errors
    /// The agent no longer answers.
    pub fn exchange(&mut self, message: Message) -> io::Result<Message> {
        self.send(message)?;
        self.receive().inspect_err(|e| {
            // A late answer would be taken as the answer to the next question.
            self.gone = Some(format!("the agent no longer answers: {e}"));
        })
    }

    /// Sends a message that the host agent does not answer.
    ///
    /// # Errors
    /// The agent no longer answers, or its stream has ended.
    pub fn send(&mut self, message: Message) -> io::Result<()> {
        if let Some(why) = &self.gone {
            return Err(io::Error::other(why.clone()));
        }
        self.connection.send(message).inspect_err(|e| self.gone = Some(format!("the agent no longer answers: {e}")))
    }

    /// Id of the process on this machine (for example `ssh`) that passes on the control stream of the host agent.
    pub fn carrier(&self) -> i32 {
        self.child.id() as i32
    }

    /// True if the host agent has answered all questions so far.
    pub fn answers(&self) -> bool {
        self.gone.is_none()
    }

    /// Takes the lines of the diagnostics log that the host agent and its holder have kept; empty if the agent no
    /// longer answers.
    pub fn take_log(&mut self) -> String {
        match self.ask(Ask::Log) {
            Ok(Answer::Log(lines)) => lines,
            _ => String::new(),
        }
    }

    /// Ends the host agent, and waits until its stream has ended.
    pub fn leave(&mut self) {
        let _ = self.connection.send(Message::Bye);
        self.gone.get_or_insert_with(|| "the controller has closed the connection to the host".into());
        end_within(&mut self.child, LEAVE);
    }
}

/// Sends heartbeats to a host agent for as long as the agent is used.
pub(super) fn send_heartbeats(agent: &Arc<Mutex<HostAgent>>) {
    let agent = Arc::downgrade(agent);
    // A separate thread sends them, because the controller may wait for guests or programs for longer than the lease of
    // this agent.
    let job = move || {
        let mut n = 0;
        loop {
            std::thread::sleep(HEARTBEAT);
            let Some(agent) = agent.upgrade() else { return };
            let Ok(mut agent) = agent.lock() else { return };
            n += 1;
            let heartbeat = Message::Heartbeat(Heartbeat { n, received: 0, spare: None });
            if !agent.answers() || agent.connection.send(heartbeat).is_err() {
                return;
            }
        }
    };
    // Without the thread the lease of the agent ends, and the next question fails.
    let _ = std::thread::Builder::new().name("tb-beat".into()).spawn(job);
}

/// Waits until a process that passes on a control stream (for example `ssh`) has ended, and kills it after `limit`.
pub(super) fn end_within(child: &mut Child, limit: Duration) {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Both calls fail only if the process is gone.
    let _ = child.kill();
    let _ = child.wait();
}
