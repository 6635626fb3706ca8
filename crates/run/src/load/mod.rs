//! The built-in loads: `tailbound agent --load KIND` runs until SIGTERM and prints how much it did.
//!
//! A load that sends over the path has a process at each place, and reads an order as JSON from standard input.

mod stream;
pub(crate) mod topic;
mod work;

use crate::end_plan::DriverSource;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use tailbound_model::{LoadDone, LoadPart, LoadSpec, Problem};
use tailbound_wire::{EndOrder, Order};

static OVER: AtomicBool = AtomicBool::new(false);

extern "C" fn over(_: i32) {
    OVER.store(true, Relaxed);
}

fn is_over() -> bool {
    OVER.load(Relaxed)
}

/// Counts that a load reports when it ends; `None` = the load has no such count.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Did {
    /// Number of bytes that the load processed, sent or received.
    pub bytes: Option<u64>,
    /// Number of passes over its memory or image, or of system calls, that the load did.
    pub rounds: Option<u64>,
    /// Number of messages that the load sent or received.
    pub messages: Option<u64>,
    /// Number of messages that the load sent a period or more after they were due.
    pub late: Option<u64>,
    /// Number of messages of the load that the driver or the kernel refused to send.
    pub refused: Option<u64>,
    /// Number of messages of the load that were not received, up to the last received message.
    pub missing: Option<u64>,
}

impl Did {
    /// Copies these counts into the result of the load.
    pub fn tell(self, done: &mut LoadDone) {
        (done.bytes, done.rounds, done.messages) = (self.bytes, self.rounds, self.messages);
        (done.late, done.refused, done.missing) = (self.late, self.refused, self.missing);
    }
}

/// The sender or the receiver of a load that sends over the path.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Half {
    pub part: LoadPart,
    /// Index of the load among the loads of the trial.
    pub index: usize,
    /// Index of the end at whose place this sender or receiver of the load runs.
    pub end: usize,
    pub order: Order,
    /// True if the sender or receiver waits before it begins. Standard input is then a socket: the process writes to
    /// the socket when it is matched with the other process, and sends once the supervisor has answered.
    pub held: bool,
}

/// Makes the [`Problem`] for a load that cannot run, or that failed.
fn broken(what: impl Into<String>) -> Problem {
    Problem::new("load", what, "")
}

impl Half {
    fn spec(&self) -> Result<&LoadSpec, Problem> {
        self.order
            .spec
            .loads
            .get(self.index)
            .ok_or_else(|| broken("the controller's order has no load with the index of this process"))
    }

    fn end(&self) -> Result<&EndOrder, Problem> {
        self.order.ends.get(self.end).ok_or_else(|| {
            broken("the order of the controller does not contain the end with the number of this process")
        })
    }
}

/// Runs the built-in load `word` until SIGTERM. Returns the exit code.
pub fn main(word: &str, drivers: DriverSource) -> i32 {
    // SAFETY: the handler stores one flag.
    unsafe { libc::signal(libc::SIGTERM, over as *const () as libc::sighandler_t) };
    // The name that `top` and the report show. The kernel cuts names after 15 bytes.
    let _ = nix::sys::prctl::set_name(&std::ffi::CString::new(format!("tb-load-{word}")).unwrap_or_default());
    // Only the JSON value is read: on a socket, the start message follows.
    let half = || -> Result<Half, Problem> {
        let half = serde_json::Deserializer::from_reader(std::io::stdin()).into_iter().next();
        half.ok_or_else(|| broken("the load process received no order on standard input"))?
            .map_err(|e| broken(e.to_string()))
    };
    let did = match word {
        "udp-stream" => half().and_then(|half| stream::run(&half)),
        "topic" => half().and_then(|half| topic::run(&half, drivers)),
        _ => match work::run(word) {
            Some(did) => Ok(did),
            None => return 2,
        },
    };
    match did {
        Ok(did) => {
            // If the supervisor is gone, nobody needs the counts.
            let _ = writeln!(std::io::stdout(), "{}", serde_json::to_string(&did).unwrap_or_default());
            0
        }
        Err(problem) => {
            eprintln!("{problem}");
            1
        }
    }
}
