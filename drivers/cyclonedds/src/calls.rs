//! The calls of the driver table on a session.

use core::mem::MaybeUninit;
use std::ffi::{CStr, CString};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, OnceLock};

use tailbound_abi::side::{self, Fail, Host, MAX_READERS, Outcome, Pair, Waited, Wanted, fail};
use tailbound_abi::{TB_EINVAL, TB_ENOMEM, TB_WRITER, tb_view};

use crate::config::Options;
use crate::create::{self, Home};
use crate::endpoint::{Endpoint, Waiting};
use crate::error::check;
use crate::qos::Policies;
use crate::session::{CHUNK, CHUNKS, Session};
use crate::wait::{self, Sets};
use crate::{describe, domain, ffi, log, query, receive, sample, send};

impl side::Session for Session {
    const MAX_PAYLOAD_BYTES: u64 = sample::MAX_PAYLOAD_BYTES;

    fn describe() -> &'static CStr {
        describe::describe()
    }

    fn open(pairs: &[Pair], host: Host) -> Outcome<Self> {
        log::install();
        let mut options = Options::parse(pairs)?;
        options.resolve_peers()?;
        if !options.ignored.is_empty() {
            let ignored = options.ignored.join(", ");
            let text = format!("`config` is used unchanged; these driver options have no effect: {ignored}");
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
        // If a step fails, dropping the session undoes the previous steps. SAFETY: these are plain calls of Cyclone;
        // the domain exists, so no configuration is read from the environment.
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
        create::make(
            &endpoint,
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

    /// Releases samples; this also works for a destroyed end point, until the session is closed.
    #[inline]
    fn release(&self, id: u32, views: &mut [tb_view]) -> Outcome {
        self.endpoint(id)?;
        receive::release(views);
        Ok(())
    }

    /// Ends a blocked `wait` of this session, or the next `wait` if none is blocked.
    fn wake(&self) -> Outcome {
        // SAFETY: the handle belongs to this session.
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

    /// Ends all waits on an end point, then deletes the end point.
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
        // SAFETY: this deletes all entities of the participants; afterwards no listener runs.
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
