//! Wait sets and guard conditions of rcl.

use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tailbound_abi::TB_EUNSUPPORTED;
use tailbound_abi::side::{Outcome, fail};

use crate::context::{Context, allocator};
use crate::guarded::Guarded;
use crate::library::Ros;
use crate::types::{Handle, InContext, RET_OK, RET_TIMEOUT, WaitSet};

/// A guard condition of rcl, with which a thread ends the wait of another one.
struct Guard {
    ros: &'static Ros,
    condition: Box<Guarded<InContext>>,
}

impl Guard {
    fn new(ros: &'static Ros, context: &Context) -> Outcome<Guard> {
        let new = Guard { ros, condition: Guarded::new(InContext::NONE) };
        let init = ros.f.rcl_guard_condition_init;
        // SAFETY: all pointers are valid during the call; the condition is zero, as rcl wants it.
        let result = unsafe { init(new.condition.pointer(), context.context(), allocator(ros)) };
        ros.check("rcl_guard_condition_init", result)?;
        new.condition.verify("rcl_guard_condition_t")?;
        Ok(new)
    }

    /// Ends one wait: one that is blocked, or the next one.
    fn trigger(&self) -> Outcome {
        // SAFETY: the condition is valid until this value is dropped.
        let result = unsafe { (self.ros.f.rcl_trigger_guard_condition)(self.condition.pointer()) };
        self.ros.check("rcl_trigger_guard_condition", result)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: no wait uses the condition any more.
        self.ros.ignore(unsafe { (self.ros.f.rcl_guard_condition_fini)(self.condition.pointer()) });
    }
}

/// A wait set for a number of subscriptions, with a guard condition of its own: rcl does not permit two threads to wait on sets
/// that have one in common.
pub struct Set {
    /// Only one thread at a time may wait.
    raw: Mutex<RawSet>,
    guard: Guard,
}

struct RawSet {
    ros: &'static Ros,
    set: Box<Guarded<WaitSet>>,
}

impl Set {
    pub fn new(ros: &'static Ros, context: &Context, readers: usize) -> Outcome<Set> {
        let zero = WaitSet {
            subscriptions: null_mut(),
            subscriptions_len: 0,
            guards: null_mut(),
            guards_len: 0,
            others: [0; 8],
            implementation: null_mut(),
        };
        let new = RawSet { ros, set: Guarded::new(zero) };
        let init = ros.f.rcl_wait_set_init;
        // SAFETY: all pointers are valid during the call; the set is zero, as rcl wants it.
        let result = unsafe { init(new.set.pointer(), readers, 1, 0, 0, 0, 0, context.context(), allocator(ros)) };
        ros.check("rcl_wait_set_init", result)?;
        new.set.verify("rcl_wait_set_t")?;
        // SAFETY: rcl wrote the structure, and nothing else uses it.
        let raw = unsafe { &*new.set.pointer() };
        let lengths = [raw.others[1], raw.others[3], raw.others[5], raw.others[7]];
        if (raw.subscriptions_len, raw.guards_len, lengths) != (readers, 1, [0; 4]) {
            let found = format!("{} subscriptions, {} guard conditions", raw.subscriptions_len, raw.guards_len);
            return fail(
                TB_EUNSUPPORTED,
                format!(
                    "rcl_wait_set_t: this ROS 2 has another layout than the distributions from Humble to Lyrical ({found} instead \
                     of {readers} and 1); the driver cannot be used with it"
                ),
            );
        }
        Ok(Set { raw: Mutex::new(new), guard: Guard::new(ros, context)? })
    }

    /// Ends one wait on the set: one that is blocked, or the next one.
    pub fn end_wait(&self) -> Outcome {
        self.guard.trigger()
    }

    /// The set, for the only thread that waits on it.
    pub fn lock(&self) -> Locked<'_> {
        Locked { raw: self.raw.lock().unwrap_or_else(PoisonError::into_inner), guard: &self.guard }
    }
}

/// A wait set on which no other thread waits.
pub struct Locked<'a> {
    raw: MutexGuard<'a, RawSet>,
    guard: &'a Guard,
}

impl Locked<'_> {
    /// Waits once, at most for `limit_ns`, and returns the readers that have samples as bits.
    #[inline]
    pub fn once(&self, readers: &[*mut Handle], limit_ns: i64) -> Outcome<u64> {
        let RawSet { ros, set } = &*self.raw;
        let (f, set) = (&ros.f, set.pointer());
        // SAFETY: the set has room for these subscriptions and the condition; they are valid during the call. rcl sets the
        // pointer of each one that is not ready to null.
        unsafe {
            let mut result = (f.rcl_wait_set_clear)(set);
            for reader in readers {
                result |= (f.rcl_wait_set_add_subscription)(set, *reader, null_mut());
            }
            result |= (f.rcl_wait_set_add_guard_condition)(set, self.guard.condition.pointer(), null_mut());
            ros.check("rcl_wait_set_add_subscription", result)?;
            match (f.rcl_wait)(set, limit_ns) {
                RET_OK | RET_TIMEOUT => {}
                result => return Err(ros.error("rcl_wait", result)),
            }
            let mut ready = 0;
            for i in 0..readers.len() {
                ready |= u64::from(!(*(*set).subscriptions.add(i)).is_null()) << i;
            }
            Ok(ready)
        }
    }
}

impl Drop for RawSet {
    fn drop(&mut self) {
        // SAFETY: no call waits on the set any more.
        self.ros.ignore(unsafe { (self.ros.f.rcl_wait_set_fini)(self.set.pointer()) });
    }
}

/// All wait sets of a session, by the numbers of their readers.
#[derive(Default)]
pub struct Sets(Mutex<Vec<(Vec<u32>, Arc<Set>)>>);

impl Sets {
    fn all(&self) -> MutexGuard<'_, Vec<(Vec<u32>, Arc<Set>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The set for these readers; it is made if it is not there.
    pub fn of(&self, (ros, context): (&'static Ros, &Context), ids: &[u32]) -> Outcome<Arc<Set>> {
        let mut sets = self.all();
        if let Some((_, set)) = sets.iter().find(|(own, _)| own == ids) {
            return Ok(set.clone());
        }
        let set = Arc::new(Set::new(ros, context, ids.len())?);
        sets.push((ids.to_vec(), set.clone()));
        Ok(set)
    }

    /// Ends one wait on each set, or on each set with this reader.
    pub fn end_waits(&self, of: Option<u32>) -> Outcome {
        let sets = self.all();
        let mut chosen = sets.iter().filter(|(ids, _)| of.is_none_or(|id| ids.contains(&id)));
        chosen.try_for_each(|(_, set)| set.end_wait())
    }

    /// Removes the sets that contain the destroyed end point.
    pub fn without(&self, id: u32) {
        self.all().retain(|(ids, _)| !ids.contains(&id));
    }

    /// Removes all sets.
    pub fn clear(&self) {
        self.all().clear();
    }
}
