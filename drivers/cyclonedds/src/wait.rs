//! Waiting: the waitset over blocking readers, acknowledgements, and the end of both.

use std::sync::Mutex;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tailbound_abi as abi;
use tailbound_abi::side::{MAX_READERS, Outcome, Waited, fail};

use crate::endpoint::{Endpoint, Waiting};
use crate::error::check;
use crate::ffi;

/// What the waitset reports for `wake`.
const WAKE: ffi::dds_attach_t = -1;
/// What it reports when an end point is being destroyed.
const CLOSING: ffi::dds_attach_t = -2;
/// Longest step of a wait that Cyclone cannot be woken from.
const STEP: Duration = Duration::from_millis(20);

/// Time left until a deadline; none when it has passed.
pub fn left(deadline_ns: i64) -> Option<Duration> {
    if deadline_ns == abi::TB_FOREVER {
        return Some(Duration::from_secs(3600));
    }
    let left = deadline_ns.saturating_sub(now_ns());
    (left > 0).then(|| Duration::from_nanos(left as u64))
}

/// CLOCK_MONOTONIC.
fn now_ns() -> i64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills the struct given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

/// A waitset over read conditions (reported by index) and the session's two guard conditions.
///
/// # Safety
/// The handles belong to `participant`.
pub unsafe fn new_set(
    participant: ffi::dds_entity_t,
    conditions: &[ffi::dds_entity_t],
    guards: [ffi::dds_entity_t; 2],
) -> Outcome<ffi::dds_entity_t> {
    // SAFETY: handles are checked by Cyclone.
    unsafe {
        let set = check("dds_create_waitset", ffi::dds_create_waitset(participant))?;
        let all = conditions.iter().copied().zip(0..).chain(guards.into_iter().zip([WAKE, CLOSING]));
        for (entity, number) in all {
            check("dds_waitset_attach", ffi::dds_waitset_attach(set, entity, number)).inspect_err(|_| {
                ffi::dds_delete(set);
            })?;
        }
        Ok(set)
    }
}

/// The waitsets over several readers that have been asked for, kept for the session's life.
#[derive(Default)]
pub struct Sets(Mutex<Vec<(Vec<u32>, ffi::dds_entity_t)>>);

impl Sets {
    fn of(
        &self,
        participant: ffi::dds_entity_t,
        readers: &[&Endpoint],
        guards: [ffi::dds_entity_t; 2],
    ) -> Outcome<ffi::dds_entity_t> {
        let mut sets = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, set)) = sets.iter().find(|(ids, _)| ids.iter().copied().eq(readers.iter().map(|r| r.id))) {
            return Ok(*set);
        }
        let conditions: Vec<_> = readers.iter().map(|r| r.open().map(|made| made.condition)).collect::<Outcome<_>>()?;
        // SAFETY: all of this session.
        let set = unsafe { new_set(participant, &conditions, guards) }?;
        sets.push((readers.iter().map(|r| r.id).collect(), set));
        Ok(set)
    }

    /// Forgets all.
    pub fn clear(&self) {
        for (_, set) in self.0.lock().unwrap_or_else(|e| e.into_inner()).drain(..) {
            // SAFETY: no call waits any more when the session ends.
            unsafe { ffi::dds_delete(set) };
        }
    }

    /// Forgets the waitsets that hold an end point that is gone.
    pub fn without(&self, id: u32) {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).retain(|(ids, set)| {
            let keep = !ids.contains(&id);
            if !keep {
                // SAFETY: no call waits on a set of a destroyed end point.
                unsafe { ffi::dds_delete(*set) };
            }
            keep
        });
    }
}

/// Blocks until one of `readers` has a sample (bit i is `readers[i]`), or `wake`.
pub fn wait(
    sets: &Sets,
    participant: ffi::dds_entity_t,
    guards: [ffi::dds_entity_t; 2],
    readers: &[&Endpoint],
    deadline_ns: i64,
) -> Outcome<Waited> {
    let _waiting = Waiting::on(readers);
    for reader in readers {
        reader.open()?;
        if reader.kind != abi::TB_READER || reader.mode != abi::TB_BLOCK {
            return fail(abi::TB_EINVAL, format!("end point {} is not a reader in the mode block", reader.id));
        }
    }
    let set = match readers {
        [reader] => reader.open()?.waitset,
        _ => sets.of(participant, readers, guards)?,
    };
    loop {
        let Some(left) = left(deadline_ns) else {
            return fail(abi::TB_ETIMEDOUT, "no sample until the deadline");
        };
        let mut triggered: [ffi::dds_attach_t; MAX_READERS + 2] = [0; MAX_READERS + 2];
        // SAFETY: the array has the length given.
        let n = unsafe { ffi::dds_waitset_wait(set, triggered.as_mut_ptr(), triggered.len(), left.as_nanos() as i64) };
        for reader in readers {
            reader.open()?;
        }
        let n = check("dds_waitset_wait", n)? as usize;
        let mut ready = 0_u64;
        for &number in &triggered[..n.min(triggered.len())] {
            match number {
                WAKE => {
                    let mut was = false;
                    // SAFETY: the guard of this session.
                    unsafe { ffi::dds_take_guardcondition(guards[0], &mut was) };
                    return Ok(Waited::Woken);
                }
                CLOSING => {}
                number => ready |= 1 << number,
            }
        }
        if ready != 0 {
            return Ok(Waited::Ready(ready));
        }
    }
}

/// Waits until all that a writer sent is acknowledged.
pub fn wait_acked(endpoint: &Endpoint, deadline_ns: i64) -> Outcome {
    let _waiting = Waiting::on(core::slice::from_ref(&endpoint));
    loop {
        let made = endpoint.open()?;
        let step = left(deadline_ns).unwrap_or(Duration::ZERO).min(STEP);
        // SAFETY: a stale handle is refused by Cyclone.
        match unsafe { ffi::dds_wait_for_acks(made.entity, step.as_nanos() as i64) } {
            ffi::DDS_RETCODE_TIMEOUT if step < STEP => {
                return fail(abi::TB_ETIMEDOUT, "not all samples were acknowledged before the deadline");
            }
            ffi::DDS_RETCODE_TIMEOUT => {}
            ret => return check("dds_wait_for_acks", ret).map(drop),
        }
    }
}

/// Marks an end point closed and returns when no call waits on it any more.
pub fn end_waits(endpoint: &Endpoint, guards: [ffi::dds_entity_t; 2]) {
    endpoint.closed.store(true, SeqCst);
    endpoint.nudge();
    while endpoint.waiting.load(SeqCst) > 0 {
        // SAFETY: the guard of this session. It stays set until the last wait has seen it.
        unsafe { ffi::dds_set_guardcondition(guards[1], true) };
        std::thread::sleep(Duration::from_micros(100));
    }
    // SAFETY: as above.
    unsafe { ffi::dds_set_guardcondition(guards[1], false) };
}
