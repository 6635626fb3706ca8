//! Conformance checks of how a driver's calls that wait for samples end.

use std::sync::mpsc::channel;
use std::time::Duration;

use crate::conformance::Wrong;
use crate::conformance::bench::Bench;
use crate::conformance::end::Reader;
use crate::conformance::time::{SECOND_NS, SOON_NS, now};
use crate::conformance::{Checked, Verdict, pass};
use crate::description::ReceiveMode;
use crate::error::Code;
use crate::hot::Wait;

fn no_block(bench: &Bench) -> Option<Verdict> {
    let declared = bench.driver.description().receives(ReceiveMode::Block);
    (!declared).then(|| Verdict::NotApplicable("the driver does not declare receive mode block".into()))
}

/// Time after which a call that has not returned is considered blocked, short enough for a test suite.
const SETTLE: Duration = Duration::from_millis(200);

pub fn deadline(bench: &Bench) -> Checked {
    if let Some(verdict) = no_block(bench) {
        return Ok(verdict);
    }
    let (a, b) = (bench.end()?, bench.end()?);
    let (writer, reader) = bench.link(&a, &b, ReceiveMode::Block, 64)?;
    let mut latest = 0;
    for wait_ns in [0, SECOND_NS / 100, SECOND_NS / 5] {
        let until = now() + wait_ns;
        match reader.session.wait(&[reader.ep], until) {
            Ok(Wait::TimedOut) => {}
            Ok(other) => return Err(Wrong(format!("a wait without samples ended with {other:?}"))),
            Err(code) => return Err(Wrong(reader.session.error("wait", code).to_string())),
        }
        let late = now() - until;
        if late < 0 {
            return Err(Wrong(format!("a wait of {} ms ended {} us early", wait_ns / 1_000_000, -late / 1000)));
        }
        latest = latest.max(late);
    }
    if latest > SECOND_NS {
        return Err(Wrong(format!("a wait ended {} ms after its deadline", latest / 1_000_000)));
    }
    // An executor that is late asks with a deadline that has passed; the first wait shows that the sample has arrived.
    writer.send_pattern(1, 40)?;
    for (deadline, when) in [(now() + SOON_NS, "before"), (now() - 1, "after")] {
        match reader.session.wait(&[reader.ep], deadline) {
            Ok(Wait::Ready(1)) => {}
            other => return Err(Wrong(format!("with a sample, a wait {when} its deadline ended with {other:?}"))),
        }
    }
    pass(format!("the wait ended at most {} us after its deadline", latest / 1000))
}

pub fn several(bench: &Bench) -> Checked {
    if let Some(verdict) = no_block(bench) {
        return Ok(verdict);
    }
    let (a, b) = (bench.end()?, bench.end()?);
    let links = (0..3).map(|_| bench.link(&a, &b, ReceiveMode::Block, 64)).collect::<Result<Vec<_>, _>>()?;
    let eps: Vec<_> = links.iter().map(|(_, reader)| reader.ep).collect();
    for (i, (writer, reader)) in links.iter().enumerate().rev() {
        writer.send_pattern(i as u64, 40)?;
        match b.session.wait(&eps, now() + SOON_NS) {
            Ok(Wait::Ready(bits)) if bits == 1 << i => {}
            Ok(other) => return Err(Wrong(format!("reader {i} of 3 has a sample, but the wait ended with {other:?}"))),
            Err(code) => return Err(Wrong(b.session.error("wait", code).to_string())),
        }
        reader.expect(i as u64, 40)?;
    }
    pass("3 readers")
}

/// Blocks on a reader in another thread, calls `end`, which must end the wait, and returns the result and the duration
/// of the wait in ns.
fn blocked(
    reader: &Reader,
    what: &str,
    end: impl FnOnce() -> Result<(), Wrong>,
) -> Result<(Result<Wait, Code>, i64), Wrong> {
    let (session, ep) = (reader.session.clone(), reader.ep);
    let (tell, told) = channel();
    let waiter = std::thread::spawn(move || {
        let _ = tell.send((session.wait(&[ep], now() + SOON_NS), now()));
    });
    if let Ok((ended, _)) = told.recv_timeout(SETTLE) {
        let _ = waiter.join();
        return Err(Wrong(format!("a wait without samples ended immediately with {ended:?}")));
    }
    let begin = now();
    end()?;
    match told.recv_timeout(Duration::from_secs(2)) {
        Ok((ended, at)) => {
            // The thread has a reference to the session, which must not close during a later check.
            let _ = waiter.join();
            Ok((ended, at - begin))
        }
        // The thread is not joined: with a driver that breaks the rule, it ends at its own deadline.
        Err(_) => Err(Wrong(format!("the wait was still blocked 2 s after {what}"))),
    }
}

pub fn wake(bench: &Bench) -> Checked {
    if let Some(verdict) = no_block(bench) {
        return Ok(verdict);
    }
    let (a, b) = (bench.end()?, bench.end()?);
    let (writer, reader) = bench.link(&a, &b, ReceiveMode::Block, 64)?;
    let mut longest = 0;
    for _ in 0..3 {
        match blocked(&reader, "wake", || b.session.wake().map_err(|e| Wrong(e.to_string())))? {
            (Ok(Wait::Woken), took) => longest = longest.max(took),
            (other, _) => return Err(Wrong(format!("after wake the wait ended with {other:?}, not TB_WOKEN"))),
        }
    }
    writer.send_pattern(1, 10)?;
    reader.expect(1, 10).map_err(|e| Wrong(format!("after three wakes: {e}")))?;
    let longest = longest as f64 / 1e6;
    match longest > 1000.0 {
        true => Err(Wrong(format!("wake took {longest:.0} ms; the limit of the ABI is 100 ms"))),
        false => pass(format!("at most {longest:.1} ms")),
    }
}

pub fn destroy(bench: &Bench) -> Checked {
    if let Some(verdict) = no_block(bench) {
        return Ok(verdict);
    }
    let (a, b) = (bench.end()?, bench.end()?);
    let (_writer, reader) = bench.link(&a, &b, ReceiveMode::Block, 64)?;
    match blocked(&reader, "destroy", || b.session.destroy(reader.ep).map_err(|e| Wrong(e.to_string())))? {
        (Ok(Wait::Ready(_)), _) => Err(Wrong("the wait reported a sample, but none was sent".to_owned())),
        (Ok(Wait::TimedOut), _) => {
            Err(Wrong("the wait reported that its deadline had passed, but the deadline was in the future".to_owned()))
        }
        (Ok(Wait::Woken) | Err(_), took) => pass(format!("ended after {:.1} ms", took as f64 / 1e6)),
    }
}
