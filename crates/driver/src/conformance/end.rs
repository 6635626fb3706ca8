//! One side of a check: a session, and samples as plain data.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::callbacks::Callbacks;
use crate::description::ReceiveMode;
use crate::error::Code;
use crate::hot::{Hot, Wait};
use crate::kv::Kv;
use crate::session::{Endpoint, Kind, Session};
use crate::view::{View, ViewBuf};

use super::bench::{SOON_NS, now, pattern};

/// A sample, copied.
#[derive(Debug)]
pub struct Got {
    pub tag: u64,
    pub seq: u64,
    pub payload: Vec<u8>,
}

/// Where listeners put what they get.
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

/// One session of a check.
pub struct End {
    pub session: Arc<Session>,
    pub inbox: Arc<Inbox>,
}

impl End {
    pub fn create(&self, kind: Kind, topic: &str, max_len: u64, tag: u64) -> Result<Endpoint, String> {
        self.session.create(kind, topic, max_len, &Kv::new(), tag).map_err(|e| e.to_string())
    }
}

/// A writer of a check.
pub struct Writer {
    pub session: Arc<Session>,
    pub ep: Endpoint,
}

impl Writer {
    /// Sends, and tries again while the middleware pushes back.
    pub fn send(&self, seq: u64, payload: &[u8]) -> Result<(), String> {
        let deadline = now() + SOON_NS;
        loop {
            match self.session.send(self.ep, seq, payload) {
                Ok(()) => return Ok(()),
                Err(Code::EWOULDBLOCK | Code::ETIMEDOUT) if now() < deadline => std::thread::yield_now(),
                Err(code) => return Err(self.session.error("send", code).to_string()),
            }
        }
    }

    pub fn send_pattern(&self, seq: u64, len: usize) -> Result<(), String> {
        self.send(seq, &pattern(seq, len))
    }
}

/// A reader of a check, in any mode.
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

    /// The next sample; `None` when the time is over.
    pub fn receive(&self, deadline: i64) -> Result<Option<Got>, String> {
        let fault = |call, code| Err(self.session.error(call, code).to_string());
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
                (Ok(()), Some(None)) => Err("a view has size 0".to_owned()),
                (Ok(()), got) => Ok(got.flatten()),
            };
        }
    }

    /// The next sample must be this one.
    pub fn expect(&self, seq: u64, len: usize) -> Result<(), String> {
        let Some(got) = self.receive(now() + SOON_NS)? else { return Err(format!("sample {seq:#x} did not arrive")) };
        if got.seq != seq {
            return Err(format!("sample {seq:#x} was expected, {:#x} came", got.seq));
        }
        if got.tag != self.tag {
            return Err(format!(
                "sample {seq:#x} came with tag {:#x}, the reader was made with {:#x}",
                got.tag, self.tag
            ));
        }
        same(seq, &got.payload, len)
    }

    /// Nothing may come for a while.
    pub fn expect_nothing(&self, for_ns: i64) -> Result<(), String> {
        match self.receive(now() + for_ns)? {
            None => Ok(()),
            Some(got) => Err(format!("sample {:#x} came where none was sent", got.seq)),
        }
    }
}

/// Whether a payload is the pattern of its sequence number.
pub fn same(seq: u64, payload: &[u8], len: usize) -> Result<(), String> {
    if payload.len() != len {
        return Err(format!("sample {seq:#x} has {} B, {len} B were sent", payload.len()));
    }
    match payload.iter().zip(pattern(seq, len)).position(|(a, b)| *a != b) {
        Some(at) => Err(format!("octet {at} of sample {seq:#x} is not what was sent")),
        None => Ok(()),
    }
}
