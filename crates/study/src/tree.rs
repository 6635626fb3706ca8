//! YAML as a tree in which every key and every value has a position.
//!
//! Scalars keep their text: `0.999`, `off` and `0-1` are words until a type reads them, so no value becomes a boolean
//! or loses digits.

use crate::error::Fault;
use crate::source::Pos;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, NonFiniteFloatPolicy, Spanned};
use std::fmt;

/// A YAML value of a study with its position in the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub at: Pos,
    pub kind: Kind,
}

/// Kinds of YAML values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Null,
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key of a YAML map with its position in the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    pub at: Pos,
    pub text: String,
}

impl Node {
    pub fn null(at: Pos) -> Self {
        Node { at, kind: Kind::Null }
    }
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|(k, _)| k.text == key).map(|(_, v)| v)
    }
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        match &mut self.kind {
            Kind::Map(entries) => entries.iter_mut().find(|(k, _)| k.text == key).map(|(_, v)| v),
            _ => None,
        }
    }
    /// Removes a key and its value from a YAML map.
    pub fn remove(&mut self, key: &str) -> Option<(Key, Node)> {
        match &mut self.kind {
            Kind::Map(entries) => entries.iter().position(|(k, _)| k.text == key).map(|index| entries.remove(index)),
            _ => None,
        }
    }
    /// The entries of a YAML map; empty for values of other kinds.
    pub fn entries(&self) -> &[(Key, Node)] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }
    /// Text of a single YAML value; `None` for a list or a map.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }
    /// Name of the kind of this YAML value, for error messages.
    pub fn what(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Text(_) => "a single value",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
        }
    }
}

/// Largest depth of nested values in a YAML file; the study format itself needs six levels. The reader is recursive, so
/// this limit also limits the stack.
const MAX_DEPTH: usize = 24;
/// Largest number of values, keys and lists in a file, including values from aliases.
const MAX_NODES: usize = 50_000;

/// Parses one YAML document; `source` is the index of its text among the texts from which the plan is made, for
/// positions.
pub(crate) fn parse(text: &str, source: u16) -> Result<Node, Fault> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
        },
    };
    match serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options) {
        Ok(raw) => Ok(convert(raw, text, source)),
        Err(error) => Err(syntax_fault(&error, text, source)),
    }
}

fn syntax_fault(error: &serde_saphyr::Error, text: &str, source: u16) -> Fault {
    let at = error.location().map_or(Pos { source, ..Pos::default() }, |l| pos(l, text, source));
    let full = error.without_snippet().render();
    let reason = full.split(" at line ").next().unwrap_or(&full);
    if let Some(rest) = reason.strip_prefix("duplicate mapping key: ") {
        let key = rest.split(", set DuplicateKeyPolicy").next().unwrap_or(rest);
        return Fault::new(at, format!("`{key}` is given twice")).help("keep one of the two entries");
    }
    if reason.starts_with("multiple YAML documents") {
        return Fault::new(at, "a second YAML document begins").help("a study is one document: remove the `---`");
    }
    if reason.starts_with("expected string scalar") {
        return Fault::new(at, "a key must be a word").help("write `key: value`");
    }
    if reason.contains("budget breached") || reason.contains("recursion limit") {
        return Fault::new(at, "the file is nested too deeply, or has too many values, for a study");
    }
    let fault = Fault::new(at, format!("not valid YAML: {reason}"));
    match reason {
        r if r.contains("mapping values") => fault.help("a text that contains `: ` needs quotes"),
        r if r.contains("tabs") => fault.help("indent with spaces"),
        r if r.contains("alias") || r.contains("unexpected character") => {
            fault.help("a text that begins with one of * & ! % @ ` needs quotes")
        }
        _ => fault,
    }
}

/// Byte range of a location that the parser reports; computed from line and column if the parser gives no byte offset.
fn pos(location: Location, text: &str, source: u16) -> Pos {
    let span = location.span();
    let start = match span.byte_offset() {
        Some(offset) => offset as usize,
        None => {
            let line = (location.line() as usize).max(1) - 1;
            let begin: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
            let column = (location.column() as usize).max(1) - 1;
            begin + text.get(begin..).unwrap_or("").chars().take(column).map(char::len_utf8).sum::<usize>()
        }
    };
    let len = span.byte_len().map_or(1, |n| n as usize).max(1);
    Pos { source, start: start.min(text.len()) as u32, len: len as u32 }
}

fn convert(raw: Spanned<Raw>, text: &str, source: u16) -> Node {
    let at = pos(raw.referenced, text, source);
    let written = pos(raw.defined, text, source);
    let written = text.get(written.start as usize..(written.start + written.len) as usize).unwrap_or("").trim();
    let kind = match raw.value {
        // `null` is a word like `none`, because a driver has this name.
        Raw::Null if written == "null" => Kind::Text(written.into()),
        Raw::Null => Kind::Null,
        Raw::Text(value) => Kind::Text(value),
        Raw::Number(value) => Kind::Text(if written.is_empty() { value } else { written.into() }),
        Raw::List(items) => Kind::List(items.into_iter().map(|item| convert(item, text, source)).collect()),
        Raw::Map(entries) => {
            let null = || "null".to_owned();
            let key = |k: RawKey| Key { at: pos(k.referenced, text, source), text: k.value.unwrap_or_else(null) };
            Kind::Map(entries.into_iter().map(|(k, v)| (key(k), convert(v, text, source))).collect())
        }
    };
    Node { at, kind }
}

/// YAML values as the YAML library provides them.
enum Raw {
    Null,
    Text(String),
    /// A value that was read as a number or a boolean; the text of the value is taken from the file.
    Number(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(RawKey, Spanned<Raw>)>),
}

/// A key of a YAML map, as text; `None` if the key is the word `null`.
type RawKey = Spanned<Option<String>>;

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or a map")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }
    fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }
    fn visit_u128<E>(self, value: u128) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }
    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }
    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }
    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Map(entries))
    }
}
