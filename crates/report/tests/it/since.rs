//! Tests of what changed since the last run of a study, and of the limits of a budget in the figures.

use crate::support::{Given, GivenTrial, lose, slot, write};
use std::collections::BTreeMap;
use std::path::Path;
use tailbound_model::*;
use tailbound_record::*;
use tailbound_report::*;

const PERIOD: i64 = 1_000_000;

/// Five trials whose round trips take about `usual_ns`, and differ between the trials.
fn five(usual_ns: i64) -> Given {
    let trial = |nth: i64| {
        let of =
            |k: i64| slot(k as u64, PERIOD, 1_000, [usual_ns / 4, 5_000, usual_ns / 2 + 300 * nth + 20 * (k % 97)]);
        let (slots, echoes) = (0..1_000).map(of).unzip();
        GivenTrial { status: TrialStatus::Valid, slots, echoes, finding: None }
    };
    Given { driver: "udp", payload: 64, rate: Rate::Period(Nanos(PERIOD)), trials: (0..5).map(trial).collect() }
}

/// The first message of each trial is lost.
fn lossy(mut given: Given) -> Given {
    given.trials.iter_mut().for_each(|trial| lose(&mut trial.slots[0]));
    given
}

/// Writes a record of a run that began in this second, and changes its manifest.
fn record(folder: &Path, name: &str, second: i64, usual_ns: i64, change: impl FnOnce(&mut Manifest)) -> Record {
    write(&folder.join(name), &[five(usual_ns)], |manifest| {
        manifest.began_unix_ns = 1_760_000_000_000_000_000 + second * 1_000_000_000;
        manifest.run_id = name.into();
        change(manifest);
    })
}

/// Test: of the earlier records in the folder, the last one of the same study is compared, by the statistics of `compare`, and the
/// page and the Markdown name it with what else changed.
#[test]
fn the_last_run_of_the_study_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name, second, usual_ns| record(folder.path(), name, second, usual_ns, |_| ());
    of("before", 10, 100_000);
    let last = record(folder.path(), "last", 20, 100_000, |m| m.tailbound = "0.0.9".into());
    record(folder.path(), "other", 30, 100_000, |m| m.plan.source = "study: payload # another one\n".into());
    record(folder.path(), "invalid", 31, 100_000, |m| m.status = Status::Invalid);
    record(folder.path(), "this.replaced-17", 32, 100_000, |_| ());
    of("later", 50, 100_000);
    let this = write(&folder.path().join("this"), &[lossy(five(200_000))], |manifest| {
        manifest.began_unix_ns = 1_760_000_040_000_000_000;
        manifest.run_id = "this".into();
    });
    #[cfg(unix)]
    std::os::unix::fs::symlink("last", folder.path().join("latest")).unwrap();

    let report = analyse_since_last(&this).unwrap();
    let since = report.since.as_ref().expect("an earlier run");
    assert_eq!((since.record.as_str(), since.comparison.b.record.as_str()), ("last", "this"));
    let options = CompareOptions { metrics: vec![Metric::RoundTrip], margin: None };
    let compared = compare_records(&last, &this, &options).unwrap();
    assert_eq!(since.comparison.pairs, compared.pairs);
    assert_eq!(since.comparison.changed, compared.changed);
    let p99 = since.comparison.pairs[0].statistics.iter().find(|c| c.statistic == "p99").unwrap();
    assert!(p99.verdict == VerdictWord::Slower && p99.ratio.is_some_and(|r| (1.8..2.2).contains(&r)), "{p99:?}");

    let page = render_html(&report).replace('\u{202f}', " ");
    let section = page.split_once("<section id=\"since\">").expect("the section").1.split_once("</section>").unwrap().0;
    assert!(section.contains("<code>last</code> of the same study, 9 October 2025"), "{section}");
    assert!(section.contains("<td data-label=\"verdict\" class=\"l\">slower</td>"), "{section}");
    assert!(section.contains("<li>tailbound: 0.0.9 \u{2192} 0.1.0</li>"), "{section}");
    assert!(page.contains("href=\"#since\""));
    let markdown = render_markdown(&report);
    let text = markdown.split_once("## Since the last run").expect("the section").1;
    insta::assert_snapshot!(text.split_once("\nPath").map_or(text, |(text, _)| text).replace('\u{202f}', " "));
    // Nothing in it depends on the place of the folder.
    let path = folder.path().to_string_lossy().into_owned();
    assert!(!serde_json::to_string(since).unwrap().contains(&path));
}

/// Test: the section is left out if no earlier run can be compared, and no other form of the report changes.
#[test]
fn without_an_earlier_run_nothing_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let this = record(folder.path(), "this", 40, 200_000, |_| ());
    record(folder.path(), "later", 50, 100_000, |_| ());
    record(folder.path(), "same-run", 10, 100_000, |m| m.run_id = "this".into());
    record(folder.path(), "payload", 11, 100_000, |m| m.plan.conditions[0].spec.payload = ByteSize(1_024));
    let report = analyse_since_last(&this).unwrap();
    assert!(report.since.is_none());
    assert_eq!(report, analyse(&this).unwrap());
    assert!(!render_html(&report).contains("id=\"since\"") && !render_markdown(&report).contains("Since the last run"));
}

fn budget(levels: BTreeMap<String, String>) -> Budget {
    let limit = |metric, at_most| Limit { metric, at_most };
    let limits = vec![
        limit(Metric::RoundTrip, AtMost::Quantile("p99".into(), Nanos(76_000))),
        limit(Metric::RoundTrip, AtMost::Max(Nanos(5_000_000))),
        limit(Metric::Out, AtMost::Mean(Nanos(25_000))),
        limit(Metric::RoundTrip, AtMost::Lost(None)),
    ];
    let set = LimitSet { levels, limits, throughput: Vec::new(), misses: None, on_wire: Vec::new() };
    Budget { name: "control loop".into(), limits: vec![set], baseline: None }
}

/// Test: figures show the limits of a budget for their metric as lines, as far as they lie on an axis; a sentence has all of them.
#[test]
fn figures_show_the_limits_of_a_budget() {
    let folder = tempfile::tempdir().unwrap();
    let mut report = analyse(&record(folder.path(), "this", 40, 100_000, |_| ())).unwrap();
    let without = render_html(&report);
    assert!(!without.contains("class=\"limit\"") && !without.contains("id=\"limits\""));
    report.limits = limit_lines(&report, &budget(BTreeMap::new())).unwrap();
    let of: Vec<(&str, &str, i64)> =
        report.limits.iter().map(|l| (l.metric.as_str(), l.statistic.as_str(), l.limit_ns)).collect();
    assert_eq!(of, [("round_trip", "p99", 76_000), ("round_trip", "max", 5_000_000), ("out", "mean", 25_000)]);
    let page = render_html(&report).replace('\u{202f}', " ");
    for id in ["latency", "tail", "ladder", "histogram", "time"] {
        let figure = page.split_once(&format!("<section id=\"{id}\">")).unwrap().1.split_once("<template").unwrap().0;
        assert_eq!(figure.matches("class=\"limit\"").count(), 1, "{id}");
        let has_name = figure.contains("p99 at most 76");
        assert_eq!(has_name, matches!(id, "latency" | "tail" | "time"), "{id}");
    }
    let sentence = page.split_once("id=\"limits\">").unwrap().1.split_once("</p>").unwrap().0;
    insta::assert_snapshot!(sentence);
    let unknown = BTreeMap::from([("payload".to_owned(), "1 MiB".to_owned())]);
    let refused = limit_lines(&report, &budget(unknown)).unwrap_err().to_string();
    assert!(refused.contains("the budget names payload `1 MiB`, which the record does not have"), "{refused}");
}

/// Test: the page says for each limit whether the record keeps it, with the measured value, and the document has the same.
#[test]
fn the_page_states_the_outcome_of_each_limit() {
    let folder = tempfile::tempdir().unwrap();
    let record = record(folder.path(), "this", 40, 100_000, |_| ());
    let mut report = analyse(&record).unwrap();
    assert!(!render_html(&report).contains("id=\"budget\"") && !render_html(&report).contains("#budget"));
    let judged = judge_budget(&record, &budget(BTreeMap::new()), None).unwrap();
    report.budget = Some(BudgetReport { record: "this".into(), ..judged });
    let page = render_html(&report).replace('\u{202f}', " ");
    assert!(page.contains("<a href=\"#budget\">Budget</a>"));
    let section = page.split_once("<section id=\"budget\">").unwrap().1.split_once("</section>").unwrap().0;
    insta::assert_snapshot!(section);
    let document: serde_json::Value = serde_json::from_str(&render_json(&report)).unwrap();
    assert_eq!(serde_json::from_value::<BudgetReport>(document["budget"].clone()).ok(), report.budget);
}
