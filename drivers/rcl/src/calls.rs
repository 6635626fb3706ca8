//! The calls of the driver table on a session.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use tailbound_abi::side::{self, Endpoints, Fail, Host, Outcome, Pair, Waited, Wanted, fail};
use tailbound_abi::{TB_EINVAL, tb_view};

use crate::context::{Context, set_network};
use crate::endpoint::Made;
use crate::library::ros;
use crate::log::Registration;
use crate::options::Options;
use crate::session::Session;
use crate::set::Sets;
use crate::types::RET_TIMEOUT;
use crate::until;
use crate::{describe, message, query, reader, wait};

fn open(options: Options, host: Host) -> Outcome<Session> {
    let log = Registration::new(host);
    let ros = ros(options.rmw.as_deref())?;
    set_network(ros, &options, &host)?;
    let nodes: Vec<String> = (0..options.participants).map(|index| options.node_of(index)).collect();
    let contexts = nodes.iter().map(|node| Context::new(ros, options.domain, node));
    let contexts = contexts.collect::<Outcome<Vec<Context>>>()?;
    Ok(Session {
        endpoints: Endpoints::default(),
        sets: Sets::default(),
        woken: AtomicBool::new(false),
        contexts,
        callback: OnceLock::new(),
        direct: Arc::new(AtomicBool::new(true)),
        log: Some(log),
        options,
        nodes,
        ros,
        host,
    })
}

impl side::Session for Session {
    const MAX_PAYLOAD_BYTES: u64 = message::MAX_PAYLOAD_BYTES;

    fn describe() -> &'static CStr {
        describe::describe()
    }

    fn open(options: &[Pair], host: Host) -> Outcome<Session> {
        open(Options::parse(options, |_| Ok(false))?, host)
    }

    fn host(&self) -> &Host {
        &self.host
    }

    fn create(&self, wanted: &Wanted) -> Outcome<u32> {
        self.endpoints.add(|id| self.make(id, wanted))
    }

    fn wait_matched(&self, id: u32, peers: u32, deadline_ns: i64) -> Outcome {
        let endpoint = self.endpoint(id)?;
        until::matched((&self.host, endpoint.tag, &endpoint.topic), (peers, deadline_ns), || {
            endpoint.held()?.entity()?.matched()
        })
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
        self.endpoint(id)?.held()?.subscribed()?.reader.take(out)
    }

    /// Releases samples; this also works for a destroyed end point, because a view owns its buffer.
    #[inline]
    fn release(&self, id: u32, views: &mut [tb_view]) -> Outcome {
        let endpoint = self.endpoint(id)?;
        if endpoint.is_writer() {
            return fail(TB_EINVAL, format!("end point {id} is a writer"));
        }
        let made = endpoint.made.read().unwrap_or_else(PoisonError::into_inner);
        for view in views {
            // SAFETY: the loading program promises that `take` gave out the view.
            match (unsafe { reader::lent(view) }, &*made) {
                (Some(buffer), Some(Made::Reader(subscribed))) => subscribed.reader.give_back(buffer),
                (buffer, _) => drop(buffer),
            }
        }
        Ok(())
    }

    fn wake(&self) -> Outcome {
        self.woken.store(true, SeqCst);
        self.sets.end_waits(None)
    }

    /// Returns immediately, because rcl never keeps messages to send them together.
    fn flush(&self, id: u32, _deadline_ns: i64) -> Outcome {
        self.endpoint(id)?.held().map(drop)
    }

    fn wait_acked(&self, id: u32, deadline_ns: i64) -> Outcome {
        let endpoint = self.endpoint(id)?;
        endpoint.held()?.writer()?;
        until::acked(deadline_ns, |step| {
            let held = endpoint.held()?;
            let wait = self.ros.f.rcl_publisher_wait_for_all_acked;
            // SAFETY: the publisher is valid while it is held.
            match unsafe { wait(held.entity()?.pointer(), step.as_nanos() as i64) } {
                RET_TIMEOUT => Ok(false),
                result => self.ros.check("rcl_publisher_wait_for_all_acked", result).map(|()| true),
            }
        })
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
        while endpoint.waiting.load(SeqCst) > 0 {
            self.sets.end_waits(Some(id))?;
            std::thread::sleep(Duration::from_micros(100));
        }
        self.sets.without(id);
        endpoint.remove();
        Ok(())
    }
}
