//! Writes the study reference of the book, in Markdown, from the JSON Schema of the study file. `dev/generate` runs it.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};

const HEAD: &str = "\
# Study reference

<!-- Written by dev/generate from the JSON Schema of the study file. Do not edit. -->

Every key of a study file, by its path. The path is the name of the key as a factor and in `--set`. [Writing a \
study](studies.md) describes how to write a study; an editor that knows JSON Schema can use `schema/study.json`.
";

/// Words with which the study reference describes a value, for each `format` (kind of text, such as `size`) in the
/// schema.
const FORMATS: [(&str, &str); 7] = [
    ("size", "a size, such as `64 B`, `8 KiB`, `60 kB`"),
    ("duration", "a duration, such as `10 s`, `200 ms`, `100 us`"),
    ("rate", "a rate, such as `1 kHz`, or `max`"),
    ("cpus", "a list of CPUs, such as `\"0-1,3\"`, or `any`"),
    ("quiet", "`auto`, `same`, `off`, or a duration"),
    ("warm-up", "a number of slots, such as `200`, or a duration"),
    ("quantile", "a quantile, such as `0.999`"),
];

struct Reference {
    definitions: Map<String, Value>,
    /// Path of the section that describes each definition of the schema: the first section in which the definition
    /// occurs.
    told: BTreeMap<String, String>,
    /// Sections of the study reference that are still to be written, each with its path and its content.
    open: VecDeque<(String, Value)>,
    text: String,
}

fn main() {
    let schema = tailbound_study::schema();
    let definitions = schema["$defs"].as_object().cloned().unwrap_or_default();
    let mut r = Reference { definitions, told: BTreeMap::new(), open: VecDeque::new(), text: HEAD.to_owned() };
    r.text.push_str("\n## All keys\n");
    r.keys("", &schema);
    while let Some((path, content)) = r.open.pop_front() {
        // The sections below a key follow directly after it.
        let later = std::mem::take(&mut r.open);
        r.section(&path, &content);
        r.open.extend(later);
    }
    print!("{}", r.text);
}

fn about(value: &Value) -> String {
    value["description"].as_str().unwrap_or("").replace('\n', " ").replace('|', "\\|")
}

/// Anchor that Markdown renderers create for a heading that is a path of the study.
fn anchor(path: &str) -> String {
    path.replace('.', "").to_lowercase()
}

impl Reference {
    /// Writes the section of the study reference about a choice or a map of keys: the table of the words of the choice,
    /// then the options of the words.
    fn section(&mut self, path: &str, content: &Value) {
        let level = if path.contains('.') { "###" } else { "##" };
        self.text.push_str(&format!("\n{level} {path}\n\n{}\n", about(content)));
        let Some(variants) = content["oneOf"].as_array() else { return self.keys(path, content) };
        let mut table = String::new();
        // Words of the choice that have the same options.
        let mut options: Vec<(Vec<String>, Value)> = Vec::new();
        let many = |v: &&Value| v["properties"].as_object().is_some_and(|keys| keys.len() > 1);
        let map = variants.iter().find(many);
        for variant in variants.iter().filter(|v| !many(v)) {
            if variant["description"].as_str().is_some_and(|d| d.ends_with(" Without options.")) {
                continue; // the same word was written already
            }
            let Some(word) = variant["const"].as_str().or(variant["required"][0].as_str()) else { continue };
            let inner = self.resolve(&variant["properties"][word]);
            let has_options = inner["properties"].is_object();
            let written = match variant["const"].is_string() || has_options {
                true => String::new(),
                false => format!(" Written `{{ {word}: ... }}` with {}.", self.value(inner)),
            };
            table.push_str(&format!("| `{word}` | {}{written} |\n", about(variant)));
            if has_options {
                match options.iter_mut().find(|(_, known)| known == inner) {
                    Some((words, _)) => words.push(format!("`{word}`")),
                    None => options.push((vec![format!("`{word}`")], inner.clone())),
                }
            }
        }
        if !table.is_empty() {
            self.text.push_str("\n| word | meaning |\n|---|---|\n");
            self.text.push_str(&table);
        }
        if let Some(keys) = map {
            self.text.push_str("\nOr a map of:\n");
            self.keys(path, keys);
        }
        for (words, inner) in options {
            self.text.push_str(&format!("\nOptions of {}:\n", words.join(", ")));
            self.keys(path, &inner);
        }
        let any = variants.iter().find(|v| v["maxProperties"] == 1);
        if let Some(inner) = any.map(|v| v["additionalProperties"].clone()) {
            self.text.push_str("\nOptions that every driver has; each driver defines further options:\n");
            self.keys(path, &inner);
        }
    }

    /// Writes the table of a map's keys in the study reference; keys with further content get their own sections later.
    fn keys(&mut self, path: &str, content: &Value) {
        self.text.push_str("\n| key | value | meaning |\n|---|---|---|\n");
        let required = content["required"].as_array().cloned().unwrap_or_default();
        let keys = content["properties"].as_object().cloned().unwrap_or_default();
        for (key, value) in keys {
            let inner_path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let needed = if required.iter().any(|r| *r == key.as_str()) { " **Required.**" } else { "" };
            let written = self.key(&inner_path, &value);
            self.text.push_str(&format!("| `{inner_path}` | {written} | {}{needed} |\n", about(&value)));
        }
    }

    /// Describes the type of a key's value; each definition of the schema gets only one section.
    fn key(&mut self, path: &str, value: &Value) -> String {
        let name = value["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")).unwrap_or("").to_owned();
        let content = self.resolve(value).clone();
        let named = |v: &Value| v["propertyNames"].is_object();
        let by_name = content["oneOf"].as_array().is_some_and(|any| any.iter().any(named));
        let simple = by_name || (content["oneOf"].is_null() && content["properties"].is_null());
        if simple {
            return self.value(&content);
        }
        if let Some(place) = self.told.get(&name) {
            return format!("as [{place}](#{})", anchor(place));
        }
        self.told.insert(name, path.to_owned());
        self.open.push_back((path.to_owned(), content));
        format!("see [{path}](#{})", anchor(path))
    }

    fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        let name = value["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/"));
        name.and_then(|name| self.definitions.get(name)).unwrap_or(value)
    }

    fn value(&self, content: &Value) -> String {
        let format = content["format"].as_str().unwrap_or("");
        if let Some((_, words)) = FORMATS.iter().find(|(name, _)| *name == format) {
            return (*words).to_owned();
        }
        if let Some(any) = content["oneOf"].as_array() {
            return any.iter().map(|one| self.value(one)).collect::<Vec<_>>().join(", or ");
        }
        if let Some(word) = content["const"].as_str() {
            return format!("`{word}`");
        }
        match content["type"].as_str() {
            Some("array") => format!("a list; each {}", self.value(self.resolve(&content["items"]))),
            Some("integer") => {
                let end = |key: &str, word: &str| content[key].as_i64().map(|n| format!("{word} {n}"));
                let ends: Vec<String> =
                    [end("minimum", "at least"), end("maximum", "at most")].into_iter().flatten().collect();
                [vec!["a whole number".to_owned()], ends].concat().join(", ")
            }
            Some("object") if content["propertyNames"].is_object() => {
                format!("a map of names; each {}", self.value(self.resolve(&content["additionalProperties"])))
            }
            Some("object") => "a map".to_owned(),
            _ => "a text".to_owned(),
        }
    }
}
