//! Conformance checks of a driver's answers to queries, and of calls that a driver must refuse.

use serde_json::Value;

use crate::conformance::Wrong;
use crate::conformance::bench::Bench;
use crate::conformance::{Checked, pass};
use crate::endpoint::Endpoint;
use crate::error::Code;
use crate::kv::Kv;
use crate::session::{Kind, Session};

pub fn unknown_option(bench: &Bench) -> Checked {
    const KEY: &str = "tailbound_no_such_option";
    let options: Kv = bench.options.iter().chain([(KEY, "1")]).collect();
    match Session::open(&bench.driver, &options, std::sync::Arc::new(crate::Silent)) {
        Ok(_) => Err(Wrong(format!("open accepted the option {KEY}"))),
        Err(e) if e.code != Code::EINVAL => Err(Wrong(format!("open gave {}, not TB_EINVAL", e.code))),
        Err(e) if !e.text.contains(KEY) => Err(Wrong(format!("the error does not name the option: {}", e.text))),
        Err(e) => pass(e.text),
    }
}

fn json(session: &Session, ep: Endpoint, what: &str) -> Result<Value, Wrong> {
    let text = session.query(ep, what).map_err(|e| Wrong(e.to_string()))?;
    let start: String = text.chars().take(80).collect();
    serde_json::from_str(&text).map_err(|e| Wrong(format!("query {what}: not JSON ({e}): {start:?}")))
}

pub fn queries(bench: &Bench) -> Checked {
    let (a, b) = (bench.end()?, bench.end()?);
    let (writer, reader) = bench.link(&a, &b, bench.mode()?, 64)?;
    writer.send_pattern(1, 10)?;
    reader.expect(1, 10)?;
    for (session, ep) in [(&a.session, writer.ep), (&b.session, reader.ep)] {
        for what in ["stats", "peers"] {
            json(session, ep, what)?;
        }
        for what in ["stats", "peers", "transport", "threads"] {
            json(session, Endpoint::SESSION, what)?;
        }
    }
    pass("stats, peers, transport, threads")
}

pub fn unmatched(bench: &Bench) -> Checked {
    let end = bench.end()?;
    for kind in [Kind::Writer, Kind::Reader(bench.mode()?)] {
        let ep = end.create(kind, &bench.topic("alone"), 64, 1)?;
        if json(&end.session, ep, "unmatched")?.is_null() {
            return Err(Wrong(format!(
                "the answer to the query `unmatched` gives no reason for a {kind:?} without a peer"
            )));
        }
    }
    pass("writer and reader")
}

pub fn unknown_question(bench: &Bench) -> Checked {
    let end = bench.end()?;
    match end.session.query(Endpoint::SESSION, "tailbound_no_such_question") {
        Ok(answer) => Err(Wrong(format!("an unknown question was answered with {answer:?}"))),
        Err(e) if e.code != Code::EUNSUPPORTED => Err(Wrong(format!("query gave {}, not TB_EUNSUPPORTED", e.code))),
        Err(e) => pass(e.text),
    }
}
