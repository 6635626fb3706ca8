//! One process that the holder keeps running, also while no connection to its client is open.

use crate::RELEASE;
use crate::carry::{Carrier, Connection, Turn};
use crate::greeting::{Answer, line, refuse};
use crate::side::{Part, Side};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

pub(crate) type Reader = OwnedReadHalf;
pub(crate) type Writer = OwnedWriteHalf;

/// Time at which the holder last received something from any client of the session.
pub(crate) type LastReceived = Arc<Mutex<Instant>>;

/// Time for which a process may run after its standard input was closed. After this time the process is killed.
const GRACE: Duration = Duration::from_secs(5);

/// Time for which the silent output of an ended process is still read, because a child of the process may keep the
/// output open.
const REST: Duration = Duration::from_secs(1);

/// A connection to the holder whose client has sent its greeting.
pub(crate) struct Greeted {
    pub connection: Connection<Reader, Writer>,
    /// Number of bytes that the client has received in the session.
    pub received: u64,
}

/// A process that the holder has started, and its standard streams.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Process {
    /// Process id of the held process; `None` = it has ended and was waited for.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }
}

pub(crate) fn start(program: fn() -> io::Result<std::process::Command>, command: &[String]) -> io::Result<Process> {
    let mut program = Command::from(program()?);
    program.args(command).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = program.spawn()?;
    match (child.stdin.take(), child.stdout.take()) {
        (Some(input), Some(output)) => Ok(Process { child, input, output }),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

/// Holds a process until its client knows that the process has ended. If no further connection can arrive, or if the
/// client has sent nothing for the lease, the holder ends the process.
pub(crate) async fn hold_process(
    process: Process,
    mut connections: mpsc::UnboundedReceiver<Greeted>,
    lease: Duration,
    any_client: LastReceived,
) {
    let pid = process.id();
    let Process { mut child, input, output } = process;
    let mut carrier = Carrier::new(Side::new(Part::Holder), output, input);
    let mut connection: Option<Connection<Reader, Writer>> = None;
    let mut ended: Option<ExitStatus> = None;
    let (mut new, mut last_received) = (true, Instant::now());
    loop {
        if carrier.side.is_finished() {
            // This closes the standard input of the process.
            carrier.sink = None;
        }
        if carrier.side.other_last().is_some() {
            break;
        }
        if let (Some(status), None) = (ended, &carrier.source) {
            carrier.side.conclude(Some(status.into_raw()));
        }
        let rest = ended.is_some() && carrier.source.is_some() && carrier.side.room() > 0;
        tokio::select! {
            greeted = connections.recv() => match greeted {
                None => break,
                Some(Greeted { connection: mut fresh, received }) => {
                    last_received = Instant::now();
                    match carrier.side.resume(received) {
                        Ok(()) => {
                            let received = carrier.side.received();
                            fresh.writer.add(&line(&Answer::Joined { received, new, release: RELEASE.into() }));
                            new = false;
                            connection = Some(fresh);
                        }
                        Err(e) => drop(tokio::spawn(refuse(fresh, e.to_string()))),
                    }
                }
            },
            status = child.wait(), if ended.is_none() => match status {
                Ok(status) => {
                    tracing::info!(pid, %status, "held process has ended");
                    ended = Some(status);
                }
                Err(_) => break,
            },
            turn = carrier.turn(connection.as_mut()) => match turn {
                Turn::Received => {
                    last_received = Instant::now();
                    *any_client.lock().expect("nobody panics with it") = last_received;
                }
                Turn::Cut(reason) => {
                    tracing::info!(pid, %reason, "the connection of a session is cut");
                    connection = None;
                }
                // A process may close its standard streams and continue.
                Turn::Moved | Turn::Source(_) | Turn::Sink(_) => {}
            },
            () = sleep(REST), if rest => {
                carrier.source = None;
                carrier.side.close();
            }
            () = sleep_until(last_received + lease) => {
                tracing::warn!(pid, "the client of a session has sent nothing for the time of the lease");
                break;
            }
        }
    }
    connections.close();
    drop(connection);
    if ended.is_none() {
        end(child, carrier).await;
    }
}

/// Ends a process. Its output is read and dropped, because a process may block on output before it ends.
async fn end(mut child: Child, carrier: Carrier<ChildStdout, ChildStdin>) {
    let Carrier { source, sink, .. } = carrier;
    drop(sink);
    let read = async {
        if let Some(mut output) = source {
            let mut buffer = vec![0; 64 * 1024];
            while output.read(&mut buffer).await.is_ok_and(|n| n > 0) {}
        }
        std::future::pending::<()>().await;
    };
    let gone = timeout(GRACE, async {
        tokio::select! {
            _ = child.wait() => {}
            () = read => {}
        }
    });
    if gone.await.is_err() {
        // The call fails only if the process has ended already.
        let _ = child.kill().await;
    }
}
