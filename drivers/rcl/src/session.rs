//! The state of a session: contexts with one node each, and their end points.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, RwLock};

use tailbound_abi::side::{Endpoints, Host, Outcome, Pair, Wanted, fail};
use tailbound_abi::{TB_BLOCK, TB_EQOS, TB_EUNSUPPORTED, TB_LISTENER, TB_WRITER};

use crate::context::{Context, c_string};
use crate::endpoint::{Endpoint, Made, Subscribed, Writer};
use crate::entity::Entity;
use crate::library::Ros;
use crate::listen::Listening;
use crate::log::Registration;
use crate::options::Options;
use crate::probe::{self, Callback};
use crate::qos;
use crate::reader::Reader;
use crate::set::Sets;

/// One session with one or two contexts. The members are dropped in the order of their declaration: end points and wait sets before
/// their contexts.
pub struct Session {
    /// The end points by number.
    pub endpoints: Endpoints<Endpoint>,
    /// Wait sets of the readers.
    pub sets: Sets,
    /// Whether `wake` was called and no wait has reported it.
    pub woken: AtomicBool,
    /// The contexts of rcl, each with one node.
    pub contexts: Vec<Context>,
    /// What the test with the middleware found, once a reader was created.
    pub callback: OnceLock<Callback>,
    /// Whether listeners take messages inside the callback: the middleware permits it, and no publisher of the session may wait.
    pub direct: Arc<AtomicBool>,
    /// The registration for log messages, until the session ends.
    pub log: Option<Registration>,
    /// The options with which the session was opened.
    pub options: Options,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    pub ros: &'static Ros,
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

    /// Creates an end point with its publisher or subscription.
    pub fn make(&self, id: u32, wanted: &Wanted) -> Outcome<Endpoint> {
        let topic = c_string(&format!("/{}", wanted.topic.trim_start_matches('/')))?;
        // If there are several contexts, the policy `participant` of the end point chooses its context.
        let (place, policies): (Vec<Pair>, Vec<Pair>) = wanted.qos.iter().partition(|p| p.key == "participant");
        let last = self.contexts.len() - 1;
        let place = place.first().map_or(Ok(0), |pair| pair.number(TB_EQOS, 0..=last))?;
        let (ros, context) = (self.ros, &self.contexts[place]);
        let is_writer = wanted.kind == TB_WRITER;
        let mut options = qos::default_options(ros, is_writer)?;
        qos::parse(&policies, is_writer)?.into_profile(&mut options.profile);
        let entity = Entity::new(ros, context, &topic, &options, is_writer)?;
        if is_writer && qos::may_wait(&options.profile) {
            self.direct.store(false, SeqCst);
        }
        let made = match is_writer {
            true => Made::Writer(Writer::new(entity, wanted.max_len)?),
            false => Made::Reader(self.subscribe((context, id), wanted, entity)?),
        };
        Ok(Endpoint {
            id,
            kind: wanted.kind,
            mode: wanted.mode,
            tag: wanted.tag,
            max_len: wanted.max_len,
            topic,
            closed: AtomicBool::new(false),
            waiting: AtomicU32::new(0),
            made: RwLock::new(Some(made)),
        })
    }

    /// Gives a new subscription what its receive mode needs.
    fn subscribe(&self, (context, id): (&Context, u32), wanted: &Wanted, entity: Entity) -> Outcome<Subscribed> {
        let callback = probe::callback(self.ros, context)?;
        if self.callback.set(callback).is_ok() && callback != Callback::Direct {
            self.direct.store(false, SeqCst);
        }
        let reader = Arc::new(Reader::new(entity, wanted.max_len)?);
        let mut made = Subscribed { listening: None, set: None, reader };
        match (wanted.mode, callback) {
            (TB_BLOCK, _) => made.set = Some(self.sets.of((self.ros, context), &[id])?),
            (TB_LISTENER, Callback::Missing) => {
                return fail(TB_EUNSUPPORTED, format!("receive mode listener is {}", callback.words()));
            }
            (TB_LISTENER, _) => {
                let to = (self.host, wanted.tag);
                made.listening = Some(Listening::start(made.reader.clone(), to, self.direct.clone())?);
            }
            _ => {}
        }
        Ok(made)
    }

    /// Whether an end point receives by callback.
    pub fn has_listener(&self) -> bool {
        self.alive().any(|e| !e.is_writer() && e.mode == TB_LISTENER)
    }

    /// How messages reach the listeners of the session; `None` before a reader was created.
    pub fn listener_words(&self) -> Option<&'static str> {
        match self.callback.get()? {
            Callback::Direct if !self.direct.load(SeqCst) => Some(
                "handed over to a thread of the driver, because a reliable publisher of the session may wait for \
                 acknowledgements, which the thread of the callback may have to receive",
            ),
            found => Some(found.words()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.log = None;
        self.sets.clear();
        // Also those that were closed and could not be removed.
        self.endpoints.all().for_each(Endpoint::remove);
    }
}
