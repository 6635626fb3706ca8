//! One netlink conversation inside a network namespace.
//!
//! A netlink socket belongs to the namespace in which it was created, so each conversation opens its own, on a thread
//! that has entered the namespace.

use crate::netns::{NetNs, Task, run_in};
use rtnetlink::{Error, Handle, new_connection};
use std::future::Future;
use std::io;
use std::time::Duration;

/// The kernel answers within microseconds; this only keeps a fault from hanging a run.
const LIMIT: Duration = Duration::from_secs(5);

/// Starts `job` with a connection of the namespace.
pub(crate) fn converse<T, F, Fut>(netns: &NetNs, job: F) -> io::Result<Task<io::Result<T>>>
where
    T: Send + 'static,
    F: FnOnce(Handle) -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, Error>>,
{
    converse_within(netns, LIMIT, job)
}

/// The same for a job that waits for something.
pub(crate) fn converse_within<T, F, Fut>(netns: &NetNs, limit: Duration, job: F) -> io::Result<Task<io::Result<T>>>
where
    T: Send + 'static,
    F: FnOnce(Handle) -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, Error>>,
{
    run_in(netns, move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        runtime.block_on(async {
            let (connection, handle, _messages) = new_connection()?;
            tokio::spawn(connection);
            match tokio::time::timeout(limit, job(handle)).await {
                Ok(result) => result.map_err(into_io),
                Err(_) => {
                    let text = format!("the kernel did not answer within {} s", limit.as_secs());
                    Err(io::Error::new(io::ErrorKind::TimedOut, text))
                }
            }
        })
    })
}

/// The kernel's errno where there is one.
pub(crate) fn into_io(error: Error) -> io::Error {
    match error {
        Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other.to_string()),
    }
}
