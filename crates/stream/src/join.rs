//! The client of a holder: carries one session over one connection after the other.

use crate::RELEASE;
use crate::carry::{Carrier, Connection, Turn};
use crate::greeting::{Answer, Greeting, line};
use crate::side::{Part, Side};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How a process that a holder kept running for its client has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Exit status of the process, as its holder received it from the kernel.
    pub status: ExitStatus,
}

impl Ended {
    /// Whether the process that the holder kept running ended with exit status 0.
    pub fn success(&self) -> bool {
        self.status.success()
    }
}

/// The reason why a client's session ends before the held process has ended.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Error: the holder refuses to continue the client's session.
    #[error("the holder refuses the session: {0}")]
    Refused(String),
    /// Error: no connection to the holder could be opened for the whole time that the client may try.
    #[error("the connection to the process was lost, and no new one could be opened for {} s: {reason}", patience.as_secs_f64())]
    Lost {
        /// Time for which the client has tried to connect to the holder.
        patience: Duration,
        /// Reason why the last connection to the holder failed.
        reason: io::Error,
    },
    /// Error: the input for the held process cannot be read.
    #[error("the input for the held process cannot be read: {0}")]
    Input(#[source] io::Error),
    /// Error: the output of the held process cannot be written.
    #[error("the output of the held process cannot be written: {0}")]
    Output(#[source] io::Error),
}

/// Intervals and time limits of a client that connects to a holder.
#[derive(Debug, Clone, Copy)]
struct Pace {
    ping: Duration,
    /// Time without any received bytes after which a connection is given up.
    silent: Duration,
}

const PACE: Pace = Pace { ping: Duration::from_secs(5), silent: Duration::from_secs(12) };

/// First pause between two attempts to open a connection to the holder.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Time limit for sending the last frame of a session. If the holder does not receive the frame, the lease ends the
/// session.
const FAREWELL: Duration = Duration::from_secs(2);

/// Runs `command` in a holder, as a session with a unique name: `input` goes to the standard input of the process, and
/// its standard output goes to `output`. `open` opens a connection to the holder. If a connection is cut or silent,
/// `open` is called again, until no connection could be opened for `patience`. If `input` ends, the standard input of
/// the process ends. The session ends when the process has ended and all its output was written. If the future is
/// dropped, the lease of the holder ends the process.
///
/// # Errors
/// The holder refuses the session, no connection could be opened for `patience`, or `input` or `output` failed.
pub async fn join<O, F, R, W>(
    session: &str,
    command: &[String],
    open: O,
    input: impl AsyncRead,
    output: impl AsyncWrite,
    patience: Duration,
) -> Result<Ended, JoinError>
where
    O: FnMut() -> F,
    F: Future<Output = io::Result<(R, W)>>,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    join_at(PACE, session, command, open, input, output, patience).await
}

async fn join_at<O, F, R, W>(
    pace: Pace,
    session: &str,
    command: &[String],
    mut open: O,
    input: impl AsyncRead,
    output: impl AsyncWrite,
    patience: Duration,
) -> Result<Ended, JoinError>
where
    O: FnMut() -> F,
    F: Future<Output = io::Result<(R, W)>>,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    tokio::pin!(input, output);
    let mut carrier = Carrier::new(Side::new(Part::Client), input, output);
    let mut greeting = Greeting {
        session: session.into(),
        release: RELEASE.into(),
        command: command.into(),
        received: 0,
        resumes: false,
    };
    let (mut since, mut pause) = (Instant::now(), FIRST_PAUSE);
    loop {
        greeting.received = carrier.side.received();
        let attempt = async { greet(open().await?, &greeting).await };
        let limit = pace.silent.min((since + patience).saturating_duration_since(Instant::now()));
        let reason = match timeout(limit, attempt).await.unwrap_or_else(|_| Err(silence(limit))) {
            Ok((_, Answer::Refused { refused })) => return Err(JoinError::Refused(refused)),
            Ok((mut connection, Answer::Joined { received, release, .. })) => {
                let resumed = carrier.side.resume(received).and_then(|()| connection.handle_frames(&mut carrier.side));
                if let Err(e) = resumed {
                    return Err(JoinError::Refused(format!("{e} (the holder's release is {release})")));
                }
                tracing::info!(session, received, resumed = greeting.resumes, "connected to the holder");
                greeting.resumes = true;
                match carry(pace, &mut carrier, connection).await? {
                    Carried::Ended(ended) => return Ok(ended),
                    Carried::Cut(reason) => {
                        (since, pause) = (Instant::now(), FIRST_PAUSE);
                        reason
                    }
                }
            }
            Err(reason) => reason,
        };
        tracing::warn!(session, %reason, "the connection to the holder is lost");
        if since.elapsed() + pause >= patience {
            return Err(JoinError::Lost { patience, reason });
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn silence(limit: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("nothing was received for {} s", limit.as_secs_f64()))
}

/// Sends the greeting to the holder and receives the answer.
async fn greet<R, W>((reader, writer): (R, W), greeting: &Greeting) -> io::Result<(Connection<R, W>, Answer)>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut connection = Connection::new(reader, writer);
    connection.writer.add(&line(greeting));
    connection.writer.all().await?;
    let ended = || io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended before the holder answered");
    let line = connection.line().await?.ok_or_else(ended)?;
    let answer = serde_json::from_slice(&line).map_err(|e| {
        let line = String::from_utf8_lossy(&line).chars().take(200).collect::<String>();
        io::Error::new(io::ErrorKind::InvalidData, format!("the answer is not from a holder: `{line}` ({e})"))
    })?;
    Ok((connection, answer))
}

enum Carried {
    Ended(Ended),
    Cut(io::Error),
}

/// Carries the session over one connection, until the connection is cut or the process has ended.
async fn carry<S, K, R, W>(
    pace: Pace,
    carrier: &mut Carrier<S, K>,
    mut connection: Connection<R, W>,
) -> Result<Carried, JoinError>
where
    S: AsyncRead + Unpin,
    K: AsyncWrite + Unpin,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut last_received = Instant::now();
    let mut next_ping = last_received + pace.ping;
    loop {
        if let Some(last) = carrier.side.other_last()
            && carrier.is_delivered()
        {
            let status = last.ok_or_else(|| {
                JoinError::Refused(
                    "the session ended, but the holder did not send the exit status of the process".into(),
                )
            })?;
            let ended = Ended { status: ExitStatus::from_raw(status) };
            carrier.side.conclude(None);
            // If the last frame is lost, the lease ends the session.
            let _ = timeout(FAREWELL, connection.writer.close(&mut carrier.side)).await;
            return Ok(Carried::Ended(ended));
        }
        tokio::select! {
            turn = carrier.turn(Some(&mut connection)) => match turn {
                Turn::Moved | Turn::Source(Ok(())) => {}
                Turn::Received => last_received = Instant::now(),
                Turn::Cut(reason) => return Ok(Carried::Cut(reason)),
                Turn::Source(Err(e)) => return Err(JoinError::Input(e)),
                Turn::Sink(e) => return Err(JoinError::Output(e)),
            },
            () = sleep_until(next_ping) => {
                carrier.side.ping();
                next_ping += pace.ping;
            }
            () = sleep_until(last_received + pace.silent) => return Ok(Carried::Cut(silence(pace.silent))),
        }
    }
}

#[cfg(test)]
mod tests;
