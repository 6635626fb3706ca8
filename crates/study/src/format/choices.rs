//! Choices: a bare word, or a map with the word as its only key and the options below it.

use super::{ContainerKeys, Cpus, DomainKeys, Duration, PodKeys, UnackedLimit, VmKeys, WarmUp, Word};
use crate::read::At;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// What is measured.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MeasureChoice {
    /// A message goes out and its answer comes back.
    PingPong(PingPongKeys),
    /// A publisher, or several, send as fast as they are let, or at a rate, and their subscribers count what arrives.
    Throughput(ThroughputKeys),
    /// One publisher sends at a rate, and each of its subscribers tells how late every message was.
    FanOut(FanOutKeys),
}

/// Options of throughput.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThroughputKeys {
    /// Length of the window that counts. Default: `10 s`.
    pub duration: Option<At<Duration>>,
    /// The publisher sends for this long before the window. Default: `1 s`.
    pub ramp_up: Option<At<Duration>>,
    /// The publisher goes on sending for this long after the window. Default: `200 ms`.
    pub drain: Option<At<Duration>>,
    /// How many publishers there are. Each sends on the one topic at the rate of the study, all from the same moment on.
    /// Default: 1.
    #[schemars(range(min = 1, max = 64))]
    pub publishers: Option<At<u32>>,
    /// How many subscribers there are. Each receives what all publishers send. Default: 1.
    #[schemars(range(min = 1, max = 64))]
    pub subscribers: Option<At<u32>>,
    /// Payloads in one message, put together by Tailbound, not by the driver; each counts as a sample. Default: 1.
    #[schemars(range(min = 1, max = 65_535))]
    pub pack: Option<At<u32>>,
    /// Whether messages may wait in the driver for others to go with them, where it has that. Default: `off`.
    pub batching: Option<BatchingChoice>,
    /// Messages that may be sent and not acknowledged before the publisher waits, where the driver can limit them; needs
    /// `qos: { reliability: reliable, history: keep-all }`. Default: `none`, the driver's own.
    pub unacked_limit: Option<At<UnackedLimit>>,
    /// Where the ends are, if there are more than two. Default: `processes`.
    pub spread: Option<SpreadChoice>,
    /// One message in so many is a ping: the first subscriber answers it, and the latency under load is told as a round
    /// trip. Default: none.
    #[schemars(range(min = 1))]
    pub ping_every: Option<At<u64>>,
    /// How the subscribers receive. Default: `listener`.
    pub receive: Option<At<ReceiveChoice>>,
}

/// Whether a driver sends messages together.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BatchingChoice {
    /// Each message goes out at once.
    Off,
    /// It waits in the driver until it is worth a packet. A driver without batching cannot run the condition.
    On,
}

/// Where the ends of a flow are, if there are more than two.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SpreadChoice {
    /// Publishers are processes at the place of the ping end, subscribers at that of the pong end.
    Processes,
    /// Each in a network namespace of its own, joined by `path: bridge`.
    Namespaces,
    /// Each in a pod of its own, made as the place of its side says; both places are pods.
    Pods,
}

/// Options of fan-out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FanOutKeys {
    /// Length of the window that counts. Default: `10 s`.
    pub duration: Option<At<Duration>>,
    /// The publisher sends for this long before the window. Default: `1 s`.
    pub ramp_up: Option<At<Duration>>,
    /// The publisher goes on sending for this long after the window. Default: `200 ms`.
    pub drain: Option<At<Duration>>,
    /// How many subscribers there are. Default: 1.
    #[schemars(range(min = 1, max = 64))]
    pub subscribers: Option<At<u32>>,
    /// Where the ends are, if there are more than two. Default: `processes`.
    pub spread: Option<SpreadChoice>,
    /// How the subscribers receive. Default: `listener`.
    pub receive: Option<At<ReceiveChoice>>,
}

/// Options of ping-pong.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PingPongKeys {
    /// Length of each trial as a number of measured slots. Excludes `duration`.
    #[schemars(range(min = 1))]
    pub slots: Option<At<u64>>,
    /// Length of each trial as a time, warm-up not counted. Excludes `slots`. Default: `10 s`.
    pub duration: Option<At<Duration>>,
    /// Slots before the measured ones, as their number or as a time; kept and marked, left out of the statistics.
    /// Default: `200 ms`, with `rate: max` 1000 slots.
    pub warm_up: Option<At<WarmUp>>,
    /// An answer later than this counts as `after_timeout`. Default: `1 s`.
    pub timeout: Option<At<Duration>>,
    /// What happens to slots that were missed because the sender was late. Default: `catch-up`.
    pub on_overrun: Option<At<OverrunChoice>>,
    /// How the ends receive. Default: `listener`.
    pub receive: Option<ReceiveChoice>,
    /// Whether a second thread takes over from the one that receives. Default: `none`.
    pub hand_off: Option<At<HandOffChoice>>,
}

/// Missed slots.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OverrunChoice {
    /// Each missed slot is sent at once, with its own intended time.
    CatchUp,
    /// Missed slots are not sent and count as `not_sent`.
    Skip,
}

/// How samples reach the measuring code.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReceiveChoice {
    /// In a callback on the thread of the middleware.
    Listener,
    /// A thread of the end blocks until there is a message.
    Block,
    /// A thread of the end asks without pause.
    Spin,
    /// A single-threaded executor: one thread waits for the next slot and for messages together, and serves them one at
    /// a time. `arrangement` says whether the ends share it.
    Executor,
}

/// Whether the thread that receives also processes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HandOffChoice {
    /// It does.
    None,
    /// It wakes a second thread.
    Thread(HandOffKeys),
}

/// Options of the second thread.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HandOffKeys {
    /// CPUs of the second thread; those of the end when absent.
    pub cpus: Option<At<Cpus>>,
}

/// Where an end runs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PlaceChoice {
    /// Together with the other end in one process.
    SameProcess,
    /// A process of its own, in the network namespace of the caller.
    Process,
    /// A process of its own, in a network namespace made for it.
    Netns,
    /// A process of its own, in a network namespace that exists already: its name for `ip netns`, or a path.
    ExistingNetns(At<String>),
    /// On another host, reached by your own `ssh`.
    Ssh(SshKeys),
    /// In a pod of a Kubernetes cluster, made for the run and deleted after it.
    Pod(Box<PodKeys>),
    /// In a container of this host, made for the run and removed after it.
    Container(Box<ContainerKeys>),
    /// In a virtual machine of this host, started for the run and ended after it.
    Vm(Box<VmKeys>),
    /// In a domain of libvirt on this host that exists already, reached by your own `ssh`.
    Domain(Box<DomainKeys>),
}

/// Another host.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SshKeys {
    /// What `ssh` is called with: a name of its configuration, or `user@host`.
    pub host: At<String>,
    /// Absolute directory there in which the bundle is kept. Default: `$XDG_CACHE_HOME/tailbound`, else `~/.cache/tailbound`.
    pub directory: Option<At<String>>,
    /// Absolute path of a Tailbound that is installed there, of this release; it is used in place of a bundle.
    pub program: Option<At<String>>,
    /// What becomes of the bundle after the run. Default: `keep`.
    pub bundle: Option<BundleChoice>,
}

/// What becomes of a bundle on another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BundleChoice {
    /// It stays for the next run.
    Keep,
    /// It is removed.
    Remove,
}

/// What joins the ends.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PathChoice {
    /// The loopback interface of the caller.
    Loopback,
    /// A veth pair between two network namespaces.
    Veth(VethKeys),
    /// A bridge in a namespace of its own, joined to each end by a veth pair, to a virtual machine by a tap device.
    Bridge(LinkKeys),
    /// For virtual machines: a macvtap device each over one lower device, whose other side an end of this host has.
    Macvtap(LinkKeys),
    /// For two virtual machines or network namespaces: a tap device or veth pair each, and programs in the driver (XDP) that
    /// hand each packet on to the other one.
    Xdp(XdpKeys),
    /// For virtual machines and network namespaces: a tap device or veth pair each, which are ports of an Open vSwitch made for
    /// the run.
    OpenVswitch(SwitchKeys),
    /// For two virtual machines: QEMU hands each packet to the other one over sockets on the file system. Needs no
    /// privilege.
    Datagram(LinkKeys),
    /// Interfaces that are there already: checked, and changed by nothing but `host`. A guest is attached to them.
    Existing(Box<ExistingKeys>),
}

/// Options of a veth pair.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VethKeys {
    /// MTU in octets, 68 to 65535. Default: 1500.
    #[schemars(range(min = 68, max = 65535))]
    pub mtu: Option<At<u32>>,
    /// How long each end holds back what it sends (netem of the kernel), at most 1 s: a round trip takes twice as long at
    /// least. Default: not at all.
    pub delay: Option<At<Duration>>,
}

/// Options of a path that is made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkKeys {
    /// MTU in octets, 68 to 65535. Default: 1500.
    #[schemars(range(min = 68, max = 65535))]
    pub mtu: Option<At<u32>>,
}

/// Options of a path by XDP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct XdpKeys {
    /// Where the programs run. Default: `native`.
    pub mode: Option<XdpChoice>,
    /// MTU in octets, 68 to 65535. Default: 1500.
    #[schemars(range(min = 68, max = 65535))]
    pub mtu: Option<At<u32>>,
}

/// Where an XDP program runs.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum XdpChoice {
    /// In the driver, before the kernel has made a packet of what arrives.
    Native,
    /// In the kernel, on what any driver has handed over.
    Generic,
}

/// Options of a path over an Open vSwitch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwitchKeys {
    /// How it takes packets from its ports. Default: `tap`.
    pub ports: Option<PortsChoice>,
    /// MTU in octets, 68 to 65535. Default: 1500.
    #[schemars(range(min = 68, max = 65535))]
    pub mtu: Option<At<u32>>,
}

/// How an Open vSwitch takes packets from its ports.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PortsChoice {
    /// By packet sockets, in its own process.
    Tap,
    /// By AF_XDP sockets, with programs in the driver.
    AfXdpNative,
    /// By AF_XDP sockets, with programs after the driver.
    AfXdpGeneric,
    /// In the kernel, by its module `openvswitch`.
    Kernel,
}

/// Both sides of an existing path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExistingKeys {
    /// The side of the ping end.
    pub ping: At<SideKeys>,
    /// The side of the pong end.
    pub pong: At<SideKeys>,
}

/// One side of an existing path: an interface, an address, or both; of a guest what its card is attached to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SideKeys {
    /// Name of the interface; found by the address when absent. Of a guest: the interface of this host that its card is
    /// attached to. A bridge gets a tap device as a port; on any other lies a macvtap device.
    pub interface: Option<At<String>>,
    /// IPv4 address; the first of the interface when absent. Of a guest: that which it is given, with prefix length,
    /// `10.9.0.5/24`; required.
    pub address: Option<At<String>>,
    /// Of a guest, in place of `interface`: PCI address of a card of this host that it is given whole (VFIO),
    /// `"0000:03:00.0"`. `modules` of the guest names its driver.
    pub device: Option<At<String>>,
}

/// Scheduling of a process, see sched(7): of all its threads, or of threads by what they are for. A role has what is
/// given for it, else what is given for the middleware (if the driver made the thread), else what is given for all.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchedulingKeys {
    /// Who gives the driver's threads what is asked for them: Tailbound at their birth, or the vendor's own configuration
    /// that Tailbound writes. Default: `birth`.
    pub apply: Option<ApplyChoice>,
    /// Policy of all threads.
    pub policy: Option<At<PolicyChoice>>,
    /// Of `fifo` and `rr`, required there: 1 to 98.
    #[schemars(range(min = 1, max = 98))]
    pub priority: Option<At<u32>>,
    /// Of `other` and `batch`: -20 (favoured) to 19. Default: 0.
    #[schemars(range(min = -20, max = 19))]
    pub nice: Option<At<i32>>,
    /// Of `deadline`, required there: CPU time per period.
    pub runtime: Option<At<Duration>>,
    /// Of `deadline`, required there: when that time must have been had, counted from the begin of the period.
    pub deadline: Option<At<Duration>>,
    /// Of `deadline`, required there: the period.
    pub period: Option<At<Duration>>,
    /// The thread that sends on schedule, or that waits while another answers.
    pub main: Option<At<RoleKeys>>,
    /// All threads that the driver makes.
    pub middleware: Option<At<RoleKeys>>,
    /// Threads that take messages from the network, the middleware's or our own (`receive: block`, `spin`).
    pub receive: Option<At<RoleKeys>>,
    /// Threads that send for others.
    pub send: Option<At<RoleKeys>>,
    /// Threads for timers, acknowledgements, retransmissions.
    pub event: Option<At<RoleKeys>>,
    /// Threads that find peers.
    pub discovery: Option<At<RoleKeys>>,
    /// The second thread of `hand_off`.
    pub processing: Option<At<RoleKeys>>,
    /// Threads of the driver without a role of these.
    pub other: Option<At<RoleKeys>>,
}

/// Scheduling of threads of one role.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoleKeys {
    /// The policy; that of all threads when absent.
    pub policy: Option<At<PolicyChoice>>,
    /// Of `fifo` and `rr`, required there: 1 to 98.
    #[schemars(range(min = 1, max = 98))]
    pub priority: Option<At<u32>>,
    /// Of `other` and `batch`: -20 (favoured) to 19. Default: 0.
    #[schemars(range(min = -20, max = 19))]
    pub nice: Option<At<i32>>,
    /// Of `deadline`, required there: CPU time per period.
    pub runtime: Option<At<Duration>>,
    /// Of `deadline`, required there: when that time must have been had, counted from the begin of the period.
    pub deadline: Option<At<Duration>>,
    /// Of `deadline`, required there: the period.
    pub period: Option<At<Duration>>,
    /// CPUs, as `taskset -c` writes them; those of the end when absent.
    pub cpus: Option<At<Cpus>>,
}

impl SchedulingKeys {
    /// What is given for all threads.
    pub fn all(&self) -> RoleKeys {
        RoleKeys {
            policy: self.policy.clone(),
            priority: self.priority.clone(),
            nice: self.nice.clone(),
            runtime: self.runtime.clone(),
            deadline: self.deadline.clone(),
            period: self.period.clone(),
            cpus: None,
        }
    }

    /// What is given for single roles, by their words.
    pub fn roles(&self) -> impl Iterator<Item = (&'static str, &At<RoleKeys>)> {
        [
            ("main", &self.main),
            (tailbound_model::MIDDLEWARE, &self.middleware),
            ("receive", &self.receive),
            ("send", &self.send),
            ("event", &self.event),
            ("discovery", &self.discovery),
            ("processing", &self.processing),
            ("other", &self.other),
        ]
        .into_iter()
        .filter_map(|(word, keys)| Some((word, keys.as_ref()?)))
    }
}

/// Who sets the threads of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ApplyChoice {
    /// Tailbound, before a thread's first line.
    Birth,
    /// The library itself, by its configuration: what the deployment will do. `fifo` and `other` only.
    Vendor,
}

/// Scheduling policies of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PolicyChoice {
    /// SCHED_OTHER, the default of Linux.
    Other,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
    /// SCHED_DEADLINE.
    Deadline,
}

/// When samples travel to the controller.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CollectChoice {
    /// After the trial.
    After,
    /// While it runs, from a CPU that is not measured: a trial may then be longer than the memory.
    Live,
}

/// Whether context switches are watched, to tell why the worst messages were late.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AttributionChoice {
    /// They are: everything on the CPUs of the ends where that is allowed, else the threads of the ends alone.
    On,
    /// They are not.
    Off,
}

/// How the ends find each other.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DiscoveryChoice {
    /// They ask each other's addresses, and by multicast unless the path check has shown that it does not pass.
    Auto,
    /// By multicast alone.
    Multicast,
    /// They ask each other's addresses, and nobody by multicast.
    Peers,
    /// As `peers`, by a name instead of addresses. Both ends are pods, and Tailbound makes a headless Service of them, by
    /// whose name the cluster's DNS gives the addresses of all.
    Dns,
    /// A discovery server tells them of each other. Both ends are pods, and Tailbound makes it beside them. For drivers with
    /// the option `discovery_server`.
    Server,
}

/// A driver by its name, with options that the driver itself checks.
#[derive(Debug)]
pub(crate) struct DriverChoice {
    pub name: String,
    pub config: Option<At<String>>,
    pub options: BTreeMap<String, String>,
}

/// Options of a driver; all but `config` are the driver's own words.
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
                    let text = format!("`{second}` is a second driver where one is chosen");
                    return Err(de::Error::custom(format!("{text}; to compare drivers, list them under `factors`")));
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
            "description": "A driver by its name, with the options that it describes (`tailbound driver list`); or another benchmark program by the name or the path of its tool file.",
            "oneOf": [
                { "type": "string", "minLength": 1 },
                { "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {
                    "type": "object",
                    "properties": { "config": { "type": "string",
                        "description": "The user's own configuration file of the vendor, relative to the study; used as it is." } },
                    "additionalProperties": word
                } }
            ]
        })
    }
}
