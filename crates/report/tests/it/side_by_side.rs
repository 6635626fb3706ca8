//! Tests of figures of other programs next to figures of a driver: which figures are compared, with which ratio, and
//! which figures are not compared.

#[allow(dead_code)]
use crate::support::{Given, GivenTrial, lose, slot};
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::*;

const PERIOD: i64 = 1_000_000;

/// Makes a trial of 4,000 round trips of 21 us, of which `lost` were lost.
fn udp(lost: usize) -> Given {
    let mut rows: Vec<_> = (0..4_000).map(|seq| slot(seq, PERIOD, 900, [8_000, 4_000, 9_000])).collect();
    rows.iter_mut().take(lost).for_each(|(row, _)| lose(row));
    let (slots, echoes) = rows.into_iter().unzip();
    let trial = GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None };
    Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(PERIOD)), trials: vec![trial] }
}

fn figure(what: ToolMetric, statistic: &str, values: &[f64]) -> ToolFigure {
    ToolFigure { what, statistic: statistic.into(), values: values.to_vec() }
}

fn tool(like: Option<&str>, latency: PrintedLatency, window: ToolWindow, figures: Vec<ToolFigure>) -> ToolSummary {
    let like = like.map(Into::into);
    let definition = ToolDefinition { like, latency: Some(latency), window, leaves_out: Vec::new() };
    ToolSummary { tool: "mine".into(), definition, figures, ..ToolSummary::default() }
}

/// Computes the report on a record of one driver and one benchmark program, and returns its only pair of figures.
fn pair(driver: Given, summary: ToolSummary) -> SideBySide {
    pair_of(driver, summary, |_| ())
}

/// As [`pair`], with another change of the record.
fn pair_of(driver: Given, summary: ToolSummary, change: impl FnOnce(&mut Manifest)) -> SideBySide {
    let trial = GivenTrial { status: TrialStatus::Valid, slots: Vec::new(), echoes: Vec::new(), finding: None };
    let mine = Given { driver: "mine", rate: driver.rate, trials: vec![trial], ..udp(0) };
    let folder = tempfile::tempdir().unwrap();
    let record = crate::support::write(&folder.path().join("record"), &[driver, mine], |manifest| {
        let file = ConfigFile { path: "mine.yaml".into(), sha256: String::new(), text: String::new() };
        manifest.plan.conditions[1].spec.driver.tool = Some(file);
        manifest.plan.conditions[1].spec.measure = manifest.plan.conditions[0].spec.measure.clone();
        manifest.trials[1].source = Source::Summary;
        manifest.trials[1].summary = Some(summary);
        change(manifest);
    });
    let report = analyse(&record).unwrap();
    assert_eq!(report.status, ReportStatus::Valid, "{:?}", report.warnings);
    let mut pairs = report.side_by_side;
    assert_eq!(pairs.len(), 1);
    pairs.remove(0)
}

fn same(pair: &SideBySide) -> Vec<(&str, f64)> {
    pair.same.iter().map(|f| (f.statistic.as_str(), f.ratio)).collect()
}

use ToolMetric::*;

#[test]
fn doubled_halves_of_the_whole_run_are_of_one_definition() {
    let figures = vec![
        figure(RoundTripNs, "max", &[99_000.0]),
        figure(RoundTripNs, "p50", &[42_000.0]),
        figure(RoundTripNs, "mean", &[10_500.0]),
        figure(RoundTripNs, "p99.99", &[90_000.0]),
        figure(Samples, "total", &[3_900.0]),
        figure(Lost, "total", &[0.0]),
    ];
    let pair = pair(udp(0), tool(Some("udp"), PrintedLatency::HalfRoundTrip, ToolWindow::WholeRun, figures));
    assert_eq!(same(&pair), [("mean", 0.5), ("p50", 2.0)]);
    assert_eq!(
        pair.apart,
        [
            "p99.99 (it takes 36,887): 3,900 messages are too few",
            "minimum and maximum are not compared: they are single messages, from different numbers of messages",
            "the half round trips of mine were doubled",
            "mine has figures of 3,900 of the 4,000 messages that rate and time give",
        ]
    );
}

#[test]
fn means_of_seconds_are_weighted_and_their_percentiles_are_none_of_the_run() {
    let figures = vec![
        figure(RoundTripNs, "p50", &[10.0, 30.0]),
        figure(RoundTripNs, "mean", &[12_000.0, 24_000.0]),
        figure(Samples, "total", &[1_000.0, 3_000.0]),
    ];
    let pair = pair(udp(0), tool(None, PrintedLatency::RoundTrip, ToolWindow::EachSecond, figures));
    assert_eq!(same(&pair), [("mean", 1.0)], "(12 x 1 + 24 x 3) / 4 = 21 us");
    assert!(pair.apart[0].starts_with("p50: those of mine are of one second each"), "{:?}", pair.apart);
}

#[test]
fn lost_messages_leave_no_quantile_to_compare() {
    let figures = vec![
        figure(RoundTripNs, "p50", &[42_000.0]),
        figure(RoundTripNs, "mean", &[42_000.0]),
        figure(Samples, "total", &[4_000.0]),
    ];
    let pair = pair(udp(7), tool(Some("udp"), PrintedLatency::RoundTrip, ToolWindow::WholeRun, figures));
    assert_eq!(same(&pair), [("mean", 2.0)]);
    assert!(pair.apart[0].starts_with("quantiles are not compared: 7 messages were lost"), "{:?}", pair.apart);
}

#[test]
fn other_definitions_have_no_ratio() {
    let figures = |what| vec![figure(what, "mean", &[1_000.0]), figure(Samples, "total", &[4_000.0])];
    let wakes = pair(udp(0), tool(None, PrintedLatency::WakeUp, ToolWindow::WholeRun, figures(WakeUpNs)));
    assert_eq!((same(&wakes), wakes.apart[0].as_str()), (vec![], "mine has figures of wake-up, udp of round trip"));
    let other =
        pair(udp(0), tool(Some("cyclonedds"), PrintedLatency::RoundTrip, ToolWindow::WholeRun, figures(RoundTripNs)));
    let why = "mine sends as cyclonedds does, not as udp: a ratio would be of these two";
    assert_eq!((same(&other), other.apart.as_slice()), (vec![], [why.to_owned()].as_slice()));
}

/// Makes a trial of 4,000 messages. Every other message is sent 9 us late and takes 1 us, the others are sent 1 us late and take 9 us; each
/// hundredth message takes 100 us more. So the quantiles of both parts do not add up to the quantiles of the whole.
fn uneven() -> Given {
    let row = |seq: u64| {
        let (late, out) = if seq.is_multiple_of(2) { (9_000, 1_000) } else { (1_000, 9_000) };
        slot(seq, PERIOD, late, [out + if seq % 100 == 7 { 100_000 } else { 0 }, 4_000, 9_000])
    };
    let (slots, echoes) = (0..4_000).map(row).unzip();
    let trial = GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None };
    Given { trials: vec![trial], ..udp(0) }
}

fn one_way(latency: PrintedLatency, what: ToolMetric) -> ToolSummary {
    let of = |statistic: &str, ns: f64| figure(what, statistic, &[ns]);
    let figures =
        vec![of("mean", 22_000.0), of("p50", 5_000.0), of("p99", 110_000.0), figure(Samples, "total", &[4_000.0])];
    tool(Some("udp"), latency, ToolWindow::WholeRun, figures)
}

#[test]
fn latencies_from_the_due_time_have_a_counterpart() {
    let summary = || one_way(PrintedLatency::OneWayFromDue, OneWayFromDueNs);
    let pair = pair(uneven(), summary());
    // All take 10 us, and one in a hundred 110 us: the mean is 11 us.
    assert_eq!(same(&pair), [("mean", 2.0), ("p50", 0.5), ("p99", 11.0)]);
    assert_eq!(
        (pair.same[0].what.as_str(), pair.same[2].b, pair.apart[1].as_str()),
        (
            "one_way_from_due_ns",
            10_000.0,
            "the figures of mine and udp are from the due time of a message until a thread of the receiver had it; udp also answers each \
             message"
        )
    );
    // Without due times, there is none.
    let unpaced = Given { rate: Rate::Max, ..uneven() };
    let unpaced = pair_of(unpaced, summary(), |_| ());
    assert!(unpaced.same.is_empty(), "{unpaced:?}");
}

#[test]
fn latencies_from_the_send_call_are_compared_with_the_way_out() {
    let pair = pair(uneven(), one_way(PrintedLatency::OneWay, OneWayNs));
    // The median of 1 us, 9 us and a few of 109 us: rank 2,000 of 4,000.
    assert_eq!(same(&pair), [("mean", 22.0 / 6.0), ("p50", 5.0), ("p99", 110.0 / 9.0)]);
    assert_eq!(
        pair.apart[1],
        "the figures of udp are from the begin of the send call until a thread of the receiver had the message; udp also answers each \
         message"
    );
}

#[test]
fn one_way_latencies_between_two_clocks_have_no_ratio() {
    for (latency, what) in [(PrintedLatency::OneWay, OneWayNs), (PrintedLatency::OneWayFromDue, OneWayFromDueNs)] {
        let pair = pair_of(uneven(), one_way(latency, what), |manifest| {
            manifest.trials[0].ends.get_mut("pong").unwrap().clock = "another".into();
        });
        let why = "the ends have different clocks: the one-way latency of udp is a range, which has no ratio, and figures of mine contain \
                   the difference of the clocks";
        assert_eq!((same(&pair), pair.apart.as_slice()), (vec![], [why.to_owned()].as_slice()));
    }
}
