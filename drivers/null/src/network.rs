//! The network inside the process: domains, topics and who is on them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use tailbound_abi::TB_EINVAL;
use tailbound_abi::side::{Outcome, fail};

use crate::endpoint::Endpoint;
use crate::script::{Direction, Script};
use crate::world::World;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Readers of a topic as writers see them: never changed once published.
type Readers = Vec<Arc<Endpoint>>;

/// One topic of one domain.
pub struct Topic {
    pub name: String,
    pub direction: Direction,
    /// Published for writers, which read it without a lock.
    readers: AtomicPtr<Readers>,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    list: Vec<Arc<Endpoint>>,
    /// Lists that a writer might still be reading.
    retired: Vec<*mut Readers>,
}

// SAFETY: the retired lists are owned by the topic and touched under its lock only.
unsafe impl Send for Members {}

impl Topic {
    fn new(name: &str) -> Topic {
        Topic {
            name: name.to_owned(),
            direction: Direction::of_topic(name),
            readers: AtomicPtr::new(Box::into_raw(Box::default())),
            members: Mutex::default(),
        }
    }

    /// The readers. The caller is inside an open writer of this topic for as long as it uses them.
    #[inline]
    pub fn readers(&self) -> &Readers {
        // SAFETY: the pointer is never null, and `free_retired` frees a list only when no writer is inside a call.
        unsafe { &*self.readers.load(Ordering::Acquire) }
    }

    fn join(&self, endpoint: &Arc<Endpoint>) {
        let mut members = lock(&self.members);
        members.list.push(endpoint.clone());
        self.publish(&mut members);
    }

    /// Takes an end point out that is closed already; `true` when nobody is left.
    fn leave(&self, endpoint: &Arc<Endpoint>) -> bool {
        let mut members = lock(&self.members);
        members.list.retain(|e| !Arc::ptr_eq(e, endpoint));
        self.publish(&mut members);
        members.list.is_empty()
    }

    fn publish(&self, members: &mut Members) {
        let readers: Readers = members.list.iter().filter(|e| !e.is_writer()).cloned().collect();
        let old = self.readers.swap(Box::into_raw(Box::new(readers)), Ordering::SeqCst);
        members.retired.push(old);
        // A writer seen outside a call after the swap cannot hold an old list any more. A writer that is busy for long
        // (a chain of callbacks) leaves the lists to the next change.
        let quiet = |w: &Arc<Endpoint>| (0..1000).any(|_| !w.is_used());
        if members.list.iter().filter(|e| e.is_writer()).all(quiet) {
            for list in members.retired.drain(..) {
                // SAFETY: made by `Box::into_raw`, replaced above, and no writer reads it (see the comment).
                drop(unsafe { Box::from_raw(list) });
            }
        }
    }

    /// Matched peers of an end point of this topic.
    pub fn peers(&self, endpoint: &Endpoint) -> usize {
        lock(&self.members).list.iter().filter(|e| e.kind != endpoint.kind).count()
    }

    fn report(&self) {
        let list = lock(&self.members).list.clone();
        for endpoint in &list {
            let peers = list.iter().filter(|e| e.kind != endpoint.kind).count();
            endpoint.report_match(i32::try_from(peers).unwrap_or(i32::MAX));
        }
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        let members = self.members.get_mut().unwrap_or_else(|e| e.into_inner());
        members.retired.push(*self.readers.get_mut());
        for list in members.retired.drain(..) {
            // SAFETY: the topic goes with its last end point, so no writer is left to read the lists.
            drop(unsafe { Box::from_raw(list) });
        }
    }
}

/// All sessions of one number.
pub struct Domain {
    pub number: u32,
    /// Virtual time, with `clock=scripted`.
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
    /// Kept for ever, because a clock stays valid until the process ends.
    worlds: HashMap<u32, &'static World>,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);
static IDENTITIES: AtomicU64 = AtomicU64::new(1);

/// A number for a new end point that no other in the process has.
pub fn next_identity() -> u64 {
    IDENTITIES.fetch_add(1, Ordering::Relaxed)
}

impl Domain {
    /// Joins a domain; the first session makes it and fixes clock and script.
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

    /// Leaves the domain; with the last session it is gone.
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

    /// Makes an end point on the topic of that name.
    pub fn connect(&self, name: &str, make: impl FnOnce(Arc<Topic>) -> Endpoint) -> Arc<Endpoint> {
        let endpoint = {
            // Under the lock, so that the topic does not go with its last end point in between.
            let mut topics = lock(&self.topics);
            let topic = topics.entry(name.to_owned()).or_insert_with(|| Arc::new(Topic::new(name))).clone();
            let endpoint = Arc::new(make(topic));
            endpoint.topic.join(&endpoint);
            endpoint
        };
        self.changed(&endpoint.topic);
        endpoint
    }

    /// Takes a closed end point off its topic.
    pub fn disconnect(&self, endpoint: &Arc<Endpoint>) {
        {
            let mut topics = lock(&self.topics);
            let topic = &endpoint.topic;
            if topic.leave(endpoint) && topics.get(&topic.name).is_some_and(|t| Arc::ptr_eq(t, topic)) {
                topics.remove(&topic.name);
            }
        }
        self.changed(&endpoint.topic);
    }

    fn changed(&self, topic: &Topic) {
        *lock(&self.changes) += 1;
        self.matched.notify_all();
        topic.report();
    }

    /// Waits until `endpoint` has `peers` peers, at most for as long as `remaining` says.
    pub fn wait_matched(&self, endpoint: &Endpoint, peers: usize, remaining: impl Fn() -> Option<Duration>) -> bool {
        let mut guard = lock(&self.changes);
        loop {
            if endpoint.topic.peers(endpoint) >= peers {
                return true;
            }
            if endpoint.is_closed() {
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
