//! One participant: its end points, and the calls on them.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tailbound_abi::side::{self, Fail, Host, MAX_READERS, Outcome, Pair, Waited, Wanted, fail};
use tailbound_abi::{
    TB_ECLOSED, TB_EINVAL, TB_ENOMEM, TB_EQOS, TB_ETIMEDOUT, TB_ETOOBIG, TB_EUNSUPPORTED, TB_EWOULDBLOCK, TB_SPIN,
    tb_view,
};

use crate::endpoint::Endpoint;
use crate::network::{Domain, next_identity};
use crate::options::Options;
use crate::queue::Bell;
use crate::{query, real};

/// End points that one session may create in its life.
const MOST_ENDPOINTS: usize = 1024;
/// How long a matching in virtual time waits in real time for other threads that still set up their ends.
const SETUP: Duration = Duration::from_secs(1);

/// One participant.
pub struct Session {
    domain: Arc<Domain>,
    host: Host,
    timestamps: bool,
    bell: Arc<Bell>,
    endpoints: Box<[OnceLock<Arc<Endpoint>>]>,
    created: AtomicU32,
}

impl Session {
    /// An end point that is there, destroyed or not.
    #[inline]
    pub fn existing(&self, id: u32) -> Outcome<&Arc<Endpoint>> {
        let place = self.endpoints.get((id as usize).wrapping_sub(1)).and_then(OnceLock::get);
        place.ok_or_else(|| Fail::closed(id))
    }

    fn reader(&self, id: u32) -> Outcome<&Arc<Endpoint>> {
        let endpoint = self.existing(id)?;
        if endpoint.is_writer() {
            return fail(TB_EINVAL, format!("end point {id} is a writer"));
        }
        Ok(endpoint)
    }

    pub fn endpoints(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        self.endpoints.iter().filter_map(OnceLock::get).filter(|e| !e.is_closed())
    }

    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl side::Session for Session {
    const MAX_PAYLOAD_BYTES: u64 = 16 << 20;

    fn describe() -> &'static CStr {
        query::describe()
    }

    fn open(options: &[Pair], host: Host) -> Outcome<Session> {
        let options = Options::parse(options)?;
        let domain = Domain::join(options.domain, options.scripted, options.script)?;
        let endpoints = (0..MOST_ENDPOINTS).map(|_| OnceLock::new()).collect();
        let bell = Arc::default();
        Ok(Session { domain, host, timestamps: options.timestamps, bell, endpoints, created: AtomicU32::new(0) })
    }

    fn host(&self) -> &Host {
        &self.host
    }

    fn create(&self, wanted: &Wanted) -> Outcome<u32> {
        if let Some(policy) = wanted.qos.first() {
            return Err(policy.bad(TB_EQOS, "the null driver has no QoS policies"));
        }
        let id = self.created.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(place) = self.endpoints.get(id as usize - 1) else {
            return fail(TB_ENOMEM, format!("a session creates at most {MOST_ENDPOINTS} end points"));
        };
        let endpoint = self.domain.connect(wanted.topic, |topic| {
            let mut e = Endpoint::new(wanted, next_identity(), topic, self.host, self.bell.clone());
            e.timestamps = self.timestamps;
            e
        });
        let _ = place.set(endpoint);
        Ok(id)
    }

    fn wait_matched(&self, id: u32, peers: u32, deadline: i64) -> Outcome {
        let endpoint = self.existing(id)?;
        let begin = Instant::now();
        let matched = self.domain.wait_matched(endpoint, peers as usize, || match self.domain.world {
            // Virtual time stands still while nobody matches, so the limit is one of real time.
            Some(_) => Some(SETUP.saturating_sub(begin.elapsed())),
            None => real::remaining(deadline),
        });
        if endpoint.is_closed() {
            return Err(Fail::closed(id));
        }
        if !matched {
            let have = endpoint.topic.peers(endpoint);
            return fail(
                TB_ETIMEDOUT,
                format!("{have} of {peers} peers on topic {} in this process", endpoint.topic.name),
            );
        }
        Ok(())
    }

    #[inline]
    fn send(&self, id: u32, seq: u64, payload: &[u8], _batch: bool) -> Outcome {
        let writer = self.existing(id)?;
        if !writer.is_writer() {
            return fail(TB_EINVAL, format!("end point {id} is a reader"));
        }
        let Some(_inside) = writer.enter_counted() else { return Err(Fail::closed(id)) };
        if payload.len() as u64 > writer.max_len {
            writer.uncount();
            let (len, max) = (payload.len(), writer.max_len);
            return fail(TB_ETOOBIG, format!("{len} B of payload; end point {id} was made for {max} B"));
        }
        match self.domain.world {
            None if !real::send(writer, seq, payload) => {
                writer.uncount();
                return fail(TB_EWOULDBLOCK, "the queue of a reader is full");
            }
            None => {}
            Some(world) => world.send(writer, seq, payload),
        }
        Ok(())
    }

    fn wait(&self, ids: &[u32], deadline: i64) -> Outcome<Waited> {
        let mut insides = [const { None }; MAX_READERS];
        let mut readers = [None; MAX_READERS];
        for (i, id) in ids.iter().enumerate() {
            let reader = self.reader(*id)?;
            let Some(inside) = reader.enter() else { return Err(Fail::closed(*id)) };
            if reader.queue.is_none() {
                return fail(TB_EUNSUPPORTED, format!("end point {id} is a listener: it has nothing to wait for"));
            }
            (insides[i], readers[i]) = (Some(inside), Some(reader));
        }
        let readers = &readers[..ids.len()];
        let check = || {
            if readers.iter().flatten().any(|r| r.is_closed()) {
                return Some(fail(TB_ECLOSED, "an end point was destroyed while it was waited for"));
            }
            let wakes = self.bell.wakes.load(Ordering::SeqCst);
            if readers.iter().flatten().fold(false, |w, r| w | (r.wakes_seen.swap(wakes, Ordering::SeqCst) != wakes)) {
                return Some(Ok(Waited::Woken));
            }
            let has = |r: &Option<&Arc<Endpoint>>| r.and_then(|r| r.queue.as_ref()).is_some_and(|q| q.has_sample());
            let ready = readers.iter().enumerate().filter(|(_, r)| has(r)).fold(0u64, |bits, (i, _)| bits | 1 << i);
            (ready != 0).then_some(Ok(Waited::Ready(ready)))
        };
        match self.domain.world {
            Some(world) => world.wait(deadline, check)?,
            None => match self.bell.wait(check, || real::remaining(deadline)) {
                Some(outcome) => outcome,
                None => fail(TB_ETIMEDOUT, "no sample until the deadline"),
            },
        }
    }

    fn take(&self, id: u32, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        let reader = self.reader(id)?;
        let Some(inside) = reader.enter() else { return Err(Fail::closed(id)) };
        let Some(queue) = &reader.queue else {
            return fail(TB_EUNSUPPORTED, format!("end point {id} is a listener: samples go to on_sample"));
        };
        let n = queue.take(out);
        if let (0, TB_SPIN, Some(world)) = (n, reader.mode, self.domain.world) {
            drop(inside);
            world.spin();
            return Ok(queue.take(out));
        }
        Ok(n)
    }

    fn release(&self, id: u32, views: &mut [tb_view]) -> Outcome {
        let reader = self.reader(id)?;
        let Some(_inside) = reader.enter() else { return Err(Fail::closed(id)) };
        match &reader.queue {
            Some(queue) if queue.release(views) => Ok(()),
            _ => fail(TB_EINVAL, "a view was not taken from this reader"),
        }
    }

    fn wake(&self) -> Outcome {
        self.bell.wakes.fetch_add(1, Ordering::SeqCst);
        self.bell.ring();
        Ok(())
    }

    /// What `send` reported as sent is delivered, and acknowledged with it.
    fn flush(&self, id: u32, _deadline_ns: i64) -> Outcome {
        self.existing(id).map(drop)
    }

    fn query(&self, id: u32, what: &str) -> Outcome<Vec<u8>> {
        query::answer(self, id, what)
    }

    fn destroy(&self, id: u32) -> Outcome {
        let endpoint = self.existing(id)?;
        if !endpoint.close() {
            return Err(Fail::closed(id));
        }
        self.domain.disconnect(endpoint);
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for endpoint in self.endpoints.iter().filter_map(OnceLock::get) {
            if endpoint.close() {
                self.domain.disconnect(endpoint);
            }
        }
        self.domain.leave();
    }
}
