//! Property tests of studies: units, order of trials, paths, JSON; and no text makes the reader panic.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use tailbound_model::{ByteSize, Nanos, Plan, Rate};
use tailbound_study::{embedded, load_str};

fn load(text: &str, settings: &[String]) -> Result<Plan, tailbound_study::StudyError> {
    load_str("test.yaml", text, Path::new(""), settings)
}

/// Text of a study with the given numbers of payloads and MTUs of the path.
fn study(payloads: usize, mtus: usize, repeat: usize, seed: u64) -> String {
    let list = |n: usize, unit: &str| (0..n).map(|i| format!("{}{unit}", i + 100)).collect::<Vec<_>>().join(", ");
    format!(
        "measure: {{ ping-pong: {{ slots: 10 }} }}\ndriver: udp\nrepeat: {repeat}\nseed: {seed}\nfactors:\n  path.mtu: \
         [{}]\n  payload: [{}]\n",
        list(mtus, ""),
        list(payloads, " B")
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sizes_round_trip(bytes in 0u64..1 << 50) {
        prop_assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
    }

    #[test]
    fn durations_round_trip_to_the_shown_digits(ns in 0i64..1 << 50) {
        let again: Nanos = Nanos(ns).to_string().parse().unwrap();
        prop_assert!((again.0 - ns).abs() as f64 <= 0.5e-3 * ns as f64 + 1e-9);
    }

    #[test]
    fn rates_round_trip_to_the_shown_digits(ns in 1i64..1 << 33) {
        let Ok(Rate::Period(again)) = Rate::Period(Nanos(ns)).to_string().parse() else {
            return Err(TestCaseError::fail("not a rate"));
        };
        prop_assert!((again.0 - ns).abs() as f64 <= 5e-3 * ns as f64 + 0.5);
    }

    #[test]
    fn quantities_of_a_study_arrive(bytes in 0u64..1 << 31, ms in 1i64..1_000_000, hertz in 1u32..10_000) {
        let text = format!(
            "measure: {{ ping-pong: {{ slots: 1, timeout: {ms} ms }} }}\ndriver: udp\npayload: {bytes}B\nrate: {hertz}Hz\n"
        );
        let plan = load(&text, &[]).unwrap();
        let spec = &plan.conditions[0].spec;
        let tailbound_model::Measure::PingPong(keys) = &spec.measure else { panic!("a ping-pong") };
        prop_assert_eq!(spec.payload, ByteSize(bytes));
        prop_assert_eq!(keys.timeout, Nanos::from_millis(ms));
        prop_assert_eq!(spec.rate.period().unwrap().0, (1e9 / f64::from(hertz)).round() as i64);
    }

    #[test]
    fn every_condition_runs_once_in_each_repetition(
        payloads in 1usize..6, mtus in 1usize..4, repeat in 1usize..6, seed: u64
    ) {
        let plan = load(&study(payloads, mtus, repeat, seed), &[]).unwrap();
        prop_assert_eq!(plan.trials.len(), payloads * mtus * repeat);
        let mut runs: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for (position, trial) in plan.trials.iter().enumerate() {
            prop_assert_eq!(trial.id, position);
            *runs.entry((trial.repeat, trial.condition)).or_default() += 1;
        }
        prop_assert!(runs.values().all(|n| *n == 1));
        prop_assert_eq!(runs.len(), plan.trials.len());
        for pair in plan.trials.windows(2) {
            prop_assert!(pair[0].repeat <= pair[1].repeat);
            let path = |i: usize| &plan.conditions[pair[i].condition].spec.path;
            prop_assert_eq!(pair[1].block - pair[0].block, usize::from(path(0) != path(1)));
        }
        let labs = plan.trials.last().unwrap().block + 1;
        prop_assert!(labs <= mtus * repeat, "a lab is built once in a repetition");
    }

    #[test]
    fn the_same_seed_gives_the_same_order(seed: u64) {
        let text = study(5, 3, 2, seed);
        prop_assert_eq!(load(&text, &[]).unwrap(), load(&text, &[]).unwrap());
    }

    #[test]
    fn plans_survive_json(payloads in 1usize..4, seed: u64, study_index in 0usize..5) {
        for plan in [
            load(&study(payloads, 2, 2, seed), &[]).unwrap(),
            load(embedded()[study_index].1, &[format!("seed={seed}")]).unwrap(),
        ] {
            let json = serde_json::to_string(&plan).unwrap();
            prop_assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
        }
    }

    #[test]
    fn a_factor_and_a_set_of_the_same_path_agree(index in 0usize..10) {
        let (path, value) = [
            ("payload", "1 KiB"), ("rate", "max"), ("path", "bridge"), ("path.mtu", "9000"),
            ("measure.slots", "77"), ("measure.hand_off", "thread"), ("ends.ping.cpus", "'0-1,3'"),
            ("qos.history", "{ keep-last: 4 }"), ("driver.multicast", "off"), ("scheduling", "{ policy: idle }"),
        ][index];
        let base = "measure: ping-pong\ndriver: udp\n";
        let varied = load(&format!("{base}factors: {{ {path}: [{value}] }}\n"), &[]).unwrap();
        let set = load(base, &[format!("{path}={value}")]).unwrap();
        prop_assert_eq!(&varied.conditions[0].spec, &set.conditions[0].spec);
        let levels = load(base, &[format!("{path}=[{value}]")]).unwrap();
        prop_assert_eq!(&varied.conditions, &levels.conditions);
    }

    #[test]
    fn levels_keep_their_order(sizes in btree_set(1u32..5000, 1..8)) {
        let list: Vec<String> = sizes.iter().rev().map(|n| format!("{n} B")).collect();
        let text = format!("measure: ping-pong\ndriver: udp\nfactors: {{ payload: [{}] }}\n", list.join(", "));
        let plan = load(&text, &[]).unwrap();
        let shown: Vec<u64> = plan.conditions.iter().map(|c| c.spec.payload.0).collect();
        prop_assert_eq!(shown, sizes.iter().rev().map(|n| u64::from(*n)).collect::<Vec<_>>());
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,200}", setting in "\\PC{0,40}") {
        let _ = load(&text, std::slice::from_ref(&setting));
        let _ = load(embedded()[0].1, &[setting]);
    }

    #[test]
    fn no_change_of_a_study_makes_the_reader_panic(
        index in 0usize..5,
        changes in vec((any::<prop::sample::Index>(), 0usize..4, "[-{}\\[\\]:,.#&*!|>'\"%@`~ \na-z0-9é]{0,3}"), 1..6),
    ) {
        let mut text: Vec<char> = embedded()[index].1.chars().collect();
        for (place, removed, added) in changes {
            let start = place.index(text.len() + 1);
            let end = (start + removed).min(text.len());
            text.splice(start..end, added.chars());
            if text.is_empty() {
                break;
            }
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = load(&text, &[]) {
            prop_assert!(error.line >= 1 && error.column >= 1, "{error}");
            prop_assert!(error.line <= text.lines().count() + 1);
            prop_assert!(!error.render(false, 80).is_empty());
        }
    }
}

#[test]
fn different_seeds_give_different_orders() {
    let order = |seed: u64| -> Vec<usize> {
        load(&study(5, 2, 2, seed), &[]).unwrap().trials.iter().map(|t| t.condition).collect()
    };
    let distinct: std::collections::BTreeSet<Vec<usize>> = (0..100).map(order).collect();
    assert!(distinct.len() > 95, "{} of 100", distinct.len());
}

#[test]
fn order_for_a_seed_is_pinned() {
    let plan = load(&study(3, 2, 2, 1), &[]).unwrap();
    let shown: Vec<String> = plan.trials.iter().map(|t| format!("{}/{}/{}", t.block, t.repeat, t.condition)).collect();
    insta::assert_snapshot!(shown.join(" "));
}

#[test]
fn hostile_texts_end_in_an_error() {
    let bomb: String = ('b'..'n').fold("a: &a [1, 1]\n".into(), |text, c| {
        let before = char::from(c as u8 - 1);
        format!("{text}{c}: &{c} [*{before}, *{before}, *{before}, *{before}, *{before}, *{before}, *{before}]\n")
    });
    for text in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000), "a:\n ".repeat(50), bomb] {
        let error = load(&text, &[]).unwrap_err();
        assert!(error.line >= 1 && error.column >= 1, "{error}");
    }
    let many: Vec<String> = (0..10_001).map(|n| format!("{n} B")).collect();
    let text = format!("measure: ping-pong\ndriver: udp\nfactors: {{ payload: [{}] }}\n", many.join(", "));
    assert!(load(&text, &[]).unwrap_err().problem.what.contains("more than 10000 conditions"));
}
