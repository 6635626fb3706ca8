//! The VLAN on top of a path.

use super::Named;
use crate::read::At;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A VLAN, or none.
#[derive(Debug)]
pub(crate) enum VlanChoice {
    Off,
    On(VlanKeys),
}

/// Keys of a VLAN.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VlanKeys {
    /// VLAN id, 1 to 4094.
    #[schemars(range(min = 1, max = 4094))]
    pub id: At<u32>,
    /// Which priority (PCP, 0 to 7) frames have, by that of the socket that sends them (SO_PRIORITY), as in `{ 7: 7 }`: all
    /// others have 0. Read back from the kernel. Default: none.
    pub egress: Option<Named<At<u32>>>,
}

impl<'de> Deserialize<'de> for VlanChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;
        impl<'de> Visitor<'de> for Choice {
            type Value = VlanChoice;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`off` or a VLAN such as `{ id: 10 }`")
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<VlanChoice, E> {
                match word.trim() {
                    "off" => Ok(VlanChoice::Off),
                    _ => Err(E::custom(format!("`{word}` is not a VLAN; write `off`, or `{{ id: 10 }}`"))),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<VlanChoice, A::Error> {
                VlanKeys::deserialize(MapAccessDeserializer::new(access)).map(VlanChoice::On)
            }
        }
        deserializer.deserialize_any(Choice)
    }
}

impl JsonSchema for VlanChoice {
    fn schema_name() -> Cow<'static, str> {
        "VlanChoice".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let keys = VlanKeys::json_schema(generator);
        json_schema!({
            "description": "A VLAN on top of the path, or none.",
            "oneOf": [{ "description": "None.", "const": "off" }, keys]
        })
    }
}
