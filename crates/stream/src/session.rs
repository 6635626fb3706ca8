//! One held process: goes on whether or not a connection is there.

use crate::RELEASE;
use crate::carry::{Carrier, Connection, Turn};
use crate::greeting::{Answer, line};
use crate::hold::{Heard, refuse};
use crate::side::{Part, Side};
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

pub(crate) type Reader = OwnedReadHalf;
pub(crate) type Writer = OwnedWriteHalf;

/// A process whose standard input was closed is killed after this time.
const GRACE: Duration = Duration::from_secs(5);

/// The output of a process that has ended ends when nothing has come for so long: a child of its own may hold it open.
const REST: Duration = Duration::from_secs(1);

/// A connection whose client has said who it is.
pub(crate) struct Greeted {
    pub connection: Connection<Reader, Writer>,
    /// Octets that the client has received.
    pub received: u64,
}

/// A process that was started.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
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

/// Holds the process until its client knows that it has ended; ends it when no more connections can come, or when none of
/// its clients was heard for the lease.
pub(crate) async fn hold_process(
    process: Process,
    mut connections: mpsc::UnboundedReceiver<Greeted>,
    lease: Duration,
    anybody_heard: Heard,
) {
    let Process { mut child, input, output } = process;
    let mut carrier = Carrier::new(Side::new(Part::Holder), output, input);
    let mut connection: Option<Connection<Reader, Writer>> = None;
    let mut ended: Option<ExitStatus> = None;
    let (mut new, mut heard) = (true, Instant::now());
    loop {
        if carrier.side.is_through() {
            // Closes its standard input.
            carrier.sink = None;
        }
        if carrier.side.other_last().is_some() {
            break;
        }
        if let (Some(status), None) = (ended, &carrier.source) {
            carrier.side.conclude(status.to_string());
        }
        let rest = ended.is_some() && carrier.source.is_some() && carrier.side.room() > 0;
        tokio::select! {
            greeted = connections.recv() => match greeted {
                None => break,
                Some(Greeted { connection: mut fresh, received }) => {
                    heard = Instant::now();
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
                Ok(status) => ended = Some(status),
                Err(_) => break,
            },
            turn = carrier.turn(connection.as_mut()) => match turn {
                Turn::Heard => {
                    heard = Instant::now();
                    *anybody_heard.lock().expect("nobody panics with it") = heard;
                }
                Turn::Cut(_) => connection = None,
                // A process may close its streams and go on.
                Turn::Moved | Turn::Source(_) | Turn::Sink(_) => {}
            },
            () = sleep(REST), if rest => {
                carrier.source = None;
                carrier.side.close();
            }
            () = sleep_until(heard + lease) => break,
        }
    }
    connections.close();
    drop(connection);
    if ended.is_none() {
        end(child, carrier).await;
    }
}

/// Ends the process. Its output is read and dropped: it may have something to write before it goes.
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
        // It is gone already otherwise.
        let _ = child.kill().await;
    }
}
