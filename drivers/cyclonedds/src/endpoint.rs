//! One data writer or reader: its entities, its matched peers, its end.

use core::ffi::{c_int, c_void};
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, OnceLock};

use tailbound_abi as abi;
use tailbound_abi::side::{Fail, Host, Outcome, Wanted, fail};

use crate::config::Naming;
use crate::error::check;
use crate::qos::Policies;
use crate::{ffi, listener, sample};

/// The Cyclone entities of an end point.
pub struct Entities {
    /// The topic: one entity for each end point.
    pub topic: ffi::dds_entity_t,
    /// The writer or reader.
    pub entity: ffi::dds_entity_t,
    /// Level-triggered "has samples", for blocking readers; else 0.
    pub condition: ffi::dds_entity_t,
    /// Waits for this reader alone, or for `wake`; else 0.
    pub waitset: ffi::dds_entity_t,
    /// The serialiser of the writer or reader; one reference is held until the session ends.
    pub sertype: *const ffi::ddsi_sertype,
}

// SAFETY: a sertype is immutable and reference-counted with atomics; the rest are numbers.
unsafe impl Send for Entities {}
// SAFETY: as above.
unsafe impl Sync for Entities {}

/// One end point. It stays in memory, closed, until its session ends: its address is known to Cyclone's listeners.
pub struct Endpoint {
    /// Number within the session, from 1.
    pub id: u32,
    /// `TB_WRITER` or `TB_READER`.
    pub kind: c_int,
    /// Receive mode.
    pub mode: c_int,
    /// Largest payload.
    pub max_len: u64,
    /// The host's tag.
    pub tag: u64,
    /// The host.
    pub host: Host,
    /// Topic on the wire.
    pub topic: String,
    /// Whether the writer keeps messages back until `flush`.
    pub batch: bool,
    /// Whether a full writer is to give up at once.
    pub never_blocks: bool,
    /// Set by `destroy`.
    pub closed: AtomicBool,
    /// Calls that wait on this end point now.
    pub waiting: AtomicU32,
    /// Cyclone's entities, once made.
    pub made: OnceLock<Entities>,
    matched: Mutex<i32>,
    matched_changed: Condvar,
}

impl Endpoint {
    /// An end point without entities.
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

    /// Creates topic, then writer or reader, then what blocking needs. On failure nothing is left behind.
    pub fn make(&self, home: Home, naming: Naming, policies: &Policies, guards: [ffi::dds_entity_t; 2]) -> Outcome {
        let name =
            CString::new(self.topic.as_str()).map_err(|_| Fail::invalid("the topic name contains a NUL character"))?;
        let descriptor = sample::descriptor(naming);
        // SAFETY: name and descriptor live through the call, which copies them.
        let topic = check("dds_create_topic", unsafe {
            ffi::dds_create_topic(home.participant, &descriptor, name.as_ptr(), core::ptr::null(), core::ptr::null())
        })?;
        self.make_on(topic, home, policies, guards).inspect_err(|_| {
            // SAFETY: no writer or reader is left on the topic.
            unsafe { ffi::dds_delete(topic) };
        })
    }

    fn make_on(
        &self,
        topic: ffi::dds_entity_t,
        home: Home,
        policies: &Policies,
        guards: [ffi::dds_entity_t; 2],
    ) -> Outcome {
        let writer = self.kind == abi::TB_WRITER;
        let arg: *const Endpoint = self;
        let qos = policies.native(writer);
        // SAFETY: `arg` stays valid until the session has deleted all entities; qos and listener are copied by the calls
        // and freed after them; the sertype is alive while its entity is, and referenced before use.
        unsafe {
            let listener = listener::new(writer, self.mode, arg.cast_mut().cast::<c_void>());
            let entity = if writer {
                check("dds_create_writer", ffi::dds_create_writer(home.participant, topic, qos, listener))
            } else {
                check("dds_create_reader", ffi::dds_create_reader(home.participant, topic, qos, listener))
            };
            ffi::dds_delete_listener(listener);
            ffi::dds_delete_qos(qos);
            let entity = entity?;
            let made = self.equip(topic, entity, home, guards).inspect_err(|_| {
                ffi::dds_delete(entity);
            })?;
            let _ = self.made.set(made);
        }
        Ok(())
    }

    /// # Safety
    /// `entity` is this end point's writer or reader.
    unsafe fn equip(
        &self,
        topic: ffi::dds_entity_t,
        entity: ffi::dds_entity_t,
        home: Home,
        guards: [ffi::dds_entity_t; 2],
    ) -> Outcome<Entities> {
        let (mut condition, mut waitset) = (0, 0);
        let mut sertype: *const ffi::ddsi_sertype = core::ptr::null();
        // SAFETY: handles are checked by Cyclone; the sertype belongs to the living entity.
        unsafe {
            if self.kind == abi::TB_READER && self.mode == abi::TB_BLOCK {
                condition =
                    check("dds_create_readcondition", ffi::dds_create_readcondition(entity, ffi::DDS_ANY_STATE))?;
                waitset = crate::wait::new_set(home.owner, &[condition], guards)?;
            }
            check("dds_get_entity_sertype", ffi::dds_get_entity_sertype(entity, &mut sertype))?;
            let sertype = ffi::ddsi_sertype_ref(sertype);
            Ok(Entities { topic, entity, condition, waitset, sertype })
        }
    }

    /// The entities of an end point that is not closed.
    #[inline]
    pub fn open(&self) -> Outcome<&Entities> {
        match self.made.get() {
            Some(made) if !self.closed.load(SeqCst) => Ok(made),
            _ => Err(Fail::closed(self.id)),
        }
    }

    /// Deletes the entities; calls that wait on them have ended.
    pub fn delete(&self) {
        if let Some(made) = self.made.get() {
            for entity in [made.waitset, made.condition, made.entity, made.topic] {
                if entity > 0 {
                    // SAFETY: a stale handle is refused by Cyclone.
                    unsafe { ffi::dds_delete(entity) };
                }
            }
        }
    }

    /// Called by the listener: the number of matched peers is now `now`.
    pub fn set_matched(&self, now: i32) {
        *self.matched.lock().unwrap_or_else(|e| e.into_inner()) = now;
        self.matched_changed.notify_all();
        // SAFETY: the session ends its listeners before it is closed.
        unsafe { self.host.on_match(self.tag, now) };
    }

    /// Number of matched peers.
    pub fn matched(&self) -> i32 {
        *self.matched.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Waits until at least `peers` are matched.
    pub fn wait_matched(&self, peers: u32, deadline_ns: i64) -> Outcome {
        let mut matched = self.matched.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            self.open()?;
            if i64::from(*matched) >= i64::from(peers) {
                return Ok(());
            }
            let Some(left) = crate::wait::left(deadline_ns) else {
                return fail(abi::TB_ETIMEDOUT, format!("{} of {peers} peers matched on {}", *matched, self.topic));
            };
            matched = self.matched_changed.wait_timeout(matched, left).unwrap_or_else(|e| e.into_inner()).0;
        }
    }

    /// Makes every wait on this end point look at `closed` again.
    pub fn nudge(&self) {
        let _held = self.matched.lock().unwrap_or_else(|e| e.into_inner());
        self.matched_changed.notify_all();
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some(made) = self.made.get() {
            // SAFETY: the reference taken in `equip`; the session drops end points before it leaves the domain.
            unsafe { ffi::ddsi_sertype_unref(made.sertype.cast_mut()) };
        }
    }
}

/// Where an end point is made.
#[derive(Clone, Copy)]
pub struct Home {
    /// Its participant.
    pub participant: ffi::dds_entity_t,
    /// Who owns the session's waitsets: they take what is below their owner only.
    pub owner: ffi::dds_entity_t,
}

/// Counts a call that waits on end points, for the time it waits.
pub struct Waiting<'a>(&'a [&'a Endpoint]);

impl<'a> Waiting<'a> {
    /// Starts counting.
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
