//! Tests of properties that only the driver `udp` has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tailbound_driver::{
    Callbacks, Code, Driver, Endpoint, Hot, Kind, Kv, ReceiveMode, Session, Silent, View, ViewBuf, Wait,
};

const BLOCK: Kind = Kind::Reader(ReceiveMode::Block);
const LISTENER: Kind = Kind::Reader(ReceiveMode::Listener);

fn clock_ns(clock: libc::clockid_t) -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

fn soon() -> i64 {
    clock_ns(libc::CLOCK_MONOTONIC) + 10_000_000_000
}

/// Makes driver options with a value of `domain` that no other test uses, so that sessions of different tests do not
/// communicate.
fn options() -> Kv {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let domain = u64::from(std::process::id()) * 64 + NEXT.fetch_add(1, Ordering::Relaxed);
    Kv::new().with("domain", domain.to_string())
}

fn udp() -> Driver {
    Driver::linked("udp", tailbound_driver_udp::table()).unwrap()
}

fn open(options: &Kv) -> Session {
    Session::open(&udp(), options, Arc::new(Silent)).unwrap()
}

fn json(s: &Session, ep: Endpoint, what: &str) -> Value {
    serde_json::from_str(&s.query(ep, what).unwrap()).unwrap()
}

fn pair(s: &Session, topic: &str) -> (Endpoint, Endpoint) {
    let writer = s.create(Kind::Writer, topic, 64, &Kv::new(), 0).unwrap();
    let reader = s.create(BLOCK, topic, 64, &Kv::new(), 0).unwrap();
    s.wait_matched(writer, 1, soon()).unwrap();
    s.wait_matched(reader, 1, soon()).unwrap();
    (writer, reader)
}

fn ready(s: &Session, reader: Endpoint) {
    while s.wait(&[reader], soon()).unwrap() == Wait::Woken {}
}

#[test]
fn nothing_runs_in_the_background_after_matching() {
    let s = open(&options());
    let (writer, reader) = pair(&s, "quiet");
    let begin = Instant::now();
    while json(&s, Endpoint::SESSION, "threads") != Value::Array(Vec::new()) {
        // Limit: ends the wait if the thread never ends.
        assert!(begin.elapsed() < Duration::from_secs(5), "the discovery thread did not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    s.send(writer, 1, b"abc").unwrap();
    ready(&s, reader);
    let mut views = ViewBuf::new(4);
    assert_eq!(s.take(reader, &mut views), Ok(1), "questions are never shown as samples");
    assert_eq!(views.iter().next().unwrap().payload(), b"abc");
    s.release(reader, &mut views).unwrap();
    assert_eq!(json(&s, writer, "stats")["sent"], 1);
    assert_eq!(json(&s, reader, "stats")["received"], 1);
}

#[test]
fn kernel_time_stamps_lie_between_send_and_receive() {
    for timestamps in ["on", "hardware"] {
        let s = open(&options().with("timestamps", timestamps));
        let (writer, reader) = pair(&s, "stamped");
        let before = clock_ns(libc::CLOCK_REALTIME);
        s.send(writer, 1, &[]).unwrap();
        ready(&s, reader);
        let after = clock_ns(libc::CLOCK_REALTIME);
        let mut views = ViewBuf::new(1);
        s.take(reader, &mut views).unwrap();
        let view = views.iter().next().unwrap();
        let stamp = view.kernel_rx_ns();
        assert!((before..=after).contains(&stamp), "{before} <= {stamp} <= {after}");
        // No network card receives what stays on this host.
        assert_eq!(view.hw_rx_ns(), 0);
        s.release(reader, &mut views).unwrap();
    }
}

#[test]
fn each_message_has_the_times_of_its_stages() {
    const MESSAGES: u64 = 300;
    // The largest one is divided into fragments, if the path has no larger ones.
    for payload_bytes in [0, 60, 4_000] {
        let s = open(&options().with("timestamps", "stages"));
        let writer = s.create(Kind::Writer, "stages", 4_000, &Kv::new(), 0).unwrap();
        let reader = s.create(BLOCK, "stages", 4_000, &Kv::new(), 0).unwrap();
        s.wait_matched(writer, 1, soon()).unwrap();
        s.wait_matched(reader, 1, soon()).unwrap();
        let mut views = ViewBuf::new(1);
        let mut times = Vec::new();
        for seq in 0..MESSAGES {
            let before = clock_ns(libc::CLOCK_REALTIME);
            s.send(writer, seq, &vec![0; payload_bytes]).unwrap();
            ready(&s, reader);
            s.take(reader, &mut views).unwrap();
            times.push((before, views.iter().next().unwrap().kernel_rx_ns()));
            s.release(reader, &mut views).unwrap();
        }
        let answer = json(&s, writer, "stamps");
        assert_eq!((&answer["unread"], &answer["left_out"]), (&Value::from(0), &Value::from(0)));
        let stamps: Vec<(u64, String, i64)> = serde_json::from_value(answer["stamps"].clone()).unwrap();
        let of = |seq: u64, stage: &str| {
            let found: Vec<i64> = stamps.iter().filter(|s| s.0 == seq && s.1 == stage).map(|s| s.2).collect();
            assert_eq!(found.len(), 1, "{stage} of message {seq}: {found:?}");
            found[0]
        };
        for (seq, (before, received)) in (0..).zip(times) {
            let [queued, sent] = ["queued", "sent"].map(|stage| of(seq, stage));
            assert!(before <= queued && queued <= sent && sent <= received, "{before} {queued} {sent} {received}");
        }
        assert_eq!(stamps.len() as u64, 2 * MESSAGES);
        // What was answered is not answered again.
        assert_eq!(json(&s, writer, "stamps")["stamps"], Value::Array(Vec::new()));
    }
}

#[test]
fn without_stages_there_are_no_stamps() {
    let s = open(&options().with("timestamps", "on"));
    let (writer, reader) = pair(&s, "none");
    let refused = |ep| s.query(ep, "stamps").unwrap_err().text;
    assert_eq!(refused(writer), "query stamps: the option `timestamps` is neither `stages` nor `hardware`");
    assert!(refused(reader).contains("is a reader"));
}

/// Below gates, the kernel drops datagrams without a launch time that come from a socket with launch times, so that questions to readers
/// would be lost.
#[test]
fn a_writer_that_looks_for_readers_again_asks_without_launch_times() {
    let s = open(&options().with("launch", "strict").with("priority", "3"));
    if let Err(error) = s.create(Kind::Writer, "trial", 64, &Kv::new(), 0) {
        assert!(error.to_string().contains("CAP_NET_ADMIN"), "{error}");
        return eprintln!("skipped: {error}");
    }
    let (writer, reader) = pair(&s, "again");
    let socket = || json(&s, writer, "transport")["sockets"][0].clone();
    let of = |socket: &Value| (socket["launch_times"].clone(), socket["priority_effective"].clone());
    let settled = socket();
    assert_eq!(of(&settled), (true.into(), 3.into()), "{settled}");
    // There is one reader.
    let fault = s.wait_matched(writer, 2, clock_ns(libc::CLOCK_MONOTONIC) + 50_000_000).unwrap_err();
    assert_eq!(fault.code, Code::ETIMEDOUT, "{fault}");
    let asking = socket();
    assert_eq!(of(&asking), (false.into(), 0.into()), "{asking}");
    assert_eq!((&asking["local"], &asking["connected"]), (&settled["local"], &false.into()));
    s.wait_matched(writer, 1, soon()).unwrap();
    assert_eq!(of(&socket()), of(&settled));
    s.send(writer, 1, b"abc").unwrap();
    ready(&s, reader);
    let mut views = ViewBuf::new(4);
    assert_eq!(s.take(reader, &mut views), Ok(1));
}

#[test]
fn one_writer_reaches_many_readers() {
    let s = open(&options());
    let writer = s.create(Kind::Writer, "many", 64, &Kv::new(), 0).unwrap();
    let readers: Vec<_> = (0..10).map(|_| s.create(BLOCK, "many", 64, &Kv::new(), 0).unwrap()).collect();
    s.wait_matched(writer, 10, soon()).unwrap();
    for reader in &readers {
        s.wait_matched(*reader, 1, soon()).unwrap();
    }
    s.send(writer, 7, b"x").unwrap();
    let mut views = ViewBuf::new(1);
    for reader in &readers {
        ready(&s, *reader);
        assert_eq!(s.take(*reader, &mut views), Ok(1));
        assert_eq!(views.iter().next().unwrap().seq(), 7);
        s.release(*reader, &mut views).unwrap();
    }
}

#[test]
fn buffer_sizes_are_reported_as_read_back() {
    let s = open(&options().with("rcvbuf", "65536"));
    let (_, reader) = pair(&s, "buffers");
    let transport = json(&s, reader, "transport");
    assert_eq!(transport["rcvbuf_asked_bytes"], 65536);
    let effective = transport["sockets"][0]["rcvbuf_effective_bytes"].as_i64().unwrap();
    assert_eq!(effective, 131_072, "Linux doubles what is asked");
}

#[test]
fn an_unmatched_writer_names_the_addresses_it_asked() {
    let s = open(&options());
    let writer = s.create(Kind::Writer, "alone", 64, &Kv::new(), 0).unwrap();
    let error = s.wait_matched(writer, 1, clock_ns(libc::CLOCK_MONOTONIC) + 20_000_000).unwrap_err();
    assert_eq!((error.code, error.text.as_str()), (Code::ETIMEDOUT, "0 of 1 peers answered for topic alone"));
    let unmatched = json(&s, writer, "unmatched");
    let text = unmatched[0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("nothing seen: no answer to discovery questions was received from 127.0.0.1 (ports "),
        "{text}"
    );
}

#[test]
fn ipv6() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        println!("skipped: no IPv6 loopback here");
        return;
    }
    let s = open(&options().with("address", "::1"));
    let (writer, reader) = pair(&s, "six");
    s.send(writer, 1, b"6").unwrap();
    ready(&s, reader);
}

#[test]
fn a_reader_that_is_gone_is_no_error_of_send() {
    let s = open(&options());
    let (writer, reader) = pair(&s, "gone");
    s.destroy(reader).unwrap();
    for k in 0..10 {
        s.send(writer, k, b"x").unwrap();
    }
    let again = s.create(BLOCK, "gone", 64, &Kv::new(), 0).unwrap();
    s.wait_matched(writer, 1, soon()).unwrap();
    s.send(writer, 99, b"x").unwrap();
    ready(&s, again);
}

struct Count(AtomicU64);

impl Callbacks for Count {
    fn on_sample(&self, _: &Hot, _: u64, _: &View) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Tests both linked drivers: end points are made and destroyed while other end points send.
#[test]
fn destroy_races_with_send_and_wait() {
    for driver in [udp(), Driver::linked("null", tailbound_driver_null::table()).unwrap()] {
        let count = Arc::new(Count(AtomicU64::new(0)));
        let s = Session::open(&driver, &options(), count.clone()).unwrap();
        let writer = s.create(Kind::Writer, "race", 64, &Kv::new(), 0).unwrap();
        let steady = s.create(LISTENER, "race", 64, &Kv::new(), 0).unwrap();
        s.wait_matched(writer, 1, soon()).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // The queue of a reader that takes no sample may be full.
                    match s.send(writer, 1, b"payload") {
                        Ok(()) | Err(Code::EWOULDBLOCK) => {}
                        Err(code) => panic!("{}", s.error("send", code)),
                    }
                }
            });
            for round in 0..50 {
                let kind = if round % 2 == 0 { LISTENER } else { BLOCK };
                let reader = s.create(kind, "race", 64, &Kv::new(), 1).unwrap();
                s.wait_matched(reader, 1, clock_ns(libc::CLOCK_MONOTONIC) + 1_000_000).ok();
                if round % 2 == 1 {
                    let s = &s;
                    let waiter = threads.spawn(move || {
                        let mut views = ViewBuf::new(8);
                        loop {
                            let ended = s.wait(&[reader], soon());
                            if ended == Err(Code::ECLOSED) {
                                return;
                            }
                            if s.take(reader, &mut views) == Err(Code::ECLOSED) {
                                return;
                            }
                            s.release(reader, &mut views).ok();
                        }
                    });
                    std::thread::sleep(Duration::from_millis(2));
                    s.destroy(reader).unwrap();
                    waiter.join().unwrap();
                } else {
                    s.destroy(reader).unwrap();
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(count.0.load(Ordering::Relaxed) > 0, "{}", driver.name());
        s.destroy(steady).unwrap();
    }
}
