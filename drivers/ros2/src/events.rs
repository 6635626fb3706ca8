//! A thread of the driver that reads status events: RustDDS only puts events into a queue, and has no callbacks for
//! them.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ros2_client::dds::rustdds::mio1::{Interest, Poll, Token};
use ros2_client::dds::rustdds::{DomainParticipant, StatusEvented};
use tailbound_abi::side::{Host, Outcome};

use crate::error::io;
use crate::flag::{self, Flag};
use crate::graph::Graph;

/// Name of the thread that reads DDS status events.
pub const NAME: &str = "ros2.status";

/// The thread that reads status events; it ends when this value is dropped.
pub struct Events {
    stop: Arc<Flag>,
    thread: Option<JoinHandle<()>>,
}

impl Events {
    /// Starts the thread that reads status events. The thread sleeps until discovery has an event, so it never runs
    /// while samples are exchanged.
    pub fn start(participant: &DomainParticipant, graph: Arc<Graph>, host: Host) -> Outcome<Events> {
        let mut listener = participant.status_listener();
        let poll = Poll::new().map_err(io("cannot make an epoll"))?;
        poll.registry()
            .register(listener.as_status_source_mio1(), Token(0), Interest::READABLE)
            .map_err(io("the status events cannot be watched"))?;
        let stop = Arc::new(Flag::new()?);
        let stopped = stop.clone();
        let run = move || {
            while !is_set(&stopped) {
                while let Some(event) = listener.try_recv_status() {
                    graph.learn(event, &host);
                }
                flag::poll(&mut [flag::readable(poll.as_raw_fd()), stopped.watched()], None);
            }
        };
        let thread =
            std::thread::Builder::new().name(NAME.to_owned()).spawn(run).map_err(io("cannot start a thread"))?;
        Ok(Events { stop, thread: Some(thread) })
    }
}

fn is_set(flag: &Flag) -> bool {
    let mut fds = [flag.watched()];
    flag::poll(&mut fds, Some(Duration::ZERO));
    fds[0].revents != 0
}

impl Drop for Events {
    fn drop(&mut self) {
        self.stop.set();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
