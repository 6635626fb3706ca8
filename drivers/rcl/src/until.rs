//! Waits until something has happened at an end point, by repeated looks.

use core::ffi::CStr;
use std::time::Duration;

use tailbound_abi::TB_ETIMEDOUT;
use tailbound_abi::side::{Host, Outcome, fail};

use crate::deadline::left;

/// Time between two looks at the number of matched peers.
const LOOK: Duration = Duration::from_millis(2);
/// Longest time in which one call waits for acknowledgements, so that an end point can be destroyed.
const STEP: Duration = Duration::from_millis(100);

/// Waits until an end point has `peers` matched peers, and passes each new number on with the tag of the end point. `matched` looks.
///
/// # Errors
/// The deadline (monotonic ns) passes, or `matched` fails.
pub fn matched(
    (host, tag, topic): (&Host, u64, &CStr),
    (peers, deadline_ns): (u32, i64),
    matched: impl Fn() -> Outcome<usize>,
) -> Outcome {
    let mut before = None;
    loop {
        let have = matched()?;
        if before.replace(have) != Some(have) {
            // SAFETY: the session is not closed while one of its functions runs.
            unsafe { host.on_match(tag, have as i32) };
        }
        if have >= peers as usize {
            return Ok(());
        }
        let Some(left) = left(deadline_ns) else {
            let topic = topic.to_string_lossy();
            return fail(TB_ETIMEDOUT, format!("{have} of {peers} peers matched on {topic}"));
        };
        std::thread::sleep(LOOK.min(left));
    }
}

/// Waits until all samples are acknowledged. `acked` waits for at most the given time, and returns whether they are.
///
/// # Errors
/// The deadline (monotonic ns) passes, or `acked` fails.
pub fn acked(deadline_ns: i64, acked: impl Fn(Duration) -> Outcome<bool>) -> Outcome {
    loop {
        let step = left(deadline_ns).unwrap_or(Duration::ZERO).min(STEP);
        if acked(step)? {
            return Ok(());
        }
        if step < STEP {
            return fail(TB_ETIMEDOUT, "not all samples were acknowledged before the deadline");
        }
    }
}
