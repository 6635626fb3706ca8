//! Keys of a study file for DDS Security.

use crate::read::{At, custom};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use tailbound_model::{Governance, Problem};

/// DDS Security of the participants, or `off` for no security plug-ins.
#[derive(Debug)]
pub(crate) enum SecurityChoice {
    Off,
    On(SecurityKeys),
}

/// Keys of DDS Security.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecurityKeys {
    /// What the governance document protects.
    pub governance: GovernanceChoice,
    /// Directory with your own identities, relative to the study file: below it `ping` and `pong`, each with
    /// `identity_ca.cert.pem`, `cert.pem` and `key.pem`, as `ros2 security create_enclave` names them. Tailbound signs
    /// governance and permissions. Default: Tailbound makes a certificate authority and an identity for each end.
    pub files: Option<At<String>>,
}

/// Protection of messages by DDS Security, as a governance document.
#[derive(Debug, Clone, Copy, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GovernanceChoice {
    /// The plug-ins are loaded and the participants authenticate each other; all protections are NONE.
    None,
    /// RTPS messages are signed (`rtps_protection_kind` SIGN); the other protections are NONE.
    Sign,
    /// RTPS messages are encrypted (`rtps_protection_kind` ENCRYPT); the other protections are NONE.
    Encrypt,
    /// The payload of samples is encrypted (`data_protection_kind` ENCRYPT); the other protections are NONE.
    EncryptData,
    /// All five protections are ENCRYPT: RTPS messages, discovery, liveliness, metadata (submessages) and data (payload).
    EncryptAll,
    /// As `ros2 security` writes it: RTPS messages SIGN; discovery, liveliness, metadata and data ENCRYPT.
    Ros2,
}

impl From<GovernanceChoice> for Governance {
    fn from(choice: GovernanceChoice) -> Governance {
        match choice {
            GovernanceChoice::None => Governance::None,
            GovernanceChoice::Sign => Governance::Sign,
            GovernanceChoice::Encrypt => Governance::Encrypt,
            GovernanceChoice::EncryptData => Governance::EncryptData,
            GovernanceChoice::EncryptAll => Governance::EncryptAll,
            GovernanceChoice::Ros2 => Governance::Ros2,
        }
    }
}

impl<'de> Deserialize<'de> for SecurityChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;
        impl<'de> Visitor<'de> for Choice {
            type Value = SecurityChoice;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`off` or the security of the participants, such as `{ governance: encrypt }`")
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<SecurityChoice, E> {
                match word.trim() {
                    "off" => Ok(SecurityChoice::Off),
                    _ => Err(custom(Problem::new(
                        "study_value",
                        format!("`{word}` is not a setting of DDS Security"),
                        "write `off`, or `{ governance: encrypt }`",
                    ))),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<SecurityChoice, A::Error> {
                SecurityKeys::deserialize(MapAccessDeserializer::new(access)).map(SecurityChoice::On)
            }
        }
        deserializer.deserialize_any(Choice)
    }
}

impl JsonSchema for SecurityChoice {
    fn schema_name() -> Cow<'static, str> {
        "SecurityChoice".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let keys = SecurityKeys::json_schema(generator);
        json_schema!({
            "description": "DDS Security of the participants, or `off` for no security plug-ins.",
            "oneOf": [{ "description": "The drivers load no security plug-ins.", "const": "off" }, keys]
        })
    }
}
