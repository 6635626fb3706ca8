//! Explanations of terms for the HTML page, taken from the glossary of the documentation.

use crate::escape::escape;
use std::collections::BTreeMap;

const GLOSSARY: &str = include_str!("../../glossary.md");

/// Terms that the page explains, by their entries in the glossary.
const EXPLAINED: [&str; 45] = [
    "answered",
    "after the timeout",
    "back-pressure",
    "baseline",
    "bridge",
    "condition",
    "effective sample size",
    "excess",
    "factor",
    "fragment",
    "from intended",
    "governor",
    "half a round trip",
    "idle state",
    "incident",
    "interval",
    "legs",
    "level",
    "lost",
    "M1",
    "M2",
    "M4",
    "maximum",
    "median",
    "MTU",
    "not sent",
    "p99",
    "path check",
    "policy",
    "QoS",
    "quantile",
    "round trip",
    "rule of three",
    "run delay",
    "send lateness",
    "slot",
    "stall",
    "starved",
    "steal time",
    "stop-and-wait",
    "tail",
    "tail estimate",
    "trial",
    "veth",
    "warm-up",
];

/// The entries of the glossary: for each term the words by which texts name it, and its meaning.
fn entries() -> impl Iterator<Item = (Vec<&'static str>, &'static str)> {
    GLOSSARY.lines().filter_map(|line| {
        let (term, meaning) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
        // A term may have several names: `median, p50`, `round trip (M3)`.
        let names = term.split([',', '(', ')', '`']).map(str::trim).filter(|name| !name.is_empty());
        Some((names.collect(), meaning))
    })
}

/// Terms of the page with their names and meanings, in the order of the alphabet.
fn explained() -> Vec<(Vec<&'static str>, &'static str)> {
    let mut all: Vec<_> = entries().filter(|(names, _)| names.iter().any(|n| EXPLAINED.contains(n))).collect();
    all.sort_by_key(|(names, _)| names[0].to_lowercase());
    all
}

/// JSON for the script: the meaning of each name of a term.
pub(crate) fn json() -> String {
    let of = |(names, meaning): (Vec<&'static str>, &'static str)| {
        let plain = plain(meaning);
        names.into_iter().map(move |name| (name, plain.clone())).collect::<Vec<_>>()
    };
    let all: BTreeMap<&str, String> = explained().into_iter().flat_map(of).collect();
    serde_json::json!(all).to_string().replace('<', "\\u003c")
}

/// The terms as HTML, for paper and for browsers without a script.
pub(crate) fn list() -> String {
    let item = |(names, meaning): &(Vec<&str>, &str)| {
        format!("<dt>{}</dt><dd>{}</dd>\n", escape(&names.join(", ")), escape(&plain(meaning)))
    };
    explained().iter().map(item).collect()
}

/// Removes the marks of Markdown from the meaning of a term.
fn plain(meaning: &str) -> String {
    meaning.replace(['*', '`'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_explained_term_is_in_the_glossary() {
        let known: Vec<&str> = entries().flat_map(|(names, _)| names).collect();
        let missing: Vec<&&str> = EXPLAINED.iter().filter(|term| !known.contains(term)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(json().contains("\"p99.9\":\"1 in 100, 1 in 1,000"), "{}", json());
        assert!(!list().contains('`'), "{}", list());
    }
}
