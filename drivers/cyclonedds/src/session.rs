//! A session: one participant, its end points, its waits.

use core::mem::MaybeUninit;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, OnceLock};

use tailbound_abi as abi;

use crate::config::{Naming, Options};
use crate::domain::{self, Domain};
use crate::endpoint::{Endpoint, MAX_PAYLOAD_BYTES, Waiting, Wanted};
use crate::error::{Fail, Outcome, check};
use crate::kv::Pair;
use crate::wait::{self, MAX_READERS, Sets};
use crate::{ffi, log};

const CHUNK: usize = 64;
const CHUNKS: usize = 256;

type Chunk = [OnceLock<Box<Endpoint>>; CHUNK];

/// One participant.
pub struct Session {
    /// The Cyclone domain that it is in.
    pub domain: Domain,
    /// Number of the domain on the network.
    pub network_domain: u32,
    /// Its handle.
    pub participant: ffi::dds_entity_t,
    /// How topics and type are called.
    pub naming: Naming,
    host: *const abi::tb_host,
    /// Guard conditions: woken, an end point is closing.
    guards: [ffi::dds_entity_t; 2],
    sets: Sets,
    /// End points by number, never reused; looked up without a lock.
    endpoints: Box<[OnceLock<Box<Chunk>>; CHUNKS]>,
    created: Mutex<u32>,
}

impl Session {
    /// Opens a participant.
    ///
    /// `host` is null or outlives the session.
    pub fn open(pairs: &[Pair], host: *const abi::tb_host) -> Outcome<Box<Self>> {
        log::install();
        let options = Options::parse(pairs)?;
        if !options.ignored.is_empty() {
            let text = format!("config is used as it is; without effect: {}", options.ignored.join(", "));
            log::tell(host, 1, &std::ffi::CString::new(text).unwrap_or_default());
        }
        let domain = domain::acquire(&options)?;
        log::listen(domain.id, host);
        let mut session = Box::new(Session {
            domain,
            network_domain: options.domain,
            participant: 0,
            naming: options.naming,
            host,
            guards: [0; 2],
            sets: Sets::default(),
            endpoints: Box::new([const { OnceLock::new() }; CHUNKS]),
            created: Mutex::new(0),
        });
        // Dropping the session undoes what follows.
        // SAFETY: plain calls of Cyclone; the domain exists, so that no configuration is read from the environment.
        unsafe {
            session.participant = check(
                "dds_create_participant",
                ffi::dds_create_participant(session.domain.id, core::ptr::null(), core::ptr::null()),
            )?;
            for i in 0..session.guards.len() {
                session.guards[i] =
                    check("dds_create_guardcondition", ffi::dds_create_guardcondition(session.participant))?;
            }
        }
        Ok(session)
    }

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

    /// Creates an end point.
    pub fn create(&self, wanted: &Wanted) -> Outcome<u32> {
        if wanted.kind != abi::TB_WRITER && wanted.kind != abi::TB_READER {
            return Err(Fail::invalid(format!("kind {} is neither writer nor reader", wanted.kind)));
        }
        if wanted.kind == abi::TB_READER && ![abi::TB_LISTENER, abi::TB_BLOCK, abi::TB_SPIN].contains(&wanted.mode) {
            return Err(Fail::new(abi::TB_EUNSUPPORTED, format!("receive mode {} is not known", wanted.mode)));
        }
        // SAFETY: null or alive by the promise of `open`.
        let on_sample = unsafe { self.host.as_ref() }.and_then(|h| h.on_sample);
        if wanted.kind == abi::TB_READER && wanted.mode == abi::TB_LISTENER && on_sample.is_none() {
            return Err(Fail::invalid("the mode listener needs on_sample of the host"));
        }
        if wanted.max_len > MAX_PAYLOAD_BYTES {
            return Err(Fail::new(
                abi::TB_ETOOBIG,
                format!("max_len {} B is more than the driver's {MAX_PAYLOAD_BYTES} B", wanted.max_len),
            ));
        }
        let mut created = self.created.lock().unwrap_or_else(|e| e.into_inner());
        let index = *created as usize;
        let Some(chunk) = self.endpoints.get(index / CHUNK) else {
            return Err(Fail::new(
                abi::TB_ENOMEM,
                format!("a session has at most {} end points in its life", CHUNK * CHUNKS),
            ));
        };
        let id = *created + 1;
        let endpoint = Endpoint::new(id, self.host, self.naming, wanted);
        endpoint.make(self.participant, self.naming, wanted.policies, self.guards)?;
        let _ = chunk.get_or_init(|| Box::new([const { OnceLock::new() }; CHUNK]))[index % CHUNK].set(endpoint);
        *created = id;
        Ok(id)
    }

    /// Ends all waits on an end point, then deletes it.
    pub fn destroy(&self, id: u32) -> Outcome<()> {
        let endpoint = self.endpoint(id)?;
        if endpoint.closed.load(SeqCst) {
            return Err(Fail::closed(id));
        }
        wait::end_waits(endpoint, self.guards);
        self.sets.without(id);
        endpoint.delete();
        Ok(())
    }

    /// Waits over several readers.
    pub fn wait(&self, ids: &[u32], deadline_ns: i64) -> Outcome<u64> {
        if let [id] = ids {
            return wait::wait(&self.sets, self.participant, self.guards, &[self.endpoint(*id)?], deadline_ns);
        }
        if ids.len() > MAX_READERS {
            return Err(Fail::invalid(format!("{} readers in one wait; at most {MAX_READERS}", ids.len())));
        }
        let mut readers: [MaybeUninit<&Endpoint>; MAX_READERS] = [const { MaybeUninit::uninit() }; MAX_READERS];
        for (slot, id) in readers.iter_mut().zip(ids) {
            slot.write(self.endpoint(*id)?);
        }
        // SAFETY: the first ids.len() slots were just written.
        let readers = unsafe { core::slice::from_raw_parts(readers.as_ptr().cast::<&Endpoint>(), ids.len()) };
        wait::wait(&self.sets, self.participant, self.guards, readers, deadline_ns)
    }

    /// Waits for matched peers.
    pub fn wait_matched(&self, id: u32, peers: u32, deadline_ns: i64) -> Outcome<()> {
        let endpoint = self.endpoint(id)?;
        let _waiting = Waiting::on(core::slice::from_ref(&endpoint));
        endpoint.wait_matched(peers, deadline_ns)
    }

    /// Ends a blocked `wait` of this session, or the next one.
    pub fn wake(&self) -> Outcome<()> {
        // SAFETY: a handle of this session.
        check("dds_set_guardcondition", unsafe { ffi::dds_set_guardcondition(self.guards[0], true) }).map(drop)
    }

    /// All end points that are not closed.
    pub fn alive(&self) -> Vec<&Endpoint> {
        let created = *self.created.lock().unwrap_or_else(|e| e.into_inner());
        (1..=created).filter_map(|id| self.endpoint(id).ok()).filter(|e| !e.closed.load(SeqCst)).collect()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for endpoint in self.alive() {
            wait::end_waits(endpoint, self.guards);
        }
        // SAFETY: deletes all that is left in the participant; after it no listener runs any more.
        unsafe {
            if self.participant > 0 {
                ffi::dds_delete(self.participant);
            }
        }
        // The end points hold serialisers of the domain.
        for chunk in self.endpoints.iter_mut() {
            chunk.take();
        }
        log::forget(self.domain.id, self.host);
        domain::release(&self.domain);
    }
}
