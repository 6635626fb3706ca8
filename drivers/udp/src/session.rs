//! One participant: its end points, and the calls on them.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tailbound_abi::side::{self, Fail, Host, MAX_READERS, Outcome, Pair, Waited, Wanted, fail};
use tailbound_abi::{
    TB_EINVAL, TB_ENOMEM, TB_EQOS, TB_ETIMEDOUT, TB_EUNSUPPORTED, TB_FOREVER, TB_LISTENER, TB_SPIN, TB_WRITER, tb_view,
};

use crate::discovery::Discovery;
use crate::endpoint::{Common, lock};
use crate::error::os;
use crate::options::Options;
use crate::reader::Reader;
use crate::receive::Received;
use crate::wire::MAX_PAYLOAD;
use crate::writer::Writer;
use crate::{net, query, wait};

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
    host: Host,
    created: AtomicU32,
    wakes: AtomicU64,
}

impl Session {
    /// An end point that is there, destroyed or not.
    #[inline]
    pub fn existing(&self, id: u32) -> Outcome<&Endpoint> {
        let place = self.inner.endpoints.get((id as usize).wrapping_sub(1)).and_then(OnceLock::get);
        place.map(|e| &**e).ok_or_else(|| Fail::closed(id))
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
}

impl side::Session for Session {
    const MAX_PAYLOAD_BYTES: u64 = MAX_PAYLOAD;

    fn describe() -> &'static CStr {
        query::describe()
    }

    fn open(options: &[Pair], host: Host) -> Outcome<Session> {
        let options = Options::parse(options)?;
        let endpoints = (0..MOST_ENDPOINTS).map(|_| OnceLock::new()).collect();
        let inner = Arc::new(Inner { options, discovery: Discovery::default(), endpoints });
        Ok(Session { inner, host, created: AtomicU32::new(0), wakes: AtomicU64::new(0) })
    }

    fn host(&self) -> &Host {
        &self.host
    }

    fn create(&self, wanted: &Wanted) -> Outcome<u32> {
        if let Some(policy) = wanted.qos.iter().find(|p| p.key != "participant") {
            return Err(policy.bad(TB_EQOS, "the udp driver has no QoS policies"));
        }
        let options = &self.inner.options;
        let endpoint = match wanted.kind {
            TB_WRITER => Endpoint::Writer(Writer::new(options, wanted, self.host)?),
            _ => {
                let wakes = self.wakes.load(Ordering::SeqCst);
                Endpoint::Reader(Reader::new(options, wanted, self.host, wakes)?)
            }
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

    fn wait_matched(&self, id: u32, peers: u32, deadline: i64) -> Outcome {
        let endpoint = self.existing(id)?;
        let common = endpoint.common();
        let Some(_inside) = common.enter() else { return Err(Fail::closed(id)) };
        if let Endpoint::Writer(writer) = endpoint {
            writer.hear();
        }
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
                return Err(Fail::closed(id));
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
    fn send(&self, id: u32, seq: u64, payload: &[u8], _batch: bool) -> Outcome {
        match self.existing(id)? {
            Endpoint::Writer(writer) => writer.send(seq, payload),
            Endpoint::Reader(_) => fail(TB_EINVAL, format!("end point {id} is a reader")),
        }
    }

    #[inline]
    fn wait(&self, ids: &[u32], deadline: i64) -> Outcome<Waited> {
        if let [id] = *ids {
            let reader = self.polled(id)?;
            reader.in_use.store(true, Ordering::Relaxed);
            return wait::one(reader, &self.wakes, deadline);
        }
        let mut insides = [const { None }; MAX_READERS];
        let mut readers = [None; MAX_READERS];
        for (i, id) in ids.iter().enumerate() {
            let reader = self.polled(*id)?;
            let Some(inside) = reader.common.enter() else { return Err(Fail::closed(*id)) };
            reader.in_use.store(true, Ordering::Relaxed);
            (insides[i], readers[i]) = (Some(inside), Some(reader));
        }
        wait::several(&readers[..ids.len()], &self.wakes, deadline)
    }

    /// What waits already is handed out without a system call.
    #[inline]
    fn take(&self, id: u32, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        let reader = self.polled(id)?;
        if reader.mode == TB_SPIN {
            reader.in_use.store(true, Ordering::Relaxed);
        }
        let mut places = lock(&reader.places);
        if reader.common.is_closed() {
            return Err(Fail::closed(id));
        }
        let mut n = 0;
        while n < out.len() {
            if let Some(view) = places.next() {
                out[n].write(view);
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
    fn release(&self, id: u32, views: &mut [tb_view]) -> Outcome {
        let reader = self.polled(id)?;
        let mut places = lock(&reader.places);
        if reader.common.is_closed() {
            return Err(Fail::closed(id));
        }
        match views.iter().all(|v| places.give_back(v)) {
            true => Ok(()),
            false => fail(TB_EINVAL, "a view was not taken from this reader"),
        }
    }

    fn wake(&self) -> Outcome {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Nothing waits in a batch, and nothing is acknowledged.
    fn flush(&self, id: u32, _deadline_ns: i64) -> Outcome {
        self.existing(id).map(drop)
    }

    fn query(&self, id: u32, what: &str) -> Outcome<Vec<u8>> {
        query::answer(self, id, what)
    }

    fn destroy(&self, id: u32) -> Outcome {
        if self.existing(id)?.destroy() { Ok(()) } else { Err(Fail::closed(id)) }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.inner.discovery.stop();
        for endpoint in self.inner.endpoints.iter().filter_map(OnceLock::get) {
            endpoint.destroy();
        }
    }
}
