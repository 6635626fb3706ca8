//! Tests of the flow of samples: batches, the limit of unacknowledged messages, unicast and multicast, retransmissions.

use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{driver, in_ms, matched, on_lo, open, until};
use tailbound_driver::{
    Batching, Callbacks, Code, DataWay, Endpoint, Flow, Hot, Kind, Kv, ReceiveMode, Session, Silent, View,
};

const LISTENER: Kind = Kind::Reader(ReceiveMode::Listener);

fn keep_all() -> Kv {
    Kv::new().with("history", "keep-all")
}

fn flow(session: &Session, writer: Endpoint) -> Flow {
    session.flow(writer).unwrap().unwrap()
}

/// A loading program that does not return from the callback of its first sample until the test allows it; Cyclone
/// acknowledges nothing in the meantime.
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
fn a_writer_waits_at_its_limit() {
    for (domain, payload) in [(60, 64), (61, 5000)] {
        let limit = on_lo(domain).with("unacked_limit", "20").with("payload", payload.to_string());
        let (a, _) = open(&limit);
        let (arrived, arrives) = channel();
        let (go, go_on) = channel();
        let stuck = Arc::new(Stuck { arrived, go_on: Mutex::new(go_on) });
        let b = Session::open(&driver(), &on_lo(domain), stuck).unwrap();
        let at_once = keep_all().with("reliability.max_blocking_time", "0");
        let writer = a.create(Kind::Writer, "limit", payload, &at_once, 0).unwrap();
        let reader = b.create(LISTENER, "limit", payload, &keep_all(), 0).unwrap();
        matched(&[(&a, writer), (&b, reader)]);
        let told = flow(&a, writer);
        assert_eq!((told.unacked_limit, told.throttled_times), (Some(20), Some(0)), "{told:?}");
        let data = vec![0; payload as usize];
        a.send(writer, 0, &data).unwrap();
        arrives.recv_timeout(Duration::from_secs(10)).unwrap();
        let full = (1..100).find_map(|seq| a.send(writer, seq, &data).err().map(|code| (seq, code)));
        assert_eq!(full, Some((20, Code::EWOULDBLOCK)));
        assert_eq!(flow(&a, writer).throttled_times, Some(1));
        drop(go);
        a.wait_acked(writer, in_ms(10_000)).unwrap();
        a.send(writer, 20, &data).unwrap();
    }
}

#[test]
fn a_missing_limit_in_messages_has_a_reason() {
    let (a, _) = open(&on_lo(62).with("unacked_limit", "20").with("payload", "64"));
    let writer = a.create(Kind::Writer, "last", 64, &Kv::new(), 0).unwrap();
    let told = flow(&a, writer);
    assert_eq!(told.unacked_limit, None);
    assert_eq!(
        told.by["unacked_limit"],
        "none: only a reliable writer with history keep-all waits for acknowledgements"
    );
    let (b, _) = open(&on_lo(62));
    let writer = b.create(Kind::Writer, "all", 64, &keep_all(), 0).unwrap();
    let told = flow(&b, writer);
    assert_eq!(told.unacked_limit, None);
    assert_eq!(
        told.by["unacked_limit"],
        "no fixed number of messages: Watermarks/WhcLow 1 KiB, WhcHigh 500 KiB, WhcAdaptive true"
    );
    let reader = b.create(LISTENER, "all", 64, &keep_all(), 0).unwrap();
    assert_eq!(b.flow(reader).unwrap_err().text, format!("query flow: end point {} is a reader", reader.0));
}

/// Tests that a batch is held back until `flush`. The readers are best effort: they request no message again, so
/// messages that are held back stay in the writer.
#[test]
fn a_batch_is_kept_back_until_flush() {
    let ((a, _), (b, on_b)) = (open(&on_lo(63)), open(&on_lo(63)));
    let qos = keep_all().with("reliability", "best-effort");
    let writer = a.create(Kind::Writer, "kept", 8, &qos.clone().with("batch", "on"), 0).unwrap();
    let reader = b.create(LISTENER, "kept", 8, &qos, 0).unwrap();
    matched(&[(&a, writer), (&b, reader)]);
    assert_eq!(flow(&a, writer).batching, Batching::On);
    let seen = || on_b.samples.lock().unwrap().len();
    for seq in 0..9 {
        a.send_with(writer, seq, &[1; 8], 0, true).unwrap();
    }
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(seen(), 0);
    a.flush(writer, in_ms(1000)).unwrap();
    until("all arrive", || seen() == 9);
    let plain = a.create(Kind::Writer, "plain", 8, &qos, 0).unwrap();
    assert_eq!(flow(&a, plain).batching, Batching::Off);
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

/// Counts the datagrams, and the multicast packets among them, for 1,000 samples to three readers, in a new network
/// namespace.
fn cost(data: &'static str, expected: DataWay) -> Option<[u64; 2]> {
    let thread = std::thread::spawn(move || {
        // SAFETY: the call takes no pointers; the threads that the sessions start are in the namespace of this thread.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            println!("skipped: needs the right to make a network namespace");
            return None;
        }
        let ip = Command::new("ip").args(["link", "set", "lo", "up", "multicast", "on"]).status();
        assert!(ip.is_ok_and(|s| s.success()), "ip link set lo up");
        let ends: Vec<_> = (0..4).map(|_| open(&on_lo(1).with("data", data))).collect();
        let qos = keep_all().with("reliability", "best-effort");
        let readers: Vec<_> =
            ends[1..].iter().map(|(s, _)| (s, s.create(LISTENER, "fan", 64, &qos, 0).unwrap())).collect();
        let writer = ends[0].0.create(Kind::Writer, "fan", 64, &qos, 0).unwrap();
        ends[0].0.wait_matched(writer, 3, in_ms(10_000)).unwrap();
        readers.iter().for_each(|(s, ep)| s.wait_matched(*ep, 1, in_ms(10_000)).unwrap());
        let told = flow(&ends[0].0, writer);
        assert_eq!((told.matched, told.data), (3, expected), "{told:?}");
        let before = sent();
        let seen = |n: usize| ends[1..].iter().all(|(_, kept)| kept.samples.lock().unwrap().len() == n);
        for seq in 0..1000 {
            ends[0].0.send(writer, seq, &[7; 64]).unwrap();
            until("all have it", || seen(seq as usize + 1));
        }
        let after = sent();
        Some([after[0] - before[0], after[1] - before[1]])
    });
    thread.join().unwrap()
}

/// Tests that unicast sends one datagram for each reader, apart from a few datagrams of discovery.
#[test]
fn unicast_sends_one_datagram_for_each_reader() {
    if let Some([all, multicast]) = cost("unicast", DataWay::Unicast) {
        assert!((3000..3500).contains(&all) && multicast < 100, "{all} datagrams, {multicast} multicast");
    }
}

#[test]
fn multicast_sends_one_datagram_for_all() {
    if let Some([all, multicast]) = cost("multicast", DataWay::Multicast) {
        assert!((1000..1500).contains(&all) && multicast >= 1000, "{all} datagrams, {multicast} multicast");
    }
}

/// Tests that retransmissions are counted, while Cyclone itself drops one datagram in ten.
#[test]
fn retransmissions_are_counted() {
    let lossy = |domain: u32| {
        let xml = r#"<CycloneDDS><Domain Id="any"><General><Interfaces><NetworkInterface name="lo"/></Interfaces>
            </General><Internal><Test><XmitLossiness>100</XmitLossiness></Test></Internal></Domain></CycloneDDS>"#;
        Kv::new().with("domain", domain.to_string()).with("config", xml)
    };
    let ((a, _), (b, on_b)) = (open(&lossy(64)), open(&on_lo(64)));
    let patient = keep_all().with("reliability.max_blocking_time", "10000000000");
    let writer = a.create(Kind::Writer, "lossy", 64, &patient, 0).unwrap();
    let reader = b.create(LISTENER, "lossy", 64, &keep_all(), 0).unwrap();
    matched(&[(&a, writer), (&b, reader)]);
    for seq in 0..500 {
        a.send(writer, seq, &[7; 64]).unwrap();
    }
    until("all arrive", || on_b.samples.lock().unwrap().len() == 500);
    assert!(flow(&a, writer).retransmitted_bytes.unwrap() > 0);
}

#[test]
fn impossible_options_are_refused_by_name() {
    for (pairs, text) in [
        (
            &[("unacked_limit", "20")][..],
            "unacked_limit=20: Cyclone counts bytes; give the option `payload` too, the size of a message",
        ),
        (
            &[("data", "multicast"), ("multicast", "off")],
            "data=multicast contradicts the option `multicast`, which forbids multicast for samples",
        ),
        (&[("data", "both")], "data=both: expected one of: unicast, multicast"),
    ] {
        let kv: Kv = pairs.iter().copied().collect();
        assert_eq!(Session::open(&driver(), &kv, Arc::new(Silent)).unwrap_err().text, text);
    }
}
