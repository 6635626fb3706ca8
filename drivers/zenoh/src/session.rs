//! The state of a session: a session of zenoh, and its end points.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, RwLock};

use tailbound_abi::side::{Endpoints, Fail, Host, Outcome, Wanted};
use tailbound_abi::{TB_BLOCK, TB_EIO, TB_LISTENER, TB_WRITER};
use zenoh::Wait;

use crate::alive::{Gate, Peers, announce};
use crate::endpoint::{Endpoint, Entity, Made};
use crate::event::Events;
use crate::network::Role;
use crate::options::Options;
use crate::qos;
use crate::reader::{Lent, Reader, To};
use crate::writer::Writer;

/// Number of messages that a reader can lend without an allocation.
const PLACES: u32 = 64;

/// One session of zenoh with its end points.
pub struct Session {
    /// The end points by number.
    pub endpoints: Endpoints<Endpoint>,
    /// The session of zenoh.
    pub zenoh: zenoh::Session,
    /// How the session takes part in the network.
    pub role: Role,
    /// Events for which threads wait.
    pub events: Arc<Events>,
    /// Whether `wake` was called and no wait has reported it yet.
    pub woken: AtomicBool,
    /// The options with which the session was opened.
    pub options: Options,
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

    /// Creates an end point with its entity, and announces it.
    pub fn make(&self, id: u32, wanted: &Wanted) -> Outcome<Endpoint> {
        let writer = wanted.kind == TB_WRITER;
        let qos = qos::parse(wanted.qos, &self.options)?;
        let topic = wanted.topic.trim_start_matches('/');
        let key = |part: &str| format!("tailbound/{}/{part}/{topic}", self.options.domain);
        if let Err(e) = zenoh::key_expr::keyexpr::new(&key("data")) {
            return Err(Fail::invalid(format!("topic {}: the name is not valid in zenoh: {e}", wanted.topic)));
        }
        let (gate, peers) = (Gate::new(), Arc::new(Peers::default()));
        let entity = match writer {
            true => Entity::Writer(Writer::new(&self.zenoh, &key("data"), qos, self.options.express)?),
            false => {
                let to = match wanted.mode {
                    TB_LISTENER => To::Listener(self.host, wanted.tag),
                    _ => To::Queue(self.events.clone()),
                };
                Entity::Reader(Reader::new(&self.zenoh, &key("data"), qos, to, &gate)?)
            }
        };
        // The token comes last: who sees it reaches the subscriber.
        let kinds = if writer { ("writer", "reader") } else { ("reader", "writer") };
        let (prefix, name) = (key("alive"), format!("{}-{id}", self.zenoh.zid()));
        let presence =
            announce(&self.zenoh, (&prefix, kinds.0, kinds.1), &name, &peers, (&gate, self.host, wanted.tag))?;
        Ok(Endpoint {
            id,
            writer,
            blocks: !writer && wanted.mode == TB_BLOCK,
            topic: topic.to_owned(),
            max_len: wanted.max_len,
            closed: AtomicBool::new(false),
            peers,
            gate,
            made: RwLock::new(Some(Made { _presence: presence, entity })),
            lent: Lent::new(if writer { 0 } else { PLACES }),
        })
    }

    /// Fails if shared memory was asked for, and a peer does not share memory with this session.
    pub fn verify_memory(&self) -> Outcome {
        if !self.options.shared_memory {
            return Ok(());
        }
        match self.zenoh.info().transports().wait().find(|t| !t.is_shm()) {
            None => Ok(()),
            Some(transport) => {
                let text = format!(
                    "shared_memory=on: the session {} does not share memory with this one: all ends need the option, and processes \
                     of one host with one /dev/shm",
                    transport.zid()
                );
                Err(Fail::new(TB_EIO, text))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.endpoints.all().for_each(Endpoint::remove);
        // Nothing can be done about a session that does not close.
        let _ = self.zenoh.close().wait();
    }
}
