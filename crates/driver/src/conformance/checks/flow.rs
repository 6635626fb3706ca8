//! Conformance checks of batches, of writers with several readers, and of the reply of a writer to the query `flow`,
//! which asks for send settings and counters.

use crate::conformance::Wrong;
use crate::conformance::bench::Bench;
use crate::conformance::end::{Reader, Writer};
use crate::conformance::time::{SECOND_NS, SOON_NS, now};
use crate::conformance::{Checked, Verdict, pass};
use crate::error::Code;
use crate::flow::{Batching, Flow};
use crate::kv::Kv;
use crate::session::Kind;

const READERS: u64 = 4;
const LEN: usize = 40;

/// Checks that `flush` sends the samples that may wait in a batch, whether the driver supports batches or not.
pub fn batch(bench: &Bench) -> Checked {
    let (a, b) = (bench.end()?, bench.end()?);
    let (has, mode) = (bench.driver.description().has("batch"), bench.mode()?);
    let qos = if has { Kv::new().with("batch", "on") } else { Kv::new() };
    let topic = bench.topic("batch");
    let writer = a.session.create(Kind::Writer, &topic, 64, &qos, 1).map_err(|e| Wrong(e.to_string()))?;
    let tag = b.inbox.new_tag();
    let reader = Reader::new(&b, b.create(Kind::Reader(mode), &topic, 64, tag)?, mode, tag);
    for (end, ep) in [(&a, writer), (&b, reader.ep)] {
        end.session.wait_matched(ep, 1, now() + SOON_NS).map_err(|e| Wrong(e.to_string()))?;
    }
    for seq in 0..100 {
        let payload = crate::conformance::end::pattern(seq, LEN);
        a.session
            .send_with(writer, seq, &payload, 0, true)
            .map_err(|c| Wrong(a.session.error("send with TB_SEND_BATCH", c).to_string()))?;
        a.session.flush(writer, now() + SOON_NS).map_err(|e| Wrong(e.to_string()))?;
        reader.expect(seq, LEN).map_err(|e| Wrong(format!("after flush: {e}")))?;
    }
    pass(if has { "100 samples with batch=on" } else { "100 samples arrived; the driver has no batching" })
}

/// Checks one writer and several readers in separate sessions, where one of the readers is destroyed.
pub fn several_subscribers(bench: &Bench) -> Checked {
    let (out, mode, topic) = (bench.end()?, bench.mode()?, bench.topic("fan"));
    let writer = Writer { session: out.session.clone(), ep: out.create(Kind::Writer, &topic, 64, 1)? };
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let end = bench.end()?;
        let tag = end.inbox.new_tag();
        let ep = end.create(Kind::Reader(mode), &topic, 64, tag)?;
        readers.push((Reader::new(&end, ep, mode, tag), end));
    }
    let all = |n: u32, deadline| out.session.wait_matched(writer.ep, n, deadline);
    all(READERS as u32, now() + SOON_NS).map_err(|e| Wrong(e.to_string()))?;
    for (reader, end) in &readers {
        end.session.wait_matched(reader.ep, 1, now() + SOON_NS).map_err(|e| Wrong(e.to_string()))?;
    }
    let each = |readers: &[(Reader, _)], from: u64| -> Result<(), Wrong> {
        for seq in from..from + 100 {
            writer.send_pattern(seq, LEN)?;
            for (i, (reader, _)) in readers.iter().enumerate() {
                reader.expect(seq, LEN).map_err(|e| Wrong(format!("reader {i} of {}: {e}", readers.len())))?;
            }
        }
        Ok(())
    };
    each(&readers, 0)?;
    // The session of the reader stays open: another check tests the end of a session.
    let gone = readers.pop();
    if let Some((reader, end)) = &gone {
        end.session.destroy(reader.ep).map_err(|e| Wrong(e.to_string()))?;
    }
    let until = now() + SOON_NS;
    loop {
        match all(READERS as u32, now()) {
            Err(e) if e.code == Code::ETIMEDOUT => break,
            Err(e) => return Err(Wrong(format!("wait_matched failed after a reader was destroyed: {e}"))),
            Ok(()) if now() > until => {
                return Err(Wrong(format!("a reader was destroyed, but {READERS} readers still count as matched")));
            }
            Ok(()) => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    }
    all(READERS as u32 - 1, now() + SECOND_NS).map_err(|e| Wrong(format!("the remaining readers: {e}")))?;
    each(&readers, 1000)?;
    pass(format!("{READERS} readers, then {}", READERS - 1))
}

pub fn flow(bench: &Bench) -> Checked {
    let (a, b) = (bench.end()?, bench.end()?);
    let (writer, reader) = bench.link(&a, &b, bench.mode()?, 64)?;
    writer.send_pattern(1, LEN)?;
    reader.expect(1, LEN)?;
    let Some(flow) = a.session.flow(writer.ep).map_err(|e| Wrong(e.to_string()))? else {
        return Ok(Verdict::NotApplicable("the driver does not answer the query `flow`".into()));
    };
    if let Some(key) = Flow::EXPLAINED.iter().find(|k| flow.by.get(**k).is_none_or(String::is_empty)) {
        return Err(Wrong(format!(
            "`by` in the answer to `flow` contains neither the source of {key} nor the reason why {key} is not known"
        )));
    }
    let has = bench.driver.description().has("batch");
    if has != (flow.batching != Batching::None) {
        return Err(Wrong(format!("the capability batch is {has}, but `flow` reports batching {:?}", flow.batching)));
    }
    if flow.matched != 1 {
        return Err(Wrong(format!("one reader is matched, but `flow` reports {} matched readers", flow.matched)));
    }
    pass(format!("batching {:?}, data {:?}", flow.batching, flow.data).to_lowercase())
}
