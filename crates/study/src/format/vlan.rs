//! Keys of a study file for the VLAN on top of a network path.

use super::Named;
use crate::read::{At, custom};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use tailbound_model::Problem;

/// A VLAN on top of the path, or `off` for no VLAN.
#[derive(Debug)]
pub(crate) enum VlanChoice {
    Off,
    On(VlanKeys),
}

/// Keys of a VLAN on top of the network path.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VlanKeys {
    /// Id of the VLAN (virtual network on an Ethernet link), 1 to 4094.
    #[schemars(range(min = 1, max = 4094))]
    pub id: At<u32>,
    /// Priority code point (PCP, 0 to 7) of frames, by the priority of the sending socket (SO_PRIORITY), as in `{ 7: 7
    /// }`; frames of sockets with any other priority have PCP 0. Tailbound reads the values back from the kernel.
    /// Default: none.
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
                    _ => Err(custom(Problem::new(
                        "study_value",
                        format!("`{word}` is not a VLAN"),
                        "write `off`, or `{ id: 10 }`",
                    ))),
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
            "description": "A VLAN on top of the path, or `off` for no VLAN.",
            "oneOf": [{ "description": "No VLAN.", "const": "off" }, keys]
        })
    }
}
