//! Captures at two hosts whose clocks are known.

use crate::wire::{FAR, PONG, data, info_ts, message, writer_announced};
use crate::{BEGIN, MS, SECOND, US};
use std::net::{IpAddr, Ipv4Addr};
use tailbound_document::{AlsoWriter, WatchReport, WatchedAlso};
use tailbound_watch::{CapturedAt, CapturedRow, ClockExchange, Seen, Watch, guid_words, join};

/// The clock of the other host is ahead by this, and gains 30 ns in each ms.
const AHEAD: i64 = 7_000 * SECOND;

fn other_clock(ns: i64) -> i64 {
    ns + AHEAD + (ns - BEGIN) / 1_000_000 * 30
}

/// Readings of the clock of the other host each 100 ms: on the way there 100 us, back 300 us.
fn exchanges() -> Vec<ClockExchange> {
    (0..100)
        .map(|n| BEGIN + n * 100 * MS)
        .map(|at| ClockExchange { sent_ns: at, other_ns: other_clock(at + 100 * US), received_ns: at + 400 * US })
        .collect()
}

/// Feeds samples that FAR writes, and returns what was seen with its rows. `is_here`: the capture is where they are sent.
fn capture(stamps: &[(i64, i64, i64)], is_here: bool) -> (WatchReport, Vec<CapturedRow>) {
    let here = if is_here { [IpAddr::V4(Ipv4Addr::new(10, 0, 0, FAR.host))].into() } else { Default::default() };
    let mut watch = Watch::new("eth0".into(), 0, here);
    watch.keep_samples();
    let mut packet = |stamp_ns: i64, submessages: &[Vec<u8>]| {
        let bytes = FAR.datagram(PONG, &message(FAR, submessages));
        watch.packet(Seen { stamp_ns, interface: 2, is_sent: is_here, bytes: &bytes });
    };
    packet(stamps[0].2, &[writer_announced(FAR, "rt/scan", "T")]);
    for (number, source_ns, stamp_ns) in stamps {
        packet(*stamp_ns, &[info_ts(*source_ns), data(*number, 100)]);
    }
    let row = |of: tailbound_watch::Captured| CapturedRow {
        guid: guid_words(of.writer),
        number: of.number,
        source_ns: of.source_ns,
        stamp_ns: of.stamp_ns,
    };
    let rows = watch.take_samples().map(row).collect();
    (watch.report(stamps.last().unwrap().2 + SECOND, 0, Default::default()), rows)
}

/// 900 samples, 10 ms apart: each is sent 20 us after it was written and takes 250 us between the hosts, number 500 takes 4 ms.
fn sent_and_arrived(lost: &[i64]) -> [Vec<(i64, i64, i64)>; 2] {
    let sent = |n: i64| (n, BEGIN + n * 10 * MS, BEGIN + n * 10 * MS + 20 * US);
    let arrived = |n: i64| {
        let takes = if n == 500 { 4 * MS } else { 250 * US };
        (n, sent(n).1, sent(n).2 + takes)
    };
    [(1..=900).map(sent).collect(), (1..=900).filter(|n| !lost.contains(n)).map(arrived).collect()]
}

fn only(also: &WatchedAlso) -> &AlsoWriter {
    let [writer] = &also.writers[..] else { panic!("{also:?}") };
    writer
}

/// The planted times lie within the bounds, which are as wide as a reading of the clock takes, and the drift between two readings.
fn bounds_contain_the_truth(also: &WatchedAlso, from_here: bool) {
    let writer = only(also);
    assert_eq!((writer.topic.as_deref(), writer.from_here), (Some("/scan"), from_here));
    let (low, high) = also.offset_ns.unwrap();
    let middle = other_clock(BEGIN + 50 * 100 * MS) - (BEGIN + 50 * 100 * MS);
    assert!((low..=high).contains(&middle) && high - low < 410 * US, "{low} to {high}, {middle}");
    for ((least, most), base) in [(writer.network.unwrap(), 0), (writer.lateness.unwrap(), 20 * US)] {
        for (low, high, truth) in [
            (least.min_ns, most.min_ns, base + 250 * US),
            (least.p50_ns, most.p50_ns, base + 250 * US),
            (least.max_ns, most.max_ns, base + 4 * MS),
        ] {
            // Quantiles are upper ends of buckets.
            assert!(low <= truth + truth / 100 && truth <= high, "{low} to {high}, {truth}");
            assert!(high - low < 600 * US, "{low} to {high}");
        }
    }
}

#[test]
fn planted_times_between_two_clocks_are_within_the_bounds() {
    let [sent, arrived] = sent_and_arrived(&[]);
    let there: Vec<_> = arrived.iter().map(|(n, source, stamp)| (*n, *source, other_clock(*stamp))).collect();
    let ((here, rows), (other, other_rows)) = (capture(&sent, true), capture(&there, false));
    let also = join(
        CapturedAt { report: &here, rows: &rows },
        CapturedAt { report: &other, rows: &other_rows },
        "robot",
        &exchanges(),
    );
    bounds_contain_the_truth(&also, true);
    assert_eq!((only(&also).sent, only(&also).not_arrived, also.without_offset), (900, 0, 0));
}

/// The other host sends: its times are those of its own clock.
#[test]
fn the_way_back_is_as_well_known() {
    let [sent, arrived] = sent_and_arrived(&[]);
    let sent: Vec<_> = sent.iter().map(|(n, source, stamp)| (*n, other_clock(*source), other_clock(*stamp))).collect();
    let arrived: Vec<_> = arrived.iter().map(|(n, source, stamp)| (*n, other_clock(*source), *stamp)).collect();
    let ((here, rows), (other, other_rows)) = (capture(&arrived, false), capture(&sent, true));
    let also = join(
        CapturedAt { report: &here, rows: &rows },
        CapturedAt { report: &other, rows: &other_rows },
        "robot",
        &exchanges(),
    );
    bounds_contain_the_truth(&also, false);
}

/// Exactly the planted losses are found; what the receiver has not seen at the end may be on its way.
#[test]
fn samples_that_do_not_arrive_are_counted() {
    let lost: Vec<i64> = [7, 8, 300, 899, 900].into();
    let [sent, arrived] = sent_and_arrived(&lost);
    let there: Vec<_> = arrived.iter().map(|(n, source, stamp)| (*n, *source, other_clock(*stamp))).collect();
    let ((here, rows), (other, other_rows)) = (capture(&sent, true), capture(&there, false));
    let also = join(
        CapturedAt { report: &here, rows: &rows },
        CapturedAt { report: &other, rows: &other_rows },
        "robot",
        &exchanges(),
    );
    assert_eq!((only(&also).sent, only(&also).not_arrived), (898, 3));
    assert_eq!(only(&also).is_best_effort, Some(false));
}

/// A clock that is set during the capture: samples near the step have no time between the hosts, and no wrong one.
#[test]
fn a_clock_that_is_set_gives_no_times() {
    let [sent, arrived] = sent_and_arrived(&[]);
    let step = |ns: i64| other_clock(ns) + if ns > BEGIN + 5 * SECOND { 50 * MS } else { 0 };
    let there: Vec<_> = arrived.iter().map(|(n, source, stamp)| (*n, *source, step(*stamp))).collect();
    let ((here, rows), (other, other_rows)) = (capture(&sent, true), capture(&there, false));
    let stepped: Vec<ClockExchange> = (0..100)
        .map(|n| BEGIN + n * 100 * MS)
        .map(|at| ClockExchange { sent_ns: at, other_ns: step(at + 100 * US), received_ns: at + 400 * US })
        .collect();
    let also = join(
        CapturedAt { report: &here, rows: &rows },
        CapturedAt { report: &other, rows: &other_rows },
        "robot",
        &stepped,
    );
    assert!(also.without_offset > 300 && also.without_offset < 500, "{}", also.without_offset);
    let (least, most) = only(&also).network.unwrap();
    assert!(least.max_ns <= 4 * MS && most.max_ns < 6 * MS && most.min_ns >= 250 * US, "{least:?} {most:?}");
}
