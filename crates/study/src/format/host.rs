//! Settings of the host in a study.

use super::{Cpus, Duration, RoleKeys, Word};
use crate::read::At;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Settings of the host: each is read, set, read back, and put back after the trials that have it.
#[derive(Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostKeys {
    /// Values below /proc/sys by their dotted names, as sysctl(8) takes them. Those of `net` are set in the network
    /// namespaces of the ends, where these have them.
    pub sysctl: Option<Named<At<Word>>>,
    /// Whether the kernel stops real-time threads that take more than 950 ms of a second.
    pub real_time_throttling: Option<At<SwitchChoice>>,
    /// Frequency governor of all CPUs, or of CPUs by their lists.
    pub governor: Option<Governors>,
    /// Longest wake-up that an idle CPU may take, in whole microseconds: `/dev/cpu_dma_latency` is held open for the
    /// trials. `0 us` keeps idle CPUs polling.
    pub cpu_dma_latency: Option<At<Duration>>,
    /// How long KVM polls for work of a virtual CPU that has halted before it gives the CPU away, at most: of the host that
    /// runs the guests. `0 us` gives it away at once.
    pub kvm_halt_poll: Option<At<Duration>>,
    /// CPUs that take an interrupt, by its number or its name in /proc/interrupts; `*` and `?` stand for any letters.
    pub irq_affinity: Option<Named<At<Cpus>>>,
    /// Policy and CPUs of threads of the kernel by their names, those of interrupts (`irq/24-*`) among them.
    pub kernel_threads: Option<Named<At<RoleKeys>>>,
    /// Queues and coalescing of network interfaces by their names, where the driver of the interface has them. An
    /// interface is looked for in the network namespaces of the ends, then in that of Tailbound.
    pub nic: Option<Named<At<NicKeys>>>,
}

/// Settings of a network interface, as ethtool(8) has them.
#[derive(Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NicKeys {
    /// Queues that both receive and send.
    pub channels: Option<At<u32>>,
    /// Queues that only receive.
    pub channels_rx: Option<At<u32>>,
    /// Queues that only send.
    pub channels_tx: Option<At<u32>>,
    /// Whether the interface chooses how long it waits before a receive interrupt.
    pub adaptive_rx: Option<At<SwitchChoice>>,
    /// The same of sending.
    pub adaptive_tx: Option<At<SwitchChoice>>,
    /// How long it waits before a receive interrupt, in whole microseconds.
    pub coalesce_rx: Option<At<Duration>>,
    /// The same of sending.
    pub coalesce_tx: Option<At<Duration>>,
    /// How many frames it waits for before a receive interrupt.
    pub coalesce_rx_frames: Option<At<u32>>,
    /// The same of sending.
    pub coalesce_tx_frames: Option<At<u32>>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SwitchChoice {
    /// It is on, as the kernel has it by default.
    On,
    /// It is off.
    Off,
}

/// Governors: one for all CPUs, or some for some.
#[derive(Debug)]
pub(crate) enum Governors {
    All(At<String>),
    Some(Named<At<Word>>),
}

impl<'de> Deserialize<'de> for Governors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A value that is a map, or else a word, each with its place.
        struct Words;
        impl<'de> Visitor<'de> for Words {
            type Value = Result<Named<At<Word>>, String>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a governor such as `performance`, or a map of CPUs and governors")
            }
            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Self::Value, E> {
                Ok(Err(word.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
                Named::deserialize(serde::de::value::MapAccessDeserializer::new(access)).map(Ok)
            }
        }
        struct Either(Result<Named<At<Word>>, String>);
        impl<'de> Deserialize<'de> for Either {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Words).map(Either)
            }
        }
        let At { at, value } = At::<Either>::deserialize(deserializer)?;
        Ok(match value.0 {
            Ok(named) => Governors::Some(named),
            Err(word) => Governors::All(At { at, value: word }),
        })
    }
}

impl JsonSchema for Governors {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Governors".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "oneOf": [
                { "type": "string", "minLength": 1 },
                { "type": "object", "propertyNames": { "pattern": "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$" },
                  "additionalProperties": { "type": "string", "minLength": 1 } }
            ],
            "examples": ["performance", { "0-1": "performance" }]
        })
    }
}

/// Values by names that the user gives, in the order of the file.
#[derive(Debug)]
pub(crate) struct Named<T>(pub Vec<(At<String>, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Names<T> {
            type Value = Named<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of names and values")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Named<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = access.next_entry()? {
                    entries.push(entry);
                }
                Ok(Named(entries))
            }
        }
        deserializer.deserialize_map(Names(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Named_{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let content = generator.subschema_for::<T>();
        json_schema!({ "type": "object", "propertyNames": { "minLength": 1 }, "additionalProperties": content })
    }
}
