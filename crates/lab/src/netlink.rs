//! Netlink requests inside a network namespace.
//!
//! A netlink socket belongs to the namespace in which it was opened, so each job opens its own socket on a thread that
//! has entered the namespace.

use crate::netns::{NetNs, Task, run_in};
use rtnetlink::{Error, Handle, new_connection};
use std::future::Future;
use std::io;
use std::time::Duration;

/// Time limit of a netlink job. The kernel answers within microseconds; the limit prevents that a fault blocks a run.
const LIMIT: Duration = Duration::from_secs(5);

/// Starts `job` on a thread inside a network namespace, with a netlink connection of the namespace.
pub(crate) fn converse<T, F, Fut>(netns: &NetNs, job: F) -> io::Result<Task<io::Result<T>>>
where
    T: Send + 'static,
    F: FnOnce(Handle) -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, Error>>,
{
    converse_within(netns, LIMIT, job)
}

/// Starts `job` like [`converse`], but with the given time limit, for jobs that wait for an event.
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

/// Finds the index of the network interface with the given name.
pub(crate) async fn index(handle: &Handle, name: &str) -> Result<u32, Error> {
    use futures_util::TryStreamExt;
    let mut links = std::pin::pin!(handle.link().get().match_name(name).execute());
    let link = links.try_next().await?.ok_or(Error::RequestFailed)?;
    Ok(link.header.index)
}

/// Converts an error of netlink into an I/O error, with the kernel's errno if there is one.
pub(crate) fn into_io(error: Error) -> io::Error {
    match error {
        Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other.to_string()),
    }
}
