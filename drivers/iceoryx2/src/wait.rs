//! Waiting for samples, for `wake`, and for the end of an end point.

use std::sync::atomic::Ordering::SeqCst;

use tailbound_abi::side::{Fail, MAX_READERS, Outcome, Waited, fail};
use tailbound_abi::{TB_EINVAL, TB_ETIMEDOUT};

use crate::deadline::left;
use crate::flag::{poll, readable};
use crate::session::Session;

/// Blocks until one of the readers has a sample (bit i of the result is `ids[i]`), or until `wake` is called.
pub fn wait(session: &Session, ids: &[u32], deadline_ns: i64) -> Outcome<Waited> {
    let mut held = [const { None }; MAX_READERS];
    let mut fds = [readable(-1); MAX_READERS + 2];
    fds[0] = session.woken.watched();
    fds[1] = session.closing.watched();
    for (i, id) in ids.iter().enumerate() {
        let ports = session.endpoint(*id)?.held()?;
        let Some(fd) = ports.reader()?.event_fd() else {
            return fail(TB_EINVAL, format!("end point {id} is not a reader with receive mode block"));
        };
        fds[i + 2] = readable(fd);
        held[i] = Some(ports);
    }
    let readers = || ids.iter().zip(held.iter().flatten()).enumerate();
    loop {
        let mut ready = 0;
        for (i, (id, ports)) in readers() {
            if session.endpoint(*id)?.closed.load(SeqCst) {
                return Err(Fail::closed(*id));
            }
            ready |= u64::from(ports.reader()?.has_sample()?) << i;
        }
        if ready != 0 {
            return Ok(Waited::Ready(ready));
        }
        let Some(left) = left(deadline_ns) else { return fail(TB_ETIMEDOUT, "no sample arrived until the deadline") };
        poll(&mut fds[..ids.len() + 2], Some(left));
        if fds[0].revents != 0 && session.woken.take() {
            return Ok(Waited::Woken);
        }
        // First the events, then the look for messages: an event that comes between them is read the next time.
        for (i, (_, ports)) in readers() {
            if fds[i + 2].revents != 0 {
                ports.reader()?.forget_events()?;
            }
        }
    }
}
