//! One participant: its end points, and the calls on them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tailbound_abi::{
    TB_ECLOSED, TB_EINVAL, TB_ENOMEM, TB_ETIMEDOUT, TB_ETOOBIG, TB_EUNSUPPORTED, TB_FOREVER, TB_LISTENER, TB_READER,
    TB_SPIN, TB_WRITER, tb_host, tb_view,
};

use crate::discovery::Discovery;
use crate::endpoint::{Common, lock};
use crate::error::{Outcome, fail, os};
use crate::net;
use crate::options::Options;
use crate::reader::Reader;
use crate::receive::Received;
use crate::wait::{self, Waited};
use crate::wire::MAX_PAYLOAD;
use crate::writer::Writer;

/// End points that one session may create in its life.
const MOST_ENDPOINTS: usize = 1024;

/// A reader or a writer.
pub enum Endpoint {
    Reader(Arc<Reader>),
    Writer(Arc<Writer>),
}

impl Endpoint {
    pub fn common(&self) -> &Common {
        match self {
            Endpoint::Reader(r) => &r.common,
            Endpoint::Writer(w) => &w.common,
        }
    }

    fn destroy(&self) -> bool {
        match self {
            Endpoint::Reader(r) => r.destroy(),
            Endpoint::Writer(w) => w.destroy(),
        }
    }
}

/// What the discovery thread shares with the session.
pub struct Inner {
    pub options: Options,
    pub discovery: Discovery,
    endpoints: Box<[OnceLock<Box<Endpoint>>]>,
}

impl Inner {
    /// Those that are not destroyed.
    pub fn endpoints(&self) -> impl Iterator<Item = &Box<Endpoint>> {
        self.endpoints.iter().map_while(OnceLock::get).filter(|e| !e.common().is_closed())
    }
}

/// One participant.
pub struct Session {
    pub inner: Arc<Inner>,
    host: tb_host,
    created: AtomicU32,
    wakes: AtomicU64,
}

impl Session {
    pub fn open(options: Options, host: tb_host) -> Outcome<Session> {
        let endpoints = (0..MOST_ENDPOINTS).map(|_| OnceLock::new()).collect();
        let inner = Arc::new(Inner { options, discovery: Discovery::default(), endpoints });
        Ok(Session { inner, host, created: AtomicU32::new(0), wakes: AtomicU64::new(0) })
    }

    pub fn create(&self, kind: i32, mode: i32, topic: &str, max_len: u64, tag: u64) -> Outcome<u32> {
        if max_len > MAX_PAYLOAD {
            return fail(
                TB_ETOOBIG,
                format!("max_len {max_len} is above {MAX_PAYLOAD} B, what one UDP datagram holds"),
            );
        }
        let options = &self.inner.options;
        let endpoint = match kind {
            TB_WRITER => Endpoint::Writer(Writer::new(options, topic, max_len, tag, self.host)?),
            TB_READER if (TB_LISTENER..=TB_SPIN).contains(&mode) => {
                let wakes = self.wakes.load(Ordering::SeqCst);
                Endpoint::Reader(Reader::new(options, topic, mode, max_len, tag, self.host, wakes)?)
            }
            TB_READER => return fail(TB_EINVAL, format!("receive mode {mode} does not exist")),
            _ => return fail(TB_EINVAL, format!("kind {kind} is neither TB_WRITER nor TB_READER")),
        };
        let id = self.created.fetch_add(1, Ordering::Relaxed) + 1;
        let place = self.inner.endpoints.get(id as usize - 1);
        if let Err(unplaced) = place.map_or(Err(None), |p| p.set(Box::new(endpoint)).map_err(Some)) {
            if let Some(endpoint) = unplaced {
                endpoint.destroy();
            }
            return fail(TB_ENOMEM, format!("a session creates at most {MOST_ENDPOINTS} end points"));
        }
        self.inner.discovery.start(&self.inner).or_else(|e| os("cannot start the discovery thread", &e))?;
        Ok(id)
    }

    #[inline]
    fn find(&self, id: u32) -> Option<&Endpoint> {
        self.inner.endpoints.get((id as usize).wrapping_sub(1))?.get().map(|e| &**e)
    }

    /// An end point that is there, destroyed or not.
    pub fn existing(&self, id: u32) -> Outcome<&Endpoint> {
        match self.find(id) {
            Some(endpoint) => Ok(endpoint),
            None => fail(TB_ECLOSED, format!("end point {id} does not exist")),
        }
    }

    #[inline]
    fn polled(&self, id: u32) -> Outcome<&Reader> {
        match self.existing(id)? {
            Endpoint::Writer(_) => fail(TB_EINVAL, format!("end point {id} is a writer")),
            Endpoint::Reader(r) if r.mode == TB_LISTENER => {
                fail(TB_EUNSUPPORTED, format!("end point {id} is a listener: samples go to on_sample"))
            }
            Endpoint::Reader(r) => Ok(r),
        }
    }

    pub fn wait_matched(&self, id: u32, peers: u32, deadline: i64) -> Outcome {
        let endpoint = self.existing(id)?;
        let common = endpoint.common();
        let Some(_inside) = common.enter() else { return destroyed(id) };
        if common.matched() < peers {
            match endpoint {
                Endpoint::Writer(writer) => writer.seek(peers),
                Endpoint::Reader(reader) => {
                    common.settled.store(false, Ordering::SeqCst);
                    reader.in_use.store(false, Ordering::Relaxed);
                }
            }
            common.heard_ns.store(net::monotonic_ns(), Ordering::Relaxed);
            self.inner.discovery.start(&self.inner).or_else(|e| os("cannot start the discovery thread", &e))?;
        }
        let remaining = || match deadline {
            TB_FOREVER => None,
            _ => Some(Duration::from_nanos(deadline.saturating_sub(net::monotonic_ns()).max(0) as u64)),
        };
        if !common.wait_matched(peers, remaining) {
            if common.is_closed() {
                return destroyed(id);
            }
            let have = common.matched();
            return fail(TB_ETIMEDOUT, format!("{have} of {peers} peers answered for topic {}", common.topic));
        }
        match endpoint {
            Endpoint::Writer(writer) => writer.settle(),
            Endpoint::Reader(_) => common.settled.store(true, Ordering::SeqCst),
        }
        Ok(())
    }

    #[inline]
    pub fn send(&self, id: u32, seq: u64, payload: &[u8]) -> Outcome {
        match self.existing(id)? {
            Endpoint::Writer(writer) => writer.send(seq, payload),
            Endpoint::Reader(_) => fail(TB_EINVAL, format!("end point {id} is a reader")),
        }
    }

    #[inline]
    pub fn wait(&self, ids: &[u32], deadline: i64) -> Outcome<Waited> {
        if let [id] = *ids {
            let reader = self.polled(id)?;
            reader.in_use.store(true, Ordering::Relaxed);
            return wait::one(reader, &self.wakes, deadline);
        }
        if ids.is_empty() || ids.len() > 64 {
            return fail(TB_EINVAL, "wait takes 1 to 64 readers");
        }
        let mut insides = Vec::with_capacity(64);
        let mut readers = Vec::with_capacity(64);
        for id in ids {
            let reader = self.polled(*id)?;
            let Some(inside) = reader.common.enter() else { return destroyed(*id) };
            reader.in_use.store(true, Ordering::Relaxed);
            insides.push(inside);
            readers.push(reader);
        }
        wait::several(&readers, &self.wakes, deadline)
    }

    /// What waits already is handed out without a system call.
    #[inline]
    pub fn take(&self, id: u32, out: &mut [tb_view]) -> Outcome<usize> {
        let reader = self.polled(id)?;
        if reader.mode == TB_SPIN {
            reader.in_use.store(true, Ordering::Relaxed);
        }
        let mut places = lock(&reader.places);
        if reader.common.is_closed() {
            return destroyed(id);
        }
        let mut n = 0;
        while n < out.len() {
            if let Some(view) = places.next() {
                out[n] = view;
                n += 1;
                continue;
            }
            match places.receive(reader, libc::MSG_DONTWAIT) {
                Received::Sample | Received::Other => {}
                Received::Nothing | Received::Full => break,
                Received::Failed(errno) if n == 0 => return os("recvmsg", &std::io::Error::from_raw_os_error(errno)),
                Received::Failed(_) => break,
            }
        }
        Ok(n)
    }

    #[inline]
    pub fn release(&self, id: u32, views: &[tb_view]) -> Outcome {
        let reader = self.polled(id)?;
        let mut places = lock(&reader.places);
        if reader.common.is_closed() {
            return destroyed(id);
        }
        match views.iter().all(|v| places.give_back(v)) {
            true => Ok(()),
            false => fail(TB_EINVAL, "a view was not taken from this reader"),
        }
    }

    pub fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
    }

    pub fn destroy(&self, id: u32) -> Outcome {
        if self.existing(id)?.destroy() { Ok(()) } else { destroyed(id) }
    }
}

#[cold]
fn destroyed<T>(id: u32) -> Outcome<T> {
    fail(TB_ECLOSED, format!("end point {id} is destroyed"))
}

impl Drop for Session {
    fn drop(&mut self) {
        self.inner.discovery.stop();
        for endpoint in self.inner.endpoints.iter().filter_map(OnceLock::get) {
            endpoint.destroy();
        }
    }
}
