//! Tests of the table as data.

use crate::*;
use std::collections::BTreeSet;

#[test]
fn every_rule_is_complete() {
    let keys: BTreeSet<&str> = RULES.iter().map(|rule| rule.key).collect();
    assert_eq!(keys.len(), RULES.len(), "no key twice");
    for rule in RULES {
        for text in [rule.key, rule.remedy, rule.undo, rule.source, rule.risk] {
            assert!(!text.is_empty() && !text.ends_with('.') && !text.contains("  "), "{}: {text}", rule.key);
        }
        assert_eq!(rule.knob.is_empty(), rule.value.is_empty(), "{}", rule.key);
        assert!(rule.expected.low_percent <= rule.expected.high_percent, "{}", rule.key);
        assert!(rule.expected.high_percent <= 100, "{}", rule.key);
    }
}

#[test]
fn only_causes_that_explain_are_answered_by_settings() {
    for rule in RULES.iter().filter(|rule| rule.can_be_tried()) {
        let explained = rule.causes.iter().filter(|cause| cause.explains()).count();
        assert!(explained > 0 || !rule.losses.is_empty(), "{}", rule.key);
    }
}

#[test]
fn fixed_host_settings_are_written_below_host() {
    let of = |key: &str| rule(key).and_then(Rule::host_setting);
    assert_eq!(of("governor-performance").as_deref(), Some("governor: performance"));
    assert_eq!(of("nmi-watchdog-off").as_deref(), Some("sysctl: { kernel.nmi_watchdog: 0 }"));
    assert_eq!([of("irq-affinity"), of("priority-of-end"), of("isolated-cpus")], [None, None, None]);
    assert_eq!(rule("no-such-rule"), None);
}

#[test]
fn the_list_fits_its_width() {
    for width in [60, 80, 120] {
        let text = list(width);
        let too_long = |line: &&str| line.chars().count() > width && line.split_whitespace().count() > 1;
        assert_eq!(text.lines().find(too_long), None, "{width}");
        assert!(RULES.iter().all(|rule| text.lines().any(|line| line.starts_with(rule.key))));
    }
    let first: Vec<String> = list(80).lines().take(12).map(str::to_owned).collect();
    insta::assert_snapshot!("list_80", first.join("\n"));
}

#[test]
fn the_page_has_each_rule_with_all_its_members() {
    let page = markdown();
    for rule in RULES {
        let heading = format!("\n### {}\n", rule.key);
        assert_eq!(page.matches(&heading).count(), 1, "{}", rule.key);
        for text in [rule.remedy, rule.condition, rule.risk, rule.undo, rule.source, rule.knob] {
            assert!(page.contains(text), "{}: {text}", rule.key);
        }
    }
}
