//! Times at which samples of several topics were late together.

use super::wire::{Entity, FAR, PING, PONG, data, data_with, info_ts, message, writer_announced, writer_announced_as};
use super::{BEGIN, Loopback, MS, SECOND, US};
use tailbound_watch::{HostTime, Seen, Watch};

const SECOND_WRITER: Entity = Entity(4);

/// Two topics of 1,000 samples, 1 ms apart, 30 and 40 us late. At 0.3 s both are held up for 20 ms, at 0.7 s the first one alone for 5 ms.
fn held_up() -> Loopback {
    let mut all = Loopback::new();
    all.send(0, PING, PONG, &[writer_announced(PING, "rt/scan", "T")]);
    all.send(0, PING, PONG, &[writer_announced_as(PING, SECOND_WRITER, "rt/odom", "T")]);
    for n in 1..=1000 {
        let at = n * MS;
        let until = |from: i64, to: i64| if (from..to).contains(&at) { to - at } else { 0 };
        let both = until(300 * MS, 320 * MS);
        let one = both.max(until(700 * MS, 705 * MS));
        all.send(at + 30 * US + one, PING, PONG, &[info_ts(BEGIN + at), data(n, 100)]);
        all.send(at + 40 * US + both, PING, PONG, &[info_ts(BEGIN + at), data_with(SECOND_WRITER, n, 0)]);
    }
    all
}

#[test]
fn topics_that_are_late_together_are_one_incident() {
    let mut all = held_up();
    for n in 0..10 {
        let from_ns = BEGIN + n * 100 * MS;
        // The CPUs were busy from 0.3 to 0.4 s, and lost 7 ms to a hypervisor.
        let (busy_ns, stolen_ns) = if n == 3 { (150 * MS, 7 * MS) } else { (20 * MS, 0) };
        all.watch.host_did(HostTime { from_ns, to_ns: from_ns + 100 * MS, busy_ns, stolen_ns, all_ns: 200 * MS });
    }
    let incidents = all.report().incidents;
    assert_eq!(incidents.len(), 2, "{incidents:?}");
    let names = |of: usize| -> Vec<(&str, u64)> {
        incidents[of].topics.iter().map(|topic| (topic.topic.as_str(), topic.late)).collect()
    };
    assert_eq!((names(0), names(1)), (vec![("/odom", 20), ("/scan", 20)], vec![("/scan", 5)]), "{incidents:?}");
    let first = &incidents[0];
    assert_eq!((first.begin_ns - BEGIN, first.end_ns - BEGIN), (300 * MS, 320 * MS + 40 * US));
    assert_eq!(first.topics[0].worst_ns, 20 * MS + 40 * US);
    let host = first.host.unwrap();
    assert_eq!((host.read_ns, host.stolen_ns, host.busy), (100 * MS, 7 * MS, 0.75));
    assert_eq!(incidents[1].host.unwrap().busy, 0.1);
}

/// Nothing is said of a host whose times are not known for all of it, and usual samples are no incident.
#[test]
fn what_is_not_known_is_not_said() {
    let incidents = held_up().report().incidents;
    assert!(incidents.len() == 2 && incidents.iter().all(|incident| incident.host.is_none()), "{incidents:?}");
    let mut all = Loopback::new();
    for n in 1..=1000 {
        all.send(n * MS, PING, PONG, &[info_ts(BEGIN + n * MS - (30 + n % 20) * US), data(n, 100)]);
    }
    assert!(all.report().incidents.is_empty());
}

/// The clock of another host does not matter: times are above the fastest sample.
#[test]
fn samples_from_elsewhere_have_incidents_too() {
    let mut watch = Watch::new("eth0".into(), BEGIN, Default::default());
    for n in 1..=1500 {
        let late = if n == 1200 { 900 * US } else { 100 * US };
        let bytes = FAR.datagram(PONG, &message(FAR, &[info_ts(BEGIN + n * MS - late - 7_200 * SECOND), data(n, 64)]));
        watch.packet(Seen { stamp_ns: BEGIN + n * MS, interface: 2, is_sent: false, bytes: &bytes });
    }
    let incidents = watch.report(BEGIN + 2 * SECOND, 0, Default::default()).incidents;
    let [incident] = &incidents[..] else { panic!("{incidents:?}") };
    assert_eq!((incident.topics[0].worst_ns, incident.end_ns), (800 * US, BEGIN + 1200 * MS));
}
