//! What every check builds on: sessions that reach each other, topics of their own, time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::callbacks::Callbacks;
use crate::description::ReceiveMode;
use crate::kv::Kv;
use crate::load::Driver;
use crate::session::{Kind, Session};

use super::end::{End, Inbox, Reader, Writer};

pub const SECOND_NS: i64 = 1_000_000_000;
/// For what happens at once in a driver that works.
pub const SOON_NS: i64 = 10 * SECOND_NS;

/// `CLOCK_MONOTONIC`, ns.
pub fn now() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec * SECOND_NS + now.tv_nsec
}

/// A driver and how to open it.
pub struct Bench {
    pub driver: Driver,
    pub options: Kv,
    topics: AtomicU32,
}

impl Bench {
    pub fn new(driver: Driver, mut options: Kv) -> Bench {
        let has = |key: &str| driver.description().option(key).is_some();
        // Domains of DDS end at 230; those of two suites at once should differ.
        let domain = (80 + std::process::id() % 140).to_string();
        let address = if has("interface") { ("interface", "lo") } else { ("address", "127.0.0.1") };
        for (key, value) in [("domain", domain.as_str()), address, ("peers", "127.0.0.1")] {
            if has(key) && options.get(key).is_none() {
                options.set(key, value);
            }
        }
        Bench { driver, options, topics: AtomicU32::new(0) }
    }

    /// A topic that no other check uses.
    pub fn topic(&self, name: &str) -> String {
        format!("tailbound_{name}_{}_{}", std::process::id(), self.topics.fetch_add(1, Ordering::Relaxed))
    }

    pub fn session<C: Callbacks>(&self, callbacks: Arc<C>) -> Result<Session, String> {
        Session::open(&self.driver, &self.options, callbacks).map_err(|e| e.to_string())
    }

    /// A session whose listeners fill an inbox.
    pub fn end(&self) -> Result<End, String> {
        let inbox = Arc::new(Inbox::default());
        Ok(End { session: Arc::new(self.session(inbox.clone())?), inbox })
    }

    /// The mode that checks use which are about something else.
    pub fn mode(&self) -> Result<ReceiveMode, String> {
        let modes = [ReceiveMode::Block, ReceiveMode::Spin, ReceiveMode::Listener];
        let declared = modes.into_iter().find(|m| self.driver.description().receives(*m));
        declared.ok_or_else(|| "the driver declares no receive mode".to_owned())
    }

    /// A writer at `from` and a reader at `to`, matched.
    pub fn link(&self, from: &End, to: &End, mode: ReceiveMode, max_len: u64) -> Result<(Writer, Reader), String> {
        let topic = self.topic("check");
        let writer = from.create(Kind::Writer, &topic, max_len, 1)?;
        let tag = to.inbox.new_tag();
        let reader = to.create(Kind::Reader(mode), &topic, max_len, tag)?;
        let deadline = now() + SOON_NS;
        let text = |e: crate::DriverError| e.to_string();
        from.session.wait_matched(writer, 1, deadline).map_err(text)?;
        to.session.wait_matched(reader, 1, deadline).map_err(text)?;
        let session = from.session.clone();
        Ok((Writer { session, ep: writer }, Reader::new(to, reader, mode, tag)))
    }
}

/// Octets of a payload that follow from the sequence number.
pub fn pattern(seq: u64, len: usize) -> Vec<u8> {
    let start = seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (0..len).map(|i| start[i % 8].wrapping_add((i / 8) as u8)).collect()
}
