//! The holder: a process that stays in the place of the held processes, and connects each client with its own held
//! process.

use crate::carry::Connection;
use crate::greeting::{GREETING, Greeting, refuse};
use crate::session::{Greeted, LastReceived, Reader, Writer, hold_process, start};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The reason why a holder (the program that keeps processes running for clients) ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The holder of processes ended because no client sent anything during the lease.
    Lease(Duration),
    /// The holder of processes ended because the program that called the holder stopped it.
    Stopped,
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Over::Lease(lease) => write!(f, "no client has sent anything for {} s", lease.as_secs_f64()),
            Over::Stopped => f.write_str("it was stopped"),
        }
    }
}

/// The reason why a holder (the program that keeps processes running for clients) cannot start.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// Error: another holder already listens at the socket.
    #[error("another holder runs at {}: one holder is enough for a place, and a second holder needs another --socket", .0.display())]
    Answers(PathBuf),
    /// Error: the file at the socket's path is not a socket.
    #[error("{} exists and is not a socket: name another path with --socket", .0.display())]
    NoSocket(PathBuf),
    /// Error: the Unix socket at which the holder would listen cannot be made.
    #[error(
        "the socket {} cannot be made: {source}. Name a path with --socket, in a directory that this user can write in",
        path.display()
    )]
    Socket {
        /// Path of the Unix socket that cannot be made.
        path: PathBuf,
        /// The error that the kernel returned when the socket was made.
        source: io::Error,
    },
}

/// Listens on `socket` and holds a process for each session: `program` with the client's arguments. The processes
/// inherit the standard error of the caller. The holder ends if `stop` completes, or if no client has sent anything for
/// `lease`. All processes end before the holder: their standard input is closed, and processes that still run 5 s later
/// are killed. A session also ends if its own client has sent nothing for `lease`.
///
/// # Errors
/// The socket cannot be made, or another holder answers at the socket.
pub async fn hold(
    socket: &Path,
    lease: Duration,
    program: fn() -> io::Result<Command>,
    stop: impl Future<Output = ()>,
) -> Result<Over, HoldError> {
    let listener = listen(socket)?;
    tracing::info!(socket = %socket.display(), lease_s = lease.as_secs_f64(), "holder listens");
    let last_received: LastReceived = Arc::new(Mutex::new(Instant::now()));
    let (greeted, mut greetings) = mpsc::unbounded_channel();
    let mut sessions: HashMap<String, mpsc::UnboundedSender<Greeted>> = HashMap::new();
    let mut processes = JoinSet::new();
    tokio::pin!(stop);
    let over = loop {
        let due = *last_received.lock().expect("nobody panics with it") + lease;
        if due <= Instant::now() {
            tracing::warn!(lease_s = lease.as_secs_f64(), "no client has sent anything for the time of the lease");
            break Over::Lease(lease);
        }
        tokio::select! {
            () = &mut stop => break Over::Stopped,
            () = sleep_until(due) => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (reader, writer) = stream.into_split();
                    tokio::spawn(greet(Connection::new(reader, writer), greeted.clone()));
                }
                // An accept fails if too many files are open, or if the client has already closed its connection.
                Err(_) => sleep(Duration::from_millis(50)).await,
            },
            _ = processes.join_next(), if !processes.is_empty() => sessions.retain(|_, session| !session.is_closed()),
            Some((greeting, connection)) = greetings.recv() => {
                *last_received.lock().expect("nobody panics with it") = Instant::now();
                let mut greeted = Greeted { connection, received: greeting.received };
                if let Some(session) = sessions.get(&greeting.session) {
                    match session.send(greeted) {
                        Ok(()) => {
                            tracing::info!(session = greeting.session, "the session is resumed on a new connection");
                            continue;
                        }
                        Err(back) => greeted = back.0,
                    }
                }
                if greeting.resumes || greeting.received > 0 {
                    tracing::warn!(session = greeting.session, "the session is refused, because it has ended");
                    tokio::spawn(refuse(greeted.connection, "this session has ended".into()));
                    continue;
                }
                match start(program, &greeting.command) {
                    Ok(process) => {
                        let (command, pid) = (greeting.command.join(" "), process.id());
                        tracing::info!(session = greeting.session, command, pid, "session begins");
                        let (session, connections) = mpsc::unbounded_channel();
                        // The receiver exists until the next line.
                        let _ = session.send(greeted);
                        processes.spawn(hold_process(process, connections, lease, last_received.clone()));
                        sessions.insert(greeting.session, session);
                    }
                    Err(e) => {
                        let command = greeting.command.join(" ");
                        tracing::error!(session = greeting.session, command, %e, "a process cannot be started");
                        tokio::spawn(refuse(greeted.connection, format!("cannot start `{command}`: {e}")));
                    }
                }
            }
        }
    };
    tracing::info!(%over, "holder ends");
    // If the socket cannot be removed, the next holder finds that no process listens on the socket.
    let _ = std::fs::remove_file(socket);
    // The processes end because their clients cannot connect any more.
    sessions.clear();
    while processes.join_next().await.is_some() {}
    Ok(over)
}

fn listen(path: &Path) -> Result<UnixListener, HoldError> {
    let failed = |source| HoldError::Socket { path: path.to_owned(), source };
    match path.symlink_metadata() {
        Ok(there) if !there.file_type().is_socket() => return Err(HoldError::NoSocket(path.to_owned())),
        Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
            return Err(HoldError::Answers(path.to_owned()));
        }
        _ => {}
    }
    if let Some(directory) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    }
    // The socket has another name until only this user can connect. The rename replaces the socket of a killed holder.
    let mut own = path.as_os_str().to_owned();
    own.push(format!(".{}", std::process::id()));
    let own = PathBuf::from(own);
    let listener = UnixListener::bind(&own).map_err(failed)?;
    let named = std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| std::fs::rename(&own, path));
    if named.is_err() {
        // The first error is reported.
        let _ = std::fs::remove_file(&own);
    }
    named.map(|()| listener).map_err(failed)
}

type Arrived = (Greeting, Connection<Reader, Writer>);

async fn greet(mut connection: Connection<Reader, Writer>, greeted: mpsc::UnboundedSender<Arrived>) {
    // A connection that ends or sends nothing is not from a client.
    let Ok(Ok(Some(line))) = timeout(GREETING, connection.line()).await else { return };
    match serde_json::from_slice(&line) {
        // If nobody receives the greeting, the holder is ending.
        Ok(greeting) => drop(greeted.send((greeting, connection))),
        Err(e) => refuse(connection, format!("the first line of the connection cannot be read: {e}")).await,
    }
}
