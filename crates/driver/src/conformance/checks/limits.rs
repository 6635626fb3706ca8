//! Conformance checks that payload limits and QoS policies take effect.

use serde_json::Value;

use crate::conformance::Wrong;
use crate::conformance::bench::Bench;
use crate::conformance::{Checked, Verdict, pass};
use crate::error::Code;
use crate::kv::Kv;
use crate::session::Kind;

/// Largest payload limit in bytes that is tested, so that the suite does not need gigabytes of memory.
const LARGEST_TRIED: u64 = 16 << 20;
const INSTEAD: u64 = 1 << 20;

pub fn largest_payload(bench: &Bench) -> Checked {
    let limit = bench.driver.description().limits.max_payload_bytes;
    let max = if limit <= LARGEST_TRIED { limit } else { INSTEAD };
    let (a, b) = (bench.end()?, bench.end()?);
    let (writer, reader) = bench.link(&a, &b, bench.mode()?, max)?;
    writer.send_pattern(1, max as usize)?;
    reader.expect(1, max as usize)?;
    let too_long = vec![0u8; max as usize + 1];
    match writer.session.send(writer.ep, 2, &too_long) {
        Err(Code::ETOOBIG) => {}
        Err(code) => return Err(Wrong(format!("{} B gave {code}, not TB_ETOOBIG", max + 1))),
        Ok(()) => return Err(Wrong(format!("{} B were accepted by an end point made for {max} B", max + 1))),
    }
    writer.send_pattern(3, 10)?;
    reader.expect(3, 10).map_err(|e| Wrong(format!("after the refusal: {e}")))?;
    let what = if max == limit { "the driver's limit" } else { "the end point's limit; the driver's limit is larger" };
    pass(format!("{max} B, {what}"))
}

pub fn qos_read_back(bench: &Bench) -> Checked {
    let policies = &bench.driver.description().qos;
    if policies.is_empty() {
        return Ok(Verdict::NotApplicable("the driver declares no QoS policies".into()));
    }
    let end = bench.end()?;
    let mode = bench.mode()?;
    let mut read_back = 0;
    for policy in policies {
        for value in &policy.values {
            let qos = Kv::new().with(&policy.policy, value);
            let mut refusals = Vec::new();
            for (kind, name) in [(Kind::Writer, "writer"), (Kind::Reader(mode), "reader")] {
                let ep = match end.session.create(kind, &bench.topic("qos"), 64, &qos, 1) {
                    Ok(ep) => ep,
                    // Some policies exist for one kind of end point only.
                    Err(e) if e.code == Code::EQOS => {
                        refusals.push(e.to_string());
                        continue;
                    }
                    Err(e) => return Err(Wrong(format!("{name} with {}={value}: {e}", policy.policy))),
                };
                let json = end.session.query(ep, "qos").map_err(|e| Wrong(e.to_string()))?;
                let all: Value =
                    serde_json::from_str(&json).map_err(|e| Wrong(format!("query qos is not JSON: {e}")))?;
                let found = match all.get(&policy.policy) {
                    Some(Value::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                    None => {
                        return Err(Wrong(format!(
                            "{name}: {}={value} was set, but query qos does not contain it",
                            policy.policy
                        )));
                    }
                };
                if found != *value {
                    return Err(Wrong(format!("{name}: {}={value} was set, but {found} is read back", policy.policy)));
                }
                end.session.destroy(ep).map_err(|e| Wrong(e.to_string()))?;
                read_back += 1;
            }
            if refusals.len() == 2 {
                return Err(Wrong(format!("{}={value} is declared, but refused: {}", policy.policy, refusals[0])));
            }
        }
    }
    pass(format!("{read_back} values of {} policies", policies.len()))
}
