//! Chains of topics with known causes, delays and headers.

use super::wire::{Entity, FAR, PING, PONG, Peer, data_with, info_ts, writer_announced_as};
use super::{BEGIN, Loopback, MS, US};
use tailbound_document::{WatchedChain, WatchedRange};

const CAMERA: Entity = Entity(3);
const DETECTIONS: Entity = Entity(4);
const COMMANDS: Entity = Entity(5);
const IMAGE: &str = "sensor_msgs::msg::dds_::Image_";
const ARRAY: &str = "vision_msgs::msg::dds_::Detection2DArray_";
const TWIST: &str = "geometry_msgs::msg::dds_::Twist_";

fn chained(topics: &[&str]) -> Loopback {
    let mut all = Loopback::new();
    all.watch.link(topics.iter().map(|topic| (*topic).to_owned()).collect());
    let announced = [(CAMERA, "rt/camera", IMAGE), (DETECTIONS, "rt/detections", ARRAY), (COMMANDS, "rt/cmd", TWIST)];
    for (entity, topic, kind) in announced {
        all.send(0, PING, PONG, &[writer_announced_as(PING, entity, topic, kind)]);
    }
    all
}

/// A sample that is sent 20 us after it was written; `header_ns`: its first member.
fn sample(all: &mut Loopback, from: Peer, entity: Entity, (number, at_ns): (i64, i64), header_ns: i64) {
    let message = [info_ts(BEGIN + at_ns - 20 * US), data_with(entity, number, header_ns)];
    all.send(at_ns, from, PONG, &message);
}

fn figures(all: &Loopback) -> WatchedChain {
    all.report().chain.expect("the chain")
}

fn near(found: &WatchedRange, p50_ns: i64, max_ns: i64) {
    let is = |found: i64, planted: i64| (planted..=planted + planted / 100 + 2).contains(&found);
    assert!(is(found.p50_ns, p50_ns) && is(found.max_ns, max_ns), "{found:?} for {p50_ns} and {max_ns}");
}

/// Test: known delays of two hops are found, and the hop that makes the oldest messages late. Detections carry the header of the image
/// from which they follow; commands have none.
#[test]
fn ages_reactions_and_the_late_hop_are_those_that_were_planted() {
    let mut all = chained(&["/camera", "/detections", "/cmd"]);
    for n in 1..=500 {
        let at = n * 20 * MS;
        let header = BEGIN + at - MS;
        sample(&mut all, PING, CAMERA, (n, at), header);
        // The second hop takes 3 ms, and 9 ms in every hundredth message.
        let (first, second) = (5 * MS, if n % 100 == 0 { 9 * MS } else { 3 * MS });
        sample(&mut all, PING, DETECTIONS, (n, at + first), header);
        sample(&mut all, PING, COMMANDS, (n, at + first + second), 0);
    }
    let chain = figures(&all);
    let [written, first, second] = &chain.hops[..] else { panic!("{chain:?}") };
    near(written.time.as_ref().unwrap(), 20 * US, 20 * US);
    near(first.time.as_ref().unwrap(), 5 * MS, 5 * MS);
    near(second.time.as_ref().unwrap(), 3 * MS, 9 * MS);
    assert_eq!((first.by_header, first.by_time, first.without_cause), (500, 0, 0), "{first:?}");
    assert_eq!((second.by_header, second.by_time, second.ambiguous), (0, 500, 0), "{second:?}");
    near(chain.age.as_ref().unwrap(), 8 * MS + 20 * US, 14 * MS + 20 * US);
    assert_eq!(chain.age, chain.reaction, "each image has one command");
    let late = chain.late_hop.unwrap();
    assert_eq!((late.from.as_deref(), late.to.as_str()), (Some("/detections"), "/cmd"));
    assert!((29 * MS..=31 * MS).contains(&late.beyond_ns) && late.of_all_ns < 32 * MS, "{late:?}");
}

/// Test: where several messages come before an effect, the newest is the cause, the others are counted as an ambiguity, and their
/// reaction is the one to the newest.
#[test]
fn several_possible_causes_are_counted() {
    let mut all = chained(&["rt/detections", "rt/cmd"]);
    for n in 1..=100 {
        let at = n * 20 * MS;
        sample(&mut all, PING, DETECTIONS, (2 * n, at), 1);
        sample(&mut all, PING, DETECTIONS, (2 * n + 1, at + 4 * MS), 1);
        sample(&mut all, PING, COMMANDS, (n, at + 6 * MS), 0);
    }
    let chain = figures(&all);
    let hop = &chain.hops[1];
    assert_eq!((hop.by_time, hop.ambiguous, hop.without_cause), (100, 100, 0), "{hop:?}");
    near(chain.age.as_ref().unwrap(), 2 * MS + 20 * US, 2 * MS + 20 * US);
    let reaction = chain.reaction.unwrap();
    assert_eq!(reaction.count, 200);
    near(&reaction, 2 * MS + 20 * US, 6 * MS + 20 * US);
}

/// Test: a message before which no cause was seen has none, and a first message without an effect is counted.
#[test]
fn what_has_no_cause_or_no_effect_is_counted() {
    let mut all = chained(&["/camera", "/cmd"]);
    sample(&mut all, PING, COMMANDS, (1, MS), 0);
    for n in 1..=5 {
        sample(&mut all, PING, CAMERA, (n, 10 * n * MS), 0);
    }
    let chain = figures(&all);
    assert_eq!((chain.hops[1].without_cause, chain.without_effect), (1, 5), "{chain:?}");
    assert_eq!((chain.age, chain.reaction, chain.late_hop), (None, None, None));
}

/// Test: stamps that are not set are no link, and several images with one stamp are an ambiguity.
#[test]
fn stamps_that_are_not_set_or_equal_are_no_certain_link() {
    for (stamp, by_header, by_time) in [(0, 0, 50), (BEGIN, 50, 0)] {
        let mut all = chained(&["/camera", "/detections"]);
        for n in 1..=50 {
            sample(&mut all, PING, CAMERA, (n, n * 20 * MS), stamp);
            sample(&mut all, PING, DETECTIONS, (n, n * 20 * MS + MS), stamp);
        }
        let hop = &figures(&all).hops[1];
        assert_eq!((hop.by_header, hop.by_time), (by_header, by_time), "{hop:?}");
        // All but the first have several images with their stamp.
        assert_eq!(hop.ambiguous, if stamp == 0 { 0 } else { 49 }, "{hop:?}");
    }
}

/// Test: if the first writer has another clock, the time from writing to the wire is not known, and the age begins at the capture.
#[test]
fn the_first_hop_of_another_clock_is_not_known() {
    let mut all = chained(&["/camera", "/cmd"]);
    for (entity, topic, kind) in [(CAMERA, "rt/camera", IMAGE), (COMMANDS, "rt/cmd", TWIST)] {
        all.send(0, FAR, PONG, &[writer_announced_as(FAR, entity, topic, kind)]);
    }
    for n in 1..=50 {
        sample(&mut all, FAR, CAMERA, (n, n * 20 * MS), 0);
        sample(&mut all, FAR, COMMANDS, (n, n * 20 * MS + 4 * MS), 0);
    }
    let chain = figures(&all);
    assert_eq!(chain.hops[0].time, None);
    near(chain.age.as_ref().unwrap(), 4 * MS, 4 * MS);
}
