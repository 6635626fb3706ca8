//! A session: one participant, its end points, its waits.

use core::mem::MaybeUninit;
use std::ffi::{CStr, CString};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, OnceLock};

use tailbound_abi::side::{self, Fail, Host, MAX_READERS, Outcome, Pair, Waited, Wanted, fail};
use tailbound_abi::{TB_EINVAL, TB_ENOMEM, TB_WRITER, tb_view};

use crate::config::{Naming, Options};
use crate::domain::{self, Domain};
use crate::endpoint::{Endpoint, Home, Waiting};
use crate::error::check;
use crate::qos::Policies;
use crate::wait::Sets;
use crate::{describe, ffi, log, query, receive, send, wait};

const CHUNK: usize = 64;
const CHUNKS: usize = 256;

type Chunk = [OnceLock<Box<Endpoint>>; CHUNK];

/// One participant.
pub struct Session {
    /// The Cyclone domain that it is in.
    pub domain: Domain,
    /// Number of the domain on the network.
    pub network_domain: u32,
    /// Its participants; the first holds what belongs to the session.
    pub participants: Vec<ffi::dds_entity_t>,
    /// How topics and type are called.
    pub naming: Naming,
    host: Host,
    /// Its number among those that hear Cyclone's messages.
    log: u64,
    /// Guard conditions: woken, an end point is closing.
    guards: [ffi::dds_entity_t; 2],
    sets: Sets,
    /// End points by number, never reused; looked up without a lock.
    endpoints: Box<[OnceLock<Box<Chunk>>; CHUNKS]>,
    created: Mutex<u32>,
}

impl Session {
    /// The end point `id`, closed or not.
    #[inline]
    pub fn endpoint(&self, id: u32) -> Outcome<&Endpoint> {
        let index = (id as usize).wrapping_sub(1);
        self.endpoints
            .get(index / CHUNK)
            .and_then(OnceLock::get)
            .and_then(|chunk| chunk[index % CHUNK].get())
            .map(|e| &**e)
            .ok_or_else(|| Fail::closed(id))
    }

    /// Who owns a waitset: the participant, or what holds them all, for a waitset takes what is below its owner only.
    #[inline]
    fn owner(&self) -> ffi::dds_entity_t {
        if let [one] = self.participants[..] { one } else { self.domain.entity }
    }

    /// All end points that are not closed.
    pub fn alive(&self) -> Vec<&Endpoint> {
        let created = *self.created.lock().unwrap_or_else(|e| e.into_inner());
        (1..=created).filter_map(|id| self.endpoint(id).ok()).filter(|e| !e.closed.load(SeqCst)).collect()
    }
}

impl side::Session for Session {
    /// A bound on memory, far below what the protocol allows.
    const MAX_PAYLOAD_BYTES: u64 = 100 << 20;

    fn describe() -> &'static CStr {
        describe::describe()
    }

    fn open(pairs: &[Pair], host: Host) -> Outcome<Self> {
        log::install();
        let mut options = Options::parse(pairs)?;
        options.resolve_peers()?;
        if !options.ignored.is_empty() {
            let text = format!("config is used as it is; without effect: {}", options.ignored.join(", "));
            // SAFETY: the session is being opened.
            unsafe { host.log(1, &CString::new(text).unwrap_or_default()) };
        }
        let domain = domain::acquire(&options)?;
        let mut session = Session {
            log: log::listen(domain.id, host),
            domain,
            network_domain: options.domain,
            participants: Vec::new(),
            naming: options.naming,
            host,
            guards: [0; 2],
            sets: Sets::default(),
            endpoints: Box::new([const { OnceLock::new() }; CHUNKS]),
            created: Mutex::new(0),
        };
        // Dropping the session undoes what follows.
        // SAFETY: plain calls of Cyclone; the domain exists, so that no configuration is read from the environment.
        unsafe {
            for _ in 0..options.participants {
                let made = ffi::dds_create_participant(session.domain.id, core::ptr::null(), core::ptr::null());
                session.participants.push(check("dds_create_participant", made)?);
            }
            for i in 0..session.guards.len() {
                session.guards[i] =
                    check("dds_create_guardcondition", ffi::dds_create_guardcondition(session.participants[0]))?;
            }
        }
        Ok(session)
    }

    fn host(&self) -> &Host {
        &self.host
    }

    fn create(&self, wanted: &Wanted) -> Outcome<u32> {
        let (place, policies): (Vec<Pair>, Vec<Pair>) = wanted.qos.iter().partition(|p| p.key == "participant");
        let last = self.participants.len() - 1;
        let place = place.first().map_or(Ok(0), |p| p.number(TB_EINVAL, 0..=last))?;
        let policies = Policies::parse(&policies, wanted.kind == TB_WRITER)?;
        let mut created = self.created.lock().unwrap_or_else(|e| e.into_inner());
        let index = *created as usize;
        let Some(chunk) = self.endpoints.get(index / CHUNK) else {
            return fail(TB_ENOMEM, format!("a session creates at most {} end points", CHUNK * CHUNKS));
        };
        let id = *created + 1;
        let endpoint = Endpoint::new(id, self.host, self.naming, wanted, &policies);
        endpoint.make(
            Home { participant: self.participants[place], owner: self.owner() },
            self.naming,
            &policies,
            self.guards,
        )?;
        let _ = chunk.get_or_init(|| Box::new([const { OnceLock::new() }; CHUNK]))[index % CHUNK].set(endpoint);
        *created = id;
        Ok(id)
    }

    fn wait_matched(&self, id: u32, peers: u32, deadline_ns: i64) -> Outcome {
        let endpoint = self.endpoint(id)?;
        let _waiting = Waiting::on(core::slice::from_ref(&endpoint));
        endpoint.wait_matched(peers, deadline_ns)
    }

    #[inline]
    fn send(&self, id: u32, seq: u64, payload: &[u8], batch: bool) -> Outcome {
        send::send(self.endpoint(id)?, self.domain.shared, seq, payload, batch)
    }

    #[inline]
    fn wait(&self, ids: &[u32], deadline_ns: i64) -> Outcome<Waited> {
        if let [id] = ids {
            return wait::wait(&self.sets, self.owner(), self.guards, &[self.endpoint(*id)?], deadline_ns);
        }
        let mut readers = [self.endpoint(ids[0])?; MAX_READERS];
        for (slot, id) in readers.iter_mut().zip(ids) {
            *slot = self.endpoint(*id)?;
        }
        wait::wait(&self.sets, self.owner(), self.guards, &readers[..ids.len()], deadline_ns)
    }

    #[inline]
    fn take(&self, id: u32, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        receive::take(self.endpoint(id)?, out)
    }

    /// Works on a destroyed end point too, until the session is closed.
    #[inline]
    fn release(&self, id: u32, views: &mut [tb_view]) -> Outcome {
        self.endpoint(id)?;
        receive::release(views);
        Ok(())
    }

    /// Ends a blocked `wait` of this session, or the next one.
    fn wake(&self) -> Outcome {
        // SAFETY: a handle of this session.
        check("dds_set_guardcondition", unsafe { ffi::dds_set_guardcondition(self.guards[0], true) }).map(drop)
    }

    fn flush(&self, id: u32, _deadline_ns: i64) -> Outcome {
        send::flush(self.endpoint(id)?.open()?)
    }

    fn wait_acked(&self, id: u32, deadline_ns: i64) -> Outcome {
        wait::wait_acked(self.endpoint(id)?, deadline_ns)
    }

    fn query(&self, id: u32, what: &str) -> Outcome<Vec<u8>> {
        query::answer(self, id, what).map(|answer| answer.to_string().into_bytes())
    }

    /// Ends all waits on an end point, then deletes it.
    fn destroy(&self, id: u32) -> Outcome {
        let endpoint = self.endpoint(id)?;
        if endpoint.closed.load(SeqCst) {
            return Err(Fail::closed(id));
        }
        wait::end_waits(endpoint, self.guards);
        self.sets.without(id);
        endpoint.delete();
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for endpoint in self.alive() {
            wait::end_waits(endpoint, self.guards);
            endpoint.delete();
        }
        self.sets.clear();
        // SAFETY: deletes all that is left in the participants; after it no listener runs any more.
        unsafe {
            for participant in self.participants.drain(..) {
                ffi::dds_delete(participant);
            }
        }
        // The end points hold serialisers of the domain.
        for chunk in self.endpoints.iter_mut() {
            chunk.take();
        }
        log::forget(self.log);
        domain::release(&self.domain);
    }
}
