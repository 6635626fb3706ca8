//! Common parts of the tests: a driver, sessions on the loopback interface, and a loading program that stores all
//! callbacks.
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use tailbound_driver::{Callbacks, Driver, Endpoint, Hot, Kv, LogLevel, Session, View};

/// The linked `cyclonedds` driver. The driver is made only once, because the memory of its description is never freed.
pub fn driver() -> Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| Driver::linked("cyclonedds", tailbound_driver_cyclonedds::table()).unwrap()).clone()
}

/// Makes options for a session on `lo`; every test uses its own DDS domain.
pub fn on_lo(domain: u32) -> Kv {
    Kv::new().with("interface", "lo").with("domain", domain.to_string())
}

/// Returns the time of CLOCK_MONOTONIC `ms` milliseconds from now, in ns.
pub fn in_ms(ms: i64) -> i64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills the struct given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec + ms * 1_000_000
}

/// A loading program that stores all samples, matches and log messages, and sends samples back if `echo` is set.
#[derive(Default)]
pub struct Keeper {
    pub samples: Mutex<Vec<(u64, u64, Vec<u8>)>>,
    pub matches: Mutex<Vec<(u64, i32)>>,
    pub messages: Mutex<Vec<(LogLevel, String)>>,
    pub echo: Mutex<Option<(Endpoint, u64)>>,
}

impl Callbacks for Keeper {
    fn on_sample(&self, hot: &Hot, tag: u64, view: &View) {
        self.samples.lock().unwrap().push((tag, view.seq(), view.payload().to_vec()));
        let echo = *self.echo.lock().unwrap();
        if let Some((writer, until)) = echo
            && view.seq() < until
        {
            hot.send(writer, view.seq() + 1, view.payload()).unwrap();
        }
    }

    fn on_match(&self, tag: u64, now: i32) {
        self.matches.lock().unwrap().push((tag, now));
    }

    fn log(&self, level: LogLevel, text: &str) {
        self.messages.lock().unwrap().push((level, text.to_owned()));
    }
}

/// Opens a session of the driver with a `Keeper` as its loading program.
pub fn open(options: &Kv) -> (Session, Arc<Keeper>) {
    let keeper = Arc::new(Keeper::default());
    (Session::open(&driver(), options, keeper.clone()).unwrap(), keeper)
}

/// Sends a query to the driver and parses its JSON answer.
pub fn ask(session: &Session, ep: Endpoint, what: &str) -> Value {
    serde_json::from_str(&session.query(ep, what).unwrap()).unwrap()
}

/// Waits until `f` returns true; the test fails after 10 s.
pub fn until(what: &str, mut f: impl FnMut() -> bool) {
    let start = Instant::now();
    while !f() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}: not within 10 s");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until every end point is matched with a peer.
pub fn matched(all: &[(&Session, Endpoint)]) {
    for (session, ep) in all {
        session.wait_matched(*ep, 1, in_ms(10_000)).unwrap();
    }
}
