//! Tests of the table.

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
