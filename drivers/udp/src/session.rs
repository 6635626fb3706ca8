//! One session of the `udp` driver: its end points, and the calls on them.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tailbound_abi::side::{self, Fail, Host, MAX_READERS, Outcome, Pair, Waited, Wanted, fail};
use tailbound_abi::{TB_EINVAL, TB_EQOS, TB_ETIMEDOUT, TB_EUNSUPPORTED, TB_FOREVER, TB_SPIN, TB_WRITER, tb_view};

use crate::discovery::Discovery;
use crate::endpoints::{Endpoint, Endpoints};
use crate::error::os;
use crate::options::Options;
use crate::reader::{Reader, Received};
use crate::wire::MAX_PAYLOAD;
use crate::writer::Writer;
use crate::{net, query, wait};

/// One session of the `udp` driver, with its end points.
pub struct Session {
    endpoints: Arc<Endpoints>,
    discovery: Arc<Discovery>,
    host: Host,
    wakes: AtomicU64,
}

impl Session {
    /// Returns the reader with the number `id`, from which the loading program takes samples.
    #[inline]
    fn polled(&self, id: u32) -> Outcome<&Reader> {
        self.endpoints.polled(id).ok_or_else(|| self.not_polled(id))
    }

    #[cold]
    fn not_polled(&self, id: u32) -> Fail {
        match self.endpoints.existing(id) {
            Ok(Endpoint::Writer(_)) => Fail::new(TB_EINVAL, format!("end point {id} is a writer")),
            Ok(Endpoint::Reader(_)) => {
                Fail::new(TB_EUNSUPPORTED, format!("end point {id} is a listener: samples go to on_sample"))
            }
            Err(fail) => fail,
        }
    }

    #[inline(never)]
    fn wait_for_any(&self, ids: &[u32], deadline: i64) -> Outcome<Waited> {
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
}

impl side::Session for Session {
    const MAX_PAYLOAD_BYTES: u64 = MAX_PAYLOAD;

    fn describe() -> &'static CStr {
        query::describe()
    }

    fn open(options: &[Pair], host: Host) -> Outcome<Session> {
        let options = Options::parse(options)?;
        let endpoints = Arc::new(Endpoints::new(options));
        Ok(Session { endpoints, discovery: Arc::default(), host, wakes: AtomicU64::new(0) })
    }

    fn host(&self) -> &Host {
        &self.host
    }

    fn create(&self, wanted: &Wanted) -> Outcome<u32> {
        if let Some(policy) = wanted.qos.iter().find(|p| p.key != "participant") {
            return Err(policy.bad(TB_EQOS, "the udp driver has no QoS policies"));
        }
        let options = &self.endpoints.options;
        let endpoint = match wanted.kind {
            TB_WRITER => Endpoint::Writer(Writer::new(options, wanted, self.host)?),
            _ => {
                let wakes = self.wakes.load(Ordering::SeqCst);
                Endpoint::Reader(Reader::new(options, wanted, self.host, wakes)?)
            }
        };
        let id = self.endpoints.add(endpoint)?;
        self.discovery.start(&self.endpoints).or_else(|e| os("the discovery thread cannot be started", &e))?;
        Ok(id)
    }

    fn wait_matched(&self, id: u32, peers: u32, deadline: i64) -> Outcome {
        let endpoint = self.endpoints.existing(id)?;
        let common = endpoint.common();
        let Some(_inside) = common.enter() else { return Err(Fail::closed(id)) };
        if let Endpoint::Writer(writer) = endpoint {
            writer.hear();
        }
        if common.matched() < peers {
            match endpoint {
                Endpoint::Writer(writer) => writer.seek(&self.endpoints.options, peers)?,
                Endpoint::Reader(reader) => {
                    common.settled.store(false, Ordering::SeqCst);
                    reader.in_use.store(false, Ordering::Relaxed);
                }
            }
            common.heard_ns.store(net::monotonic_ns(), Ordering::Relaxed);
            self.discovery.start(&self.endpoints).or_else(|e| os("the discovery thread cannot be started", &e))?;
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
            Endpoint::Writer(writer) => writer.settle()?,
            Endpoint::Reader(_) => common.settled.store(true, Ordering::SeqCst),
        }
        Ok(())
    }

    #[inline]
    fn send(&self, id: u32, seq: u64, payload: &[u8], _batch: bool) -> Outcome {
        match self.endpoints.existing(id)? {
            Endpoint::Writer(writer) => writer.send(seq, payload),
            Endpoint::Reader(_) => fail(TB_EINVAL, format!("end point {id} is a reader")),
        }
    }

    fn send_at(&self, id: u32, seq: u64, payload: &[u8], txtime_ns: i64) -> Outcome {
        match self.endpoints.existing(id)? {
            Endpoint::Writer(writer) => writer.send_at(seq, payload, txtime_ns),
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
        self.wait_for_any(ids, deadline)
    }

    /// Takes samples; a sample that is already in a buffer is returned without a system call.
    #[inline]
    fn take(&self, id: u32, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        let reader = self.polled(id)?;
        if reader.mode == TB_SPIN {
            reader.in_use.store(true, Ordering::Relaxed);
        }
        let mut places = reader.places.lock();
        if reader.common.is_closed() {
            return Err(Fail::closed(id));
        }
        let mut n = 0;
        while n < out.len() {
            if let Some(view) = places.next() {
                out[n].write(*view);
                n += 1;
                continue;
            }
            match reader.receive_apart(&mut places, libc::MSG_DONTWAIT) {
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
        let mut places = reader.places.lock();
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
        for endpoint in self.endpoints.open() {
            if let Endpoint::Reader(reader) = endpoint {
                reader.interrupt();
            }
        }
        Ok(())
    }

    /// Returns immediately, because the `udp` driver has no batches and no acknowledgements.
    fn flush(&self, id: u32, _deadline_ns: i64) -> Outcome {
        self.endpoints.existing(id).map(drop)
    }

    fn query(&self, id: u32, what: &str) -> Outcome<Vec<u8>> {
        query::answer(&self.endpoints, &self.discovery, id, what)
    }

    fn destroy(&self, id: u32) -> Outcome {
        if self.endpoints.existing(id)?.destroy() { Ok(()) } else { Err(Fail::closed(id)) }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.discovery.stop();
        self.endpoints.destroy_all();
    }
}
