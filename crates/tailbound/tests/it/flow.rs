//! Tests of flow properties of the drivers `fastdds` and `ros2`: limits, unicast and multicast, and the values that
//! each driver reports.

use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::processes::Killed;
use crate::support::{fastdds, ros2};
use tailbound_driver::{
    Batching, Callbacks, Code, DataWay, Driver, Endpoint, Flow, Hot, Kind, Kv, ReceiveMode, Session, Silent, View,
    ViewBuf, load,
};

fn fastdds() -> Option<Driver> {
    fastdds::built().map(|path| load(path).unwrap())
}

/// Options for a session of the driver in a DDS domain of its own, on the loopback interface.
fn on_lo(driver: &Driver, domain: u32, more: &[(&str, &str)]) -> Kv {
    let domain = domain.to_string();
    let base = [("domain", domain.as_str()), ("address", "127.0.0.1"), ("peers", "127.0.0.1")];
    let known = base.iter().filter(|(key, _)| driver.description().option(key).is_some());
    known.chain(more).copied().collect()
}

fn open(driver: &Driver, options: &Kv) -> Session {
    Session::open(driver, options, Arc::new(Silent)).unwrap()
}

fn in_seconds(seconds: i64) -> i64 {
    tailbound_host::monotonic_ns() + seconds * 1_000_000_000
}

fn matched(all: &[(&Session, Endpoint, u32)]) {
    for (session, ep, peers) in all {
        session.wait_matched(*ep, *peers, in_seconds(10)).unwrap();
    }
}

fn flow(session: &Session, writer: Endpoint) -> Flow {
    session.flow(writer).unwrap().unwrap()
}

fn keep_all() -> Kv {
    Kv::new().with("history", "keep-all")
}

/// Callback of a reader that does not return from its first message until the test lets it continue; meanwhile the
/// reader acknowledges no message.
struct Stuck {
    arrived: Sender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl Callbacks for Stuck {
    fn on_sample(&self, _: &Hot, _: u64, _: &View) {
        let _ = self.arrived.send(());
        let _ = self.go_on.lock().unwrap().recv_timeout(Duration::from_secs(20));
    }
}

#[test]
fn fastdds_waits_at_its_limit() {
    let Some(driver) = fastdds() else { return };
    let a = open(&driver, &on_lo(&driver, 150, &[("unacked_limit", "20")]));
    let (arrived, arrives) = channel();
    let (go, go_on) = channel();
    let stuck = Arc::new(Stuck { arrived, go_on: Mutex::new(go_on) });
    let b = Session::open(&driver, &on_lo(&driver, 150, &[]), stuck).unwrap();
    let at_once = keep_all().with("reliability.max_blocking_time", "0");
    let writer = a.create(Kind::Writer, "limit", 64, &at_once, 0).unwrap();
    let reader = b.create(Kind::Reader(ReceiveMode::Listener), "limit", 64, &keep_all(), 0).unwrap();
    matched(&[(&a, writer, 1), (&b, reader, 1)]);
    let told = flow(&a, writer);
    assert_eq!(
        (told.unacked_limit, told.batching, told.data),
        (Some(20), Batching::None, DataWay::Unicast),
        "{told:?}"
    );
    assert_eq!((told.retransmitted_bytes, told.throttled_times, told.throttled_ns), (None, None, None));
    a.send(writer, 0, &[0; 64]).unwrap();
    arrives.recv_timeout(Duration::from_secs(10)).unwrap();
    let full = (1..100).find_map(|seq| a.send(writer, seq, &[0; 64]).err().map(|code| (seq, code)));
    assert_eq!(full, Some((20, Code::EWOULDBLOCK)));
    drop(go);
    a.wait_acked(writer, in_seconds(10)).unwrap();
    a.send(writer, 20, &[0; 64]).unwrap();
}

#[test]
fn fastdds_without_a_limit_gives_the_reason() {
    let Some(driver) = fastdds() else { return };
    let a = open(&driver, &on_lo(&driver, 151, &[("unacked_limit", "20")]));
    let last = flow(&a, a.create(Kind::Writer, "last", 64, &Kv::new(), 0).unwrap());
    let why = "none: only a reliable writer with history keep-all waits for acknowledgements";
    assert_eq!((last.unacked_limit, last.by["unacked_limit"].as_str()), (None, why));
    let b = open(&driver, &on_lo(&driver, 151, &[]));
    let all = flow(&b, b.create(Kind::Writer, "all", 64, &keep_all(), 0).unwrap());
    let why = "none: resource_limits.max_samples unlimited";
    assert_eq!((all.unacked_limit, all.by["unacked_limit"].as_str()), (None, why));
    let other = keep_all().with("resource_limits.max_samples", "7");
    let fault = a.create(Kind::Writer, "two", 64, &other, 0).unwrap_err();
    assert_eq!(fault.code, Code::EQOS);
    assert_eq!(fault.text, "resource_limits.max_samples: contradicts unacked_limit=20, which is the same setting here");
}

/// Numbers of UDP datagrams and of multicast packets that this thread's network namespace has sent.
fn sent() -> [u64; 2] {
    let of = |file: &str, group: &str, name: &str| {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap();
        let mut lines = text.lines().filter(|l| l.starts_with(group));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let at = names.split(' ').position(|n| n == name).unwrap();
        values.split(' ').nth(at).unwrap().parse::<u64>().unwrap()
    };
    [of("snmp", "Udp: ", "OutDatagrams"), of("netstat", "IpExt: ", "OutMcastPkts")]
}

/// Test in a separate network namespace: for each of 1,000 best-effort messages, Fast DDS sends one datagram to each of
/// three readers. Fast DDS also notices that a reader ends.
#[test]
fn fastdds_sends_one_datagram_for_each_reader() {
    let Some(driver) = fastdds() else { return };
    let thread = std::thread::spawn(move || {
        // SAFETY: no pointers; the threads that the sessions start are in the network namespace of this thread.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            println!("skipped: needs the right to make a network namespace");
            return;
        }
        assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
        let mut ends: Vec<Session> =
            (0..4).map(|_| open(&driver, &on_lo(&driver, 152, &[("data", "unicast")]))).collect();
        let qos = keep_all().with("reliability", "best-effort");
        let spin = Kind::Reader(ReceiveMode::Spin);
        let readers: Vec<Endpoint> = ends[1..].iter().map(|s| s.create(spin, "fan", 64, &qos, 0).unwrap()).collect();
        let writer = ends[0].create(Kind::Writer, "fan", 64, &qos, 0).unwrap();
        matched(&[
            (&ends[0], writer, 3),
            (&ends[1], readers[0], 1),
            (&ends[2], readers[1], 1),
            (&ends[3], readers[2], 1),
        ]);
        assert_eq!((flow(&ends[0], writer).matched, flow(&ends[0], writer).data), (3, DataWay::Unicast));
        let before = sent();
        for seq in 0..1000 {
            ends[0].send(writer, seq, &[7; 64]).unwrap();
            for (session, reader) in ends[1..].iter().zip(&readers) {
                let mut views = ViewBuf::new(1);
                let end = Instant::now() + Duration::from_secs(10);
                while session.take(*reader, &mut views).unwrap() == 0 {
                    assert!(Instant::now() < end, "sample {seq} arrives");
                }
                session.release(*reader, &mut views).unwrap();
            }
        }
        let after = sent();
        let (all, multicast) = (after[0] - before[0], after[1] - before[1]);
        assert!((3000..3500).contains(&all) && multicast < 100, "{all} datagrams, {multicast} multicast");
        ends.pop();
        let end = Instant::now() + Duration::from_secs(10);
        while flow(&ends[0], writer).matched != 2 {
            assert!(Instant::now() < end, "the reader that has gone is missed");
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    thread.join().unwrap();
}

/// Child process of [`a_reader_that_is_killed_is_missed`]: it has a reader until the process is killed.
#[test]
#[ignore = "run by another test"]
fn a_reader_in_another_process() {
    let name = std::env::var("TAILBOUND_TEST_DRIVER").expect("the driver");
    let driver = named(&name).expect("the driver is built");
    let session = open(&driver, &on_lo(&driver, DOMAIN_OF_THE_KILLED, &[]));
    session.create(Kind::Reader(ReceiveMode::Spin), &name, 64, &Kv::new(), 0).unwrap();
    std::thread::sleep(Duration::from_secs(600));
}

const DOMAIN_OF_THE_KILLED: u32 = 154;

fn named(name: &str) -> Option<Driver> {
    match name {
        "cyclonedds" => Some(Driver::linked(name, tailbound_driver_cyclonedds::table()).unwrap()),
        "fastdds" => fastdds(),
        _ => Some(load(ros2::built()).unwrap()),
    }
}

/// Test: a killed reader does not announce its end, so the writer counts it as matched until the lease of its
/// participant expires.
#[test]
fn a_reader_that_is_killed_is_missed() {
    std::thread::scope(|scope| {
        for name in ["cyclonedds", "fastdds", "ros2"] {
            let Some(driver) = named(name) else { continue };
            scope.spawn(move || {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.args(["--ignored", "--exact", "flow::a_reader_in_another_process"]);
                command.env("TAILBOUND_TEST_DRIVER", name).stdout(Stdio::null()).stderr(Stdio::null());
                let other = Killed(command.spawn().unwrap());
                let session = open(&driver, &on_lo(&driver, DOMAIN_OF_THE_KILLED, &[]));
                let writer = session.create(Kind::Writer, name, 64, &Kv::new(), 0).unwrap();
                session.wait_matched(writer, 1, in_seconds(30)).unwrap();
                drop(other);
                let begin = Instant::now();
                while flow(&session, writer).matched != 0 {
                    // Limit: ends the wait if the reader is never missed.
                    assert!(begin.elapsed() < Duration::from_secs(120), "{name}: the killed reader is missed");
                    std::thread::sleep(Duration::from_millis(100));
                }
                println!("{name}: missed after {:.1} s", begin.elapsed().as_secs_f64());
            });
        }
    });
}

#[test]
fn ros2_reports_its_flow_properties() {
    let driver = load(ros2::built()).unwrap();
    let ends: Vec<Session> = (0..3).map(|_| open(&driver, &on_lo(&driver, 153, &[]))).collect();
    let spin = Kind::Reader(ReceiveMode::Spin);
    for end in &ends[1..] {
        end.create(spin, "fan", 64, &Kv::new(), 0).unwrap();
    }
    let writer = ends[0].create(Kind::Writer, "fan", 64, &Kv::new(), 0).unwrap();
    matched(&[(&ends[0], writer, 2)]);
    let told = flow(&ends[0], writer);
    assert_eq!(
        (told.matched, told.batching, told.unacked_limit, told.data),
        (2, Batching::None, None, DataWay::Either)
    );
    assert_eq!(
        told.by["unacked_limit"],
        "not adjustable: RustDDS has a fixed limit of 8,192 messages for reliable writers"
    );
}

#[test]
fn impossible_options_are_refused_by_name() {
    let refusal = |driver: &Driver, key: &str, value: &str| {
        Session::open(driver, &Kv::new().with(key, value), Arc::new(Silent)).unwrap_err()
    };
    if let Some(driver) = fastdds() {
        let fault = refusal(&driver, "data", "multicast");
        assert_eq!(fault.code, Code::EUNSUPPORTED);
        assert!(fault.text.starts_with("data=multicast: an assertion in Fast DDS 2.9.1 ends the process"), "{fault}");
    }
    let driver = load(ros2::built()).unwrap();
    for (key, value, text) in [
        ("unacked_limit", "20", "unacked_limit=20: RustDDS lets a reliable writer have 8,192 unacknowledged messages"),
        ("data", "unicast", "data=unicast: RustDDS chooses by itself between unicast and multicast"),
    ] {
        let fault = refusal(&driver, key, value);
        assert!(fault.code == Code::EUNSUPPORTED && fault.text.starts_with(text), "{fault}");
    }
}
