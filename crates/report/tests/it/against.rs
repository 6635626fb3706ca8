//! Tests of the overhead of each level relative to a baseline level: the report finds an overhead that the test put
//! into the samples, and the numbers equal the numbers of `compare`.

#[allow(dead_code)]
use crate::support::{Given, GivenTrial, Random, slot};
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::*;

const PERIOD: i64 = 1_000_000;

/// Makes a trial of 400 answered messages with approximately this round trip; each trial has its own random values.
fn trial(round_trip: i64, random: &mut Random) -> GivenTrial {
    let luck = 1.0 + 0.01 * (random.unit() - 0.5);
    let one = |seq: u64, unit: f64| {
        let way = (round_trip as f64 * luck * (0.95 + 0.1 * unit) / 2.0) as i64;
        slot(seq, PERIOD, 900, [way, 0, way])
    };
    let (slots, echoes) = (0..400).map(|seq| one(seq, random.unit())).unzip();
    GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None }
}

/// Makes a record with two payloads and several levels: `slow` has an overhead of 30 %, `huge` is not possible, and
/// `mute` had no working path.
fn record(dir: &std::path::Path) -> Record {
    let mut random = Random(11);
    let mut given = |driver, payload, round_trip| Given {
        driver,
        payload,
        rate: Rate::Period(Nanos(PERIOD)),
        trials: (0..5).map(|_| trial(round_trip, &mut random)).collect(),
    };
    let mut conditions = vec![
        given("host", 64, 30_000),
        given("host", 1_024, 40_000),
        given("slow", 64, 39_000),
        given("slow", 1_024, 52_000),
        given("mute", 64, 30_000),
    ];
    conditions.push(Given { driver: "mute", payload: 1_024, rate: Rate::Period(Nanos(PERIOD)), trials: Vec::new() });
    conditions.push(Given { driver: "slow", payload: 2_048, rate: Rate::Period(Nanos(PERIOD)), trials: Vec::new() });
    for trial in &mut conditions[4].trials {
        trial.status = TrialStatus::Invalid;
        trial.finding = Some("no datagram passed between the ends".into());
    }
    crate::support::write(dir, &conditions, |manifest| {
        manifest.plan.report.against = Some(AgainstSpec { factor: "driver".into(), level: "host".into() });
        manifest.plan.conditions[5].not_possible = Some("the driver carries at most 512 B".into());
        manifest.plan.conditions[6].not_possible = Some("the driver carries at most 1,024 B".into());
    })
}

#[test]
fn a_planted_cost_is_found_and_reported_as_by_compare() {
    let folder = tempfile::tempdir().unwrap();
    let record = record(&folder.path().join("record"));
    let report = analyse(&record).unwrap();
    let against = report.against.as_ref().unwrap();
    assert_eq!(
        against.rows.iter().map(|r| (r.condition, r.baseline)).collect::<Vec<_>>(),
        [(2, Some(0)), (3, Some(1)), (4, Some(0)), (5, Some(1)), (6, None)]
    );
    let options = CompareOptions { metrics: vec![Metric::RoundTrip], margin: None };
    let compared = compare_levels(&record, Some("driver"), Some(["host", "slow"]), &options).unwrap();
    for row in &against.rows[..2] {
        let pair = compared.pairs.iter().find(|p| p.b.condition == row.condition).unwrap();
        assert_eq!(row.overheads.iter().map(|o| o.statistic.as_str()).collect::<Vec<_>>(), ["p50", "p99", "mean"]);
        for told in &row.overheads {
            let same = pair.statistics.iter().find(|s| s.statistic == told.statistic).unwrap();
            let per_cent = |ratio: f64| (ratio - 1.0) * 100.0;
            assert_eq!((told.baseline, told.value, told.verdict), (same.a, same.b, VerdictWord::Slower));
            assert_eq!(told.per_cent, same.ratio.map(per_cent));
            assert_eq!(told.interval, same.interval.map(|i| i.map(per_cent)));
            let [low, high] = told.interval.unwrap();
            assert!(low < 30.0 && 30.0 < high && high - low < 10.0, "{}: {low} to {high}", told.statistic);
        }
    }
    for row in &against.rows[..2] {
        let of = |id: usize| report.conditions[id].round_trip.as_ref().unwrap();
        let (value, baseline) = (of(row.condition), of(row.baseline.unwrap()));
        let ends = |m: &MetricReport| [m.min_ns, m.max_ns].map(|ns| ns.unwrap() as f64);
        let statistics = |m: &MetricReport| {
            let [min, max] = ends(m);
            [m.mean_ns.unwrap(), m.stddev_ns.unwrap(), min, max]
        };
        let found: Vec<_> = row.differences.iter().filter(|d| d.metric == "round_trip").collect();
        assert_eq!(found.iter().map(|d| d.statistic.as_str()).collect::<Vec<_>>(), SPREAD_STATISTICS);
        for (found, (value, baseline)) in found.iter().zip(statistics(value).into_iter().zip(statistics(baseline))) {
            assert_eq!((found.value_ns, found.baseline_ns), ([value; 2], [baseline; 2]));
            assert_eq!(found.difference_ns, [value - baseline; 2]);
        }
        // Planted: 30 % more than 30 us and 40 us.
        let planted = [9_000.0, 12_000.0][usize::from(row.condition == 3)];
        assert!((found[0].difference_ns[0] - planted).abs() < 600.0, "{found:?}");
    }
    assert!(against.rows[2..].iter().all(|r| r.differences.is_empty()));
    let why: Vec<&str> = against.rows[2..].iter().map(|r| r.why.as_deref().unwrap()).collect();
    assert_eq!(
        why,
        [
            "every trial of this condition is invalid: no datagram passed between the ends",
            "not possible: the driver carries at most 512 B",
            "not possible: the driver carries at most 1,024 B",
        ]
    );
}

/// Test: of a leg between two clocks, the difference is the range that both ranges permit, and a standard deviation is
/// not given.
#[test]
fn a_difference_between_two_clocks_is_a_range() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = analyse(&record(&folder.path().join("record"))).unwrap();
    let with = |of: &MetricReport, mean_ns: f64| MetricReport { mean_ns: Some(mean_ns), ..of.clone() };
    for (id, [low, high]) in [(0, [10.0, 14.0]), (2, [13.0, 20.0])] {
        let condition = &mut report.conditions[id];
        let of = condition.round_trip.clone().unwrap();
        condition.out = None;
        condition.out_range = Some(LegRange { low: with(&of, low), high: with(&of, high) });
    }
    let differences = report.conditions[2].differences(&report.conditions[0]);
    let out: Vec<_> = differences.iter().filter(|d| d.metric == "out").collect();
    assert_eq!(out.iter().map(|d| d.statistic.as_str()).collect::<Vec<_>>(), ["mean", "min", "max"]);
    assert_eq!((out[0].baseline_ns, out[0].value_ns), ([10.0, 14.0], [13.0, 20.0]));
    assert_eq!(out[0].difference_ns, [-1.0, 10.0]);
}

#[test]
fn published_figures_stand_below_the_measured_ones() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = analyse(&record(&folder.path().join("record"))).unwrap();
    let ns = |pair: [i64; 2]| Some(pair.map(Nanos));
    let figures = PublishedFigures {
        metric: Metric::RoundTrip,
        mean: None,
        mean_above: ns([7_000, 27_000]),
        stddev: None,
        max: ns([200_000, 400_000]),
    };
    report.published = vec![PublishedReport::from(&Published {
        name: "theirs".into(),
        figures: Some(figures),
        ..Published::default()
    })];
    for width in [80, 60] {
        let terminal = render_terminal(&report, width, false);
        let from = terminal.find("mean, standard").unwrap();
        let to = terminal[from..].find("\n\n").or(terminal[from..].find("\nwent by")).unwrap();
        assert!(terminal[from..from + to].lines().all(|l| l.chars().count() <= width), "{terminal}");
        insta::assert_snapshot!(format!("spread_{width}"), &terminal[from..from + to]);
    }
    let page = render_html(&report);
    assert!(page.contains("* theirs") && page.contains("+7 to 27"), "the page has no published row");
    let markdown = render_markdown(&report);
    assert!(markdown.lines().any(|l| l.contains("theirs") && l.contains("200 to 400")), "{markdown}");
    let csv = render_csv(&report);
    let difference = &report.against.as_ref().unwrap().rows[0].differences[0];
    let row = csv.lines().find(|l| l.contains("difference of round_trip")).unwrap();
    assert!(row.contains(&difference.difference_ns[0].to_string()), "{row}");
    assert_eq!(row.matches(',').count(), csv.lines().next().unwrap().matches(',').count());
}

#[test]
fn every_form_has_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let report = analyse(&record(&folder.path().join("record"))).unwrap();
    let terminal = render_terminal(&report, 80, false);
    assert!(terminal.lines().all(|l| l.chars().count() <= 80), "{terminal}");
    let from = terminal.find("against driver host").unwrap();
    let to = terminal[from..].find("\n\n").or(terminal[from..].find("\nwent by")).unwrap();
    insta::assert_snapshot!("against", &terminal[from..from + to]);
    let overhead = report.against.as_ref().unwrap().rows[0].overheads[0].per_cent.unwrap();
    let (svg, page) = (render_svg(&report, Figure::Overhead).unwrap(), render_html(&report));
    assert!(svg.contains("<circle") && !svg.contains("NaN"), "{svg}");
    assert!(page.contains(&format!("data-ratio=\"{}\"", 1.0 + overhead / 100.0)), "{overhead} is drawn");
    assert!(page.contains("<h2>Against driver host</h2>") && page.contains("at most 512 B"));
    assert!(render_markdown(&report).contains("at most 512 B"));
    let csv = render_csv(&report);
    let columns = csv.lines().next().unwrap().matches(',').count();
    let row = csv.lines().find(|l| l.contains("overhead of round_trip")).unwrap();
    assert!(row.contains(&overhead.to_string()) && row.matches(',').count() == columns, "{row}");
}
