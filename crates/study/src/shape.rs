//! The structure of the study file as a tree of keys and choices, derived from its JSON Schema.
//!
//! Key paths of factors and of `--set` arguments are looked up in this tree, so a new key of the format can be varied
//! without further code.

use crate::schema::{resolve, schema, tagged};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The structure that the value of a key in a study may have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// A single value; `format` is the `format` of the value in the JSON Schema.
    Leaf { format: String },
    /// A list as the value of a key; a factor varies the whole list as one value.
    List,
    /// A map with known keys; `name` is the name of the definition in the JSON Schema; if `open` is true, other keys
    /// are allowed too.
    Keys { name: String, keys: BTreeMap<String, Shape>, open: bool },
    /// A choice of one word from a list; some words have options.
    Choice { name: String, default: Option<String>, words: BTreeMap<String, Option<Shape>> },
    /// A choice of any word that the user writes; all words have the same options.
    AnyWord(Box<Shape>),
    /// A map from names that the user chooses, and that may contain dots, to values of the same structure.
    Named(Box<Shape>),
}

/// Keys that describe the study as a whole and cannot be varied.
pub(crate) const NOT_VARIED: [&str; 7] = ["study", "question", "factors", "clock", "repeat", "seed", "report"];

/// Names of keys of a study that are reserved for later releases.
pub(crate) const RESERVED: [&str; 2] = ["gates", "threads"];

/// Returns the structure of a whole study file.
pub(crate) fn study() -> &'static Shape {
    static STUDY: OnceLock<Shape> = OnceLock::new();
    STUDY.get_or_init(|| {
        let root = schema();
        let definitions = root.get("$defs").cloned().unwrap_or_default();
        from_schema("Study", &root, &definitions)
    })
}

fn from_schema(name: &str, value: &Value, definitions: &Value) -> Shape {
    let reference = value.get("$ref").and_then(Value::as_str);
    let name = reference.and_then(|r| r.rsplit('/').next()).unwrap_or(name);
    let default = value.get("default").and_then(Value::as_str).map(str::to_owned);
    let content = resolve(value, definitions);
    let format = || content.get("format").and_then(Value::as_str).unwrap_or("").to_owned();
    if let Some(Value::Array(variants)) = content.get("oneOf") {
        if let Some(inner) = variants.iter().find(|v| v.get("maxProperties").is_some()) {
            return Shape::AnyWord(Box::new(from_schema("", &inner["additionalProperties"], definitions)));
        }
        if let Some(named) = variants.iter().find(|v| v.get("propertyNames").is_some()) {
            return from_schema(name, named, definitions);
        }
        let many = |v: &&Value| v["properties"].as_object().is_some_and(|keys| keys.len() > 1);
        if let Some(keys) = variants.iter().find(many) {
            return from_schema(name, keys, definitions);
        }
        let mut words = BTreeMap::new();
        for variant in variants.iter().filter_map(Value::as_object) {
            if let Some((word, inner)) = tagged(variant) {
                words.insert(word.to_owned(), Some(from_schema("", inner, definitions)));
            } else if let Some(word) = variant.get("const").and_then(Value::as_str) {
                words.entry(word.to_owned()).or_insert(None);
            }
            for word in variant.get("enum").and_then(Value::as_array).into_iter().flatten() {
                words.entry(word.as_str().unwrap_or("").to_owned()).or_insert(None);
            }
        }
        return Shape::Choice { name: name.into(), default, words };
    }
    if content.get("propertyNames").is_some() {
        return Shape::Named(Box::new(from_schema("", &content["additionalProperties"], definitions)));
    }
    if let Some(keys) = content.get("properties").and_then(Value::as_object) {
        let open = content.get("additionalProperties").is_some_and(|a| a != false);
        let keys = keys.iter().map(|(k, v)| (k.clone(), from_schema("", v, definitions))).collect();
        return Shape::Keys { name: name.into(), keys, open };
    }
    if content.get("type").is_some_and(|t| t == "array") {
        return Shape::List;
    }
    Shape::Leaf { format: format() }
}

impl Shape {
    /// All key paths below this structure. A key path does not contain the word of a choice: `measure.slots`, not
    /// `measure.ping-pong.slots`.
    pub fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.collect("", &mut found);
        found.sort();
        found.dedup();
        found
    }

    fn collect(&self, prefix: &str, found: &mut Vec<String>) {
        match self {
            Shape::Leaf { .. } | Shape::List | Shape::Named(_) => {}
            Shape::Keys { keys, .. } => {
                for (key, shape) in keys {
                    let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                    shape.collect(&path, found);
                    found.push(path);
                }
            }
            Shape::Choice { words, .. } => words.values().flatten().for_each(|s| s.collect(prefix, found)),
            Shape::AnyWord(inner) => inner.collect(prefix, found),
        }
    }
}

/// Lists the key paths of a study that a factor may vary.
pub(crate) fn factor_paths() -> Vec<String> {
    let varied = |path: &String| !NOT_VARIED.contains(&path.split('.').next().unwrap_or(""));
    study().paths().into_iter().filter(varied).collect()
}

/// Lists the key paths of a study that the option `--set` may set.
pub(crate) fn setting_paths() -> Vec<String> {
    study().paths().into_iter().filter(|path| path != "factors").collect()
}

/// The structure of the value with this key path, for any chosen words: if the value of a key on the key path is a
/// choice, the options of all its words are searched.
pub(crate) fn at(path: &str) -> Option<&'static Shape> {
    let segments: Vec<&str> = path.split('.').collect();
    study().find(&segments)
}

/// Structure of the value of any option of a driver.
static WORD: Shape = Shape::Leaf { format: String::new() };

impl Shape {
    fn find(&self, path: &[&str]) -> Option<&Shape> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        match self {
            Shape::Leaf { .. } | Shape::List => None,
            Shape::Keys { keys, open, .. } => match keys.get(*first) {
                Some(inner) => inner.find(rest),
                None => (*open && rest.is_empty() && !first.is_empty()).then_some(&WORD),
            },
            Shape::Choice { words, .. } => match words.get(*first) {
                Some(inner) => inner.as_ref().and_then(|inner| inner.find(rest)),
                None => words.values().flatten().find_map(|inner| inner.find(path)),
            },
            Shape::AnyWord(inner) => inner.find(path).or_else(|| inner.find(rest).filter(|_| !rest.is_empty())),
            Shape::Named(inner) => inner.name_length(path).and_then(|n| inner.find(&path[n..])),
        }
    }

    /// Number of parts of a key path, separated by dots, that together are one name which the user chose (for example
    /// the name of an interface, which may contain dots). It is the smallest number for which the remaining parts are a
    /// key of the study format.
    pub fn name_length(&self, path: &[&str]) -> Option<usize> {
        (1..=path.len()).find(|&n| !path[n - 1].is_empty() && self.find(&path[n..]).is_some())
    }
}
