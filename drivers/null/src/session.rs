//! One session of the `null` driver: its end points, and the calls on them.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tailbound_abi::side::{self, Fail, Host, MAX_READERS, Outcome, Pair, Waited, Wanted, fail};
use tailbound_abi::{
    TB_ECLOSED, TB_EINVAL, TB_EQOS, TB_ETIMEDOUT, TB_ETOOBIG, TB_EUNSUPPORTED, TB_EWOULDBLOCK, TB_SPIN, tb_view,
};

use crate::endpoint::Endpoint;
use crate::endpoints::Endpoints;
use crate::network::{Domain, next_identity};
use crate::options::Options;
use crate::queue::Bell;
use crate::topic::Connected;
use crate::{query, real};

/// Real time for which a wait for matching waits if the domain has a scripted clock, because other threads may still
/// create their end points. Virtual time does not advance during matching.
const SETUP: Duration = Duration::from_secs(1);

/// One session of the `null` driver, which belongs to a domain.
pub struct Session {
    domain: Arc<Domain>,
    host: Host,
    timestamps: bool,
    bell: Arc<Bell>,
    endpoints: Endpoints,
}

impl side::Session for Session {
    const MAX_PAYLOAD_BYTES: u64 = query::MAX_PAYLOAD_BYTES;

    fn describe() -> &'static CStr {
        query::describe()
    }

    fn open(options: &[Pair], host: Host) -> Outcome<Session> {
        let options = Options::parse(options)?;
        let domain = Domain::join(options.domain, options.scripted, options.script)?;
        let (bell, endpoints) = (Arc::default(), Endpoints::new());
        Ok(Session { domain, host, timestamps: options.timestamps, bell, endpoints })
    }

    fn host(&self) -> &Host {
        &self.host
    }

    fn create(&self, wanted: &Wanted) -> Outcome<u32> {
        if let Some(policy) = wanted.qos.first() {
            return Err(policy.bad(TB_EQOS, "the null driver has no QoS policies"));
        }
        self.endpoints.add(|| {
            let mut endpoint = Endpoint::new(wanted, next_identity(), self.host, self.bell.clone());
            endpoint.timestamps = self.timestamps;
            self.domain.connect(wanted.topic, endpoint)
        })
    }

    fn wait_matched(&self, id: u32, peers: u32, deadline: i64) -> Outcome {
        let connected = self.endpoints.existing(id)?;
        let begin = Instant::now();
        let matched = self.domain.wait_matched(connected, peers as usize, || match self.domain.world {
            // Virtual time does not advance during matching, so the limit is in real time.
            Some(_) => Some(SETUP.saturating_sub(begin.elapsed())),
            None => real::remaining(deadline),
        });
        let Connected { endpoint, topic } = connected;
        if endpoint.is_closed() {
            return Err(Fail::closed(id));
        }
        if !matched {
            let have = topic.peers(endpoint);
            return fail(TB_ETIMEDOUT, format!("{have} of {peers} peers on topic {} in this process", topic.name));
        }
        Ok(())
    }

    #[inline]
    fn send(&self, id: u32, seq: u64, payload: &[u8], _batch: bool) -> Outcome {
        let connected = self.endpoints.existing(id)?;
        let writer = &connected.endpoint;
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
            None if !real::send(connected, seq, payload) => {
                writer.uncount();
                return fail(TB_EWOULDBLOCK, "the queue of a reader is full");
            }
            None => {}
            Some(world) => world.send(connected, seq, payload),
        }
        Ok(())
    }

    fn wait(&self, ids: &[u32], deadline: i64) -> Outcome<Waited> {
        let mut insides = [const { None }; MAX_READERS];
        let mut readers = [None; MAX_READERS];
        for (i, id) in ids.iter().enumerate() {
            let reader = &self.endpoints.reader(*id)?.endpoint;
            let Some(inside) = reader.enter() else { return Err(Fail::closed(*id)) };
            if reader.queue.is_none() {
                return fail(TB_EUNSUPPORTED, format!("end point {id} is a listener, for which wait is not possible"));
            }
            (insides[i], readers[i]) = (Some(inside), Some(reader));
        }
        let readers = &readers[..ids.len()];
        let check = || {
            if readers.iter().flatten().any(|r| r.is_closed()) {
                return Some(fail(TB_ECLOSED, "an end point was destroyed during the wait"));
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
                None => fail(TB_ETIMEDOUT, "no sample arrived until the deadline"),
            },
        }
    }

    fn take(&self, id: u32, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        let reader = &self.endpoints.reader(id)?.endpoint;
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
        let reader = &self.endpoints.reader(id)?.endpoint;
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

    /// Returns immediately. A sample that `send` accepted is delivered at once, and therefore counts as acknowledged.
    fn flush(&self, id: u32, _deadline_ns: i64) -> Outcome {
        self.endpoints.existing(id).map(drop)
    }

    fn query(&self, id: u32, what: &str) -> Outcome<Vec<u8>> {
        query::answer(&self.endpoints, &self.domain, id, what)
    }

    fn destroy(&self, id: u32) -> Outcome {
        let connected = self.endpoints.existing(id)?;
        if !connected.endpoint.close() {
            return Err(Fail::closed(id));
        }
        self.domain.disconnect(connected);
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for connected in self.endpoints.all() {
            if connected.endpoint.close() {
                self.domain.disconnect(connected);
            }
        }
        self.domain.leave();
    }
}
