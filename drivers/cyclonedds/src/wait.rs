//! Waiting: the waitset for blocking readers, waits for acknowledgements, and how waits end.

use std::sync::Mutex;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tailbound_abi as abi;
use tailbound_abi::side::{MAX_READERS, Outcome, Waited, fail};

use crate::deadline::left;
use crate::endpoint::{Endpoint, Waiting};
use crate::error::check;
use crate::ffi;

/// Number that Cyclone's waitset reports if `wake` was called.
const WAKE: ffi::dds_attach_t = -1;
/// Number that Cyclone's waitset reports if an end point is being destroyed.
const CLOSING: ffi::dds_attach_t = -2;
/// Longest duration of one wait in Cyclone that cannot be interrupted. A longer wait for acknowledgements is divided
/// into several such waits, so that it ends when the end point is closed.
const STEP: Duration = Duration::from_millis(20);

/// Makes a waitset over read conditions (reported by their index) and the session's two guard conditions.
///
/// # Safety
/// The handles belong to `participant`.
pub unsafe fn new_set(
    participant: ffi::dds_entity_t,
    conditions: &[ffi::dds_entity_t],
    guards: [ffi::dds_entity_t; 2],
) -> Outcome<ffi::dds_entity_t> {
    // SAFETY: Cyclone checks the handles.
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

/// The waitsets for several readers that were requested so far; the waitsets exist as long as the session.
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
        // SAFETY: all handles belong to this session.
        let set = unsafe { new_set(participant, &conditions, guards) }?;
        sets.push((readers.iter().map(|r| r.id).collect(), set));
        Ok(set)
    }

    /// Deletes all Cyclone waitsets that contain several readers.
    pub fn clear(&self) {
        for (_, set) in self.0.lock().unwrap_or_else(|e| e.into_inner()).drain(..) {
            // SAFETY: no call waits when the session ends.
            unsafe { ffi::dds_delete(set) };
        }
    }

    /// Deletes the Cyclone waitsets that contain the destroyed end point.
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

/// Blocks until one of `readers` has a sample (bit i of the result is `readers[i]`), or until `wake` is called.
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
            return fail(abi::TB_EINVAL, format!("end point {} is not a reader with receive mode block", reader.id));
        }
    }
    let set = match readers {
        [reader] => reader.open()?.waitset,
        _ => sets.of(participant, readers, guards)?,
    };
    loop {
        // After the deadline, too, samples that have arrived are found: an executor that is late asks so.
        let left = left(deadline_ns);
        let limit_ns = left.unwrap_or(Duration::ZERO).as_nanos() as i64;
        let mut triggered: [ffi::dds_attach_t; MAX_READERS + 2] = [0; MAX_READERS + 2];
        // SAFETY: the array has the given length.
        let n = unsafe { ffi::dds_waitset_wait(set, triggered.as_mut_ptr(), triggered.len(), limit_ns) };
        for reader in readers {
            reader.open()?;
        }
        let n = check("dds_waitset_wait", n)? as usize;
        let mut ready = 0_u64;
        for &number in &triggered[..n.min(triggered.len())] {
            match number {
                WAKE => {
                    let mut was = false;
                    // SAFETY: the guard belongs to this session.
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
        if left.is_none() {
            return fail(abi::TB_ETIMEDOUT, "no sample arrived until the deadline");
        }
    }
}

/// Waits until every message that a writer sent is acknowledged.
pub fn wait_acked(endpoint: &Endpoint, deadline_ns: i64) -> Outcome {
    let _waiting = Waiting::on(core::slice::from_ref(&endpoint));
    loop {
        let made = endpoint.open()?;
        let step = left(deadline_ns).unwrap_or(Duration::ZERO).min(STEP);
        // SAFETY: Cyclone refuses an invalid handle.
        match unsafe { ffi::dds_wait_for_acks(made.entity, step.as_nanos() as i64) } {
            ffi::DDS_RETCODE_TIMEOUT if step < STEP => {
                return fail(abi::TB_ETIMEDOUT, "not all samples were acknowledged before the deadline");
            }
            ffi::DDS_RETCODE_TIMEOUT => {}
            ret => return check("dds_wait_for_acks", ret).map(drop),
        }
    }
}

/// Marks an end point as closed and returns when no call waits on the end point any more.
pub fn end_waits(endpoint: &Endpoint, guards: [ffi::dds_entity_t; 2]) {
    endpoint.closed.store(true, SeqCst);
    endpoint.nudge();
    while endpoint.waiting.load(SeqCst) > 0 {
        // SAFETY: the guard belongs to this session. The guard stays set until the last wait has seen it.
        unsafe { ffi::dds_set_guardcondition(guards[1], true) };
        std::thread::sleep(Duration::from_micros(100));
    }
    // SAFETY: the guard belongs to this session.
    unsafe { ffi::dds_set_guardcondition(guards[1], false) };
}
