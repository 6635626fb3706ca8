//! Facts about one network interface in the calling thread's network namespace, and counters of that namespace.
//!
//! Input: the name of an interface. Output: [`InterfaceFacts`], and counters by name. Values come from netlink, ioctl
//! and /proc/thread-self/net, because these follow the thread into a namespace; /sys/class/net always shows the
//! namespace in which sysfs was mounted. Only `tune`, `ethtool` and `preemption` change settings.

mod card;
mod counters;
mod ethtool;
mod link;
mod needed;
pub mod preemption;
pub(crate) mod tune;

pub use card::card_facts;
pub use counters::{InterfaceCounters, interface_counters, ip_counters};
pub(crate) use counters::{parse_dev, parse_pairs};
pub use ethtool::Ethtool;
pub use needed::carries_traffic_of_the_host;

use std::io;
use tailbound_model::{Fact, FactValue, PathEnd};

/// A network interface as described by the kernel and its driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceFacts {
    /// Name of the network interface.
    pub name: String,
    /// Index of the network interface.
    pub index: u32,
    /// MTU of the network interface in bytes.
    pub mtu: u32,
    /// Whether the network interface is set up and has a carrier.
    pub up: bool,
    /// Operational state of the interface (RFC 2863): `up`, `down`, `unknown` (loopback, tap), ...
    pub state: String,
    /// Kind of the network interface, if it is virtual: `veth`, `bridge`, ...
    pub kind: Option<String>,
    /// Names and kinds of the interfaces below a VLAN or macvlan, the next one first, as far as they are in the same network
    /// namespace.
    pub below: Vec<(String, Option<String>)>,
    /// Name of the interface's kernel driver, or the reason why it is not known.
    pub driver: Result<String, String>,
    /// Link speed of the network interface in Mbit/s, or the reason why the speed is not known.
    pub speed_mbit_s: Result<i64, String>,
    /// Number of the interface's transmit queues in use, or the reason why it is not known.
    pub tx_queues: Result<u32, String>,
    /// Number of the interface's receive queues in use, or the reason why it is not known.
    pub rx_queues: Result<u32, String>,
    /// Name of the network interface's queueing discipline.
    pub qdisc: Option<String>,
    /// Delay of the network card before a receive interrupt in us, or the reason why the delay is not known.
    pub rx_coalesce_us: Result<u32, String>,
    /// Whether the driver adapts the delay before a receive interrupt, or the reason why this is not known.
    pub adaptive_rx: Result<bool, String>,
    /// Frame preemption of the interface (IEEE 802.1Qbu) in words, or the reason why it is not known.
    pub preemption: Result<String, String>,
    /// Offload features that are switched on, with the kernel's names, or the reason why they are not known.
    pub offloads: Result<Vec<String>, String>,
}

/// Reads the facts about an interface of the calling thread's network namespace.
///
/// # Errors
/// There is no such interface. If an existing interface does not report a value, the field of this value contains the
/// reason.
pub fn interface_facts(name: &str) -> io::Result<InterfaceFacts> {
    let link = link::query(name)?;
    let tool = ethtool::Ethtool::open(name);
    let with = tool.as_ref().map_err(Clone::clone);
    let channels = with.clone().and_then(|t| t.channels());
    // A driver without channels uses all queues that the interface was made with.
    let queues = |channels: Result<u32, String>, made: Option<u32>| channels.or_else(|why| made.ok_or(why));
    let coalesce = with.clone().and_then(|t| t.coalesce());
    Ok(InterfaceFacts {
        name: name.to_owned(),
        index: link.index,
        mtu: link.mtu,
        up: link.up,
        below: link::below(&link),
        state: link.state,
        kind: link.kind,
        driver: with.clone().and_then(|t| t.driver()),
        speed_mbit_s: with.clone().and_then(|t| t.speed_mbit_s()),
        tx_queues: queues(channels.clone().map(|c| c.0), link.tx_queues),
        rx_queues: queues(channels.map(|c| c.1), link.rx_queues),
        qdisc: link.qdisc,
        rx_coalesce_us: coalesce.clone().map(|c| c.0),
        adaptive_rx: coalesce.map(|c| c.1),
        preemption: preemption::preemption(link.index).map_err(|error| error.to_string()),
        offloads: with.and_then(|t| t.offloads()),
    })
}

impl InterfaceFacts {
    /// Facts about the interface as one end of a path, with the name and the address of the end.
    pub fn path_end(&self, end: &str, address: &str) -> PathEnd {
        PathEnd {
            end: end.to_owned(),
            interface: self.name.clone(),
            address: address.to_owned(),
            mtu: self.mtu,
            up: self.up,
            speed_mbit_s: self.speed_mbit_s.clone().ok(),
            tx_queues: self.tx_queues.clone().ok(),
            rx_queues: self.rx_queues.clone().ok(),
            offloads: self.offloads.clone().unwrap_or_default(),
            card: card_facts(&self.name),
            attached: None,
            vlan: None,
            gates: None,
            shaping: None,
            launch: None,
        }
    }

    /// Facts about the network interface, with keys `interface.NAME.*`.
    pub fn facts(&self) -> Vec<Fact> {
        let unknown = |why: &String| FactValue::Unknown(why.clone());
        let number = |n: &Result<u32, String>| n.as_ref().map_or_else(unknown, |n| FactValue::Number(i64::from(*n)));
        let text = |t: &Option<String>| {
            t.clone()
                .map_or_else(|| FactValue::Unknown("the kernel does not report this value".into()), FactValue::Text)
        };
        let facts = [
            ("mtu", FactValue::Number(i64::from(self.mtu)), "RTM_GETLINK"),
            ("up", FactValue::Flag(self.up), "RTM_GETLINK"),
            ("state", FactValue::Text(self.state.clone()), "RTM_GETLINK"),
            ("kind", FactValue::Text(self.kind.clone().unwrap_or_else(|| "device".into())), "RTM_GETLINK"),
            ("qdisc", text(&self.qdisc), "RTM_GETLINK"),
            ("tx_queues", number(&self.tx_queues), "ETHTOOL_GCHANNELS or RTM_GETLINK"),
            ("rx_queues", number(&self.rx_queues), "ETHTOOL_GCHANNELS or RTM_GETLINK"),
            ("driver", self.driver.clone().map_or_else(FactValue::Unknown, FactValue::Text), "ETHTOOL_GDRVINFO"),
            (
                "speed_mbit_s",
                self.speed_mbit_s.clone().map_or_else(FactValue::Unknown, FactValue::Number),
                "ETHTOOL_GSET",
            ),
            ("rx_coalesce_us", number(&self.rx_coalesce_us), "ETHTOOL_GCOALESCE"),
            (
                "adaptive_rx",
                self.adaptive_rx.clone().map_or_else(FactValue::Unknown, FactValue::Flag),
                "ETHTOOL_GCOALESCE",
            ),
            (
                "preemption",
                self.preemption.clone().map_or_else(FactValue::Unknown, FactValue::Text),
                "ETHTOOL_MSG_MM_GET",
            ),
            (
                "offloads",
                self.offloads.clone().map_or_else(FactValue::Unknown, |all| FactValue::Text(all.join(" "))),
                "ETHTOOL_GFEATURES",
            ),
        ];
        let key = |word: &str| format!("interface.{}.{word}", self.name);
        facts
            .into_iter()
            .map(|(word, value, source)| Fact { key: key(word), value, source: source.to_owned() })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_read_by_netlink_and_ioctl() {
        let lo = interface_facts("lo").unwrap();
        assert_eq!((lo.index, lo.name.as_str()), (1, "lo"));
        assert!(lo.mtu >= 1500);
        assert!(lo.offloads.as_ref().unwrap().iter().any(|f| f.contains("segmentation")), "{lo:?}");
        assert!(lo.speed_mbit_s.is_err(), "loopback has no speed");
        assert_eq!(lo.path_end("ping", "127.0.0.1").mtu, lo.mtu);
        assert!(lo.facts().iter().all(|f| f.key.starts_with("interface.lo.")));
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error_that_names_it() {
        assert!(interface_facts("tb-not-there").unwrap_err().to_string().contains("tb-not-there"));
    }

    #[test]
    fn facts_follow_the_thread_into_a_namespace() {
        let inside = std::thread::spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).ok()?;
            let add = ["link", "add", "tb-in", "mtu", "9000", "numtxqueues", "3", "numrxqueues", "2", "type", "veth"];
            let peer = ["peer", "name", "tb-peer", "numtxqueues", "1", "numrxqueues", "1"];
            std::process::Command::new("ip").args(add).args(peer).status().ok().filter(|s| s.success())?;
            Some((interface_facts("tb-in").unwrap(), interface_counters().unwrap()))
        });
        match inside.join().unwrap() {
            None => eprintln!("skipped: no network namespace or no veth can be made here"),
            Some((facts, counters)) => {
                assert_eq!((facts.mtu, facts.up, facts.kind.as_deref()), (9000, false, Some("veth")));
                assert_eq!(facts.driver.as_deref(), Ok("veth"));
                assert_eq!(facts.tx_queues, Ok(3), "{facts:?}");
                assert!(counters.iter().any(|c| c.name == "tb-in"));
                assert!(interface_facts("tb-in").is_err(), "the interface does not exist outside the namespace");
            }
        }
    }
}
