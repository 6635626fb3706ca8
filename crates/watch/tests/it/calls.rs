//! Calls of programs of ROS 2 with known times.

use tailbound_document::{CalledTaker, CalledTopic};
use tailbound_watch::{Call, CallKind, Calls};

const MS: i64 = 1_000_000;
const BEGIN: i64 = 1_700_000_000_000 * MS;

fn publish(calls: &mut Calls, thread: i32, begin_ns: i64, end_ns: i64) {
    let kind = CallKind::Publish { source_ns: None, has_end: true };
    calls.call(&Call { kind, process: "talker (1)", thread, topic: "/chatter", begin_ns, end_ns });
}

fn take(calls: &mut Calls, thread: i32, source_ns: i64, end_ns: i64) {
    let kind = CallKind::Take { source_ns: Some(source_ns) };
    let begin_ns = end_ns - 1_000;
    calls.call(&Call { kind, process: "listener (2)", thread, topic: "/chatter", begin_ns, end_ns });
}

fn execute(calls: &mut Calls, thread: i32, begin_ns: i64, end_ns: i64) {
    calls.call(&Call { kind: CallKind::Execute, process: "listener (2)", thread, topic: "", begin_ns, end_ns });
}

fn taker(calls: &mut Calls) -> (CalledTopic, CalledTaker) {
    calls.end();
    let report = calls.report();
    let [topic] = &report.topics[..] else { panic!("{:?}", report.topics) };
    let [taker] = &topic.takers[..] else { panic!("{:?}", topic.takers) };
    (topic.clone(), taker.clone())
}

/// The parts of the latest message as (name, ns).
fn parts(taker: &CalledTaker) -> Vec<(&str, i64)> {
    taker.latest[0].parts.iter().map(|part| (part.name.as_str(), part.time_ns)).collect()
}

#[test]
fn parts_of_a_message_are_those_that_were_planted() {
    let mut calls = Calls::default();
    for n in 0..100 {
        let at = BEGIN + n * 10 * MS;
        // Message 70 waits 7 ms for its take.
        let waits = if n == 70 { 7 * MS } else { 100_000 };
        publish(&mut calls, 1, at, at + 30_000);
        calls.on_wire("/chatter", at + 5_000, at + 20_000);
        take(&mut calls, 2, at + 5_000, at + 20_000 + waits);
        execute(&mut calls, 2, at + 20_000 + waits, at + 50_000 + waits);
        calls.settle(at);
    }
    let (topic, taker) = taker(&mut calls);
    assert_eq!((topic.published, topic.publish.unwrap().max_ns), (100, 30_000));
    assert_eq!((taker.taken, taker.matched, taker.ambiguous), (100, 100, 0));
    assert_eq!(parts(&taker), [("publish to wire", 20_000), ("wire to take", 7 * MS), ("callback", 30_000)]);
    let (whole, wire) = (taker.publish_to_take.unwrap(), taker.wire_to_take.unwrap());
    assert_eq!((whole.min_ns, whole.max_ns), (120_000, 7 * MS + 20_000));
    assert_eq!((wire.count, wire.min_ns, wire.max_ns), (100, 100_000, 7 * MS));
    assert_eq!(taker.callback.unwrap().max_ns, 30_000);
}

/// Waits for a CPU belong to the part in which they lie: of the publisher, of any thread of the taker, and of the thread of the callback.
#[test]
fn waits_for_a_cpu_belong_to_their_part() {
    let mut calls = Calls::default().with_waits();
    let mut call = |kind, process, (thread, topic), (begin, end)| {
        let (begin_ns, end_ns) = (BEGIN + begin, BEGIN + end);
        calls.call(&Call { kind, process, thread, topic, begin_ns, end_ns });
    };
    let (talker, listener) = ("talker (1)", "listener (2)");
    call(CallKind::Publish { source_ns: None, has_end: true }, talker, (1, "/chatter"), (0, 900_000));
    call(CallKind::Waited { by: "cc1", by_ns: 9_000 }, talker, (1, "talker"), (200_000, 700_000));
    // The receive thread of the middleware waits for 7 ms, 20 us of them before the message was on the wire, and another thread for 1 ms.
    call(CallKind::Waited { by: "hog", by_ns: 9_000 }, listener, (9, "recvUC"), (780_000, 7_800_000));
    call(CallKind::Waited { by: "cc1", by_ns: 9_000 }, listener, (8, "gc"), (2 * MS, 3 * MS));
    call(CallKind::Take { source_ns: Some(BEGIN + 5_000) }, listener, (2, "/chatter"), (8 * MS, 9 * MS));
    // A wait of another thread of the process does not delay the callback.
    call(CallKind::Waited { by: "hog", by_ns: 9_000 }, listener, (9, "recvUC"), (10 * MS, 12 * MS));
    call(CallKind::Waited { by: "ksoftirqd/0", by_ns: 9_000 }, listener, (2, "executor"), (11 * MS, 11 * MS + 400_000));
    call(CallKind::Execute, listener, (2, ""), (9 * MS, 12 * MS));
    calls.on_wire("/chatter", BEGIN + 5_000, BEGIN + 800_000);
    let (_, taker) = taker(&mut calls);
    let wait = |part: &tailbound_document::CalledPart| {
        part.wait.as_ref().map(|wait| (wait.thread.clone(), wait.time_ns, wait.by.clone().unwrap()))
    };
    let waits: Vec<_> = taker.latest[0].parts.iter().map(wait).collect();
    let of = |thread: &str, time_ns: i64, before: &str| Some((thread.to_owned(), time_ns, before.to_owned()));
    assert_eq!(
        waits,
        [of("talker", 500_000, "cc1"), of("recvUC", 7 * MS, "hog"), of("executor", 400_000, "ksoftirqd/0")]
    );
}

/// The reader took the message from shared memory before a copy of it was on the wire for somebody else.
#[test]
fn a_message_that_is_taken_before_it_is_on_the_wire_came_another_way() {
    let mut calls = Calls::default();
    publish(&mut calls, 1, BEGIN, BEGIN + 300_000);
    take(&mut calls, 2, BEGIN + 5_000, BEGIN + 50_000);
    calls.on_wire("/chatter", BEGIN + 5_000, BEGIN + 200_000);
    let (_, taker) = taker(&mut calls);
    assert_eq!(taker.wire_to_take, None);
    assert_eq!(parts(&taker), [("publish to take", 50_000)]);
}

/// Two threads publish at the same time: the time alone does not say whose message it is.
#[test]
fn calls_at_the_same_time_are_ambiguous() {
    let mut calls = Calls::default();
    publish(&mut calls, 1, BEGIN, BEGIN + 30_000);
    publish(&mut calls, 3, BEGIN + 1_000, BEGIN + 31_000);
    take(&mut calls, 2, BEGIN + 5_000, BEGIN + 50_000);
    publish(&mut calls, 1, BEGIN + MS, BEGIN + MS + 30_000);
    take(&mut calls, 2, BEGIN + MS + 5_000, BEGIN + MS + 60_000);
    let (_, taker) = taker(&mut calls);
    assert_eq!((taker.taken, taker.matched, taker.ambiguous), (2, 1, 1));
    assert_eq!(taker.publish_to_take.unwrap().max_ns, 60_000);
}

#[test]
fn a_message_from_elsewhere_has_no_call() {
    let mut calls = Calls::default();
    publish(&mut calls, 1, BEGIN, BEGIN + 30_000);
    take(&mut calls, 2, BEGIN - MS, BEGIN + 50_000);
    take(&mut calls, 2, BEGIN + MS, BEGIN + MS + 50_000);
    calls.on_wire("/chatter", BEGIN + MS, BEGIN + MS + 20_000);
    let (_, taker) = taker(&mut calls);
    assert_eq!((taker.taken, taker.matched, taker.publish_to_take), (2, 0, None));
    assert_eq!(taker.wire_to_take.unwrap().max_ns, 30_000, "its time since the wire is known");
    assert!(taker.latest.is_empty());
}

/// A source timestamp loses up to a nanosecond on the wire.
#[test]
fn rounded_timestamps_are_found() {
    let mut calls = Calls::default();
    publish(&mut calls, 1, BEGIN, BEGIN + 30_000);
    calls.on_wire("/chatter", BEGIN + 5_001, BEGIN + 20_000);
    take(&mut calls, 2, BEGIN + 5_000, BEGIN + 50_000);
    let (_, taker) = taker(&mut calls);
    assert_eq!(parts(&taker), [("publish to wire", 20_000), ("wire to take", 30_000)]);
}

/// A thread that takes a message and never executes it does not give its callback to an earlier message.
#[test]
fn an_execution_belongs_to_the_last_take_of_its_thread() {
    let mut calls = Calls::default();
    for (n, thread) in [(0, 2), (1, 4)] {
        publish(&mut calls, 1, BEGIN + n * MS, BEGIN + n * MS + 30_000);
        take(&mut calls, thread, BEGIN + n * MS + 5_000, BEGIN + n * MS + 50_000);
    }
    execute(&mut calls, 4, BEGIN + MS + 50_000, BEGIN + MS + 90_000);
    execute(&mut calls, 4, BEGIN + 2 * MS, BEGIN + 3 * MS);
    let (_, taker) = taker(&mut calls);
    assert_eq!(taker.callback.unwrap().count, 1);
    assert_eq!(parts(&taker), [("publish to take", 50_000), ("callback", 40_000)]);
    assert_eq!(taker.latest.len(), 2);
}
