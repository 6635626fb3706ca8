//! Tests of matching: the driver `fastdds` with itself and with another vendor, and the reasons when ends do not match.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::fastdds::built;
use serde_json::Value;
use tailbound_driver::{Code, Driver, Endpoint, Kind, Kv, ReceiveMode, Session, Silent, ViewBuf, load};

const SPIN: Kind = Kind::Reader(ReceiveMode::Spin);

fn fastdds() -> Option<Driver> {
    built().map(|path| load(path).unwrap())
}

fn cyclonedds() -> Driver {
    Driver::linked("cyclonedds", tailbound_driver_cyclonedds::table()).unwrap()
}

/// Opens a session of the driver in a DDS domain of its own, on the loopback interface.
fn open(driver: &Driver, domain: u32, more: &[(&str, &str)]) -> Session {
    let domain = domain.to_string();
    let base = [("domain", domain.as_str()), ("interface", "lo"), ("peers", "127.0.0.1")];
    let kv: Kv = base.iter().chain(more).copied().collect();
    Session::open(driver, &kv, Arc::new(Silent)).unwrap()
}

fn create(session: &Session, kind: Kind, topic: &str, max_len: u64, qos: &Kv) -> Endpoint {
    session.create(kind, topic, max_len, qos, 7).unwrap()
}

fn in_seconds(seconds: i64) -> i64 {
    tailbound_host::monotonic_ns() + seconds * 1_000_000_000
}

fn ask(session: &Session, ep: Endpoint, what: &str) -> Value {
    serde_json::from_str(&session.query(ep, what).unwrap()).unwrap()
}

fn reason(session: &Session, ep: Endpoint, expected: &str) -> Value {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let last = ask(session, ep, "unmatched");
        if last["reason"] == expected {
            return last;
        }
        assert!(Instant::now() < end, "{expected}: {last}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Receives the next message: sequence number, payload, and whether it has a source time stamp.
fn next(session: &Session, ep: Endpoint) -> (u64, Vec<u8>, bool) {
    next_within(session, ep, Duration::from_secs(10)).expect("a sample arrives")
}

fn next_within(session: &Session, ep: Endpoint, time: Duration) -> Option<(u64, Vec<u8>, bool)> {
    let end = Instant::now() + time;
    let mut views = ViewBuf::new(1);
    while session.take(ep, &mut views).unwrap() == 0 {
        if Instant::now() > end {
            return None;
        }
        std::thread::yield_now();
    }
    let view = views.iter().next().unwrap();
    let got = (view.seq(), view.payload().to_vec(), view.raw().source_ns > 0);
    session.release(ep, &mut views).unwrap();
    Some(got)
}

/// Sends messages until one message arrives. Cyclone DDS reports a match before it delivers messages of the new writer
/// (in its `connect_proxy_writer_with_reader` the listener runs before the writer has its reader), and a volatile
/// reader begins after the messages that the first heartbeat of another vendor's writer announces. Messages that are
/// sent earlier are lost.
fn greet(from: &Session, writer: Endpoint, to: &Session, reader: Endpoint) {
    for seq in 0..100 {
        from.send(writer, seq, &[]).unwrap();
        if next_within(to, reader, Duration::from_millis(100)).is_some() {
            return;
        }
    }
    panic!("no greeting arrives");
}

/// Test: both vendors use the same wire format. Messages of each length modulo the alignment, and a message of many
/// datagrams, arrive in both directions.
#[test]
fn samples_go_to_cyclonedds_and_back() {
    let Some(fast) = fastdds() else { return };
    for (domain, naming) in [(131, "dds"), (132, "ros2")] {
        let (fast, cyclone) =
            (open(&fast, domain, &[("naming", naming)]), open(&cyclonedds(), domain, &[("naming", naming)]));
        for (from, to, topic) in [(&fast, &cyclone, "there"), (&cyclone, &fast, "back")] {
            let max = 200_000;
            let writer = create(from, Kind::Writer, topic, max, &Kv::new());
            let reader = create(to, SPIN, topic, max, &Kv::new());
            from.wait_matched(writer, 1, in_seconds(10)).unwrap();
            to.wait_matched(reader, 1, in_seconds(10)).unwrap();
            greet(from, writer, to, reader);
            for len in (0..20).chain([1024, 65_500, max as usize]) {
                let payload: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
                let seq = 7 << 48 | len as u64;
                from.send(writer, seq, &payload).unwrap();
                let mut got = next(to, reader);
                while got.0 < 7 << 48 {
                    got = next(to, reader); // a greeting that was late
                }
                assert!(
                    got == (seq, payload, true),
                    "{topic}, {len} B: sequence number {:#x}, {} B",
                    got.0,
                    got.1.len()
                );
            }
        }
    }
}

#[test]
fn type_differs() {
    let Some(driver) = fastdds() else { return };
    let (a, b) = (open(&driver, 133, &[]), open(&driver, 133, &[("naming", "ros2")]));
    let reader = create(&a, SPIN, "rt/same", 64, &Kv::new());
    let writer = create(&b, Kind::Writer, "same", 64, &Kv::new());
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
    let Some(fast) = fastdds() else { return };
    for (domain, other) in [(134, fast.clone()), (135, cyclonedds())] {
        let (a, b) = (open(&fast, domain, &[]), open(&other, domain, &[]));
        for (topic, key, offered, requested) in [
            ("q1", "reliability", "best-effort", "reliable"),
            ("q2", "durability", "volatile", "transient-local"),
            ("q3", "deadline", "2000000000", "1000000000"),
        ] {
            let reader = create(&a, SPIN, topic, 64, &Kv::new().with(key, requested));
            let writer = create(&b, Kind::Writer, topic, 64, &Kv::new().with(key, offered));
            for (session, ep) in [(&a, reader), (&b, writer)] {
                let told = reason(session, ep, "incompatible QoS");
                assert_eq!(told["policy"], key);
                assert_eq!(told["detail"], format!("{key}: offered {offered}, requested {requested}"));
            }
        }
    }
}

/// Test: data sharing is not silently replaced by another transport of Fast DDS.
#[test]
fn data_sharing_is_never_something_else() {
    let Some(driver) = fastdds() else { return };
    let (a, b) = (open(&driver, 136, &[("transport", "data-sharing")]), open(&driver, 136, &[("transport", "shm")]));
    let writer = create(&a, Kind::Writer, "shared", 64, &Kv::new());
    let reader = create(&b, SPIN, "shared", 64, &Kv::new());
    b.wait_matched(reader, 1, in_seconds(10)).unwrap();
    let told = reason(&a, writer, "memory not shared");
    assert!(told["detail"].as_str().unwrap().contains("data sharing off"), "{told}");
    let fault = a.wait_matched(writer, 1, in_seconds(0)).unwrap_err();
    assert_eq!(fault.code, Code::ETIMEDOUT);
}

/// Test: two sessions in one process with different settings for delivery inside the process are refused, because the
/// setting applies to the whole process.
#[test]
fn two_settings_in_one_process_are_refused() {
    let Some(driver) = fastdds() else { return };
    let _udp = open(&driver, 137, &[]);
    let kv: Kv = [("transport", "intra-process")].into_iter().collect();
    let fault = Session::open(&driver, &kv, Arc::new(Silent)).unwrap_err();
    assert_eq!(fault.code, Code::EINVAL);
    assert!(fault.text.starts_with("transport=intra-process: other sessions of this process"), "{fault}");
}

/// Test: the reported options are the values that the library and the kernel use.
#[test]
fn sizes_are_read_back() {
    let Some(driver) = fastdds() else { return };
    let sizes =
        [("max_message_size", "5000"), ("socket_receive_buffer_size", "100000"), ("socket_send_buffer_size", "70000")];
    let udp = open(&driver, 139, &sizes);
    let told = ask(&udp, Endpoint::SESSION, "transport");
    assert_eq!(told["transports"][0]["max_message_size"], 5000);
    assert_eq!(told["transports"][0]["send_buffer"], 70_000);
    // Linux doubles the requested buffer size, and uses half of it itself.
    let sockets = told["sockets"].as_array().unwrap();
    assert!(sockets.len() >= 2 && sockets.iter().all(|s| s["receive_buffer_bytes"] == 200_000), "{sockets:?}");
    let shm = open(&driver, 139, &[("transport", "shm"), ("shm_segment_size", "1048576")]);
    assert_eq!(ask(&shm, Endpoint::SESSION, "transport")["transports"][0]["send_buffer"], 1_048_576);
}

/// Test: a view of a message is valid until it is released, even if its end point was destroyed before.
#[test]
fn a_sample_that_is_kept_outlives_its_reader() {
    let Some(driver) = fastdds() else { return };
    for transport in ["udp", "shm", "data-sharing"] {
        let more = [("transport", transport)];
        let (a, b) = (open(&driver, 140, &more), open(&driver, 140, &more));
        let writer = create(&a, Kind::Writer, "held", 1000, &Kv::new());
        let reader = create(&b, SPIN, "held", 1000, &Kv::new());
        a.wait_matched(writer, 1, in_seconds(10)).unwrap();
        b.wait_matched(reader, 1, in_seconds(10)).unwrap();
        a.send(writer, 1, &[7; 1000]).unwrap();
        let mut views = ViewBuf::new(1);
        let end = Instant::now() + Duration::from_secs(10);
        while b.take(reader, &mut views).unwrap() == 0 {
            assert!(Instant::now() < end, "a sample arrives");
        }
        b.destroy(reader).unwrap();
        assert_eq!(views.iter().next().unwrap().payload(), [7; 1000]);
        assert_eq!(b.take(reader, &mut ViewBuf::new(1)).unwrap_err(), Code::ECLOSED);
        b.release(reader, &mut views).unwrap();
    }
}

#[test]
fn the_driver_describes_itself() {
    let Some(driver) = fastdds() else { return };
    let (a, b) =
        (open(&driver, 138, &[]), open(&driver, 138, &[("publish_mode", "async"), ("heartbeat_period", "200")]));
    let reader = create(&a, SPIN, "told", 64, &Kv::new());
    let writer = create(&b, Kind::Writer, "told", 64, &Kv::new());
    a.wait_matched(reader, 1, in_seconds(10)).unwrap();
    b.wait_matched(writer, 1, in_seconds(10)).unwrap();
    b.send(writer, 1, b"x").unwrap();
    b.wait_acked(writer, in_seconds(10)).unwrap();
    assert_eq!(next(&a, reader).0, 1);
    assert_eq!(ask(&b, writer, "stats"), serde_json::json!({"matched": 1, "sent": 1}));
    assert_eq!(ask(&a, reader, "stats")["received"], 1);
    let peers = ask(&a, reader, "peers");
    assert_eq!(peers[0]["type"], "tailbound::Sample");
    assert_eq!(peers[0]["data_sharing"], false);
    assert_eq!(peers[0]["qos"]["reliability"], "reliable");
    assert_eq!(peers.as_array().unwrap().len(), 1);
    let transport = ask(&b, Endpoint::SESSION, "transport");
    assert_eq!(transport["end_points"]["1"]["publish_mode"], "async");
    assert_eq!(transport["end_points"]["1"]["heartbeat_period_ns"], 200_000_000);
    assert_eq!(transport["end_points"]["1"]["data_sharing"], "off");
    let threads = ask(&a, Endpoint::SESSION, "threads").to_string();
    for name in ["fdds.recv", "fdds.meta", "fdds.event"] {
        assert!(threads.contains(name), "{name} in {threads}");
    }
}
