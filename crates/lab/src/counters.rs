//! Counters of an interface and of the IP layer, from /proc/thread-self/net inside the namespace (proc_pid_net(5)).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use tailbound_model::{Counted, Traffic};

/// Groups of snmp and netstat that tell about datagrams.
const GROUPS: [&str; 3] = ["Ip", "Udp", "IpExt"];
/// Settings that stand among the counters.
const SETTINGS: [&str; 2] = ["Forwarding", "DefaultTTL"];

/// How often a CPU quota was used up, and how long the control group stood still for it, ns.
pub const THROTTLED_TIMES: &str = "cgroup.nr_throttled";
/// See [`THROTTLED_TIMES`].
pub const THROTTLED_NS: &str = "cgroup.throttled_ns";

/// Counters of an interface of the calling thread's network namespace, and of IP and UDP; empty where they cannot be read.
pub(crate) fn of_interface(interface: &str) -> BTreeMap<String, i64> {
    let text = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
    let mut all = interface_counters(&text("dev"), interface);
    all.extend(group_counters(&text("snmp")));
    all.extend(group_counters(&text("netstat")));
    if let Some(throttled) = tailbound_host::throttle::throttled() {
        all.extend([(THROTTLED_TIMES.to_owned(), throttled.times), (THROTTLED_NS.to_owned(), throttled.ns)]);
    }
    all
}

/// All interfaces of the calling thread's network namespace, and IP and UDP, at this moment.
pub(crate) fn counted() -> io::Result<Counted> {
    let text = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
    let dev = text("dev")?;
    let mut ip = group_counters(&text("snmp")?);
    ip.extend(group_counters(&text("netstat")?));
    let names = dev.lines().skip(2).filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    let interfaces = names.map(|name| (name.to_owned(), traffic(&interface_counters(&dev, name)))).collect();
    // A kernel without multicast has no such file.
    let groups = groups(&text("igmp").unwrap_or_default());
    Ok(Counted { ns: tailbound_host::monotonic_ns(), interfaces, ip, groups })
}

/// Multicast groups that somebody in the namespace has joined, apart from that of all hosts (proc_pid_net(5), igmp).
fn groups(igmp: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut device = "";
    for line in igmp.lines().skip(1) {
        let mut words = line.split_ascii_whitespace();
        if line.starts_with('\t') {
            // Hexadecimal, in the order of the network on a little-endian machine read backwards.
            let group = words.next().and_then(|w| u32::from_str_radix(w, 16).ok()).map(u32::from_be);
            let group = group
                .map(|g| std::net::Ipv4Addr::from(if cfg!(target_endian = "little") { g } else { g.swap_bytes() }));
            found.extend(group.filter(|g| g.octets() != [224, 0, 0, 1]).map(|g| format!("{device} {g}")));
        } else {
            device = words.nth(1).unwrap_or("");
        }
    }
    found.sort();
    found.dedup();
    found
}

fn traffic(counters: &BTreeMap<String, i64>) -> Traffic {
    let of = |name: &str| counters.get(&format!("interface.{name}")).copied().unwrap_or(0);
    Traffic {
        tx_packets: of("tx_packets"),
        tx_bytes: of("tx_bytes"),
        rx_packets: of("rx_packets"),
        rx_bytes: of("rx_bytes"),
        rx_multicast: of("rx_multicast"),
    }
}

/// `Inter-| Receive | Transmit`, then the names of both halves, then a line per interface.
pub(crate) fn interface_counters(dev: &str, interface: &str) -> BTreeMap<String, i64> {
    let names = dev.lines().nth(1).unwrap_or_default();
    let halves: Vec<&str> = names.split('|').skip(1).collect();
    let names = halves.iter().zip(["rx", "tx"]).flat_map(|(half, direction)| {
        half.split_ascii_whitespace().map(move |name| format!("interface.{direction}_{name}"))
    });
    let row = dev.lines().skip(2).filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == interface);
    let values = row.map(|(_, values)| values).unwrap_or_default().split_ascii_whitespace();
    names.zip(values).filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect()
}

/// Pairs of lines: `Group: names` and `Group: values`.
fn group_counters(text: &str) -> BTreeMap<String, i64> {
    let lines: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(':')).collect();
    let pairs = lines.chunks_exact(2).filter(|pair| pair[0].0 == pair[1].0 && GROUPS.contains(&pair[0].0));
    let counters = pairs.flat_map(|pair| {
        let names = pair[0].1.split_ascii_whitespace();
        let values = pair[1].1.split_ascii_whitespace();
        names.zip(values).map(|(name, value)| (pair[0].0, name, value))
    });
    let counters = counters.filter(|(_, name, _)| !SETTINGS.contains(name));
    counters.filter_map(|(group, name, value)| Some((format!("{group}.{name}"), value.parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_counters_carry_their_direction() {
        let dev = "Inter-|   Receive                |  Transmit\n \
                   face |bytes    packets errs multicast|bytes packets\n    \
                   lo:    100       2    0 0     300 4\n  tb-p0: 5 6 7 8 9 10\n";
        let counters = interface_counters(dev, "tb-p0");
        assert_eq!(counters["interface.rx_bytes"], 5);
        assert_eq!(counters["interface.rx_multicast"], 8);
        assert_eq!(counters["interface.tx_packets"], 10);
        assert_eq!(counters.len(), 6);
        assert!(interface_counters(dev, "absent").is_empty());
    }

    #[test]
    fn groups_are_told_with_their_interface() {
        let igmp = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
                    1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n\
                    2\ttb-p1     :     2      V3\n\t\t\t\t0100FFEF     3 0:00000000\t\t0\n";
        assert_eq!(groups(igmp), ["tb-p1 239.255.0.1"]);
    }

    #[test]
    fn only_groups_about_datagrams_are_kept_and_settings_left_out() {
        let text = "Ip: Forwarding DefaultTTL InReceives\nIp: 2 64 77\nTcp: RtoMin\nTcp: 200\nUdp: InErrors\nUdp: -1\n";
        let counters = group_counters(text);
        assert_eq!(counters, BTreeMap::from([("Ip.InReceives".into(), 77), ("Udp.InErrors".into(), -1)]));
    }
}
