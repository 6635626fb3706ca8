//! Tests of budget files: the values that are read, and the error messages for wrong files.

use tailbound_model::{AtMost, FlowLimit, Limit, Metric, MissWindow, MissesLimit, Nanos};
use tailbound_study::{budget_schema, load_budget_str};

const GOOD: &str = "\
budget: pick-and-place
limits:
  - round_trip: { p50: 100 us, p99.9: 0.5 ms, max: 2 ms, lost: 0.1 % }
  - where: { payload: 64 B, driver: cyclonedds }
    from_intended: { lost: none, mean: 80 us }
  - throughput: { samples/s: 100000, Mbit/s: 1.2 Gbit/s, lost: 1 % }
  - misses: { late_above: 2 ms, longest_run: 3, recovery: 50 ms, m_of_k: { m: 2, k: 100, violated_windows: 5 } }
  - misses: { m_of_k: { m: 0, k: 1 } }
baseline: { record: ../accepted, tolerance: 5 %, round_trip: [p50, mean, lost], throughput: [samples/s, lost] }
";

#[test]
fn a_budget() {
    let budget = load_budget_str("b.yaml", GOOD).unwrap();
    assert_eq!(budget.name, "pick-and-place");
    let limit = |at_most| Limit { metric: Metric::RoundTrip, at_most };
    assert_eq!(
        budget.limits[0].limits,
        [
            limit(AtMost::Quantile("p50".into(), Nanos(100_000))),
            limit(AtMost::Quantile("p99.9".into(), Nanos(500_000))),
            limit(AtMost::Max(Nanos(2_000_000))),
            limit(AtMost::Lost(Some(0.001))),
        ]
    );
    assert_eq!(budget.limits[1].levels["payload"], "64 B");
    assert_eq!(budget.limits[1].limits[0].at_most, AtMost::Lost(None));
    assert_eq!(budget.limits[1].limits[1].at_most, AtMost::Mean(Nanos(80_000)));
    assert_eq!(
        budget.limits[2].throughput,
        [FlowLimit::SamplesPerSecond(1e5), FlowLimit::PayloadMbitPerSecond(1200.0), FlowLimit::Lost(Some(0.01)),]
    );
    let misses = budget.limits[3].misses.as_ref().unwrap();
    assert_eq!((misses.late_above, misses.window), (Some(Nanos(2_000_000)), MissWindow { m: 2, k: 100 }));
    let limits =
        [MissesLimit::LongestRun(3), MissesLimit::Recovery(Nanos(50_000_000)), MissesLimit::ViolatedWindows(5)];
    assert_eq!(misses.limits, limits);
    let misses = budget.limits[4].misses.as_ref().unwrap();
    assert_eq!((misses.late_above, misses.window), (None, MissWindow { m: 0, k: 1 }));
    assert_eq!(misses.limits, [MissesLimit::ViolatedWindows(0)]);
    let baseline = budget.baseline.unwrap();
    assert_eq!((baseline.record.as_deref(), baseline.tolerance), (Some("../accepted"), 0.05));
    assert_eq!(baseline.statistics, [(Metric::RoundTrip, ["p50", "mean", "lost"].map(str::to_owned).to_vec())]);
    assert_eq!(baseline.throughput, ["samples/s", "lost"]);
}

#[test]
fn each_broken_budget_has_its_error() {
    let mut all = String::new();
    for text in [
        "",
        "budget: nothing\n",
        "limit:\n  - round_trip: { p99: 1 ms }\n",
        "limits: { round_trip: { p99: 1 ms } }\n",
        "limits:\n  - round_trap: { p99: 1 ms }\n",
        "limits:\n  - half_round_trip: { p50: 1 ms }\n",
        "limits:\n  - round_trip: { q99: 1 ms }\n",
        "limits:\n  - round_trip: { p100: 1 ms }\n",
        "limits:\n  - round_trip: { mean: 1 }\n",
        "limits:\n  - throughput: { p99: 1 ms }\n",
        "limits:\n  - throughput: { samples/s: many }\n",
        "limits:\n  - throughput: { samples/s: 0 }\n",
        "limits:\n  - throughput: { samples/s: 1 kHz }\n",
        "limits:\n  - throughput: { Mbit/s: 1 MB }\n",
        "limits:\n  - throughput: 800 Mbit/s\n",
        "baseline: { tolerance: 5 %, throughput: [mbit/s] }\n",
        "limits:\n  - round_trip: { p99: 500 }\n",
        "limits:\n  - round_trip: { p99: 500 Us }\n",
        // The text of the user contains the separator of the reason and the remedy in a printed message.
        "limits:\n  - round_trip: { p99: \"500; or 600\" }\n",
        "limits:\n  - round_trip: { p99: 0 us }\n",
        "limits:\n  - round_trip: { lost: 3 }\n",
        "limits:\n  - round_trip: 500 us\n",
        "limits:\n  - where: { payload: 64 B }\n",
        "limits:\n  - round_trip: { p99: 1 ms, p99: 2 ms }\n",
        "limits:\n  - misses: { longest: 3 }\n",
        "limits:\n  - misses: 3\n",
        "limits:\n  - misses: { longest_run: -1 }\n",
        "limits:\n  - misses: { longest_run: 50 ms }\n",
        "limits:\n  - misses: { recovery: 50 }\n",
        "limits:\n  - misses: { recovery: 0 ms }\n",
        "limits:\n  - misses: { late_above: 2 ms }\n",
        "limits:\n  - misses: { m_of_k: { k: 10 } }\n",
        "limits:\n  - misses: { m_of_k: { m: 1 } }\n",
        "limits:\n  - misses: { m_of_k: { m: 10, k: 10 } }\n",
        "limits:\n  - misses: { m_of_k: { m: 1, k: 0 } }\n",
        "limits:\n  - misses: { m_of_k: { m: 1, k: 10001 } }\n",
        "limits:\n  - misses: { m_of_k: { m: 1, k: 10, windows: 3 } }\n",
        "limits:\n  - misses: { m_of_k: 1 of 10 }\n",
        "baseline: { tolerance: 5 %, misses: [longest_run] }\n",
        "baseline: { record: old, round_trip: [p50] }\n",
        "baseline: { tolerance: 5 %, record: old }\n",
        "baseline: { tolerance: 5 %, round_trip: [p50, max] }\n",
        "baseline: { tolerance: five, round_trip: [p50] }\n",
    ] {
        let error = load_budget_str("b.yaml", text).expect_err(text);
        all.push_str(&format!("{}\n{error}\n\n", text.trim_end()));
    }
    insta::assert_snapshot!(all);
}

/// Tests that the JSON Schema of budgets has the keys for runs of late and lost messages.
#[test]
fn the_schema_knows_misses() {
    let misses = &budget_schema()["properties"]["limits"]["items"]["properties"]["misses"]["properties"];
    for key in ["late_above", "longest_run", "m_of_k", "recovery"] {
        assert!(misses[key].is_object(), "{key}");
    }
}

/// Tests that the JSON Schema of budgets has every key that the reader of budget files accepts.
#[test]
fn the_schema_knows_every_key() {
    let schema = budget_schema();
    for metric in Metric::ALL.into_iter().filter(|m| *m != Metric::HalfRoundTrip) {
        let limits = &schema["properties"]["limits"]["items"]["properties"][metric.key()];
        assert!(limits["properties"]["max"].is_object() && limits["patternProperties"].is_object(), "{metric:?}");
        assert!(schema["properties"]["baseline"]["properties"][metric.key()]["items"].is_object(), "{metric:?}");
        let text = format!("limits:\n  - {}: {{ p99: 1 ms }}\n", metric.key());
        assert!(load_budget_str("b.yaml", &text).is_ok(), "{text}");
    }
}
