//! Waiting for samples, for `wake`, and for the end of an end point.

use std::sync::atomic::Ordering::SeqCst;

use tailbound_abi::side::{Fail, MAX_READERS, Outcome, Waited, fail};
use tailbound_abi::{TB_EINVAL, TB_ETIMEDOUT};

use crate::deadline::left;
use crate::session::Session;

/// Blocks until one of the readers has a sample (bit i of the result is `ids[i]`), or until `wake` is called.
pub fn wait(session: &Session, ids: &[u32], deadline_ns: i64) -> Outcome<Waited> {
    let mut queues = [const { None }; MAX_READERS];
    for (i, id) in ids.iter().enumerate() {
        let endpoint = session.endpoint(*id)?;
        if !endpoint.blocks {
            return fail(TB_EINVAL, format!("end point {id} is not a reader with receive mode block"));
        }
        // The queue outlives its reader, so that `destroy` need not wait for this call.
        queues[i] = Some(endpoint.held()?.reader()?.queue.clone());
    }
    loop {
        let seen = session.events.now();
        let mut ready = 0;
        for (i, (id, queue)) in ids.iter().zip(queues.iter().flatten()).enumerate() {
            if session.endpoint(*id)?.closed.load(SeqCst) {
                return Err(Fail::closed(*id));
            }
            ready |= u64::from(queue.has_message()) << i;
        }
        if ready != 0 {
            return Ok(Waited::Ready(ready));
        }
        if session.woken.swap(false, SeqCst) {
            return Ok(Waited::Woken);
        }
        let Some(left) = left(deadline_ns) else { return fail(TB_ETIMEDOUT, "no sample arrived until the deadline") };
        session.events.sleep(seen, left);
    }
}
