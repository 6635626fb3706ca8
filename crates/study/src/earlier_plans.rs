//! The plans of the built-in studies as commit d26457f made them must stay the same.
//!
//! A fixture holds the text of its study, so an old study file is loaded, not the file of today. Keys that were renamed
//! since then are listed in [`RENAMED_KEYS`], words that were renamed in [`RENAMED_WORDS`].

use crate::{Options, embedded, load_str_with};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tailbound_model::Plan;

/// Keys of a serialised plan that were renamed since d26457f: old name, new name.
const RENAMED_KEYS: [(&str, &str); 0] = [];

/// Words of a serialised plan that were renamed since d26457f: key, old word, new word.
const RENAMED_WORDS: [(&str, &str, &str); 1] = [("attribution", "on", "auto")];

/// Studies that were added after d26457f, which have no fixture.
const NEWER: [&str; 10] = [
    "child-threads-advice",
    "child-threads-ros",
    "clock",
    "hand-off",
    "kubernetes-subscribers-latency",
    "middlewares",
    "rmw-compare",
    "security-cost",
    "tsn-gates",
    "vm-latency-hosts",
];

/// Studies that were changed on purpose after d26457f: their old files still give the old plans, and today's files give others.
/// `vm-bridges` sends bulk streams without pauses, as published, has a level with a whole network card of the guest, and compares
/// each path with a bridge. `quick` has two payloads and five repeats, so that two of its records can be compared. The other ones
/// are closer to the studies that they repeat, and have tables of published numbers.
const CHANGED: [&str; 9] = [
    "quick",
    "vm-bridges",
    "rt-priority",
    "vm-latency",
    "child-threads",
    "containers",
    "kubernetes-networks",
    "kubernetes-latency",
    "kubernetes-subscribers",
];

/// Keys of a plan that hold text for readers of the study. The wording may change between releases, so these keys are
/// not compared.
const TEXT_FOR_READERS: [&str; 2] = ["source", "question"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/plans-d26457f/{name}.json"))
}

fn plan(name: &str, text: &str) -> Value {
    let options = Options { allowed_cpus: &[0, 1, 2, 3], ..Options::default() };
    let plan = load_str_with(&format!("{name}.yaml"), text, Path::new(""), &options);
    serde_json::to_value(plan.unwrap_or_else(|e| panic!("{e}"))).unwrap()
}

/// Replaces every renamed key and word in a JSON document by its new name.
fn with_new_names(value: Value) -> Value {
    let word = |key: &str, value: Value| match RENAMED_WORDS.iter().find(|(of, old, _)| *of == key && value == *old) {
        Some((_, _, new)) => Value::from(*new),
        None => with_new_names(value),
    };
    let new = |key: String| match RENAMED_KEYS.iter().find(|(old, _)| *old == key) {
        Some((_, new)) => (*new).to_owned(),
        None => key,
    };
    match value {
        Value::Object(map) => map.into_iter().map(|(key, value)| (new(key.clone()), word(&key, value))).collect(),
        Value::Array(items) => items.into_iter().map(with_new_names).collect(),
        other => other,
    }
}

fn earlier() -> Vec<(&'static str, Value)> {
    let read = |name: &'static str| {
        let text = std::fs::read_to_string(fixture(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        (name, serde_json::from_str(&text).unwrap())
    };
    embedded().iter().filter(|(name, _)| !NEWER.contains(name)).map(|(name, _)| read(name)).collect()
}

#[test]
fn old_study_files_give_the_plans_of_d26457f() {
    for (name, before) in earlier() {
        let today = plan(name, before["source"].as_str().unwrap());
        assert_eq!(today, with_new_names(before), "{name}");
    }
}

#[test]
fn built_in_studies_give_the_plans_of_d26457f() {
    for (name, before) in earlier().into_iter().filter(|(name, _)| !CHANGED.contains(name)) {
        let (_, text) = embedded().iter().find(|(n, _)| *n == name).unwrap();
        let (mut today, mut before) = (plan(name, text), with_new_names(before));
        for key in TEXT_FOR_READERS {
            for plan in [&mut today, &mut before] {
                plan.as_object_mut().unwrap().remove(key);
            }
        }
        assert_eq!(today, before, "{name}");
    }
}

#[test]
fn plans_of_d26457f_are_read() {
    for (name, before) in earlier() {
        let read: Plan = serde_json::from_value(before).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(read.study, name);
    }
}

/// Writes the fixtures of this test. This function was run once, at commit d26457f.
#[test]
#[ignore = "overwrites the fixtures"]
fn write_fixtures() {
    for (name, text) in embedded() {
        std::fs::create_dir_all(fixture(name).parent().unwrap()).unwrap();
        let json = serde_json::to_string_pretty(&plan(name, text)).unwrap();
        std::fs::write(fixture(name), json + "\n").unwrap();
    }
}
