//! Tests that the incidents of a trial are found in its samples.

use crate::scan::manifest;
use tailbound_model::*;
use tailbound_record::*;

const MS: i64 = 1_000_000;

fn row(slot: u64, latency_ns: Option<i64>) -> SenderRow {
    let due = 1_000 * MS + slot as i64 * MS;
    SenderRow {
        seq: slot,
        intended_ns: due,
        wake_ns: due,
        send_begin_ns: due + 10_000,
        send_end_ns: due + 20_000,
        receive_ns: latency_ns.map_or(NO_TIME, |ns| due + ns),
        kernel_rx_ns: NO_TIME,
        receive_thread: None,
        outcome: if latency_ns.is_some() { Outcome::Answered } else { Outcome::Lost },
        duplicates: 0,
        out_of_order: false,
        warm_up: slot < 100,
    }
}

/// A trial of 1,000 measured slots with a latency of 0.1 ms: slots 300 to 319 are answered together after a stall, slots
/// 500 and 501 are lost, and the warm-up is slow.
fn latency(slot: u64) -> Option<i64> {
    match slot {
        0..100 => Some(9 * MS),
        300..320 => Some((320 - slot as i64) * MS),
        500 | 501 => None,
        _ => Some(100_000),
    }
}

#[test]
fn incidents_are_found_without_the_warm_up() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("record");
    RecordWriter::create(&dir, manifest()).unwrap();
    let rows = (0..1_100).map(|slot| row(slot, latency(slot)));
    write_slots(&RecordWriter::segment_path(&dir, 0, "ping", 0), 0, rows).unwrap();
    let record = Record::open(&dir).unwrap();
    let found = record.incidents(0, None, 10).unwrap().unwrap();
    // The two lost messages are apart by more than a round trip.
    assert_eq!((found.slots, found.found.count, found.found.late, found.found.lost), (1_000, 3, 20, 2));
    assert_eq!((found.rule.median_ns, found.rule.limit_ns, found.rule.round_trip_ns), (100_000, 200_000, 90_000));
    let worst = found.found.worst.iter().max_by_key(|i| i.rank()).unwrap();
    assert_eq!((worst.worst, worst.excess_ns), ((Some(20 * MS), 300), 20 * MS - 100_000));
    assert_eq!((found.misses.longest_run, found.ordinary.len()), (20, 40));
    assert!(found.ordinary.iter().all(|o| latency(o.row) == Some(100_000)), "{:?}", found.ordinary);
    // With a limit of the study, only one message of the stall is late.
    assert_eq!(record.incidents(0, Some(19 * MS + 1), 10).unwrap().unwrap().found.late, 1);
    // A trial without samples has no incidents.
    assert!(record.incidents(1, None, 10).unwrap().is_none());
}
