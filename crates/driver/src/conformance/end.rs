//! One end of a conformance check: a session of the driver, and copies of the samples that the session receives.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::callbacks::Callbacks;
use crate::description::ReceiveMode;
use crate::endpoint::Endpoint;
use crate::error::Code;
use crate::hot::{Hot, Wait};
use crate::kv::Kv;
use crate::session::{Kind, Session};
use crate::view::{View, ViewBuf};

use super::time::{SOON_NS, now};
use crate::conformance::Wrong;

/// A copy of a received sample in a conformance check.
#[derive(Debug)]
pub struct Got {
    pub tag: u64,
    pub seq: u64,
    pub payload: Vec<u8>,
}

/// Collects the samples that the listeners of a driver's session receive.
#[derive(Default)]
pub struct Inbox {
    samples: Mutex<VecDeque<Got>>,
    arrived: Condvar,
    tags: AtomicU64,
}

impl Callbacks for Inbox {
    fn on_sample(&self, _: &Hot, tag: u64, view: &View) {
        let got = Got { tag, seq: view.seq(), payload: view.payload().to_vec() };
        self.samples.lock().unwrap_or_else(|e| e.into_inner()).push_back(got);
        self.arrived.notify_all();
    }
}

impl Inbox {
    pub fn new_tag(&self) -> u64 {
        0x7a11_b0b0_0000_0000 + self.tags.fetch_add(1, Ordering::Relaxed)
    }

    fn next(&self, deadline: i64) -> Option<Got> {
        let mut samples = self.samples.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            if let Some(got) = samples.pop_front() {
                return Some(got);
            }
            let left = Duration::from_nanos((deadline - now()).max(0) as u64);
            if left.is_zero() {
                return None;
            }
            samples = self.arrived.wait_timeout(samples, left).unwrap_or_else(|e| e.into_inner()).0;
        }
    }
}

/// One session of the driver that a conformance check has opened.
pub struct End {
    pub session: Arc<Session>,
    pub inbox: Arc<Inbox>,
}

impl End {
    pub fn create(&self, kind: Kind, topic: &str, max_len: u64, tag: u64) -> Result<Endpoint, Wrong> {
        self.session.create(kind, topic, max_len, &Kv::new(), tag).map_err(|e| Wrong(e.to_string()))
    }
}

/// A writer of the driver that a conformance check has created.
pub struct Writer {
    pub session: Arc<Session>,
    pub ep: Endpoint,
}

impl Writer {
    /// Sends a sample, and tries again for as long as the middleware reports back-pressure.
    pub fn send(&self, seq: u64, payload: &[u8]) -> Result<(), Wrong> {
        let deadline = now() + SOON_NS;
        loop {
            match self.session.send(self.ep, seq, payload) {
                Ok(()) => return Ok(()),
                Err(Code::EWOULDBLOCK | Code::ETIMEDOUT) if now() < deadline => std::thread::yield_now(),
                Err(code) => return Err(Wrong(self.session.error("send", code).to_string())),
            }
        }
    }

    pub fn send_pattern(&self, seq: u64, len: usize) -> Result<(), Wrong> {
        self.send(seq, &pattern(seq, len))
    }
}

/// A reader of a conformance check, in any receive mode.
pub struct Reader {
    pub session: Arc<Session>,
    pub ep: Endpoint,
    inbox: Arc<Inbox>,
    mode: ReceiveMode,
    tag: u64,
    views: Mutex<ViewBuf>,
}

impl Reader {
    pub fn new(end: &End, ep: Endpoint, mode: ReceiveMode, tag: u64) -> Reader {
        let views = Mutex::new(ViewBuf::new(1));
        Reader { session: end.session.clone(), ep, inbox: end.inbox.clone(), mode, tag, views }
    }

    /// Waits for the next sample that the reader receives; `None` if the deadline passes.
    pub fn receive(&self, deadline: i64) -> Result<Option<Got>, Wrong> {
        let fault = |call, code| Err(Wrong(self.session.error(call, code).to_string()));
        if self.mode == ReceiveMode::Listener {
            return Ok(self.inbox.next(deadline));
        }
        let mut views = self.views.lock().unwrap_or_else(|e| e.into_inner());
        loop {
            let over = now() >= deadline;
            if self.mode == ReceiveMode::Block {
                match self.session.wait(&[self.ep], deadline) {
                    Ok(Wait::Ready(_)) => {}
                    Ok(Wait::Woken | Wait::TimedOut) if !over => continue,
                    Ok(_) => return Ok(None),
                    Err(code) => return fault("wait", code),
                }
            }
            match self.session.take(self.ep, &mut views) {
                Err(code) => return fault("take", code),
                Ok(0) if over => return Ok(None),
                Ok(0) => continue,
                Ok(_) => {}
            }
            let got = views.iter().next().map(|v| {
                if v.raw().size == 0 {
                    None
                } else {
                    Some(Got { tag: self.tag, seq: v.seq(), payload: v.payload().to_vec() })
                }
            });
            return match (self.session.release(self.ep, &mut views), got) {
                (Err(code), _) => fault("release", code),
                (Ok(()), Some(None)) => Err(Wrong("a view has size 0".to_owned())),
                (Ok(()), got) => Ok(got.flatten()),
            };
        }
    }

    /// Checks that the next sample that the reader receives is the expected sample.
    pub fn expect(&self, seq: u64, len: usize) -> Result<(), Wrong> {
        let Some(got) = self.receive(now() + SOON_NS)? else {
            return Err(Wrong(format!("sample {seq:#x} did not arrive")));
        };
        if got.seq != seq {
            return Err(Wrong(format!("sample {seq:#x} was expected, but {:#x} arrived", got.seq)));
        }
        if got.tag != self.tag {
            return Err(Wrong(format!(
                "sample {seq:#x} arrived with the tag {:#x}, but the reader was made with {:#x}",
                got.tag, self.tag
            )));
        }
        same(seq, &got.payload, len)
    }

    /// Checks that the reader receives no sample for a given time.
    pub fn expect_nothing(&self, for_ns: i64) -> Result<(), Wrong> {
        match self.receive(now() + for_ns)? {
            None => Ok(()),
            Some(got) => Err(Wrong(format!("sample {:#x} arrived, but none was sent", got.seq))),
        }
    }
}

/// Checks that a payload is the test pattern of its sequence number.
pub fn same(seq: u64, payload: &[u8], len: usize) -> Result<(), Wrong> {
    if payload.len() != len {
        return Err(Wrong(format!("sample {seq:#x} has {} B, but {len} B were sent", payload.len())));
    }
    match payload.iter().zip(pattern(seq, len)).position(|(a, b)| *a != b) {
        Some(at) => Err(Wrong(format!("byte {at} of sample {seq:#x} differs from the sent byte"))),
        None => Ok(()),
    }
}

/// Makes the payload that a conformance check sends with the sequence number `seq`.
pub fn pattern(seq: u64, len: usize) -> Vec<u8> {
    let start = seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (0..len).map(|i| start[i % 8].wrapping_add((i / 8) as u8)).collect()
}
