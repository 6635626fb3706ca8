//! The rules of `charts.css` as SVG attributes, for SVG files, which have no style sheet.

use std::sync::LazyLock;

const RULES: &str = include_str!("../../assets/charts.css");

const TOKENS: &str = include_str!("../../assets/tokens.css");

/// Number of hues that a reader can tell apart.
pub(crate) const HUES: usize = 6;

/// A style rule: the classes that a shape must have, and the properties that such a shape gets.
struct Rule {
    classes: Vec<&'static str>,
    properties: Vec<(&'static str, &'static str)>,
}

static LOOKS: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rules = RULES.split_once("*/").map_or(RULES, |(_, rules)| rules);
    let rule = |text: &'static str| {
        let (selector, body) = text.split_once('{')?;
        let property = |p: &'static str| p.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
        Some(Rule {
            classes: selector.trim().trim_start_matches('.').split('.').collect(),
            properties: body.split(';').filter_map(property).collect(),
        })
    };
    rules.split('}').filter_map(rule).collect()
});

/// The colour of a style variable for light mode.
pub(crate) fn token(name: &str) -> &'static str {
    let light = TOKENS.split('}').next().unwrap_or_default();
    let value = |d: &'static str| d.trim().strip_prefix("--")?.strip_prefix(name)?.strip_prefix(':').map(str::trim);
    light.split([';', '{']).find_map(value).unwrap_or("none")
}

/// The attributes of a shape with these classes, within a group of this hue. If two rules set one property, the later
/// rule applies; as in a style sheet, rules that name more classes come later.
pub(crate) fn attributes(class: &str, hue: usize) -> String {
    let classes: Vec<&str> = class.split(' ').collect();
    let mut all: Vec<(&str, String)> = Vec::new();
    for rule in LOOKS.iter().filter(|r| r.classes.iter().all(|c| classes.contains(c))) {
        for (name, value) in &rule.properties {
            all.retain(|(known, _)| known != name);
            all.push((name, resolved(value, hue)));
        }
    }
    all.into_iter().map(|(name, value)| format!(" {name}=\"{value}\"")).collect()
}

fn resolved(value: &str, hue: usize) -> String {
    match value.strip_prefix("var(--").and_then(|rest| rest.strip_suffix(')')) {
        Some("c") => token(&format!("s{}", hue % HUES)).to_owned(),
        Some(name) => token(name).to_owned(),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_become_attributes() {
        assert_eq!(attributes("axis", 0), " stroke=\"#5b616b\"");
        assert_eq!(attributes("dot gone", 1), " fill=\"#fdfdfb\" stroke=\"#009e73\" stroke-width=\"1.5\"");
        assert_eq!(attributes("band", 7), " fill=\"#009e73\" opacity=\"0.22\"", "hues begin again");
        assert!(LOOKS.iter().all(|r| r.classes.iter().all(|c| c.chars().all(|c| c.is_ascii_lowercase() || c == '-'))));
        for rule in LOOKS.iter().flat_map(|r| &r.properties) {
            assert!(!resolved(rule.1, 0).contains("none") || rule.1 == "none", "{rule:?} is a token");
        }
    }
}
