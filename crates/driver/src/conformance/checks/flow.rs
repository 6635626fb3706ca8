//! Many samples, many readers: batches, several subscribers, and what a writer tells of its flow.

use crate::conformance::bench::{Bench, SECOND_NS, SOON_NS, now};
use crate::conformance::end::{Reader, Writer};
use crate::conformance::{Checked, Verdict, pass};
use crate::error::Code;
use crate::flow::{Batching, Flow};
use crate::kv::Kv;
use crate::session::Kind;

const READERS: u64 = 4;
const LEN: usize = 40;

/// Samples that may wait in a batch go out with `flush`, where there is a batch and where there is none.
pub fn batch(bench: &Bench) -> Checked {
    let (a, b) = (bench.end()?, bench.end()?);
    let (has, mode) = (bench.driver.description().has("batch"), bench.mode()?);
    let qos = if has { Kv::new().with("batch", "on") } else { Kv::new() };
    let topic = bench.topic("batch");
    let writer = a.session.create(Kind::Writer, &topic, 64, &qos, 1).map_err(|e| e.to_string())?;
    let tag = b.inbox.new_tag();
    let reader = Reader::new(&b, b.create(Kind::Reader(mode), &topic, 64, tag)?, mode, tag);
    for (end, ep) in [(&a, writer), (&b, reader.ep)] {
        end.session.wait_matched(ep, 1, now() + SOON_NS).map_err(|e| e.to_string())?;
    }
    for seq in 0..100 {
        let payload = crate::conformance::bench::pattern(seq, LEN);
        a.session
            .send_with(writer, seq, &payload, 0, true)
            .map_err(|c| a.session.error("send with TB_SEND_BATCH", c).to_string())?;
        a.session.flush(writer, now() + SOON_NS).map_err(|e| e.to_string())?;
        reader.expect(seq, LEN).map_err(|e| format!("after flush: {e}"))?;
    }
    pass(if has { "100 samples with batch=on" } else { "100 samples; the driver has no batching" })
}

/// One writer, several readers in sessions of their own; one of them ends.
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
    all(READERS as u32, now() + SOON_NS).map_err(|e| e.to_string())?;
    for (reader, end) in &readers {
        end.session.wait_matched(reader.ep, 1, now() + SOON_NS).map_err(|e| e.to_string())?;
    }
    let each = |readers: &[(Reader, _)], from: u64| -> Result<(), String> {
        for seq in from..from + 100 {
            writer.send_pattern(seq, LEN)?;
            for (i, (reader, _)) in readers.iter().enumerate() {
                reader.expect(seq, LEN).map_err(|e| format!("reader {i} of {}: {e}", readers.len()))?;
            }
        }
        Ok(())
    };
    each(&readers, 0)?;
    // Its session lives on: what the end of a session does to others is the matter of another check.
    let gone = readers.pop();
    if let Some((reader, end)) = &gone {
        end.session.destroy(reader.ep).map_err(|e| e.to_string())?;
    }
    let until = now() + SOON_NS;
    loop {
        match all(READERS as u32, now()) {
            Err(e) if e.code == Code::ETIMEDOUT => break,
            Err(e) => return Err(format!("wait_matched after a reader has gone: {e}")),
            Ok(()) if now() > until => return Err(format!("a reader was destroyed; {READERS} still count as matched")),
            Ok(()) => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    }
    all(READERS as u32 - 1, now() + SECOND_NS).map_err(|e| format!("the readers that are left: {e}"))?;
    each(&readers, 1000)?;
    pass(format!("{READERS} readers, then {}", READERS - 1))
}

pub fn flow(bench: &Bench) -> Checked {
    let (a, b) = (bench.end()?, bench.end()?);
    let (writer, reader) = bench.link(&a, &b, bench.mode()?, 64)?;
    writer.send_pattern(1, LEN)?;
    reader.expect(1, LEN)?;
    let Some(flow) = a.session.flow(writer.ep).map_err(|e| e.to_string())? else {
        return Ok(Verdict::NotApplicable("the driver does not answer `flow`".into()));
    };
    if let Some(key) = Flow::EXPLAINED.iter().find(|k| flow.by.get(**k).is_none_or(String::is_empty)) {
        return Err(format!("`by` does not say where {key} is from, or why it is not told"));
    }
    let has = bench.driver.description().has("batch");
    if has != (flow.batching != Batching::None) {
        return Err(format!("the capability batch is {has}, `flow` says batching {:?}", flow.batching));
    }
    if flow.matched != 1 {
        return Err(format!("one reader is matched, `flow` says {}", flow.matched));
    }
    pass(format!("batching {:?}, data {:?}", flow.batching, flow.data).to_lowercase())
}
