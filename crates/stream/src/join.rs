//! The client: one session over as many connections as it takes.

use crate::RELEASE;
use crate::carry::{Carrier, Connection, Turn};
use crate::greeting::{Answer, Greeting, line};
use crate::side::{Part, Side};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How the held process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// In words, e.g. `exit status: 0` or `signal: 9 (SIGKILL)`.
    pub status: String,
}

impl Ended {
    /// It ended with exit status 0.
    pub fn success(&self) -> bool {
        self.status == "exit status: 0"
    }
}

/// Why a session is over before its process has ended.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The holder does not go on with it.
    #[error("the holder refuses the session: {0}")]
    Refused(String),
    /// No connection held, for the patience.
    #[error("no connection to the held process for {} s: {reason}", patience.as_secs_f64())]
    Lost {
        /// How long it was tried.
        patience: Duration,
        /// What became of the last connection.
        reason: io::Error,
    },
    /// What was to be carried cannot be read.
    #[error("cannot read what is for the held process: {0}")]
    Input(#[source] io::Error),
    /// What came cannot be handed on.
    #[error("cannot hand on what the held process wrote: {0}")]
    Output(#[source] io::Error),
}

/// Times of a client.
#[derive(Debug, Clone, Copy)]
struct Pace {
    ping: Duration,
    /// A connection over which nothing was heard for so long is dead.
    silent: Duration,
}

const PACE: Pace = Pace { ping: Duration::from_secs(5), silent: Duration::from_secs(12) };

/// Between attempts to open a connection.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The last word has to go within this time; a holder that misses it ends the session when the lease is over.
const FAREWELL: Duration = Duration::from_secs(2);

/// Runs `command` as the session `session`, whose name must be its own: `input` goes to its standard input, what it writes
/// to `output`. `open` opens a connection to the holder; it is asked anew whenever one was cut or fell silent, until none
/// could be had for `patience`. When `input` ends, so does the standard input of the process; it is through when the process
/// has ended and all its octets were handed on. One that is dropped leaves the process to the holder's lease.
///
/// # Errors
/// The holder refuses the session; no connection for `patience`; `input` or `output` fails.
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
                let resumed = carrier.side.resume(received).and_then(|()| connection.heard(&mut carrier.side));
                if let Err(e) = resumed {
                    return Err(JoinError::Refused(format!("{e} (the holder's release is {release})")));
                }
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
        if since.elapsed() + pause >= patience {
            return Err(JoinError::Lost { patience, reason });
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn silence(limit: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("nothing was heard for {} s", limit.as_secs_f64()))
}

/// Says who it is, and hears the answer.
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
        io::Error::new(io::ErrorKind::InvalidData, format!("no holder answers, but `{line}` ({e})"))
    })?;
    Ok((connection, answer))
}

enum Carried {
    Ended(Ended),
    Cut(io::Error),
}

/// Carries the session over one connection.
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
    let mut heard = Instant::now();
    let mut next_ping = heard + pace.ping;
    loop {
        if let Some(status) = carrier.side.other_last()
            && carrier.is_delivered()
        {
            let ended = Ended { status: status.to_owned() };
            carrier.side.conclude(String::new());
            // The holder finds out by itself otherwise.
            let _ = timeout(FAREWELL, connection.writer.close(&mut carrier.side)).await;
            return Ok(Carried::Ended(ended));
        }
        tokio::select! {
            turn = carrier.turn(Some(&mut connection)) => match turn {
                Turn::Moved | Turn::Source(Ok(())) => {}
                Turn::Heard => heard = Instant::now(),
                Turn::Cut(reason) => return Ok(Carried::Cut(reason)),
                Turn::Source(Err(e)) => return Err(JoinError::Input(e)),
                Turn::Sink(e) => return Err(JoinError::Output(e)),
            },
            () = sleep_until(next_ping) => {
                carrier.side.ping();
                next_ping += pace.ping;
            }
            () = sleep_until(heard + pace.silent) => return Ok(Carried::Cut(silence(pace.silent))),
        }
    }
}

#[cfg(test)]
mod tests;
