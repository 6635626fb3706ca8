//! Tests of one writer of the driver `udp` and several readers: unicast or multicast, and readers that end or are
//! killed.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tailbound_driver::{
    Batching, DataWay, Driver, Endpoint, Flow, Kind, Kv, ReceiveMode, Session, Silent, ViewBuf, Wait,
};

const SAMPLES: u64 = 1000;

fn in_seconds(seconds: i64) -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    (now.tv_sec + seconds) * 1_000_000_000 + now.tv_nsec
}

fn open(domain: u32, more: &[(&str, &str)]) -> Session {
    let domain = domain.to_string();
    let kv: Kv = [("domain", domain.as_str())].iter().chain(more).copied().collect();
    let driver = Driver::linked("udp", tailbound_driver_udp::table()).unwrap();
    Session::open(&driver, &kv, Arc::new(Silent)).unwrap()
}

fn reader(session: &Session, topic: &str) -> Endpoint {
    session.create(Kind::Reader(ReceiveMode::Block), topic, 64, &Kv::new(), 0).unwrap()
}

fn writer(session: &Session, topic: &str, readers: u32) -> Endpoint {
    let writer = session.create(Kind::Writer, topic, 64, &Kv::new(), 0).unwrap();
    session.wait_matched(writer, readers, in_seconds(10)).unwrap();
    writer
}

fn flow(session: &Session, writer: Endpoint) -> Flow {
    session.flow(writer).unwrap().unwrap()
}

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        // Limit: ends the wait if the event never comes.
        assert!(begin.elapsed() < Duration::from_secs(10), "{what}: not within 10 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a reader receives the next sample, and returns the sample's sequence number.
fn next(session: &Session, reader: Endpoint) -> u64 {
    let mut views = ViewBuf::new(1);
    while session.take(reader, &mut views).unwrap() == 0 {
        assert_ne!(session.wait(&[reader], in_seconds(10)), Ok(Wait::TimedOut), "a sample arrives");
    }
    let seq = views.iter().next().unwrap().seq();
    session.release(reader, &mut views).unwrap();
    seq
}

/// Reads counters of this thread's network namespace: number of datagrams sent, and number of multicast packets among
/// them.
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

/// Moves this thread, and the programs that it starts, into a network namespace that has only a loopback interface.
fn in_own_network_namespace() -> bool {
    // SAFETY: no pointers.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        println!("skipped: needs the right to make a network namespace");
        return false;
    }
    let ip = Command::new("ip").args(["link", "set", "lo", "up", "multicast", "on"]).status();
    assert!(ip.is_ok_and(|s| s.success()), "ip link set lo up");
    true
}

/// Counts the datagrams, and the multicast packets among them, for [`SAMPLES`] samples to three readers.
fn cost(data: &'static str) -> Option<[u64; 2]> {
    let thread = std::thread::spawn(move || {
        if !in_own_network_namespace() {
            return None;
        }
        let ends: Vec<Session> = (0..4).map(|_| open(1, &[("data", data), ("ttl", "1")])).collect();
        let readers: Vec<(&Session, Endpoint)> = ends[1..].iter().map(|s| (s, reader(s, "fan"))).collect();
        let writer = writer(&ends[0], "fan", 3);
        let told = flow(&ends[0], writer);
        assert_eq!((told.matched, told.batching, told.unacked_limit), (3, Batching::None, None));
        let way = if data == "multicast" { DataWay::Multicast } else { DataWay::Unicast };
        assert_eq!(told.data, way, "{told:?}");
        let send = |seq| {
            ends[0].send(writer, seq, &[7; 64]).unwrap();
            for (session, reader) in &readers {
                assert_eq!(next(session, *reader), seq);
            }
        };
        // Discovery messages that were sent before the last reader answered have been counted when the first sample
        // arrives.
        send(SAMPLES);
        let before = sent();
        (0..SAMPLES).for_each(send);
        let after = sent();
        Some([after[0] - before[0], after[1] - before[1]])
    });
    thread.join().unwrap()
}

#[test]
fn unicast_sends_one_datagram_for_each_reader() {
    if let Some(cost) = cost("unicast") {
        assert_eq!(cost, [3 * SAMPLES, 0]);
    }
}

#[test]
fn multicast_sends_one_datagram_for_all() {
    if let Some(cost) = cost("multicast") {
        assert_eq!(cost[0], SAMPLES);
        // Membership reports are multicast packets too.
        assert!((SAMPLES..SAMPLES + 10).contains(&cost[1]), "{cost:?}");
    }
}

#[test]
fn a_reader_that_ends_announces_it() {
    let (a, b) = (open(4_000_001, &[]), open(4_000_001, &[]));
    let (first, second) = (reader(&a, "bye"), reader(&b, "bye"));
    let writer = writer(&a, "bye", 2);
    b.destroy(second).unwrap();
    until("the end is heard", || flow(&a, writer).matched == 1);
    a.send(writer, 1, b"x").unwrap();
    assert_eq!(next(&a, first), 1);
    drop(b);
    a.destroy(first).unwrap();
    until("the end is heard", || flow(&a, writer).matched == 0);
}

/// Runs as the child process of the test [`a_reader_that_is_killed_is_missed`]: receives samples until it is killed.
#[test]
#[ignore = "run by another test"]
fn a_reader_in_another_process() {
    let s = open(4_000_002, &[]);
    let reader = reader(&s, "killed");
    loop {
        next(&s, reader);
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_reader_that_is_killed_is_missed() {
    let me = std::env::current_exe().unwrap();
    let mut command = Command::new(me);
    command
        .args(["--ignored", "--exact", "udp_fan_out::a_reader_in_another_process"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let other = Killed(command.spawn().unwrap());
    let s = open(4_000_002, &[]);
    let here = reader(&s, "killed");
    let writer = writer(&s, "killed", 2);
    drop(other);
    until("the refusal is heard", || {
        s.send(writer, 1, b"x").unwrap();
        assert_eq!(next(&s, here), 1, "the other reader is served on");
        flow(&s, writer).matched == 1
    });
}

#[test]
fn impossible_options_are_refused_by_name() {
    let driver = Driver::linked("udp", tailbound_driver_udp::table()).unwrap();
    let refusal = |pairs: &[(&str, &str)]| {
        Session::open(&driver, &pairs.iter().copied().collect(), Arc::new(Silent)).unwrap_err().text
    };
    for (pairs, text) in [
        (&[("unacked_limit", "20")][..], "unacked_limit=20: with the udp driver nothing is acknowledged"),
        (&[("data", "both")], "data=both: expected one of: unicast, multicast"),
        (
            &[("data", "multicast"), ("address", "::1")],
            "data=multicast: the udp driver supports multicast groups of IPv4 only; give an IPv4 address",
        ),
        (
            &[("multicast", "on")],
            "multicast=on: the udp driver searches peers by multicast only with data=multicast; give peers",
        ),
        (&[("ttl", "0")], "ttl=0: data=unicast needs a ttl of at least 1; 0 is for data=multicast only"),
    ] {
        assert_eq!(refusal(pairs), text);
    }
}
