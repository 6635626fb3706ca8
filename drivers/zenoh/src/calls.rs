//! The calls of the driver table on a session.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use tailbound_abi::side::{self, Endpoints, Fail, Host, Outcome, Pair, Waited, Wanted, fail};
use tailbound_abi::{TB_EINVAL, TB_ETIMEDOUT, tb_view};

use crate::deadline::left;
use crate::event::Events;
use crate::message::MAX_PAYLOAD_BYTES;
use crate::options::Options;
use crate::session::Session;
use crate::{describe, network, query, wait};

/// Longest sleep between two looks whether an end point still exists.
const LOOK: Duration = Duration::from_millis(50);

impl side::Session for Session {
    const MAX_PAYLOAD_BYTES: u64 = MAX_PAYLOAD_BYTES;

    fn describe() -> &'static CStr {
        describe::describe()
    }

    fn open(options: &[Pair], host: Host) -> Outcome<Session> {
        let options = Options::parse(options)?;
        let (zenoh, role) = network::open(&options)?;
        Ok(Session {
            endpoints: Endpoints::default(),
            zenoh,
            role,
            events: Arc::new(Events::default()),
            woken: AtomicBool::new(false),
            options,
            host,
        })
    }

    fn host(&self) -> &Host {
        &self.host
    }

    fn create(&self, wanted: &Wanted) -> Outcome<u32> {
        self.endpoints.add(|id| self.make(id, wanted))
    }

    fn wait_matched(&self, id: u32, peers: u32, deadline_ns: i64) -> Outcome {
        let endpoint = self.endpoint(id)?;
        loop {
            endpoint.held()?;
            let left = left(deadline_ns).unwrap_or_default();
            let have = endpoint.peers.wait(peers as usize, left.min(LOOK));
            if have >= peers as usize {
                return self.verify_memory();
            }
            if left.is_zero() {
                return fail(TB_ETIMEDOUT, format!("{have} of {peers} peers matched on {}", endpoint.topic));
            }
        }
    }

    #[inline]
    fn send(&self, id: u32, seq: u64, payload: &[u8], _batch: bool) -> Outcome {
        self.endpoint(id)?.send(seq, payload)
    }

    #[inline]
    fn wait(&self, ids: &[u32], deadline_ns: i64) -> Outcome<Waited> {
        wait::wait(self, ids, deadline_ns)
    }

    #[inline]
    fn take(&self, id: u32, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        self.endpoint(id)?.take(out)
    }

    /// Releases samples; this also works for a destroyed end point, because a lent message outlives it.
    #[inline]
    fn release(&self, id: u32, views: &mut [tb_view]) -> Outcome {
        let endpoint = self.endpoint(id)?;
        if endpoint.writer {
            return fail(TB_EINVAL, format!("end point {id} is a writer"));
        }
        views.iter_mut().for_each(|view| endpoint.lent.give_back(view));
        Ok(())
    }

    fn wake(&self) -> Outcome {
        self.woken.store(true, SeqCst);
        self.events.add();
        Ok(())
    }

    /// Returns immediately: zenoh sends what its queues have as soon as it can, and cannot be asked to.
    fn flush(&self, id: u32, _deadline_ns: i64) -> Outcome {
        self.endpoint(id)?.held().map(drop)
    }

    fn query(&self, id: u32, what: &str) -> Outcome<Vec<u8>> {
        query::answer(self, id, what).map(|answer| answer.to_string().into_bytes())
    }

    /// Ends all waits on an end point, then removes the end point from the network.
    fn destroy(&self, id: u32) -> Outcome {
        let endpoint = self.endpoint(id)?;
        if endpoint.closed.swap(true, SeqCst) {
            return Err(Fail::closed(id));
        }
        self.events.add();
        endpoint.remove();
        Ok(())
    }
}
