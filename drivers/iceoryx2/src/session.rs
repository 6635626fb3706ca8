//! The state of a session: a node of iceoryx2, and its end points.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError, RwLock};

use iceoryx2::prelude::{Config, Node};
use tailbound_abi::side::{Endpoints, Host, Outcome, Wanted, fail};
use tailbound_abi::{TB_BLOCK, TB_EUNSUPPORTED, TB_LISTENER, TB_WRITER};

use crate::endpoint::{Endpoint, Ports};
use crate::flag::Flag;
use crate::node::Ipc;
use crate::options::Options;
use crate::reader::{Lent, Reader};
use crate::writer::Writer;
use crate::{node, qos, service};

/// Largest payload of a message in bytes.
pub const MAX_PAYLOAD_BYTES: u64 = 64 << 20;

/// One session with one node. The members are dropped in the order of their declaration: end points before their node.
pub struct Session {
    /// The end points by number.
    pub endpoints: Endpoints<Endpoint>,
    /// The node of iceoryx2, which exists as long as the session has end points: a process that ends without closing its session
    /// leaves nothing behind.
    pub node: Mutex<Option<Node<Ipc>>>,
    /// The settings of iceoryx2 in this session.
    pub config: Config,
    /// Number of nodes of dead processes whose files were removed when the session was opened.
    pub stale_removed: usize,
    /// The options with which the session was opened.
    pub options: Options,
    /// Whether `wake` was called and no wait has reported it yet.
    pub woken: Flag,
    /// Whether an end point is being destroyed now.
    pub closing: Flag,
    /// The loading program, whose callbacks the session calls.
    pub host: Host,
}

impl Session {
    /// Returns an end point that was created; the end point may be destroyed.
    #[inline]
    pub fn endpoint(&self, id: u32) -> Outcome<&Endpoint> {
        self.endpoints.get(id)
    }

    /// The end points of the session that are not destroyed.
    pub fn alive(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.all().filter(|e| !e.closed.load(SeqCst))
    }

    /// Creates an end point with its ports.
    pub fn make(&self, node: &Node<Ipc>, id: u32, wanted: &Wanted) -> Outcome<Endpoint> {
        let writer = wanted.kind == TB_WRITER;
        if !writer && wanted.mode == TB_LISTENER {
            let why = "iceoryx2 has no thread that could call back: use receive mode block or spin";
            return fail(TB_EUNSUPPORTED, why);
        }
        let qos = qos::parse(wanted.qos, &self.options, wanted.max_len)?;
        let messages = service::messages(node, wanted.topic, &qos, wanted.max_len, &self.options)?;
        let wakeups = service::wakeups(node, wanted.topic, &self.options)?;
        let ports = match writer {
            true => Ports::Writer(Writer::new(messages, wakeups, qos, wanted.max_len)?),
            false => Ports::Reader(Reader::new(messages, wakeups, qos, wanted.mode == TB_BLOCK)?),
        };
        Ok(Endpoint {
            id,
            writer,
            tag: wanted.tag,
            topic: wanted.topic.to_owned(),
            max_len: wanted.max_len,
            closed: AtomicBool::new(false),
            ports: RwLock::new(Some(ports)),
            lent: Lent::new(if writer { 0 } else { service::lent(wanted.max_len) }),
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.endpoints.all().for_each(Endpoint::remove);
        *self.node.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        node::remove_counter(&self.config);
    }
}
