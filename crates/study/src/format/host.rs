//! Keys of host settings in a study file.

use super::{Cpus, Duration, RoleKeys, Word};
use crate::read::At;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Host settings: each setting is read, set, read back, and restored after the trials that use it.
#[derive(Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostKeys {
    /// Kernel parameters (files below /proc/sys) by their names with dots, as in sysctl(8). Parameters below `net` are
    /// set in the network namespaces of the ends, if they exist there.
    pub sysctl: Option<Named<At<Word>>>,
    /// Real-time throttling: whether the kernel stops real-time threads that use more than 950 ms of CPU time per
    /// second.
    pub real_time_throttling: Option<At<SwitchChoice>>,
    /// Frequency governor of all CPUs, or a map from lists of CPUs to governors.
    pub governor: Option<Governors>,
    /// Longest wake-up time that an idle CPU may have, in whole microseconds: Tailbound keeps `/dev/cpu_dma_latency`
    /// open during the trials. With `0 us`, idle CPUs poll.
    pub cpu_dma_latency: Option<At<Duration>>,
    /// Longest time for which KVM polls when a virtual CPU has halted, before KVM gives the CPU to other threads; a
    /// setting of the host that runs the guests. With `0 us` KVM does not poll.
    pub kvm_halt_poll: Option<At<Duration>>,
    /// CPU quota of the control groups in which Tailbound runs, and with it the ends outside of containers and guests:
    /// `off` removes it during the trials.
    pub cpu_quota: Option<At<QuotaChoice>>,
    /// CPUs that handle an interrupt, by the interrupt's number or name in /proc/interrupts; `*` and `?` are wildcards.
    pub irq_affinity: Option<Named<At<Cpus>>>,
    /// Scheduling policy and CPUs of kernel threads, by the threads' names, including interrupt threads (`irq/24-*`).
    pub kernel_threads: Option<Named<At<RoleKeys>>>,
    /// Queues and interrupt coalescing of network interfaces, by the interfaces' names, if the interface's kernel
    /// driver supports them. Tailbound looks for an interface in the network namespaces of the ends, then in its own
    /// network namespace.
    pub nic: Option<Named<At<NicKeys>>>,
    /// Queue disciplines for the packets that network interfaces send, by the interfaces' names: a kind with the kernel's
    /// own options, or `default` for the one that the kernel gives an interface. Tailbound looks for an interface in the
    /// network namespaces of the ends, then in its own network namespace.
    pub queue: Option<Named<At<QueueChoice>>>,
}

/// Kind of a queue discipline that needs no options (tc(8)).
#[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum QueueChoice {
    /// The queue discipline that the kernel gives an interface (`net.core.default_qdisc`, or none for virtual interfaces).
    Default,
    /// Streams take turns, and packets that wait longer than 5 ms are dropped.
    FqCodel,
    /// Streams take turns, each at its own pace.
    Fq,
    /// Streams take turns, and long waits are shortened; hosts share the rate equally.
    Cake,
    /// Streams take turns by a hash of their addresses.
    Sfq,
    /// One queue, from which packets that wait longer than 5 ms are dropped.
    Codel,
    /// Three queues by the priority of the packets.
    PfifoFast,
    /// One queue, limited by packets.
    Pfifo,
    /// One queue, limited by bytes.
    Bfifo,
}

/// Settings of a network interface, as in ethtool(8).
#[derive(Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NicKeys {
    /// Number of queues of the network interface that both receive and send.
    pub channels: Option<At<u32>>,
    /// Number of queues of the network interface that only receive.
    pub channels_rx: Option<At<u32>>,
    /// Number of queues of the network interface that only send.
    pub channels_tx: Option<At<u32>>,
    /// Whether the network interface chooses the delay of receive interrupts.
    pub adaptive_rx: Option<At<SwitchChoice>>,
    /// Whether the network interface chooses the delay of send interrupts.
    pub adaptive_tx: Option<At<SwitchChoice>>,
    /// Delay of the network interface's receive interrupts, in whole microseconds.
    pub coalesce_rx: Option<At<Duration>>,
    /// Delay of the network interface's send interrupts, in whole microseconds.
    pub coalesce_tx: Option<At<Duration>>,
    /// Number of received frames after which the network interface raises an interrupt.
    pub coalesce_rx_frames: Option<At<u32>>,
    /// Number of sent frames after which the network interface raises an interrupt.
    pub coalesce_tx_frames: Option<At<u32>>,
}

/// Whether a setting of the study is on or off.
#[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SwitchChoice {
    /// The setting of the study is on.
    On,
    /// The setting of the study is off.
    Off,
}

/// Value of a CPU quota.
#[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum QuotaChoice {
    /// The control groups have no CPU quota.
    Off,
}

/// Frequency governors: one governor for all CPUs, or one governor for each list of CPUs.
#[derive(Debug)]
pub(crate) enum Governors {
    All(At<String>),
    Some(Named<At<Word>>),
}

impl<'de> Deserialize<'de> for Governors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The value is a map or a word, each with its position.
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

/// A map from names that the user chooses to values, in the order of the file.
#[derive(Debug)]
pub(crate) struct Named<T>(pub Vec<(At<String>, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Names<T> {
            type Value = Named<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from names of settings, interrupts, threads or interfaces to their values")
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
