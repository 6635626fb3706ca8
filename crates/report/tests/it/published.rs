//! Tests of tables of published numbers: the figures that stand beside them are the ones that the test put into the
//! samples, and every form of the report shows both, with what differs from the original.

use crate::support::{Given, GivenTrial, slot};
use std::collections::BTreeMap;
use tailbound_model::*;
use tailbound_report::*;

const PERIOD: i64 = 1_000_000;
const SLOTS: u64 = 400;

/// A trial of answered messages with this round trip, whose last message has another one.
fn trial(round_trip: i64, last: i64) -> GivenTrial {
    let one = |seq: u64| {
        let way = if seq + 1 == SLOTS { last / 2 } else { round_trip / 2 };
        slot(seq, PERIOD, 900, [way, 0, way])
    };
    let (slots, echoes) = (0..SLOTS).map(one).unzip();
    GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None }
}

fn given(driver: &'static str, payload: u64, round_trip: i64) -> Given {
    let rate = Rate::Period(Nanos(PERIOD));
    Given { driver, payload, rate, trials: vec![trial(round_trip, 90_000), trial(round_trip, 190_000)] }
}

fn levels(of: &[(&str, &[&str])]) -> ChosenLevels {
    let owned = |levels: &[&str]| levels.iter().map(|l| (*l).to_owned()).collect();
    of.iter().map(|(factor, levels)| ((*factor).to_owned(), owned(levels))).collect()
}

fn column(name: &str, unit: FigureUnit, here: Option<OwnFigure>) -> PublishedColumn {
    PublishedColumn { name: name.into(), unit, levels: ChosenLevels::new(), here }
}

fn figure(metric: Metric, statistic: FigureStatistic, compared: FigureCompared) -> Option<OwnFigure> {
    let baseline = match compared {
        FigureCompared::Alone => BTreeMap::new(),
        _ => BTreeMap::from([("driver".to_owned(), "host".to_owned())]),
    };
    Some(OwnFigure { metric: FigureMetric::Latency(metric), statistic, compared, baseline })
}

fn median() -> FigureStatistic {
    FigureStatistic::Quantile("0.5".into())
}

fn number(low: f64, high: f64) -> Option<PublishedNumber> {
    Some(PublishedNumber { low: Some(low), high: Some(high) })
}

fn row(name: &str, of: &[(&str, &[&str])], run: Option<u32>, cells: Vec<Option<PublishedNumber>>) -> PublishedRow {
    PublishedRow { name: name.into(), levels: levels(of), run, cells }
}

/// A table with each kind of figure: alone, as a difference, as an overhead, and of a definition of the publication.
fn of_all_messages() -> PublishedTable {
    let below = Some(PublishedNumber { low: None, high: Some(3.0) });
    PublishedTable {
        axis: "payload".into(),
        columns: vec![
            column("overhead", FigureUnit::PerCent, figure(Metric::RoundTrip, median(), FigureCompared::Overhead)),
            column("above", FigureUnit::Us, figure(Metric::HalfRoundTrip, median(), FigureCompared::Difference)),
            column(
                "maximum",
                FigureUnit::Us,
                figure(Metric::HalfRoundTrip, FigureStatistic::Max, FigureCompared::Alone),
            ),
            column("jitter", FigureUnit::Us, None),
        ],
        rows: vec![
            row(
                "small",
                &[("driver", &["pod"]), ("payload", &["64 B"])],
                None,
                vec![below, number(37.0, 69.0), None, number(1.5, 1.5)],
            ),
            row(
                "both",
                &[("driver", &["pod"])],
                None,
                vec![number(-0.8, -0.8), None, number(59_736_187.0, 59_736_187.0), None],
            ),
            row("large", &[("driver", &["pod"]), ("payload", &["63 kB"])], None, vec![None; 4]),
        ],
    }
}

/// A table of single runs, with metrics that have one value for each trial.
fn of_runs() -> PublishedTable {
    let of = |metric, statistic| {
        Some(OwnFigure { metric, statistic, compared: FigureCompared::Alone, baseline: BTreeMap::new() })
    };
    let worst = figure(Metric::RoundTrip, FigureStatistic::Max, FigureCompared::Alone);
    let slow: &[(&str, &[&str])] = &[("driver", &["pod"]), ("payload", &["64 B"])];
    PublishedTable {
        axis: "run".into(),
        columns: vec![
            column("M1", FigureUnit::Ms, of(FigureMetric::TotalTime, FigureStatistic::Max)),
            column("with discovery", FigureUnit::Ms, of(FigureMetric::TotalWithDiscovery, FigureStatistic::Max)),
            column("M3", FigureUnit::Us, worst),
        ],
        rows: [1, 2, 3].map(|run| row(&format!("run {run}"), slow, Some(run), vec![None; 3])).into(),
    }
}

fn report() -> Report {
    let folder = tempfile::tempdir().unwrap();
    let conditions = [
        given("host", 64, 40_000),
        given("pod", 64, 52_000),
        given("host", 1_024, 40_000),
        given("pod", 1_024, 60_000),
    ];
    let record = crate::support::write(&folder.path().join("record"), &conditions, |manifest| {
        manifest.plan.factors = vec!["driver".into(), "payload".into()];
        let published = |name: &str, table| Published {
            name: name.into(),
            table: Some(table),
            source: Some("a paper".into()),
            differs: vec!["Hardware: <theirs>".into()],
            ..Published::default()
        };
        let only_differs =
            Published { name: "a histogram".into(), differs: vec!["Kernel: theirs".into()], ..Published::default() };
        manifest.plan.report.published =
            vec![published("pod networks", of_all_messages()), published("nine runs", of_runs()), only_differs];
    });
    analyse(&record).unwrap()
}

#[test]
fn figures_beside_published_numbers_are_the_measured_ones() {
    let report = report();
    let table = report.published[0].table.as_ref().unwrap();
    let here = |row: usize, column: usize| table.rows[row].cells[column].here;
    let near = |found: Option<[f64; 2]>, wanted: [f64; 2]| {
        let found = found.unwrap();
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?} and not {wanted:?}");
    };
    near(here(0, 0), [30.0, 30.0]);
    near(here(0, 1), [6.0, 6.0]);
    near(here(0, 2), [95.0, 95.0]);
    // Over both payloads, the smallest and the largest figure.
    near(here(1, 0), [30.0, 50.0]);
    near(here(1, 1), [6.0, 10.0]);
    assert_eq!(table.rows[1].cells[0].conditions, [1, 3]);
    assert_eq!(table.rows[2].cells[0].why.as_deref(), Some("no condition of this run has these levels"));
    let definitions: Vec<bool> = table.columns.iter().map(|c| c.published_definition).collect();
    assert_eq!(definitions, [false, false, true, false]);

    let table = report.published[1].table.as_ref().unwrap();
    let here = |row: usize, column: usize| table.rows[row].cells[column].here;
    // The last message is due after 399 periods, and its send call begins 900 ns later.
    near(here(0, 0), [399.0009 + 0.09; 2]);
    near(here(1, 0), [399.0009 + 0.19; 2]);
    near(here(0, 2), [90.0; 2]);
    near(here(1, 2), [190.0; 2]);
    let met = report.trials[0].ends.values().filter_map(|e| e.matched_after_ns).max().unwrap() as f64 * 1e-6;
    near(here(0, 1), [399.0009 + 0.09 + met; 2]);
    assert_eq!(table.rows[2].cells[0].why.as_deref(), Some("run 3 is not in this record, or is invalid"));
}

#[test]
fn every_form_of_the_report_shows_published_numbers_beside_its_own() {
    let report = report();
    let part = |text: &str, from: &str, until: &str| {
        let at = text.find(from).unwrap_or_else(|| panic!("{text}"));
        let end = text[at..].find(until).map_or(text.len(), |end| at + end);
        text[at..end].trim_end().to_owned()
    };
    let terminal = render_terminal(&report, 80, false);
    insta::assert_snapshot!("published_terminal", part(&terminal, "pod networks; *", "\nthe sender's loop"));
    insta::assert_snapshot!("published_markdown", part(&render_markdown(&report), "### pod networks", "\n## "));
    let page = render_html(&report);
    insta::assert_snapshot!("published_page", part(&page, "<section id=\"published\">", "<section id=\"w"));
    assert!(page.contains("<a href=\"#published\">Published numbers</a>"));
    let json: serde_json::Value = serde_json::from_str(&render_json(&report)).unwrap();
    insta::assert_snapshot!(
        "published_json",
        serde_json::to_string_pretty(&json["published"][0]["table"]["rows"][1]).unwrap()
    );
}

/// A table without published numbers, such as one that is only drawn in the publication, has no columns for them.
#[test]
fn columns_without_published_numbers_have_only_figures_of_this_report() {
    let mut report = report();
    report.published.drain(..1);
    let page = render_html(&report);
    assert!(page.contains("M1 <span class=\"unit\">ms</span>") && !page.contains("M1, published"), "{page}");
    assert!(render_markdown(&report).contains("| run | M1, ms |"));
    let terminal = render_terminal(&report, 80, false);
    assert!(terminal.contains("run 1") && !terminal.contains("* run 1"), "{terminal}");
}
