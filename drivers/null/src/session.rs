//! One participant: its end points, and the calls on them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tailbound_abi::{
    TB_ECLOSED, TB_EINVAL, TB_ENOMEM, TB_ETIMEDOUT, TB_ETOOBIG, TB_EUNSUPPORTED, TB_EWOULDBLOCK, TB_LISTENER,
    TB_READER, TB_SPIN, TB_WRITER, tb_host, tb_view,
};

use crate::endpoint::Endpoint;
use crate::error::{Outcome, fail};
use crate::network::{Domain, next_identity};
use crate::options::Options;
use crate::queue::Bell;
use crate::real;

/// Longest payload.
pub const MAX_PAYLOAD: u64 = 16 << 20;
/// End points that one session may create in its life.
const MOST_ENDPOINTS: usize = 1024;
/// How long a matching in virtual time waits in real time for other threads that still set up their ends.
const SETUP: Duration = Duration::from_secs(1);

/// How a wait ended.
pub enum Waited {
    /// Bits of the readers that have samples.
    Ready(u64),
    /// `wake` was called.
    Woken,
}

/// One participant.
pub struct Session {
    domain: Arc<Domain>,
    host: tb_host,
    timestamps: bool,
    bell: Arc<Bell>,
    endpoints: Box<[OnceLock<Arc<Endpoint>>]>,
    created: AtomicU32,
}

impl Session {
    pub fn open(options: Options, host: tb_host) -> Outcome<Session> {
        let domain = Domain::join(options.domain, options.scripted, options.script)?;
        let endpoints = (0..MOST_ENDPOINTS).map(|_| OnceLock::new()).collect();
        let bell = Arc::default();
        Ok(Session { domain, host, timestamps: options.timestamps, bell, endpoints, created: AtomicU32::new(0) })
    }

    pub fn create(&self, kind: i32, mode: i32, topic: &str, max_len: u64, tag: u64) -> Outcome<u32> {
        if kind != TB_WRITER && kind != TB_READER {
            return fail(TB_EINVAL, format!("kind {kind} is neither TB_WRITER nor TB_READER"));
        }
        if kind == TB_READER && !(TB_LISTENER..=TB_SPIN).contains(&mode) {
            return fail(TB_EINVAL, format!("receive mode {mode} does not exist"));
        }
        if max_len > MAX_PAYLOAD {
            return fail(TB_ETOOBIG, format!("max_len {max_len} is above the driver's limit of {MAX_PAYLOAD} B"));
        }
        let id = self.created.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(place) = self.endpoints.get(id as usize - 1) else {
            return fail(TB_ENOMEM, format!("a session creates at most {MOST_ENDPOINTS} end points"));
        };
        let endpoint = self.domain.connect(topic, |topic| {
            let mut e = Endpoint::new(kind, mode, tag, max_len, next_identity(), topic, self.host, self.bell.clone());
            e.timestamps = self.timestamps;
            e
        });
        let _ = place.set(endpoint);
        Ok(id)
    }

    #[inline]
    fn endpoint(&self, id: u32) -> Option<&Arc<Endpoint>> {
        self.endpoints.get((id as usize).wrapping_sub(1))?.get()
    }

    /// An end point that is there, destroyed or not.
    pub fn existing(&self, id: u32) -> Outcome<&Arc<Endpoint>> {
        match self.endpoint(id) {
            Some(endpoint) => Ok(endpoint),
            None => fail(TB_ECLOSED, format!("end point {id} does not exist")),
        }
    }

    fn reader(&self, id: u32) -> Outcome<&Arc<Endpoint>> {
        let endpoint = self.existing(id)?;
        if endpoint.is_writer() {
            return fail(TB_EINVAL, format!("end point {id} is a writer"));
        }
        Ok(endpoint)
    }

    pub fn wait_matched(&self, id: u32, peers: u32, deadline: i64) -> Outcome {
        let endpoint = self.existing(id)?;
        let begin = Instant::now();
        let matched = self.domain.wait_matched(endpoint, peers as usize, || match self.domain.world {
            // Virtual time stands still while nobody matches, so the limit is one of real time.
            Some(_) => Some(SETUP.saturating_sub(begin.elapsed())),
            None => real::remaining(deadline),
        });
        if endpoint.is_closed() {
            return fail(TB_ECLOSED, format!("end point {id} is destroyed"));
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

    /// # Safety
    /// `data` points to `len` octets.
    #[inline]
    pub unsafe fn send(&self, id: u32, seq: u64, data: *const u8, len: u64) -> Outcome {
        let Some(writer) = self.endpoint(id) else { return self.existing(id).map(|_| ()) };
        if !writer.is_writer() {
            return fail(TB_EINVAL, format!("end point {id} is a reader"));
        }
        let Some(_inside) = writer.enter_counted() else {
            return fail(TB_ECLOSED, format!("end point {id} is destroyed"));
        };
        if len > writer.max_len {
            writer.uncount();
            return fail(TB_ETOOBIG, format!("{len} B of payload; end point {id} was made for {} B", writer.max_len));
        }
        match self.domain.world {
            None if !real::send(writer, seq, data, len) => {
                writer.uncount();
                return fail(TB_EWOULDBLOCK, format!("the queue of a reader of topic {} is full", writer.topic.name));
            }
            None => {}
            Some(_) if len == 0 => world_send(self, writer, seq, &[]),
            // SAFETY: the caller's promise.
            Some(_) => world_send(self, writer, seq, unsafe { std::slice::from_raw_parts(data, len as usize) }),
        }
        Ok(())
    }

    pub fn wait(&self, ids: &[u32], deadline: i64) -> Outcome<Waited> {
        if ids.is_empty() || ids.len() > 64 {
            return fail(TB_EINVAL, "wait takes 1 to 64 readers");
        }
        let mut insides = [const { None }; 64];
        let mut readers = [None; 64];
        for (i, id) in ids.iter().enumerate() {
            let reader = self.reader(*id)?;
            let Some(inside) = reader.enter() else { return fail(TB_ECLOSED, format!("end point {id} is destroyed")) };
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

    pub fn take(&self, id: u32, out: &mut [tb_view]) -> Outcome<usize> {
        let reader = self.reader(id)?;
        let Some(inside) = reader.enter() else { return fail(TB_ECLOSED, format!("end point {id} is destroyed")) };
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

    pub fn release(&self, id: u32, views: &[tb_view]) -> Outcome {
        let reader = self.reader(id)?;
        let Some(_inside) = reader.enter() else { return fail(TB_ECLOSED, format!("end point {id} is destroyed")) };
        match &reader.queue {
            Some(queue) if queue.release(views) => Ok(()),
            _ => fail(TB_EINVAL, "a view was not taken from this reader"),
        }
    }

    pub fn wake(&self) {
        self.bell.wakes.fetch_add(1, Ordering::SeqCst);
        self.bell.ring();
    }

    pub fn destroy(&self, id: u32) -> Outcome {
        let endpoint = self.existing(id)?;
        if !endpoint.close() {
            return fail(TB_ECLOSED, format!("end point {id} is destroyed already"));
        }
        self.domain.disconnect(endpoint);
        Ok(())
    }

    pub fn endpoints(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        self.endpoints.iter().filter_map(OnceLock::get).filter(|e| !e.is_closed())
    }

    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

#[cold]
fn world_send(session: &Session, writer: &Endpoint, seq: u64, payload: &[u8]) {
    if let Some(world) = session.domain.world {
        world.send(writer, seq, payload);
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
