//! Conformance checks of how a driver sends and receives samples.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::callbacks::Callbacks;
use crate::conformance::Wrong;
use crate::conformance::bench::Bench;
use crate::conformance::end::{Inbox, Reader, same};
use crate::conformance::time::{SECOND_NS, SOON_NS, now};
use crate::conformance::{Checked, Verdict, pass};
use crate::description::ReceiveMode;
use crate::endpoint::Endpoint;
use crate::error::Code;
use crate::hot::{Hot, Wait};
use crate::kv::Kv;
use crate::session::Kind;
use crate::view::{View, ViewBuf};

/// Stream number 7 in the upper 16 bits of a sequence number. The sequence numbers of trials have a stream number in
/// the same bits, so the checks use one too.
const STREAM: u64 = 7 << 48;
const SAMPLES: u64 = 10_000;
const LEN: usize = 61;

pub fn matching(bench: &Bench) -> Checked {
    let (a, b) = (bench.end()?, bench.end()?);
    let begin = now();
    bench.link(&a, &b, bench.mode()?, LEN as u64)?;
    pass(format!("matched in {} ms", (now() - begin) / 1_000_000))
}

/// Checks samples in both directions. Each sample is received before the next is sent, so that the default history of
/// every middleware is enough.
pub fn both_ways(bench: &Bench) -> Checked {
    let (a, b) = (bench.end()?, bench.end()?);
    let mode = bench.mode()?;
    let (out, at_b) = bench.link(&a, &b, mode, LEN as u64)?;
    let (back, at_a) = bench.link(&b, &a, mode, LEN as u64)?;
    let begin = now();
    for k in 0..SAMPLES {
        let len = (k % (LEN as u64 + 1)) as usize;
        out.send_pattern(STREAM | k, len)?;
        at_b.expect(STREAM | k, len)?;
        back.send_pattern(STREAM | k, len)?;
        at_a.expect(STREAM | k, len)?;
    }
    at_a.expect_nothing(SECOND_NS / 10)?;
    at_b.expect_nothing(SECOND_NS / 10)?;
    pass(format!("{SAMPLES} round trips in {} ms, receive mode {}", (now() - begin) / 1_000_000, mode.name()))
}

fn not_declared(bench: &Bench, mode: ReceiveMode) -> Option<Verdict> {
    let declared = bench.driver.description().receives(mode);
    (!declared).then(|| Verdict::NotApplicable(format!("the driver does not declare receive mode {}", mode.name())))
}

fn hundred(bench: &Bench, mode: ReceiveMode) -> Checked {
    let (a, b) = (bench.end()?, bench.end()?);
    let (writer, reader) = bench.link(&a, &b, mode, 256)?;
    for k in 0..100 {
        writer.send_pattern(k, 200)?;
        reader.expect(k, 200)?;
    }
    pass("100 samples")
}

pub fn listener(bench: &Bench) -> Checked {
    match not_declared(bench, ReceiveMode::Listener) {
        Some(verdict) => Ok(verdict),
        None => hundred(bench, ReceiveMode::Listener),
    }
}

pub fn block(bench: &Bench) -> Checked {
    if let Some(verdict) = not_declared(bench, ReceiveMode::Block) {
        return Ok(verdict);
    }
    hundred(bench, ReceiveMode::Block)?;
    let (a, b) = (bench.end()?, bench.end()?);
    let (writer, reader) = bench.link(&a, &b, ReceiveMode::Block, 256)?;
    writer.send_pattern(1, 200)?;
    let (mut first, mut second) = (ViewBuf::new(1), ViewBuf::new(1));
    ready(&reader)?;
    let take = |buf: &mut ViewBuf| reader.session.take(reader.ep, buf).map_err(|c| reader.session.error("take", c));
    take(&mut first).map_err(|e| Wrong(e.to_string()))?;
    writer.send_pattern(2, 200)?;
    ready(&reader)?;
    take(&mut second).map_err(|e| Wrong(e.to_string()))?;
    for (seq, buf) in [(1, &first), (2, &second)] {
        let view = buf.iter().next().ok_or("wait reported a sample, but take returned none")?;
        same(seq, view.payload(), 200).map_err(|e| Wrong(format!("before release: {e}")))?;
    }
    for mut buf in [first, second] {
        reader
            .session
            .release(reader.ep, &mut buf)
            .map_err(|c| Wrong(reader.session.error("release", c).to_string()))?;
    }
    pass("100 samples arrived, and two were held at a time")
}

/// Waits until the reader of a conformance check has a sample.
fn ready(reader: &Reader) -> Result<(), Wrong> {
    let deadline = now() + SOON_NS;
    loop {
        match reader.session.wait(&[reader.ep], deadline) {
            Ok(Wait::Ready(1)) => return Ok(()),
            Ok(Wait::Ready(bits)) => {
                return Err(Wrong(format!("wait on one reader returned the bits {bits:#b}, not 0b1")));
            }
            Ok(Wait::Woken) => {}
            Ok(Wait::TimedOut) => return Err(Wrong("the sample did not arrive".to_owned())),
            Err(code) => return Err(Wrong(reader.session.error("wait", code).to_string())),
        }
    }
}

pub fn spin(bench: &Bench) -> Checked {
    if let Some(verdict) = not_declared(bench, ReceiveMode::Spin) {
        return Ok(verdict);
    }
    hundred(bench, ReceiveMode::Spin)?;
    let (a, b) = (bench.end()?, bench.end()?);
    let (_writer, reader) = bench.link(&a, &b, ReceiveMode::Spin, 256)?;
    let begin = now();
    let mut buf = ViewBuf::new(1);
    match reader.session.take(reader.ep, &mut buf) {
        Ok(0) => {}
        Ok(n) => return Err(Wrong(format!("{n} samples were taken, but none was sent"))),
        Err(code) => {
            let error = reader.session.error("take", code);
            return Err(Wrong(format!("if there is no sample, take must return TB_OK and n = 0: {error}")));
        }
    }
    let took = now() - begin;
    if took > SECOND_NS {
        return Err(Wrong(format!("take took {} ms although there was no sample", took / 1_000_000)));
    }
    pass(format!("100 samples arrived; a take without a sample took {took} ns"))
}

/// Callbacks that send every received sample back from inside the callback.
struct Mirror {
    writer: OnceLock<Endpoint>,
    error: AtomicU32,
    last: AtomicU64,
}

impl Callbacks for Mirror {
    fn on_sample(&self, hot: &Hot, _: u64, view: &View) {
        self.last.store(view.seq(), Ordering::Relaxed);
        let sent = self.writer.get().map_or(Err(Code::ECLOSED), |w| hot.send(*w, view.seq(), view.payload()));
        if let Err(code) = sent {
            self.error.store(code.0.unsigned_abs(), Ordering::Relaxed);
        }
    }
}

pub fn send_from_callback(bench: &Bench) -> Checked {
    if let Some(verdict) = not_declared(bench, ReceiveMode::Listener) {
        return Ok(verdict);
    }
    let a = bench.end()?;
    let mirror = Arc::new(Mirror { writer: OnceLock::new(), error: AtomicU32::new(0), last: AtomicU64::new(0) });
    let b = bench.session(mirror.clone())?;
    let (ping, pong) = (bench.topic("ping"), bench.topic("pong"));
    let create = |kind, topic: &str| b.create(kind, topic, 256, &Kv::new(), 1).map_err(|e| Wrong(e.to_string()));
    let (echo_in, echo_out) = (create(Kind::Reader(ReceiveMode::Listener), &ping)?, create(Kind::Writer, &pong)?);
    let _ = mirror.writer.set(echo_out);
    let mode = bench.mode()?;
    let writer = a.create(Kind::Writer, &ping, 256, 1)?;
    let tag = Inbox::new_tag(&a.inbox);
    let reader = Reader::new(&a, a.create(Kind::Reader(mode), &pong, 256, tag)?, mode, tag);
    let deadline = now() + SOON_NS;
    for (session, ep) in [(&*a.session, writer), (&b, echo_in), (&b, echo_out), (&a.session, reader.ep)] {
        session.wait_matched(ep, 1, deadline).map_err(|e| Wrong(e.to_string()))?;
    }
    let writer = crate::conformance::end::Writer { session: a.session.clone(), ep: writer };
    for k in 0..1000 {
        writer.send_pattern(k, 100)?;
        let until = now() + SOON_NS;
        let mut back = None;
        while back.is_none() {
            let code = mirror.error.load(Ordering::Relaxed);
            if code != 0 {
                return Err(Wrong(format!("send from the callback failed: {}", Code(-(code as i32)))));
            }
            if now() > until {
                let last = mirror.last.load(Ordering::Relaxed);
                return Err(Wrong(format!(
                    "sample {k:#x} was not returned; the last sample in the callback was {last:#x}"
                )));
            }
            back = reader.receive(now() + SECOND_NS / 10)?;
        }
        match back {
            Some(got) if got.seq == k => same(k, &got.payload, 100)?,
            other => return Err(Wrong(format!("sample {k:#x} was expected back, but {other:?} arrived"))),
        }
    }
    pass("1,000 samples were sent back from the callback")
}
