//! Tests which end points match, and the reasons why others do not match.

use crate::common::{ask, in_ms, matched, on_lo, open, until};
use serde_json::{Value, json};
use tailbound_driver::{Code, Endpoint, Kind, Kv, ReceiveMode, Session};

const READER: Kind = Kind::Reader(ReceiveMode::Spin);

fn create(session: &Session, kind: Kind, topic: &str, qos: &Kv) -> Endpoint {
    session.create(kind, topic, 64, qos, 7).unwrap()
}

fn reason(session: &Session, ep: Endpoint, expected: &str) -> Value {
    let mut last = Value::Null;
    until(expected, || {
        last = ask(session, ep, "unmatched");
        last["reason"] == expected
    });
    last
}

#[test]
fn nothing_seen() {
    let (a, _) = open(&on_lo(121));
    let ep = create(&a, READER, "lonely", &Kv::new());
    let fault = a.wait_matched(ep, 1, in_ms(50)).unwrap_err();
    assert_eq!(fault.code, Code::ETIMEDOUT);
    assert!(fault.text.contains("0 of 1"), "{fault}");
    assert!(reason(&a, ep, "nothing seen")["detail"].as_str().unwrap().contains("no writer of lonely"));
}

#[test]
fn type_differs() {
    let (a, _) = open(&on_lo(122));
    let (b, _) = open(&on_lo(122).with("naming", "ros2"));
    let reader = create(&a, READER, "rt/same", &Kv::new());
    let writer = create(&b, Kind::Writer, "same", &Kv::new());
    for (session, ep) in [(&a, reader), (&b, writer)] {
        let told = reason(session, ep, "type differs");
        let detail = told["detail"].as_str().unwrap();
        assert!(
            detail.contains("tailbound::Sample") && detail.contains("tailbound_msgs::msg::dds_::Sample_"),
            "{told}"
        );
    }
}

#[test]
fn incompatible_qos_by_name() {
    let (a, _) = open(&on_lo(123));
    let (b, _) = open(&on_lo(123));
    for (topic, key, offered, requested) in [
        ("q1", "reliability", "best-effort", "reliable"),
        ("q2", "durability", "volatile", "transient-local"),
        ("q3", "deadline", "2000000000", "1000000000"),
    ] {
        let reader = create(&a, READER, topic, &Kv::new().with(key, requested));
        let writer = create(&b, Kind::Writer, topic, &Kv::new().with(key, offered));
        for (session, ep) in [(&a, reader), (&b, writer)] {
            let told = reason(session, ep, "incompatible QoS");
            assert_eq!(told["policy"], key);
            assert_eq!(told["detail"], format!("{key}: offered {offered}, requested {requested}"));
        }
    }
}

#[test]
fn peers_statistics_and_matches() {
    let (a, on_a) = open(&on_lo(124));
    let (b, on_b) = open(&on_lo(124));
    let reader = create(&a, READER, "peers", &Kv::new());
    let writer = create(&b, Kind::Writer, "peers", &Kv::new());
    matched(&[(&a, reader), (&b, writer)]);
    for (session, ep) in [(&a, reader), (&b, writer)] {
        let peers = ask(session, ep, "peers");
        assert_eq!(peers.as_array().unwrap().len(), 1, "{peers}");
        assert_eq!(peers[0]["type"], "tailbound::Sample");
        assert_eq!(peers[0]["pid"], std::process::id().to_string());
        assert!(peers[0]["addresses"].as_str().unwrap().contains("127.0.0.1"), "{peers}");
        assert_eq!(ask(session, ep, "stats")["matched"], 1);
        assert_eq!(ask(session, ep, "unmatched")["reason"], "matched");
    }
    assert!(ask(&b, writer, "stats")["rexmit_bytes"].is_u64());
    assert!(ask(&a, reader, "stats")["discarded_bytes"].is_u64());
    assert_eq!(*on_b.matches.lock().unwrap(), [(7, 1)]);
    drop(b);
    until("the writer's end is seen", || on_a.matches.lock().unwrap().last() == Some(&(7, 0)));
}

#[test]
fn effective_qos_is_read_back() {
    let (a, _) = open(&on_lo(125));
    let defaults = ask(&a, create(&a, Kind::Writer, "defaults", &Kv::new()), "qos");
    for (key, value) in [
        ("reliability", "reliable"),
        ("reliability.max_blocking_time", "100000000"),
        ("durability", "volatile"),
        ("history", "keep-last"),
        ("history.depth", "1"),
        ("deadline", "infinite"),
        ("lifespan", "infinite"),
        ("latency_budget", "0"),
        ("transport_priority", "0"),
        ("resource_limits.max_samples", "unlimited"),
        ("batch", "off"),
    ] {
        assert_eq!(defaults[key], json!(value), "{key}");
    }
    let given = [
        ("reliability", "best-effort"),
        ("durability", "transient-local"),
        ("history", "keep-all"),
        ("deadline", "1000000"),
        ("latency_budget", "5"),
        ("resource_limits.max_samples", "77"),
    ];
    for kind in [Kind::Writer, READER] {
        let back = ask(&a, create(&a, kind, "given", &given.into_iter().collect()), "qos");
        for (key, value) in given {
            assert_eq!(back[key], json!(value), "{key}");
        }
    }
}
