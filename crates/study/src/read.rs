//! Reads a YAML tree as the types of the study format; every error has a position.
//!
//! The reader is a serde deserialiser over [`Node`], so the same declarations give the types, the JSON Schema and the
//! errors. An error gets the position of the innermost key or value around the error.

use crate::error::{Fault, advice};
use crate::source::Pos;
use crate::tree::{Key, Kind, Node};
use serde::de::{self, Deserialize, DeserializeOwned, DeserializeSeed, IntoDeserializer, Unexpected, Visitor};
use std::fmt;
use tailbound_model::Problem;

/// Type name by which the reader of study files recognises [`At`].
const AT: &str = "$tailbound::At";

/// A value of the study together with its position in the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct At<T> {
    pub at: Pos,
    pub value: T,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AtVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for AtVisitor<T> {
            type Value = At<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value with its place")
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut access: A) -> Result<At<T>, A::Error> {
                let missing = || de::Error::custom("a place without its value");
                let bits = access.next_element()?.ok_or_else(missing)?;
                let value = access.next_element()?.ok_or_else(missing)?;
                Ok(At { at: Pos::unpack(bits), value })
            }
        }
        deserializer.deserialize_newtype_struct(AT, AtVisitor(std::marker::PhantomData))
    }
}

impl<T: schemars::JsonSchema> schemars::JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

/// Reads a YAML tree as a value of the type `T`.
pub(crate) fn read<T: DeserializeOwned>(node: &Node) -> Result<T, Fault> {
    T::deserialize(Reader(node)).map_err(|e| Fault { at: e.at.unwrap_or(node.at), problem: e.problem })
}

/// An error in a value of the study. The first caller that knows the position of the value adds it to the error.
#[derive(Debug)]
struct ReadError {
    at: Option<Pos>,
    problem: Problem,
    /// True if the error is that a key of the study has no value.
    empty: bool,
}

impl ReadError {
    fn new(reason: impl Into<String>, help: impl Into<String>) -> Self {
        ReadError { at: None, problem: Problem::new("study_value", reason, help), empty: false }
    }
    fn or_at(mut self, at: Pos) -> Self {
        self.at.get_or_insert(at);
        self
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.what)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    /// Makes an error from a text: a text that [`custom`] wrote is a [`Problem`] as JSON; any other text becomes a
    /// problem without a remedy.
    fn custom<T: fmt::Display>(text: T) -> Self {
        let text = text.to_string();
        match serde_json::from_str(&text) {
            Ok(problem) => ReadError { at: None, problem, empty: false },
            Err(_) => ReadError::new(text, ""),
        }
    }
    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let found = match found {
            Unexpected::Str(text) => format!("`{text}`"),
            Unexpected::Unit => {
                let missing = ReadError::new(format!("a value is missing: expected {expected}"), "");
                return ReadError { empty: true, ..missing };
            }
            Unexpected::Seq => {
                let reason = format!("expected {expected}, found a list");
                return ReadError::new(reason, "to vary the key, list its levels under `factors`");
            }
            Unexpected::Map => "a map".into(),
            other => other.to_string(),
        };
        ReadError::new(format!("expected {expected}, found {found}"), "")
    }
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let help = match field.parse::<u32>() {
            Ok(_) => "inside `{ }` a list of CPUs needs quotes: \"0,1\"".into(),
            Err(_) => advice(field, expected),
        };
        ReadError::new(format!("`{field}` is not a key here"), help)
    }
    fn unknown_variant(word: &str, expected: &'static [&'static str]) -> Self {
        ReadError::new(format!("`{word}` is not one of the allowed words"), advice(word, expected))
    }
    fn missing_field(field: &'static str) -> Self {
        ReadError::new(format!("`{field}` is missing"), format!("add the key `{field}`"))
    }
}

/// Makes a serde error that keeps the remedy of a problem. The interface of serde passes only a text, so the text is
/// the problem as JSON.
pub(crate) fn custom<E: de::Error>(problem: Problem) -> E {
    E::custom(serde_json::to_string(&problem).unwrap_or(problem.what))
}

struct Reader<'a>(&'a Node);

impl<'a> Reader<'a> {
    fn unexpected(&self) -> Unexpected<'a> {
        match &self.0.kind {
            Kind::Null => Unexpected::Unit,
            Kind::Text(text) => Unexpected::Str(text),
            Kind::List(_) => Unexpected::Seq,
            Kind::Map(_) => Unexpected::Map,
        }
    }
    fn wrong<'de, V: Visitor<'de>>(&self, visitor: &V) -> ReadError {
        <ReadError as de::Error>::invalid_type(self.unexpected(), visitor)
    }
    fn map<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let at = self.0.at;
        match &self.0.kind {
            Kind::Map(entries) => visitor.visit_map(Entries { rest: entries.iter(), value: None }),
            // `measure: { ping-pong: }` and a bare word both mean that there are no options.
            Kind::Null => visitor.visit_map(Entries { rest: [].iter(), value: None }),
            _ => Err(<ReadError as de::Error>::invalid_type(self.unexpected(), &"a map of keys")),
        }
        .map_err(|e| e.or_at(at))
    }
    fn whole<T: std::str::FromStr>(&self) -> Result<T, ReadError> {
        let error = match &self.0.kind {
            Kind::Text(text) => match text.trim().parse() {
                Ok(number) => return Ok(number),
                Err(_) if text.trim().parse::<i128>().is_ok() => {
                    ReadError::new(format!("`{text}` is out of the range of this key"), "")
                }
                Err(_) => ReadError::new(format!("`{text}` is not a whole number"), ""),
            },
            _ => <ReadError as de::Error>::invalid_type(self.unexpected(), &"a whole number"),
        };
        Err(error.or_at(self.0.at))
    }
}

macro_rules! whole_numbers {
    ($($method:ident $visit:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            let at = self.0.at;
            visitor.$visit(self.whole()?).map_err(|e: ReadError| e.or_at(at))
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Reader<'_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let at = self.0.at;
        match &self.0.kind {
            Kind::Null => visitor.visit_unit(),
            Kind::Text(text) => visitor.visit_str(text),
            Kind::List(items) => visitor.visit_seq(Items(items.iter())),
            Kind::Map(_) => return self.map(visitor),
        }
        .map_err(|e: ReadError| e.or_at(at))
    }
    whole_numbers! {
        deserialize_u8 visit_u8 deserialize_u16 visit_u16 deserialize_u32 visit_u32 deserialize_u64 visit_u64
        deserialize_i8 visit_i8 deserialize_i16 visit_i16 deserialize_i32 visit_i32 deserialize_i64 visit_i64
    }
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let at = self.0.at;
        match &self.0.kind {
            Kind::Text(text) => visitor.visit_str(text).map_err(|e: ReadError| e.or_at(at)),
            _ => Err(self.wrong(&visitor).or_at(at)),
        }
    }
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match name {
            AT => visitor.visit_seq(Placed { node: self.0, step: 0 }),
            _ => visitor.visit_newtype_struct(self),
        }
    }
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let at = self.0.at;
        match &self.0.kind {
            Kind::List(items) => visitor.visit_seq(Items(items.iter())).map_err(|e| e.or_at(at)),
            _ => Err(self.wrong(&visitor).or_at(at)),
        }
    }
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.map(visitor)
    }
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.map(visitor)
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let at = self.0.at;
        let choice = match &self.0.kind {
            Kind::Text(word) => Choice { at, word, content: None },
            Kind::Map(entries) if entries.len() == 1 => {
                Choice { at: entries[0].0.at, word: &entries[0].0.text, content: Some(&entries[0].1) }
            }
            Kind::Map(entries) if entries.len() > 1 => {
                let second = &entries[1].0;
                let reason = format!("`{}` is a second choice, but only one choice is possible", second.text);
                let help = format!("keep one of: {}", words.join(", "));
                return Err(ReadError::new(reason, help).or_at(second.at));
            }
            _ => {
                let reason = format!("expected a word, found {}", self.0.what());
                return Err(ReadError::new(reason, format!("one of: {}", words.join(", "))).or_at(at));
            }
        };
        visitor.visit_enum(choice).map_err(|e| e.or_at(at))
    }
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct ignored_any
    }
}

/// Gives serde the two parts of a value of type [`At`]: first the position, then the value.
struct Placed<'a> {
    node: &'a Node,
    step: u8,
}

impl<'de> de::SeqAccess<'de> for Placed<'_> {
    type Error = ReadError;
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        self.step += 1;
        match self.step {
            1 => seed.deserialize(self.node.at.pack().into_deserializer()).map(Some),
            2 => seed.deserialize(Reader(self.node)).map(Some),
            _ => Ok(None),
        }
    }
}

struct Items<'a>(std::slice::Iter<'a, Node>);

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = ReadError;
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        self.0.next().map(|node| seed.deserialize(Reader(node)).map_err(|e| e.or_at(node.at))).transpose()
    }
}

struct Entries<'a> {
    rest: std::slice::Iter<'a, (Key, Node)>,
    value: Option<&'a Node>,
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = ReadError;
    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        let node = Node { at: key.at, kind: Kind::Text(key.text.clone()) };
        seed.deserialize(Reader(&node)).map(Some).map_err(|e| e.or_at(key.at))
    }
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ReadError> {
        let node = self.value.take().ok_or_else(|| ReadError::new("a value without its key", ""))?;
        seed.deserialize(Reader(node)).map_err(|e| e.or_at(node.at))
    }
}

/// A choice of the study format for serde: a bare word, or a map with one key.
struct Choice<'a> {
    at: Pos,
    word: &'a str,
    content: Option<&'a Node>,
}

impl<'de, 'a> de::EnumAccess<'de> for Choice<'a> {
    type Error = ReadError;
    type Variant = Self;
    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), ReadError> {
        let node = Node { at: self.at, kind: Kind::Text(self.word.to_owned()) };
        let value = seed.deserialize(Reader(&node)).map_err(|e| e.or_at(self.at))?;
        Ok((value, self))
    }
}

impl<'de> de::VariantAccess<'de> for Choice<'_> {
    type Error = ReadError;
    fn unit_variant(self) -> Result<(), ReadError> {
        match self.content {
            Some(node) if node.kind != Kind::Null && node.kind != Kind::Map(Vec::new()) => {
                let reason = format!("`{}` has no options", self.word);
                Err(ReadError::new(reason, format!("write `{}` alone", self.word)).or_at(node.at))
            }
            _ => Ok(()),
        }
    }
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, ReadError> {
        let empty = Node::null(self.at);
        seed.deserialize(Reader(self.content.unwrap_or(&empty))).map_err(|mut e| {
            if self.content.is_none_or(|node| node.kind == Kind::Null) && e.empty {
                e.problem.what = format!("`{}` needs a value", self.word);
                e.problem.remedy = format!("write `{{ {}: ... }}`", self.word);
            }
            e.or_at(self.at)
        })
    }
    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, ReadError> {
        let empty = Node::null(self.at);
        de::Deserializer::deserialize_seq(Reader(self.content.unwrap_or(&empty)), visitor)
    }
    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let empty = Node::null(self.at);
        Reader(self.content.unwrap_or(&empty)).map(visitor)
    }
}
