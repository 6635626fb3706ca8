//! Common parts of the conformance checks: connected sessions, separate topics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::callbacks::Callbacks;
use crate::description::ReceiveMode;
use crate::kv::Kv;
use crate::load::Driver;
use crate::session::{Kind, Session};

use super::end::{End, Inbox, Reader, Writer};
use super::time::{SOON_NS, now};
use crate::conformance::Wrong;

/// A driver, and the options with which the conformance checks open its sessions.
pub struct Bench {
    pub driver: Driver,
    pub options: Kv,
    topics: AtomicU32,
}

impl Bench {
    pub fn new(driver: Driver, mut options: Kv) -> Bench {
        let has = |key: &str| driver.description().option(key).is_some();
        // DDS domains end at 230; two suites that run at the same time should use different domains.
        let domain = (80 + std::process::id() % 140).to_string();
        let address = if has("interface") { ("interface", "lo") } else { ("address", "127.0.0.1") };
        for (key, value) in [("domain", domain.as_str()), address, ("peers", "127.0.0.1")] {
            if has(key) && options.get(key).is_none() {
                options.set(key, value);
            }
        }
        Bench { driver, options, topics: AtomicU32::new(0) }
    }

    /// Makes the name of a topic that no other conformance check uses.
    pub fn topic(&self, name: &str) -> String {
        format!("tailbound_{name}_{}_{}", std::process::id(), self.topics.fetch_add(1, Ordering::Relaxed))
    }

    pub fn session<C: Callbacks>(&self, callbacks: Arc<C>) -> Result<Session, Wrong> {
        Session::open(&self.driver, &self.options, callbacks).map_err(|e| Wrong(e.to_string()))
    }

    /// Opens a session of the driver, whose listeners put received samples into an inbox.
    pub fn end(&self) -> Result<End, Wrong> {
        let inbox = Arc::new(Inbox::default());
        Ok(End { session: Arc::new(self.session(inbox.clone())?), inbox })
    }

    /// Chooses a receive mode that the driver supports, for conformance checks that do not test receive modes.
    pub fn mode(&self) -> Result<ReceiveMode, Wrong> {
        let modes = [ReceiveMode::Block, ReceiveMode::Spin, ReceiveMode::Listener];
        let declared = modes.into_iter().find(|m| self.driver.description().receives(*m));
        declared.ok_or_else(|| Wrong("the driver declares no receive mode".to_owned()))
    }

    /// Makes a writer in the session `from` and a reader in the session `to`, and waits until they are matched.
    pub fn link(&self, from: &End, to: &End, mode: ReceiveMode, max_len: u64) -> Result<(Writer, Reader), Wrong> {
        let topic = self.topic("check");
        let writer = from.create(Kind::Writer, &topic, max_len, 1)?;
        let tag = to.inbox.new_tag();
        let reader = to.create(Kind::Reader(mode), &topic, max_len, tag)?;
        let deadline = now() + SOON_NS;
        let text = |e: crate::DriverError| Wrong(e.to_string());
        from.session.wait_matched(writer, 1, deadline).map_err(text)?;
        to.session.wait_matched(reader, 1, deadline).map_err(text)?;
        let session = from.session.clone();
        Ok((Writer { session, ep: writer }, Reader::new(to, reader, mode, tag)))
    }
}
