//! Waiting for samples, for `wake`, and for the end of an end point.

use std::ptr::null_mut;
use std::sync::atomic::Ordering::SeqCst;

use tailbound_abi::side::{Fail, MAX_READERS, Outcome, Waited, fail};
use tailbound_abi::{TB_BLOCK, TB_EINVAL, TB_ETIMEDOUT};

use crate::deadline::left;
use crate::endpoint::{Endpoint, Held};
use crate::session::Session;

/// Guard: while this value exists, each of the end points counts one more call that waits on it.
struct Waiting<'a>([Option<&'a Endpoint>; MAX_READERS]);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        for endpoint in self.0.iter().flatten() {
            endpoint.waiting.fetch_sub(1, SeqCst);
        }
    }
}

/// Blocks until one of the readers has a sample (bit i of the result is `ids[i]`), or until `wake` is called.
pub fn wait(session: &Session, ids: &[u32], deadline_ns: i64) -> Outcome<Waited> {
    let mut waiting = Waiting([None; MAX_READERS]);
    let mut held = [const { None::<Held> }; MAX_READERS];
    let mut handles = [null_mut(); MAX_READERS];
    for (i, id) in ids.iter().enumerate() {
        let endpoint = session.endpoint(*id)?;
        endpoint.waiting.fetch_add(1, SeqCst);
        waiting.0[i] = Some(endpoint);
        let one = endpoint.held()?;
        if endpoint.is_writer() || endpoint.mode != TB_BLOCK {
            return fail(TB_EINVAL, format!("end point {id} is not a reader with receive mode block"));
        }
        handles[i] = one.entity()?.pointer();
        held[i] = Some(one);
    }
    // The set of several readers belongs to the first context, also if they are in two.
    let set = match (&held[0], ids.len()) {
        (Some(held), 1) => held.subscribed()?.set.clone().ok_or_else(|| Fail::closed(ids[0]))?,
        _ => session.sets.of((session.ros, &session.contexts[0]), ids)?,
    };
    let set = set.lock();
    loop {
        if session.woken.swap(false, SeqCst) {
            return Ok(Waited::Woken);
        }
        // After the deadline, too, samples that have arrived are found.
        let left = left(deadline_ns);
        let ready = set.once(&handles[..ids.len()], left.unwrap_or_default().as_nanos() as i64)?;
        if let Some(closed) = waiting.0.iter().flatten().find(|endpoint| endpoint.closed.load(SeqCst)) {
            return Err(Fail::closed(closed.id));
        }
        match (ready, left) {
            (0, Some(_)) => {}
            (0, None) => return fail(TB_ETIMEDOUT, "no sample arrived until the deadline"),
            (ready, _) => return Ok(Waited::Ready(ready)),
        }
    }
}
