//! The driver of a study: a driver by its name, with its options, or another benchmark program.

use super::Word;
use crate::read::{At, custom};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use tailbound_model::Problem;

/// A driver, given by its name, with options that the driver itself checks.
#[derive(Debug)]
pub(crate) struct DriverChoice {
    pub name: String,
    pub config: Option<At<String>>,
    pub options: BTreeMap<String, String>,
}

/// Options of a driver; the driver itself defines all options except `config`.
struct DriverKeys {
    config: Option<At<String>>,
    options: BTreeMap<String, String>,
}

impl<'de> Deserialize<'de> for DriverChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Driver;
        impl<'de> Visitor<'de> for Driver {
            type Value = DriverChoice;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a driver, such as `udp`")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<DriverChoice, E> {
                if name.trim().is_empty() {
                    return Err(E::custom("the name of the driver is empty"));
                }
                Ok(DriverChoice { name: name.into(), config: None, options: BTreeMap::new() })
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<DriverChoice, A::Error> {
                let Some((name, keys)) = access.next_entry::<String, DriverKeys>()? else {
                    return Err(de::Error::custom("the name of the driver is missing"));
                };
                if let Some(second) = access.next_key::<String>()? {
                    let text = format!("`{second}` is a second driver, but only one driver is possible");
                    return Err(custom(Problem::new(
                        "study_value",
                        text,
                        "to compare drivers, list them under `factors`",
                    )));
                }
                Ok(DriverChoice { name, config: keys.config, options: keys.options })
            }
        }
        deserializer.deserialize_any(Driver)
    }
}

impl<'de> Deserialize<'de> for DriverKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = DriverKeys;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("options of the driver, such as `{ multicast: off }`")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<DriverKeys, A::Error> {
                let mut keys = DriverKeys { config: None, options: BTreeMap::new() };
                while let Some(key) = access.next_key::<String>()? {
                    if key == "config" {
                        keys.config = Some(access.next_value()?);
                    } else {
                        keys.options.insert(key, access.next_value::<Word>()?.0);
                    }
                }
                Ok(keys)
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

impl JsonSchema for DriverChoice {
    fn schema_name() -> Cow<'static, str> {
        "DriverChoice".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let word = generator.subschema_for::<Word>();
        json_schema!({
            "description": "A driver by its name, with its options (see `tailbound driver list`); or another benchmark program, by the name or the path of its tool file.",
            "oneOf": [
                { "type": "string", "minLength": 1 },
                { "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {
                    "type": "object",
                    "properties": { "config": { "type": "string",
                        "description": "Path of your own configuration file for the vendor's middleware, relative to the study file; it is passed on unchanged." } },
                    "additionalProperties": word
                } }
            ]
        })
    }
}
