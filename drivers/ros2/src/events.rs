//! The driver's own thread: RustDDS puts its status events into a queue and calls nobody.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use ros2_client::dds::rustdds::mio1::{Interest, Poll, Token};
use ros2_client::dds::rustdds::{DomainParticipant, StatusEvented};
use tailbound_abi::side::{Host, Outcome};

use crate::graph::Graph;
use crate::session::io;
use crate::wait::{self, Flag};

/// Name of the thread.
pub const NAME: &str = "ros2.status";

/// The thread; it ends when this is dropped.
pub struct Events {
    stop: Arc<Flag>,
    thread: Option<JoinHandle<()>>,
}

impl Events {
    /// Starts the thread. It sleeps until something happens in discovery, so not a moment while samples flow.
    pub fn start(participant: &DomainParticipant, graph: Arc<Graph>, host: Host) -> Outcome<Events> {
        let mut listener = participant.status_listener();
        let poll = Poll::new().map_err(io("cannot make an epoll"))?;
        poll.registry()
            .register(listener.as_status_source_mio1(), Token(0), Interest::READABLE)
            .map_err(io("cannot watch the status events"))?;
        let stop = Arc::new(Flag::new()?);
        let stopped = stop.clone();
        let run = move || {
            while !stopped.is_set() {
                while let Some(event) = listener.try_recv_status() {
                    graph.learn(event, &host);
                }
                wait::poll(&mut [wait::readable(poll.as_raw_fd()), stopped.watched()], None);
            }
        };
        let thread =
            std::thread::Builder::new().name(NAME.to_owned()).spawn(run).map_err(io("cannot start a thread"))?;
        Ok(Events { stop, thread: Some(thread) })
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.stop.set();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
