//! Finds out whether a message can be taken inside the callback of this middleware.
//!
//! Some middlewares hold a lock while they call back, which a take needs too: a take inside the callback would never return.
//! So the test does not take inside it. The callback waits for a moment, and another thread takes meanwhile. If that take
//! returns while the callback still waits, no such lock is held.

use core::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tailbound_abi::side::Outcome;

use crate::context::{Context, c_string};
use crate::entity::Entity;
use crate::library::Ros;
use crate::message::Buffer;
use crate::qos;
use crate::reader::Reader;

/// Time for which the callback waits for the take of the other thread.
const WHILE_CALLED: Duration = Duration::from_secs(2);
/// Time in which the message of the test must arrive.
const ARRIVES: Duration = Duration::from_secs(3);

/// How messages reach a listener, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callback {
    /// A take inside the callback is possible.
    Direct,
    /// The middleware holds a lock during the callback that a take needs.
    Locks,
    /// The message of the test did not arrive, so that nothing is known; messages are handed over.
    Unknown,
    /// The middleware has no callbacks.
    Missing,
}

impl Callback {
    pub fn words(self) -> &'static str {
        match self {
            Callback::Direct => "taken inside the callback, as a test with this middleware showed",
            Callback::Locks => {
                "handed over to a thread of the driver, because this middleware holds a lock during the callback that a take needs"
            }
            Callback::Missing => "not possible: this middleware has no callback for new messages",
            Callback::Unknown => {
                "handed over to a thread of the driver, because a test whether they can be taken inside the callback did not end"
            }
        }
    }
}

#[derive(Default)]
struct State {
    called: bool,
    taken: bool,
    /// Whether the take ended while the callback ran; `None` = the callback has not ended.
    while_called: Option<bool>,
}

#[derive(Default)]
struct Test {
    state: Mutex<State>,
    changed: Condvar,
}

impl Test {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits until the condition holds, and returns whether it does.
    fn until(&self, limit: Duration, holds: impl Fn(&State) -> bool) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (state, _) =
            self.changed.wait_timeout_while(state, limit, |s| !holds(s)).unwrap_or_else(PoisonError::into_inner);
        holds(&state)
    }
}

unsafe extern "C" fn called(test: *const c_void, _number: usize) {
    // SAFETY: the argument that was given with this function.
    let test = unsafe { &*test.cast::<Test>() };
    if test.state.lock().unwrap_or_else(PoisonError::into_inner).called {
        return;
    }
    test.change(|state| state.called = true);
    let taken = test.until(WHILE_CALLED, |state| state.taken);
    test.change(|state| state.while_called = Some(taken));
}

/// The result of the test, which runs once per process, on a topic of its own. It also shows whether messages and their
/// structures have the known layout.
///
/// # Errors
/// The middleware refuses the end points of the test, or a message cannot be published or taken.
pub fn callback(ros: &'static Ros, context: &Context) -> Outcome<Callback> {
    static RESULT: Mutex<Option<Callback>> = Mutex::new(None);
    let mut result = RESULT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = *result {
        return Ok(known);
    }
    let topic = c_string(&format!("/tailbound_self_test_{}", std::process::id()))?;
    let entity = |is_writer| Entity::new(ros, context, &topic, &qos::default_options(ros, is_writer)?, is_writer);
    let publisher = entity(true)?;
    let found = run(&Reader::new(entity(false)?, 8)?, &publisher)?;
    *result = Some(found);
    Ok(found)
}

fn run(reader: &Reader, publisher: &Entity) -> Outcome<Callback> {
    let ros = publisher.ros;
    let mut buffer = Buffer::new(ros, 8)?;
    buffer.write(0, &[0; 8]);
    let test = Test::default();
    let set = ros.f.rcl_subscription_set_on_new_message_callback;
    // SAFETY: the test lives until the callback is removed below.
    let result = unsafe { set(reader.entity.pointer(), Some(called), (&raw const test).cast()) };
    let calls_back = ros.check("rcl_subscription_set_on_new_message_callback", result).is_ok();
    let taken = std::thread::scope(|scope| {
        let take = || {
            let begun = Instant::now();
            loop {
                let may_take = !calls_back || test.until(ARRIVES, |state| state.called);
                match may_take.then(|| reader.verified_next()) {
                    Some(Ok(None)) if begun.elapsed() < ARRIVES => std::thread::sleep(Duration::from_millis(1)),
                    Some(Ok(next)) => {
                        test.change(|state| state.taken = true);
                        return Ok(next.is_some());
                    }
                    Some(Err(fail)) => return Err(fail),
                    None => return Ok(false),
                }
            }
        };
        let thread = scope.spawn(take);
        // The end points of one context can need a moment to match.
        let begun = Instant::now();
        let mut sent = Ok(());
        while sent.is_ok() && begun.elapsed() < ARRIVES && !thread.is_finished() {
            // SAFETY: all pointers are valid during the call.
            let result =
                unsafe { (ros.f.rcl_publish_serialized_message)(publisher.pointer(), buffer.raw(), null_mut()) };
            sent = ros.check("rcl_publish_serialized_message", result);
            test.until(Duration::from_millis(20), |state| state.taken);
        }
        let taken = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent.and(taken)
    });
    test.until(ARRIVES, |state| !state.called || state.while_called.is_some());
    if calls_back {
        // SAFETY: rcl accepts no function, which removes the callback before the test ends.
        ros.ignore(unsafe { set(reader.entity.pointer(), None, null()) });
    }
    let state = test.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(match (calls_back, taken?, state.while_called) {
        (false, ..) => Callback::Missing,
        (true, true, Some(true)) => Callback::Direct,
        (true, true, Some(false)) => Callback::Locks,
        _ => Callback::Unknown,
    })
}
