//! Tests of samples: every receive mode, waking, destroying, batches, and delivery inside a shared instance.

use std::time::{Duration, Instant};

use crate::common::{in_ms, matched, on_lo, open, until};
use tailbound_driver::{Code, Endpoint, Kind, Kv, ReceiveMode, Session, ViewBuf, Wait};

fn keep_all() -> Kv {
    Kv::new().with("history", "keep-all").with("reliability.max_blocking_time", "5000000000")
}

/// Opens two sessions, with a writer in the first and a reader in the second, and waits until both are matched.
fn pair(domain: u32, mode: ReceiveMode, max: u64) -> (Session, Endpoint, Session, Endpoint) {
    let ((a, _), (b, _)) = (open(&on_lo(domain)), open(&on_lo(domain)));
    let writer = a.create(Kind::Writer, "pair", max, &keep_all(), 1).unwrap();
    let reader = b.create(Kind::Reader(mode), "pair", max, &keep_all(), 2).unwrap();
    matched(&[(&a, writer), (&b, reader)]);
    (a, writer, b, reader)
}

#[test]
fn blocking_reader_gets_all_sizes() {
    let (a, writer, b, reader) = pair(141, ReceiveMode::Block, 3 << 20);
    let mut buffer = ViewBuf::new(4);
    for (seq, len) in
        [0, 1, 2, 3, 4, 5, 16, 255, 256, 1344, 14_720, 60_000, 65_507, 1 << 20, 3 << 20].into_iter().enumerate()
    {
        let payload: Vec<u8> = (0..len).map(|i: usize| (i * 7 + seq) as u8).collect();
        a.send(writer, seq as u64, &payload).unwrap();
        assert_eq!(b.wait(&[reader], in_ms(5000)), Ok(Wait::Ready(1)), "{len}");
        b.take(reader, &mut buffer).unwrap();
        let view = buffer.iter().next().unwrap();
        assert_eq!((view.seq(), view.len(), view.payload() == payload), (seq as u64, len as u64, true), "{len}");
        assert!(view.source_ns() > 1_600_000_000_000_000_000 && view.writer().is_some());
        b.release(reader, &mut buffer).unwrap();
    }
    a.wait_acked(writer, in_ms(5000)).unwrap();
    assert_eq!(b.wait(&[reader], in_ms(20)), Ok(Wait::TimedOut));
}

#[test]
fn a_partial_take_leaves_the_reader_ready() {
    let (a, writer, b, reader) = pair(142, ReceiveMode::Block, 8);
    for seq in 0..40 {
        a.send(writer, seq, &[1; 8]).unwrap();
    }
    a.wait_acked(writer, in_ms(5000)).unwrap();
    let (mut buffer, mut seen) = (ViewBuf::new(3), Vec::new());
    while b.wait(&[reader], in_ms(100)) == Ok(Wait::Ready(1)) {
        b.take(reader, &mut buffer).unwrap();
        seen.extend(buffer.iter().map(|v| v.seq()));
        b.release(reader, &mut buffer).unwrap();
    }
    assert_eq!(seen, (0..40).collect::<Vec<u64>>());
}

#[test]
fn one_wait_over_several_readers() {
    let ((a, _), (b, _)) = (open(&on_lo(143)), open(&on_lo(143)));
    let topics = ["several0", "several1", "several2"];
    let writers = topics.map(|t| a.create(Kind::Writer, t, 8, &keep_all(), 0).unwrap());
    let readers = topics.map(|t| b.create(Kind::Reader(ReceiveMode::Block), t, 8, &keep_all(), 0).unwrap());
    for (w, r) in writers.into_iter().zip(readers) {
        matched(&[(&a, w), (&b, r)]);
    }
    a.send(writers[2], 1, &[]).unwrap();
    assert_eq!(b.wait(&readers, in_ms(5000)), Ok(Wait::Ready(0b100)));
    a.send(writers[0], 1, &[]).unwrap();
    until("both are ready", || b.wait(&readers, in_ms(100)) == Ok(Wait::Ready(0b101)));
    // A sample of another reader does not end a wait.
    assert_eq!(b.wait(&readers[1..2], in_ms(50)), Ok(Wait::TimedOut));
    b.destroy(readers[0]).unwrap();
    assert_eq!(b.wait(&readers, in_ms(50)), Err(Code::ECLOSED));
    assert_eq!(b.wait(&readers[1..], in_ms(1000)), Ok(Wait::Ready(0b10)));
}

#[test]
fn wake_and_destroy_end_a_wait() {
    let (a, _) = open(&on_lo(144));
    let new = || a.create(Kind::Reader(ReceiveMode::Block), "woken", 8, &Kv::new(), 0).unwrap();
    let (one, two) = (new(), new());
    std::thread::scope(|s| {
        let blocked = s.spawn(|| (a.wait(&[one], i64::MAX), Instant::now()));
        let other = s.spawn(|| a.wait(&[two], in_ms(1500)));
        std::thread::sleep(Duration::from_millis(50));
        let start = Instant::now();
        a.destroy(one).unwrap();
        let (result, at) = blocked.join().unwrap();
        assert_eq!(result, Err(Code::ECLOSED));
        assert!(at.duration_since(start) < Duration::from_millis(100));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!other.is_finished());
        a.wake().unwrap();
        assert_eq!(other.join().unwrap(), Ok(Wait::Woken));
    });
    assert_eq!(a.wait(&[two], in_ms(30)), Ok(Wait::TimedOut));
    let matching = a.create(Kind::Writer, "nobody", 8, &Kv::new(), 0).unwrap();
    std::thread::scope(|s| {
        let blocked = s.spawn(|| a.wait_matched(matching, 1, i64::MAX).unwrap_err().code);
        std::thread::sleep(Duration::from_millis(50));
        a.destroy(matching).unwrap();
        assert_eq!(blocked.join().unwrap(), Code::ECLOSED);
    });
}

#[test]
fn a_batch_goes_out_with_flush() {
    let ((a, _), (b, on_b)) = (open(&on_lo(145)), open(&on_lo(145)));
    let writer = a.create(Kind::Writer, "batch", 8, &keep_all().with("batch", "on"), 0).unwrap();
    let reader = b.create(Kind::Reader(ReceiveMode::Listener), "batch", 8, &keep_all(), 0).unwrap();
    matched(&[(&a, writer), (&b, reader)]);
    // Without the flag a message is sent immediately, also by a batching writer.
    a.send(writer, 0, &[1; 8]).unwrap();
    until("the first arrives", || on_b.samples.lock().unwrap().len() == 1);
    for seq in 1..10 {
        a.send_with(writer, seq, &[1; 8], 0, true).unwrap();
    }
    a.flush(writer, in_ms(1000)).unwrap();
    until("all arrive", || on_b.samples.lock().unwrap().len() == 10);
}

/// Tests a chain of messages: each message is answered from the callback of its arrival.
fn chain(options: &Kv, length: u64) {
    let ((a, on_a), (b, on_b)) = (open(options), open(options));
    let listen = Kind::Reader(ReceiveMode::Listener);
    let ping = a.create(Kind::Writer, "chain_ping", 8, &Kv::new(), 1).unwrap();
    let pong = b.create(Kind::Writer, "chain_pong", 8, &Kv::new(), 1).unwrap();
    *on_a.echo.lock().unwrap() = Some((ping, length));
    *on_b.echo.lock().unwrap() = Some((pong, length));
    let hears_ping = b.create(listen, "chain_ping", 8, &Kv::new(), 1).unwrap();
    let hears_pong = a.create(listen, "chain_pong", 8, &Kv::new(), 1).unwrap();
    matched(&[(&a, ping), (&a, hears_pong), (&b, pong), (&b, hears_ping)]);
    a.send(ping, 1, &[5; 8]).unwrap();
    until("the chain ends", || {
        let seen = |k: &crate::common::Keeper| k.samples.lock().unwrap().len() as u64;
        seen(&on_a) + seen(&on_b) == length
    });
}

#[test]
fn answers_from_callbacks_between_instances() {
    chain(&on_lo(146), 10_000);
}

#[test]
fn answers_from_callbacks_in_a_shared_instance() {
    chain(&on_lo(147).with("instance", "shared"), 10_000);
}

#[test]
fn a_late_reader_gets_the_history_of_a_transient_local_writer() {
    let ((a, _), (b, on_b)) = (open(&on_lo(148)), open(&on_lo(148)));
    let qos = Kv::new().with("durability", "transient-local").with("history.depth", "5");
    let writer = a.create(Kind::Writer, "late", 8, &qos, 0).unwrap();
    for seq in 0..9 {
        a.send(writer, seq, &[]).unwrap();
    }
    b.create(Kind::Reader(ReceiveMode::Listener), "late", 8, &qos, 0).unwrap();
    until("the last five arrive", || on_b.samples.lock().unwrap().len() == 5);
    assert_eq!(on_b.samples.lock().unwrap().iter().map(|s| s.1).collect::<Vec<_>>(), [4, 5, 6, 7, 8]);
}

#[test]
fn a_full_writer_that_must_not_block_reports_it() {
    let (a, writer, _b, _reader) = pair(149, ReceiveMode::Spin, 60_000);
    a.destroy(writer).unwrap();
    let qos = keep_all().with("reliability.max_blocking_time", "0");
    let writer = a.create(Kind::Writer, "pair", 60_000, &qos, 0).unwrap();
    matched(&[(&a, writer)]);
    let payload = vec![0; 60_000];
    let full = (0..10_000).find_map(|seq| a.send(writer, seq, &payload).err());
    assert_eq!(full, Some(Code::EWOULDBLOCK));
}

#[test]
fn sixty_four_sessions_at_once() {
    let sessions: Vec<_> = (0..64).map(|_| open(&on_lo(182)).0).collect();
    let reader = sessions[0].create(Kind::Reader(ReceiveMode::Spin), "many", 8, &Kv::new(), 0).unwrap();
    for session in &sessions[1..] {
        session.create(Kind::Writer, "many", 8, &Kv::new(), 0).unwrap();
    }
    sessions[0].wait_matched(reader, 63, in_ms(20_000)).unwrap();
}
