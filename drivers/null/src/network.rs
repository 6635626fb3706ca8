//! The network inside the process of the `null` driver: domains and their topics.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tailbound_abi::TB_EINVAL;
use tailbound_abi::side::{Outcome, fail};

use crate::endpoint::Endpoint;
use crate::lock::lock;
use crate::script::Script;
use crate::topic::{Connected, Topic};
use crate::world::World;

/// All sessions of the `null` driver in this process that have the same domain number.
pub struct Domain {
    pub number: u32,
    /// The clock and events of the domain in virtual time, if `clock=scripted`.
    pub world: Option<&'static World>,
    topics: Mutex<HashMap<String, Arc<Topic>>>,
    matched: Condvar,
    changes: Mutex<u64>,
}

struct Entry {
    domain: Arc<Domain>,
    sessions: usize,
}

#[derive(Default)]
struct Registry {
    domains: HashMap<u32, Entry>,
    /// The clocks of all domains with `clock=scripted`. They are never freed, because a clock stays valid until the
    /// process ends.
    worlds: HashMap<u32, &'static World>,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);
static IDENTITIES: AtomicU64 = AtomicU64::new(1);

/// Returns a number for a new end point, unique in the process.
pub fn next_identity() -> u64 {
    IDENTITIES.fetch_add(1, Ordering::Relaxed)
}

impl Domain {
    /// Joins a domain; the first session of a domain creates the domain and sets its clock and script.
    pub fn join(number: u32, scripted: bool, script: Option<Script>) -> Outcome<Arc<Domain>> {
        let mut registry = lock(&REGISTRY);
        let registry = registry.get_or_insert_with(Registry::default);
        if let Some(entry) = registry.domains.get_mut(&number) {
            match (entry.domain.world, scripted) {
                (Some(world), true) => {
                    if script.is_some_and(|s| s != *world.script()) {
                        return fail(TB_EINVAL, format!("script: domain {number} is running another script already"));
                    }
                }
                (None, false) => {}
                (found, _) => {
                    let found = if found.is_some() { "scripted" } else { "real" };
                    return fail(TB_EINVAL, format!("clock: domain {number} is running with clock={found} already"));
                }
            }
            entry.sessions += 1;
            return Ok(entry.domain.clone());
        }
        let world = scripted.then(|| {
            let world = *registry.worlds.entry(number).or_insert_with(|| Box::leak(Box::default()));
            world.reset(script.unwrap_or_default());
            world
        });
        let domain = Arc::new(Domain {
            number,
            world,
            topics: Mutex::default(),
            matched: Condvar::new(),
            changes: Mutex::new(0),
        });
        registry.domains.insert(number, Entry { domain: domain.clone(), sessions: 1 });
        Ok(domain)
    }

    /// Removes one session from the domain; the domain is removed with its last session.
    pub fn leave(&self) {
        let mut registry = lock(&REGISTRY);
        let Some(registry) = registry.as_mut() else { return };
        if let Some(entry) = registry.domains.get_mut(&self.number) {
            entry.sessions -= 1;
            if entry.sessions == 0 {
                registry.domains.remove(&self.number);
                if let Some(world) = self.world {
                    world.clear();
                }
            }
        }
    }

    /// Adds an end point to the topic with this name.
    pub fn connect(&self, name: &str, endpoint: Endpoint) -> Connected {
        let endpoint = Arc::new(endpoint);
        let topic = {
            // The lock is held so that the topic is not removed with its last end point in the meantime.
            let mut topics = lock(&self.topics);
            let topic = topics.entry(name.to_owned()).or_insert_with(|| Arc::new(Topic::new(name))).clone();
            topic.join(&endpoint);
            topic
        };
        self.changed(&topic);
        Connected { endpoint, topic }
    }

    /// Removes an end point that was closed from its topic.
    pub fn disconnect(&self, Connected { endpoint, topic }: &Connected) {
        {
            let mut topics = lock(&self.topics);
            if topic.leave(endpoint) && topics.get(&topic.name).is_some_and(|t| Arc::ptr_eq(t, topic)) {
                topics.remove(&topic.name);
            }
        }
        self.changed(topic);
    }

    fn changed(&self, topic: &Topic) {
        *lock(&self.changes) += 1;
        self.matched.notify_all();
        topic.report();
    }

    /// Waits until an end point has at least `peers` peers, at most for the time that `remaining` returns.
    pub fn wait_matched(&self, of: &Connected, peers: usize, remaining: impl Fn() -> Option<Duration>) -> bool {
        let mut guard = lock(&self.changes);
        loop {
            if of.topic.peers(&of.endpoint) >= peers {
                return true;
            }
            if of.endpoint.is_closed() {
                return false;
            }
            guard = match remaining() {
                Some(Duration::ZERO) => return false,
                Some(left) => self.matched.wait_timeout(guard, left).unwrap_or_else(|e| e.into_inner()).0,
                None => self.matched.wait(guard).unwrap_or_else(|e| e.into_inner()),
            };
        }
    }
}
