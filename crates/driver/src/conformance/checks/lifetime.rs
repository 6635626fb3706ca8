//! Conformance checks of opening and closing sessions and end points.

use std::time::Duration;

use crate::conformance::Wrong;
use crate::conformance::bench::Bench;
use crate::conformance::time::SECOND_NS;
use crate::conformance::{Checked, pass};
use crate::error::Code;
use crate::session::Kind;

pub fn after_destroy(bench: &Bench) -> Checked {
    let (a, b) = (bench.end()?, bench.end()?);
    let (writer, _reader) = bench.link(&a, &b, bench.mode()?, 64)?;
    writer.send_pattern(1, 10)?;
    a.session.destroy(writer.ep).map_err(|e| Wrong(e.to_string()))?;
    match a.session.send(writer.ep, 2, b"x") {
        Err(Code::ECLOSED) => {}
        Err(code) => return Err(Wrong(format!("send after destroy returned {code}, not TB_ECLOSED"))),
        Ok(()) => return Err(Wrong("send after destroy was accepted".to_owned())),
    }
    match a.session.destroy(writer.ep) {
        Err(e) if e.code == Code::ECLOSED => pass("send and destroy were called after destroy"),
        Err(e) => Err(Wrong(format!("a second destroy returned {}, not TB_ECLOSED", e.code))),
        Ok(()) => Err(Wrong("a second destroy was accepted".to_owned())),
    }
}

/// Checks two pairs of sessions at the same time: their topics are separate, and closing one pair does not affect the
/// other.
pub fn two_sessions(bench: &Bench) -> Checked {
    let mode = bench.mode()?;
    let (a, b, c, d) = (bench.end()?, bench.end()?, bench.end()?, bench.end()?);
    let (first, at_b) = bench.link(&a, &b, mode, 64)?;
    let (second, at_d) = bench.link(&c, &d, mode, 64)?;
    for k in 0..100 {
        first.send_pattern(k, 20)?;
        second.send_pattern(1000 + k, 30)?;
        at_b.expect(k, 20)?;
        at_d.expect(1000 + k, 30)?;
    }
    drop((first, at_b, a, b));
    let failed =
        |e: Wrong| Wrong(format!("one of two pairs of sessions was closed, and then the other pair failed: {e}"));
    for k in 100..200 {
        second.send_pattern(1000 + k, 30).map_err(failed)?;
        at_d.expect(1000 + k, 30).map_err(failed)?;
    }
    at_d.expect_nothing(SECOND_NS / 10)?;
    pass("two pairs of sessions ran, and one pair was closed before the other")
}

#[derive(Clone, Copy)]
struct Used {
    descriptors: usize,
    threads: usize,
    resident_bytes: usize,
}

fn used() -> Result<Used, Wrong> {
    let count = |dir: &str| std::fs::read_dir(dir).map(Iterator::count).map_err(|e| Wrong(format!("{dir}: {e}")));
    let statm = std::fs::read_to_string("/proc/self/statm").map_err(|e| Wrong(e.to_string()))?;
    let pages: usize = statm.split_whitespace().nth(1).and_then(|p| p.parse().ok()).ok_or("/proc/self/statm")?;
    // SAFETY: the call takes no pointers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    Ok(Used { descriptors: count("/proc/self/fd")?, threads: count("/proc/self/task")?, resident_bytes: pages * page })
}

const TIMES: usize = 100;
/// Number of sessions that are opened before memory is compared, so that caches and arenas are filled.
const WARM_UP: usize = 10;
/// Allowed growth of memory in bytes. A leak of 164 KiB per session exceeds this limit after 100 sessions. A smaller
/// limit would react to the normal behaviour of allocators.
const GROWTH_BYTES: usize = 16 << 20;

pub fn open_close(bench: &Bench) -> Checked {
    let mode = bench.mode()?;
    let once = || -> Result<(), Wrong> {
        let end = bench.end()?;
        let topic = bench.topic("cycle");
        let reader = end.create(Kind::Reader(mode), &topic, 1024, 1)?;
        end.create(Kind::Writer, &topic, 1024, 2)?;
        end.session.destroy(reader).map_err(|e| Wrong(e.to_string()))
    };
    (0..WARM_UP).try_for_each(|_| once())?;
    let before = used()?;
    (0..TIMES).try_for_each(|_| once())?;
    let mut after = used()?;
    // A thread that was joined may still be listed for a short time.
    for _ in 0..20 {
        if after.threads <= before.threads && after.descriptors <= before.descriptors {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        after = used()?;
    }
    let grown = after.resident_bytes.saturating_sub(before.resident_bytes);
    let figures = format!(
        "descriptors {} -> {}, threads {} -> {}, resident +{} KiB",
        before.descriptors,
        after.descriptors,
        before.threads,
        after.threads,
        grown >> 10
    );
    if after.descriptors > before.descriptors || after.threads > before.threads || grown > GROWTH_BYTES {
        return Err(Wrong(format!("opening and closing {TIMES} times left something behind: {figures}")));
    }
    pass(figures)
}
