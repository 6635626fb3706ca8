//! The calls of the driver table on a session.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, PoisonError};

use tailbound_abi::side::{self, Endpoints, Fail, Host, Outcome, Pair, Waited, Wanted, fail};
use tailbound_abi::{TB_EINVAL, TB_EUNSUPPORTED, TB_LISTENER, TB_READER, tb_view};

use crate::events::Events;
use crate::flag::Flag;
use crate::graph::{End, Graph};
use crate::options::Options;
use crate::session::{Session, join};
use crate::{describe, query, sample, wait};

impl side::Session for Session {
    const MAX_PAYLOAD_BYTES: u64 = sample::MAX_PAYLOAD_BYTES;

    fn describe() -> &'static CStr {
        describe::describe()
    }

    fn open(options: &[Pair], host: Host) -> Outcome<Session> {
        let options = Options::parse(options)?;
        let graph = Arc::new(Graph::default());
        let (mut events, mut nodes, mut participants) = (Vec::new(), Vec::new(), Vec::new());
        for index in 0..options.participants {
            let (participant, node) = join(&options, index)?;
            events.push(Events::start(&participant, graph.clone(), host)?);
            nodes.push(node);
            participants.push(participant);
        }
        Ok(Session {
            _events: events,
            endpoints: Endpoints::default(),
            nodes: Mutex::new(nodes),
            participants,
            graph,
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
        if wanted.kind == TB_READER && wanted.mode == TB_LISTENER {
            let why = "RustDDS has no callbacks for arriving samples: use receive mode block or spin";
            return fail(TB_EUNSUPPORTED, why);
        }
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        self.endpoints.add(|id| {
            let mut known = self.graph.lock();
            let endpoint = self.make(&mut nodes, id, wanted)?;
            known.ends.insert(endpoint.guid, End { tag: wanted.tag, ..End::default() });
            Ok(endpoint)
        })
    }

    fn wait_matched(&self, id: u32, peers: u32, deadline_ns: i64) -> Outcome {
        let e = self.endpoint(id)?;
        self.graph.wait_matched(id, e.guid, &e.topic, peers, deadline_ns)
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
        self.endpoint(id)?.entity()?.reader()?.take(out)
    }

    /// Releases samples; this also works for a destroyed end point, because a view owns its payload.
    #[inline]
    fn release(&self, id: u32, views: &mut [tb_view]) -> Outcome {
        if self.endpoint(id)?.writer {
            return fail(TB_EINVAL, format!("end point {id} is a writer"));
        }
        for view in views {
            // SAFETY: the loading program promises that `take` gave out the view.
            unsafe { sample::give_back(view) };
        }
        Ok(())
    }

    fn wake(&self) -> Outcome {
        self.woken.set();
        Ok(())
    }

    /// Returns immediately, because the `ros2` driver never keeps messages to send them together.
    fn flush(&self, id: u32, _deadline_ns: i64) -> Outcome {
        self.endpoint(id).map(drop)
    }

    fn wait_acked(&self, _id: u32, _deadline_ns: i64) -> Outcome {
        fail(TB_EUNSUPPORTED, "a publisher of ros2-client cannot wait for acknowledgements")
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
        self.graph.forget(&endpoint.guid);
        self.closing.set();
        let entity = endpoint.entity.write().unwrap_or_else(PoisonError::into_inner).take();
        self.closing.take();
        drop(entity);
        Ok(())
    }
}
