//! The holder: stays where the held processes are, and joins each client with its own.

use crate::carry::Connection;
use crate::greeting::{Answer, Greeting, line};
use crate::session::{Greeted, Reader, Writer, hold_process, start};
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

/// A client says who it is within this time.
const GREETING: Duration = Duration::from_secs(10);

/// Why a holder ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// Nobody was heard for the lease.
    Lease(Duration),
    /// It was told to.
    Stopped,
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Over::Lease(lease) => write!(f, "no client was heard for {} s", lease.as_secs_f64()),
            Over::Stopped => f.write_str("it was told to end"),
        }
    }
}

/// Why a holder cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// Another one is there.
    #[error("another holder answers at {}: one is enough for a place; a second one needs another --socket", .0.display())]
    Answers(PathBuf),
    /// Something else is in the socket's place.
    #[error("{} is there and is no socket: name another path with --socket", .0.display())]
    NoSocket(PathBuf),
    /// The socket cannot be made.
    #[error(
        "cannot make the socket {}: {source}. Name a path with --socket, in a directory that this user can write in",
        path.display()
    )]
    Socket {
        /// Its path.
        path: PathBuf,
        /// What the kernel says.
        source: io::Error,
    },
}

/// When a client was last heard.
pub(crate) type Heard = Arc<Mutex<Instant>>;

/// Listens on `socket` and holds a process for each session: `program` with the client's arguments. What the processes write
/// to standard error goes to that of the caller. It ends when no client was heard for `lease`, or with `stop`; the processes
/// end before it: their standard input is closed, and those that are there 5 s later are killed. A session whose own client
/// was not heard for `lease` ends alone.
///
/// # Errors
/// The socket cannot be made, or another holder answers there.
pub async fn hold(
    socket: &Path,
    lease: Duration,
    program: fn() -> io::Result<Command>,
    stop: impl Future<Output = ()>,
) -> Result<Over, HoldError> {
    let listener = listen(socket)?;
    let heard: Heard = Arc::new(Mutex::new(Instant::now()));
    let (greeted, mut greetings) = mpsc::unbounded_channel();
    let mut sessions: HashMap<String, mpsc::UnboundedSender<Greeted>> = HashMap::new();
    let mut processes = JoinSet::new();
    tokio::pin!(stop);
    let over = loop {
        let due = *heard.lock().expect("nobody panics with it") + lease;
        if due <= Instant::now() {
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
                // Too many open files, or a client that is gone already.
                Err(_) => sleep(Duration::from_millis(50)).await,
            },
            _ = processes.join_next(), if !processes.is_empty() => sessions.retain(|_, session| !session.is_closed()),
            Some((greeting, connection)) = greetings.recv() => {
                *heard.lock().expect("nobody panics with it") = Instant::now();
                let mut greeted = Greeted { connection, received: greeting.received };
                if let Some(session) = sessions.get(&greeting.session) {
                    match session.send(greeted) {
                        Ok(()) => continue,
                        Err(back) => greeted = back.0,
                    }
                }
                if greeting.resumes || greeting.received > 0 {
                    tokio::spawn(refuse(greeted.connection, "this session has ended".into()));
                    continue;
                }
                match start(program, &greeting.command) {
                    Ok(process) => {
                        let (session, connections) = mpsc::unbounded_channel();
                        // The receiver is in the next line.
                        let _ = session.send(greeted);
                        processes.spawn(hold_process(process, connections, lease, heard.clone()));
                        sessions.insert(greeting.session, session);
                    }
                    Err(e) => {
                        let command = greeting.command.join(" ");
                        tokio::spawn(refuse(greeted.connection, format!("cannot start `{command}`: {e}")));
                    }
                }
            }
        }
    };
    // One that cannot be removed is found to be stale by the next holder.
    let _ = std::fs::remove_file(socket);
    // A process whose clients cannot come any more is ended.
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
    // Under another name until nobody else can connect; the new name replaces what a killed holder left.
    let mut own = path.as_os_str().to_owned();
    own.push(format!(".{}", std::process::id()));
    let own = PathBuf::from(own);
    let listener = UnixListener::bind(&own).map_err(failed)?;
    let named = std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| std::fs::rename(&own, path));
    if named.is_err() {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&own);
    }
    named.map(|()| listener).map_err(failed)
}

type Arrived = (Greeting, Connection<Reader, Writer>);

async fn greet(mut connection: Connection<Reader, Writer>, greeted: mpsc::UnboundedSender<Arrived>) {
    // One that ends, or says nothing, is no client.
    let Ok(Ok(Some(line))) = timeout(GREETING, connection.line()).await else { return };
    match serde_json::from_slice(&line) {
        // The holder is ending otherwise.
        Ok(greeting) => drop(greeted.send((greeting, connection))),
        Err(e) => refuse(connection, format!("its first line is not understood: {e}")).await,
    }
}

/// Says why there is no session.
pub(crate) async fn refuse(mut connection: Connection<Reader, Writer>, refused: String) {
    connection.writer.add(&line(&Answer::Refused { refused }));
    // Whoever does not read it does not want to know.
    let _ = timeout(GREETING, connection.writer.all()).await;
}
