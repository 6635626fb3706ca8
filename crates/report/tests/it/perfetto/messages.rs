//! Tests of the messages in a trace: slices and flows.

use super::*;

/// The numbers of the slots that must be drawn: messages that overlap with the recorded spans or with an incident.
fn wanted(slots: impl Iterator<Item = (u64, i64, i64)>, spans: &[(i64, i64)]) -> BTreeSet<u64> {
    slots.filter(|(_, due, end)| spans.iter().any(|(from, to)| due <= to && from <= end)).map(|(seq, ..)| seq).collect()
}

#[test]
fn messages_are_slices_with_their_times_and_flows() {
    let given = seen(0);
    let spans = given.windows.clone();
    let trace = Made::with(&[(0, "ping", given)]).trace(&[]);
    let drawn = trace.drawn();
    let messages = trace.named("message ");
    let end = |k: u64| due(0, k) + 1_000 + if k == LATE { LATE_LEGS } else { USUAL }.iter().sum::<i64>();
    let expected = wanted((0..SLOTS).map(|k| (k, due(0, k), end(k))), &spans);
    assert!((10..40).contains(&expected.len()), "the test draws some messages and leaves out others: {expected:?}");
    let number = |d: &Drawn| d.name.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    assert_eq!(messages.iter().map(number).collect::<BTreeSet<_>>(), expected);
    assert_eq!(messages.len(), expected.len());
    for message in &messages {
        let k = number(message);
        assert_eq!((message.begin_ns, message.end_ns, message.depth), (due(0, k), end(k), 0));
        assert_eq!(message.event["categories"].as_array().unwrap().contains(&"late".into()), k == LATE);
        assert_eq!(trace.annotation(message, "slot")["int_value"].as_i64().unwrap_or(0), k as i64);
    }
    let calls = trace.named("send call");
    let turnarounds = trace.named("turnaround of message ");
    assert_eq!((calls.len(), turnarounds.len()), (expected.len(), expected.len()));
    // Flows pair, in the direction of time, between the ends.
    let ids = |d: &Drawn, key: &str| -> Vec<i64> {
        d.event.get(key).into_iter().flat_map(|f| f.as_array().unwrap()).map(|f| f.as_i64().unwrap()).collect()
    };
    let ending: BTreeMap<i64, &Drawn> =
        drawn.iter().flat_map(|d| ids(d, "terminating_flow_ids").into_iter().map(move |id| (id, d))).collect();
    let beginning: Vec<(i64, &Drawn)> =
        drawn.iter().flat_map(|d| ids(d, "flow_ids").into_iter().map(move |id| (id, d))).collect();
    assert_eq!((beginning.len(), ending.len()), (2 * expected.len(), 2 * expected.len()));
    for (id, from) in &beginning {
        let to = ending[id];
        assert!(from.begin_ns <= to.begin_ns && from.track != to.track, "{from:?} {to:?}");
        match from.name.as_str() {
            "send call" => assert!(to.begin_ns == from.begin_ns + USUAL[0] && to.name.starts_with("turnaround")),
            "answer call" => assert_eq!(to.name, "answer received"),
            other => panic!("{other}"),
        }
    }
    // The late message is still outstanding when the next ones are due: their slices are on other tracks.
    let tracks: BTreeSet<i64> = messages.iter().map(|d| d.event["track_uuid"].as_i64().unwrap()).collect();
    assert!(
        tracks.len() == 2
            && messages.iter().all(|d| d.track == "ping of trial 0: udp over veth, 64 B, 1 kHz / messages"),
        "{tracks:?} {}",
        messages[0].track
    );
}

#[test]
fn messages_without_an_answer_are_drawn_as_far_as_they_got() {
    let change = |_: usize, slots: &mut [SenderRow], echoes: &mut Vec<EchoRow>| {
        (51..54).for_each(|k| lose(&mut slots[k]));
        skip(&mut slots[54]);
        slots[55].outcome = Outcome::AfterTimeout;
        // Message 51 did not reach the pong, whose answer to message 52 failed; the answer to message 53 was lost.
        echoes.retain(|e| ![51, 54].contains(&e.seq));
        let failed = echoes.iter_mut().find(|e| e.seq == 52).unwrap();
        (failed.begin_ns, failed.end_ns) = (NO_TIME, NO_TIME);
        // A send call that lasts until after the receipt.
        slots[56].send_end_ns = slots[56].receive_ns + 7_000;
    };
    let trace = Made::of(1, change, |_| (), &[]).trace(&[]);
    let one = |name: &str| {
        let found: Vec<_> = trace.drawn().into_iter().filter(|d| d.name == name).collect();
        let [one] = found.as_slice() else { panic!("{name}: {found:?}") };
        one.clone()
    };
    let call_end = |k| due(0, k) + 5_000;
    assert_eq!(one("message 51 (lost)").end_ns, call_end(51));
    assert_eq!((one("message 54 (not sent)").begin_ns, one("message 54 (not sent)").end_ns), (due(0, 54), due(0, 54)));
    assert_eq!(one("message 55 (after timeout)").end_ns, due(0, 55) + 1_000 + USUAL.iter().sum::<i64>());
    assert!(trace.named("turnaround of message 51").is_empty());
    let failed = one("turnaround of message 52");
    assert_eq!(failed.begin_ns, failed.end_ns);
    assert_eq!(one("turnaround of message 53").end_ns, due(0, 53) + 1_000 + USUAL[0] + USUAL[1]);
    let flows = |key: &str| trace.drawn().iter().filter_map(|d| d.event.get(key)?.as_array()).flatten().count();
    assert_eq!(flows("flow_ids"), flows("terminating_flow_ids"));
    assert_eq!(one("message 56").end_ns, due(0, 56) + 1_000 + USUAL.iter().sum::<i64>());
}

/// A long trial of late messages must not make a trace that no viewer can open.
#[test]
fn a_span_with_too_many_messages_is_cut_and_said() {
    let whole = Switches { windows: vec![(0, due(2, 0))], ..seen(0) };
    let rows =
        |count: u64| -> (Vec<SenderRow>, Vec<EchoRow>) { (0..count).map(|k| slot(k, 100_000, 1_000, USUAL)).unzip() };
    let made = Made::with(&[(0, "ping", whole)]);
    let (mut slots, echoes) = rows(6_000);
    let path = |end| RecordWriter::segment_path(&made.dir(), 0, end, 0);
    slots[10].receive_ns += 5_000_000;
    write_slots(&path("ping"), 0, slots.into_iter()).unwrap();
    write_echoes(&path("pong"), 0, &echoes).unwrap();
    let trace = made.trace(&[]);
    assert_eq!(trace.named("message ").len(), 5_000);
    let note =
        "Trial 0: 1,000 messages are not drawn: a time span has too many messages, or too many at the same time.";
    assert_eq!(trace.notes[0], note);
}
