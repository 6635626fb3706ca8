//! One data writer or reader of Cyclone: its entities, its matched peers and its end.

use core::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, OnceLock};

use tailbound_abi as abi;
use tailbound_abi::side::{Fail, Host, Outcome, Wanted, fail};

use crate::deadline::left;
use crate::ffi;
use crate::naming::Naming;
use crate::qos::Policies;

/// The Cyclone entities (DDS objects) that belong to one end point.
pub struct Entities {
    /// Cyclone's handle of the topic; each end point has its own topic entity.
    pub topic: ffi::dds_entity_t,
    /// Cyclone's handle of the writer or reader.
    pub entity: ffi::dds_entity_t,
    /// Handle of the level-triggered condition "has samples" for a blocking reader; otherwise 0.
    pub condition: ffi::dds_entity_t,
    /// Handle of a waitset for this reader alone and for `wake`, if the reader blocks; otherwise 0.
    pub waitset: ffi::dds_entity_t,
    /// The serialiser of the writer or reader; the end point holds one reference to the serialiser until the session
    /// ends.
    pub sertype: *const ffi::ddsi_sertype,
}

// SAFETY: a sertype is immutable and has an atomic reference count; the other members are numbers.
unsafe impl Send for Entities {}
// SAFETY: all members may be used from any thread, see `Send`.
unsafe impl Sync for Entities {}

/// One end point of a session. The end point stays in memory after it is closed, until its session ends, because
/// Cyclone's listeners know its address.
pub struct Endpoint {
    /// Number of the end point within the session, from 1.
    pub id: u32,
    /// Kind of the end point: `TB_WRITER` or `TB_READER`.
    pub kind: c_int,
    /// Receive mode of the end point, if it is a reader.
    pub mode: c_int,
    /// Largest payload that the end point sends or receives, in bytes.
    pub max_len: u64,
    /// Tag that the loading program gave the end point.
    pub tag: u64,
    /// The loading program, whose callbacks the end point calls.
    pub host: Host,
    /// Name of the end point's topic in DDS.
    pub topic: String,
    /// Whether the writer holds messages back until `flush` is called.
    pub batch: bool,
    /// Whether `send` must return immediately if the writer's history is full.
    pub never_blocks: bool,
    /// Whether the loading program has called `destroy` for the end point.
    pub closed: AtomicBool,
    /// Number of calls that wait on this end point now.
    pub waiting: AtomicU32,
    /// Cyclone's entities of the end point, once they are created.
    pub made: OnceLock<Entities>,
    matched: Mutex<i32>,
    matched_changed: Condvar,
}

impl Endpoint {
    /// Makes an end point whose Cyclone entities are not created yet.
    pub fn new(id: u32, host: Host, naming: Naming, wanted: &Wanted, policies: &Policies) -> Box<Self> {
        Box::new(Endpoint {
            id,
            kind: wanted.kind,
            mode: wanted.mode,
            max_len: wanted.max_len,
            tag: wanted.tag,
            host,
            topic: naming.topic(wanted.topic),
            batch: policies.batch,
            never_blocks: policies.never_blocks,
            closed: AtomicBool::new(false),
            waiting: AtomicU32::new(0),
            made: OnceLock::new(),
            matched: Mutex::new(0),
            matched_changed: Condvar::new(),
        })
    }

    /// Returns the Cyclone entities (DDS objects) of an end point that is not closed.
    #[inline]
    pub fn open(&self) -> Outcome<&Entities> {
        match self.made.get() {
            Some(made) if !self.closed.load(SeqCst) => Ok(made),
            _ => Err(Fail::closed(self.id)),
        }
    }

    /// Deletes the Cyclone entities of the end point; calls that waited on the entities have ended.
    pub fn delete(&self) {
        if let Some(made) = self.made.get() {
            for entity in [made.waitset, made.condition, made.entity, made.topic] {
                if entity > 0 {
                    // SAFETY: Cyclone refuses an invalid handle.
                    unsafe { ffi::dds_delete(entity) };
                }
            }
        }
    }

    /// Stores the new number of matched peers, `now`, and reports it to the loading program. The listener calls this
    /// function.
    pub fn set_matched(&self, now: i32) {
        *self.matched.lock().unwrap_or_else(|e| e.into_inner()) = now;
        self.matched_changed.notify_all();
        // SAFETY: the session ends its listeners before it is closed.
        unsafe { self.host.on_match(self.tag, now) };
    }

    /// Number of peers with which the end point is matched.
    pub fn matched(&self) -> i32 {
        *self.matched.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Waits until the end point has at least `peers` matched peers.
    pub fn wait_matched(&self, peers: u32, deadline_ns: i64) -> Outcome {
        let mut matched = self.matched.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            self.open()?;
            if i64::from(*matched) >= i64::from(peers) {
                return Ok(());
            }
            let Some(left) = left(deadline_ns) else {
                return fail(abi::TB_ETIMEDOUT, format!("{} of {peers} peers matched on {}", *matched, self.topic));
            };
            matched = self.matched_changed.wait_timeout(matched, left).unwrap_or_else(|e| e.into_inner()).0;
        }
    }

    /// Makes every wait for peers of this end point check again whether the end point is closed.
    pub fn nudge(&self) {
        let _held = self.matched.lock().unwrap_or_else(|e| e.into_inner());
        self.matched_changed.notify_all();
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some(made) = self.made.get() {
            // SAFETY: `create::equip` took this reference; the session drops end points before it leaves the domain.
            unsafe { ffi::ddsi_sertype_unref(made.sertype.cast_mut()) };
        }
    }
}

/// Guard: while this value exists, each of the end points counts one more call that waits on it.
pub struct Waiting<'a>(&'a [&'a Endpoint]);

impl<'a> Waiting<'a> {
    /// Adds one waiting call to the counter of each of these end points.
    pub fn on(endpoints: &'a [&'a Endpoint]) -> Self {
        for endpoint in endpoints {
            endpoint.waiting.fetch_add(1, SeqCst);
        }
        Waiting(endpoints)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        for endpoint in self.0 {
            endpoint.waiting.fetch_sub(1, SeqCst);
        }
    }
}
