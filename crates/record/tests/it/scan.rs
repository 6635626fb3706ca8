//! Tests that slots are joined correctly with echoes that are missing, doubled or late: the result is compared with a
//! simple join in the test.

use proptest::prelude::*;
use tailbound_model::*;
use tailbound_record::*;

pub fn manifest() -> Manifest {
    let plan = Plan {
        study: "s".into(),
        question: "q".into(),
        seed: 0,
        factors: Vec::new(),
        conditions: Vec::new(),
        trials: Vec::new(),
        report: ReportSpec::default(),
        source: String::new(),
        clock: None,
        settings: Vec::new(),
    };
    Manifest { status: Status::Valid, ..Manifest::begun(plan, "r", Vec::new()) }
}

fn slot(seq: u64) -> SenderRow {
    let at = 1_000 * (seq as i64 + 1);
    SenderRow {
        seq,
        intended_ns: at,
        wake_ns: at + 1,
        send_begin_ns: at + 2,
        send_end_ns: at + 3,
        receive_ns: at + 100,
        kernel_rx_ns: NO_TIME,
        receive_thread: None,
        outcome: Outcome::Answered,
        duplicates: 0,
        out_of_order: false,
        warm_up: seq < 2,
    }
}

fn echo(seq: u64, arrival: i64) -> EchoRow {
    let at = 1_000 * (seq as i64 + 1) + 10 + arrival;
    EchoRow { seq, in_ns: at, begin_ns: at + 5, end_ns: at + 9, kernel_rx_ns: NO_TIME, in_thread: None }
}

/// Writes a record with slots and echoes (received messages), and reads two columns back: `echo_in_ns`, and the metric
/// [`Metric::WakePeriod`].
fn join(slots: u64, segments: &[Vec<EchoRow>]) -> (Vec<i64>, Vec<i64>) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("record");
    RecordWriter::create(&dir, manifest()).unwrap();
    let half = slots / 2;
    let path = |end, n| RecordWriter::segment_path(&dir, 0, end, n);
    write_slots(&path("ping", 0), 0, (0..half).map(slot)).unwrap();
    write_slots(&path("ping", 1), 0, (half..slots).map(slot)).unwrap();
    for (n, rows) in segments.iter().enumerate() {
        write_echoes(&path("pong", n), 0, rows).unwrap();
    }
    let (mut echo_in, mut periods) = (Vec::new(), Vec::new());
    let record = Record::open(&dir).unwrap();
    record
        .scan(0, &Columns::of(&[Metric::Out, Metric::WakePeriod]), &mut |batch| {
            echo_in.extend_from_slice(&batch.echo_in_ns);
            let mut column = Vec::new();
            batch.metric_column(Metric::WakePeriod, &mut column);
            periods.extend(column);
            assert_eq!(batch.metric(Metric::RoundTrip, 0), None, "receive_ns was not asked for");
        })
        .unwrap();
    (echo_in, periods)
}

fn expected(slots: u64, segments: &[Vec<EchoRow>]) -> Vec<i64> {
    let first = |seq| segments.iter().filter_map(|s| s.iter().filter(|e| e.seq == seq).map(|e| e.in_ns).min()).next();
    (0..slots).map(|seq| first(seq).unwrap_or(NO_TIME)).collect()
}

#[test]
fn all_there() {
    let echoes: Vec<EchoRow> = (0..20_000).map(|s| echo(s, 0)).collect();
    let (echo_in, periods) = join(20_000, std::slice::from_ref(&echoes));
    assert_eq!(echo_in, expected(20_000, &[echoes]));
    assert_eq!(periods[0], NO_TIME);
    assert!(periods[1..].iter().all(|p| *p == 1_000), "also across batches and segments");
}

#[test]
fn no_echoes_at_all() {
    assert_eq!(join(10, &[]).0, vec![NO_TIME; 10]);
}

/// A datagram of another program may have any sequence number; the row of such a datagram is joined to no slot.
#[test]
fn rows_of_other_streams_are_passed_over() {
    let stray = |seq| EchoRow { seq, in_ns: 7, begin_ns: 8, end_ns: 9, kernel_rx_ns: NO_TIME, in_thread: None };
    let whole: Vec<EchoRow> = (0..20).map(|s| echo(s, 0)).collect();
    for number in [1 << 48 | 5, 1 << 40, 3 << 48 | 19, u64::MAX] {
        let mut one = whole.clone();
        one.push(stray(number));
        assert_eq!(join(20, &[one]).0, expected(20, std::slice::from_ref(&whole)), "{number:#x}, merged");
        let (mut first, second) = (whole[..10].to_vec(), whole[10..].to_vec());
        first.push(stray(number));
        let joined = join(20, &[first, second]).0;
        assert_eq!(joined, expected(20, std::slice::from_ref(&whole)), "{number:#x}, in a table");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn merging_is_the_join(
        rows in prop::collection::vec((0u64..40, 0i64..3), 0..80),
        cut in 0usize..80,
        overlapping: bool,
    ) {
        let mut rows: Vec<EchoRow> = rows.into_iter().map(|(seq, arrival)| echo(seq, arrival)).collect();
        if !overlapping {
            rows.sort_by_key(|r| (r.seq, r.in_ns));
        }
        let tail = rows.split_off(cut.min(rows.len()));
        let segments = [rows, tail];
        prop_assert_eq!(join(40, &segments).0, expected(40, &segments));
    }
}
