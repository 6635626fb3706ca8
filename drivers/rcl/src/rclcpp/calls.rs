//! The functions of the driver table for `rclcpp`.

use core::ffi::CStr;
use core::mem::MaybeUninit;
use std::sync::atomic::Ordering::SeqCst;

use tailbound_abi::side::{self, Fail, Host, Outcome, Pair, Waited, Wanted, fail};
use tailbound_abi::{TB_EUNSUPPORTED, tb_view};

use super::session::Session;
use super::{describe, query};
use crate::facts::Known;
use crate::message;
use crate::until;

impl side::Session for Session {
    const MAX_PAYLOAD_BYTES: u64 = message::MAX_PAYLOAD_BYTES;

    fn describe() -> &'static CStr {
        describe::describe()
    }

    fn open(pairs: &[Pair], host: Host) -> Outcome<Session> {
        Session::new(pairs, host)
    }

    fn host(&self) -> &Host {
        &self.host
    }

    fn create(&self, wanted: &Wanted) -> Outcome<u32> {
        self.endpoints.add(|id| self.make(id, wanted))
    }

    fn wait_matched(&self, id: u32, peers: u32, deadline_ns: i64) -> Outcome {
        let endpoint = self.endpoint(id)?;
        until::matched((&self.host, endpoint.tag, &endpoint.topic), (peers, deadline_ns), || endpoint.matched())
    }

    #[inline]
    fn send(&self, id: u32, seq: u64, payload: &[u8], _batch: bool) -> Outcome {
        self.endpoint(id)?.send(seq, payload)
    }

    fn wait(&self, _ids: &[u32], _deadline_ns: i64) -> Outcome<Waited> {
        fail(TB_EUNSUPPORTED, "the driver rclcpp receives in callbacks only")
    }

    fn take(&self, id: u32, _out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        self.endpoint(id)?.verify(false)?;
        fail(TB_EUNSUPPORTED, "the driver rclcpp receives in callbacks only")
    }

    /// Does nothing, because no message is lent.
    fn release(&self, id: u32, _views: &mut [tb_view]) -> Outcome {
        self.endpoint(id).map(drop)
    }

    /// Does nothing, because nobody waits.
    fn wake(&self) -> Outcome {
        Ok(())
    }

    /// Returns immediately, because rclcpp never keeps messages to send them together.
    fn flush(&self, id: u32, _deadline_ns: i64) -> Outcome {
        self.endpoint(id)?.verify(false)
    }

    fn wait_acked(&self, id: u32, deadline_ns: i64) -> Outcome {
        let endpoint = self.endpoint(id)?;
        endpoint.verify(true)?;
        until::acked(deadline_ns, |step| endpoint.acked(step))
    }

    fn query(&self, id: u32, what: &str) -> Outcome<Vec<u8>> {
        query::answer(self, id, what).map(|answer| answer.to_string().into_bytes())
    }

    /// Ends the callbacks of an end point, then removes the end point from the network.
    fn destroy(&self, id: u32) -> Outcome {
        let endpoint = self.endpoint(id)?;
        if endpoint.closed.swap(true, SeqCst) {
            return Err(Fail::closed(id));
        }
        endpoint.remove();
        Ok(())
    }
}
