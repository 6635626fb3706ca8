//! The calls of the driver table on a session.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tailbound_abi::side::{self, Endpoints, Fail, Host, Outcome, Pair, Waited, Wanted, fail};
use tailbound_abi::{TB_EINVAL, TB_ETIMEDOUT, tb_view};

use crate::deadline::left;
use crate::flag::Flag;
use crate::options::Options;
use crate::session::{MAX_PAYLOAD_BYTES, Session};
use crate::{describe, node, query, wait};

/// Time between two looks at the number of peers.
const LOOK: Duration = Duration::from_millis(2);

impl side::Session for Session {
    const MAX_PAYLOAD_BYTES: u64 = MAX_PAYLOAD_BYTES;

    fn describe() -> &'static CStr {
        describe::describe()
    }

    fn open(options: &[Pair], host: Host) -> Outcome<Session> {
        let options = Options::parse(options)?;
        let config = node::config(&options)?;
        let stale_removed = node::remove_stale(&config)?.removed;
        Ok(Session {
            endpoints: Endpoints::default(),
            node: Mutex::new(None),
            config,
            stale_removed,
            options,
            woken: Flag::new()?,
            closing: Flag::new()?,
            host,
        })
    }

    fn host(&self) -> &Host {
        &self.host
    }

    fn create(&self, wanted: &Wanted) -> Outcome<u32> {
        let mut node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
        let node = match &mut *node {
            Some(node) => node,
            none => none.insert(node::create(&self.config)?),
        };
        self.endpoints.add(|id| self.make(node, id, wanted))
    }

    fn wait_matched(&self, id: u32, peers: u32, deadline_ns: i64) -> Outcome {
        let endpoint = self.endpoint(id)?;
        let mut before = None;
        loop {
            let have = endpoint.held()?.matched()?;
            if before.replace(have) != Some(have) {
                // SAFETY: the session is not closed while one of its functions runs.
                unsafe { self.host.on_match(endpoint.tag, have as i32) };
            }
            if have >= peers as usize {
                return endpoint.held()?.connect();
            }
            let Some(left) = left(deadline_ns) else {
                return fail(TB_ETIMEDOUT, format!("{have} of {peers} peers matched on {}", endpoint.topic));
            };
            std::thread::sleep(LOOK.min(left));
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
        self.woken.set();
        Ok(())
    }

    /// Returns immediately, because iceoryx2 never keeps messages to send them together: when `send` returns, a message is in
    /// the buffers of the readers.
    fn flush(&self, id: u32, _deadline_ns: i64) -> Outcome {
        self.endpoint(id)?.held().map(drop)
    }

    fn query(&self, id: u32, what: &str) -> Outcome<Vec<u8>> {
        query::answer(self, id, what).map(|answer| answer.to_string().into_bytes())
    }

    /// Ends all waits on an end point, then removes its ports.
    fn destroy(&self, id: u32) -> Outcome {
        let endpoint = self.endpoint(id)?;
        if endpoint.closed.swap(true, SeqCst) {
            return Err(Fail::closed(id));
        }
        self.closing.set();
        endpoint.remove();
        self.closing.take();
        let mut node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
        if self.alive().next().is_none() {
            *node = None;
            node::remove_counter(&self.config);
        }
        Ok(())
    }
}
