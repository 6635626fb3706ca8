//! Tests of matching: the driver `ros2` with the drivers of other vendors, and the reasons when ends do not match.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{fastdds, ros2::built};
use serde_json::Value;
use tailbound_driver::{Code, Driver, Endpoint, Kind, Kv, ReceiveMode, Session, Silent, ViewBuf, load};

const SPIN: Kind = Kind::Reader(ReceiveMode::Spin);

/// Names of the drivers of other vendors that this build of Tailbound contains.
fn others() -> Vec<Driver> {
    let cyclonedds = Driver::linked("cyclonedds", tailbound_driver_cyclonedds::table()).unwrap();
    std::iter::once(cyclonedds).chain(fastdds::built().map(|path| load(path).unwrap())).collect()
}

/// Opens a session of the driver in a DDS domain of its own, on the loopback interface, with ROS 2 names.
fn open(driver: &Driver, domain: u32) -> Session {
    let domain = domain.to_string();
    let all = [("domain", domain.as_str()), ("address", "127.0.0.1"), ("peers", "127.0.0.1"), ("naming", "ros2")];
    let kv: Kv = all.into_iter().filter(|(key, _)| driver.description().option(key).is_some()).collect();
    Session::open(driver, &kv, Arc::new(Silent)).unwrap()
}

fn create(session: &Session, kind: Kind, topic: &str, max_len: u64, qos: &Kv) -> Endpoint {
    session.create(kind, topic, max_len, qos, 7).unwrap()
}

fn in_seconds(seconds: i64) -> i64 {
    tailbound_host::monotonic_ns() + seconds * 1_000_000_000
}

/// Repeats the query `unmatched` until its reason is the expected reason.
fn reason(session: &Session, ep: Endpoint, expected: &str) -> Value {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let last: Value = serde_json::from_str(&session.query(ep, "unmatched").unwrap()).unwrap();
        if last["reason"] == expected {
            return last;
        }
        assert!(Instant::now() < end, "{expected}: {last}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Receives the next message: sequence number, payload, and whether it has a source time stamp.
fn next(session: &Session, ep: Endpoint) -> (u64, Vec<u8>, bool) {
    let end = Instant::now() + Duration::from_secs(10);
    let mut views = ViewBuf::new(1);
    while session.take(ep, &mut views).unwrap() == 0 {
        assert!(Instant::now() < end, "a sample arrives");
        std::thread::yield_now();
    }
    let view = views.iter().next().unwrap();
    let got = (view.seq(), view.payload().to_vec(), view.raw().source_ns > 0);
    session.release(ep, &mut views).unwrap();
    got
}

/// Test: all vendors use the same wire format. Messages of each length modulo the alignment, and a message of many
/// datagrams, arrive in both directions.
#[test]
fn samples_go_to_each_vendor_and_back() {
    let ros2 = load(built()).unwrap();
    for (domain, other) in (142..).zip(others()) {
        let (a, b) = (open(&ros2, domain), open(&other, domain));
        for (from, to, topic) in [(&a, &b, "there"), (&b, &a, "back")] {
            let max = 200_000;
            let writer = create(from, Kind::Writer, topic, max, &Kv::new());
            let reader = create(to, SPIN, topic, max, &Kv::new());
            from.wait_matched(writer, 1, in_seconds(10)).unwrap();
            to.wait_matched(reader, 1, in_seconds(10)).unwrap();
            for len in (0..20).chain([1024, 65_500, max as usize]) {
                let payload: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
                let seq = 7 << 48 | len as u64;
                from.send(writer, seq, &payload).unwrap();
                let got = next(to, reader);
                let what = format!("{} {topic}, {len} B: {:#x}, {} B", other.name(), got.0, got.1.len());
                assert!((got.0, got.1) == (seq, payload), "{what}");
                // RustDDS has the time stamp of the last fragment; Cyclone puts one into the first.
                let lacks = len >= 65_500 && topic == "back" && other.name() == "cyclonedds";
                assert_eq!(got.2, !lacks, "{what}: source time stamp");
            }
        }
    }
}

#[test]
fn incompatible_qos_by_name() {
    let ros2 = load(built()).unwrap();
    for (domain, other) in (145..).zip(others().into_iter().chain([ros2.clone()])) {
        let (a, b) = (open(&ros2, domain), open(&other, domain));
        for (topic, key, offered, requested) in [
            ("q1", "reliability", "best-effort", "reliable"),
            ("q2", "durability", "volatile", "transient-local"),
            ("q3", "deadline", "2000000000", "1000000000"),
        ] {
            for (from, to, topic) in [(&a, &b, format!("{topic}_there")), (&b, &a, format!("{topic}_back"))] {
                let reader = create(to, SPIN, &topic, 64, &Kv::new().with(key, requested));
                let writer = create(from, Kind::Writer, &topic, 64, &Kv::new().with(key, offered));
                for (session, ep) in [(to, reader), (from, writer)] {
                    let told = reason(session, ep, "incompatible QoS");
                    assert_eq!(told["policy"], key, "{}", other.name());
                    assert_eq!(told["detail"], format!("{key}: offered {offered}, requested {requested}"));
                }
            }
        }
    }
}

#[test]
fn nothing_seen_and_another_type() {
    let ros2 = load(built()).unwrap();
    let session = open(&ros2, 149);
    let alone = create(&session, Kind::Writer, "alone", 64, &Kv::new());
    assert_eq!(
        reason(&session, alone, "nothing seen")["detail"],
        "no subscription of rt/alone was discovered; 0 other participants were discovered"
    );
    let fault = session.wait_matched(alone, 1, in_seconds(0)).unwrap_err();
    assert_eq!((fault.code, fault.text.as_str()), (Code::ETIMEDOUT, "0 of 1 peers matched on rt/alone"));
    let dds = [("domain", "149"), ("interface", "lo"), ("peers", "127.0.0.1")];
    let dds = Session::open(&others()[0], &dds.into_iter().collect(), Arc::new(Silent)).unwrap();
    create(&dds, Kind::Writer, "rt/same", 64, &Kv::new());
    let reader = create(&session, SPIN, "same", 64, &Kv::new());
    let told = reason(&session, reader, "type differs");
    let detail = told["detail"].as_str().unwrap();
    assert!(detail.contains("tailbound::Sample") && detail.contains("tailbound_msgs::msg::dds_::Sample_"), "{told}");
}

/// Test: a match ends when the peer is destroyed, and a new peer is matched.
#[test]
fn peers_come_and_go() {
    let ros2 = load(built()).unwrap();
    for (domain, other) in (150..).zip(others().into_iter().chain([ros2.clone()])) {
        let (a, b) = (open(&ros2, domain), open(&other, domain));
        let writer = create(&a, Kind::Writer, "come", 64, &Kv::new());
        for _ in 0..2 {
            let reader = create(&b, SPIN, "come", 64, &Kv::new());
            a.wait_matched(writer, 1, in_seconds(10)).unwrap();
            b.destroy(reader).unwrap();
            reason(&a, writer, "nothing seen");
        }
    }
}
