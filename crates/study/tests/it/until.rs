//! Tests of the condition of `tailbound run --until`: the conditions that are read, and the errors of wrong ones.

use tailbound_model::{Metric, Nanos, UntilCondition, UntilTerm};
use tailbound_study::parse_until;

#[test]
fn conditions() {
    let above = |metric, ns| UntilTerm::Above { metric, limit: Nanos(ns) };
    for (text, terms) in [
        ("lost", vec![UntilTerm::Lost]),
        ("round_trip > 20 ms", vec![above(Metric::RoundTrip, 20_000_000)]),
        (" send_lateness>1ms  or  lost ", vec![above(Metric::SendLateness, 1_000_000), UntilTerm::Lost]),
        (
            "from_intended > 0.5 s or send_duration > 10 us or wake_to_sent > 1 min",
            vec![
                above(Metric::FromIntended, 500_000_000),
                above(Metric::SendDuration, 10_000),
                above(Metric::WakeToSent, 60_000_000_000),
            ],
        ),
    ] {
        let condition = parse_until(text).expect(text);
        assert_eq!(condition, UntilCondition(terms), "{text}");
        assert_eq!(parse_until(&condition.to_string()).as_ref(), Ok(&condition), "{condition}");
    }
}

#[test]
fn each_wrong_condition_has_its_error() {
    let mut all = String::new();
    for text in [
        "",
        "late",
        "round_trip",
        "round_trip > ",
        "> 20 ms",
        "round_trip > 20",
        "round_trip > 20 mss",
        "round_trip > -1 ms",
        "round_trip >= 20 ms",
        "round_trip < 20 ms",
        "round_trap > 20 ms",
        "out > 20 ms",
        "lost > 3",
        "round_trip > 20 ms or ",
        "round_trip > 20 ms or lst",
        "round_trip > 20 ms and lost",
    ] {
        let error = parse_until(text).expect_err(text);
        let marked = error.render(false, 100);
        let marked: String = marked.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        all.push_str(&format!("{text}\n{marked}\n"));
    }
    insta::assert_snapshot!(all);
}
