//! The built-in loads: `tailbound agent --load KIND` works until SIGTERM and says on standard output how much it did.
//!
//! Those that send over the path get what they need as JSON on standard input, and run once at each place.

mod stream;
pub(crate) mod topic;
mod work;

use crate::measure::DriverSource;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use tailbound_model::{LoadDone, LoadPart, LoadSpec};
use tailbound_wire::{EndOrder, Order};

static OVER: AtomicBool = AtomicBool::new(false);

extern "C" fn over(_: i32) {
    OVER.store(true, Relaxed);
}

fn is_over() -> bool {
    OVER.load(Relaxed)
}

/// What a load did, as far as it counts that.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Did {
    /// Octets worked through, sent or received.
    pub octets: Option<u64>,
    /// Rounds or calls.
    pub rounds: Option<u64>,
    /// Sent or received.
    pub messages: Option<u64>,
    /// Sent a period or more after they were due.
    pub late: Option<u64>,
    /// Not taken by driver or kernel.
    pub refused: Option<u64>,
    /// Not received, of those before the last that was.
    pub missing: Option<u64>,
}

impl Did {
    /// Into the account of the load.
    pub fn tell(self, done: &mut LoadDone) {
        (done.octets, done.rounds, done.messages) = (self.octets, self.rounds, self.messages);
        (done.late, done.refused, done.missing) = (self.late, self.refused, self.missing);
    }
}

/// One half of a load that sends over the path.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Half {
    pub part: LoadPart,
    /// Index of the load within those of the trial.
    pub index: usize,
    /// Index of the end within the order in whose place it runs.
    pub end: usize,
    pub order: Order,
    /// It says on the socket that is its standard input when its halves have met, and sends when told to.
    pub held: bool,
}

impl Half {
    fn spec(&self) -> Result<&LoadSpec, String> {
        self.order.spec.loads.get(self.index).ok_or_else(|| "the order has no such load".into())
    }

    fn end(&self) -> Result<&EndOrder, String> {
        self.order.ends.get(self.end).ok_or_else(|| "the order has no such end".into())
    }
}

/// Works until SIGTERM; the exit code.
pub fn main(word: &str, drivers: DriverSource) -> i32 {
    // SAFETY: the handler stores one flag.
    unsafe { libc::signal(libc::SIGTERM, over as *const () as libc::sighandler_t) };
    // What `top` and the causes of late messages show. A name holds 15 octets; the kernel cuts what is longer.
    let _ = nix::sys::prctl::set_name(&std::ffi::CString::new(format!("tb-load-{word}")).unwrap_or_default());
    // No end of file is waited for: what follows on a socket is the word to begin.
    let half = || -> Result<Half, String> {
        let half = serde_json::Deserializer::from_reader(std::io::stdin()).into_iter().next();
        half.ok_or("there is no order on standard input")?.map_err(|e| e.to_string())
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
            // Who started it reads this; if nobody does, nobody misses it.
            let _ = writeln!(std::io::stdout(), "{}", serde_json::to_string(&did).unwrap_or_default());
            0
        }
        Err(why) => {
            eprintln!("{why}");
            1
        }
    }
}
