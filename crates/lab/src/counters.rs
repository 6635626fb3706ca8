//! Reads counters of interfaces and of the IP layer from /proc/thread-self/net (proc_pid_net(5)).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use tailbound_model::{Counted, Traffic};

/// Names of the groups in /proc/net/snmp and /proc/net/netstat that contain counters of datagrams.
const GROUPS: [&str; 3] = ["Ip", "Udp", "IpExt"];
/// Names of settings that the kernel lists among the counters of /proc/net/snmp.
const SETTINGS: [&str; 2] = ["Forwarding", "DefaultTTL"];

/// Name of the counter of periods in which the control group used up its CPU quota.
pub const THROTTLED_TIMES: &str = "cgroup.nr_throttled";
/// Name of the counter of the time for which a CPU quota stopped the control group, in ns.
pub const THROTTLED_NS: &str = "cgroup.throttled_ns";

/// Reads the counters of an interface of the calling thread's network namespace, and the counters of IP, UDP and CPU
/// throttling. Counters that cannot be read are left out.
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

/// Reads the present counters of all interfaces, and of IP and UDP, in the calling thread's network namespace.
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

/// Parses /proc/net/igmp: the multicast groups that were joined in the namespace, except the all-hosts group
/// (proc_pid_net(5)).
fn groups(igmp: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut device = "";
    for line in igmp.lines().skip(1) {
        let mut words = line.split_ascii_whitespace();
        if line.starts_with('\t') {
            // The group is a hexadecimal number whose bytes are in network order.
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

/// Parses /proc/net/dev, which has a line `Inter-| Receive | Transmit`, a line with the names of the receive and
/// transmit counters, and then a line for each interface.
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

/// Parses the counters of /proc/net/snmp or netstat, which are pairs of lines `Group: names` and `Group: values`.
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
    fn groups_are_reported_with_their_interface() {
        let igmp = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
                    1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n\
                    2\ttb-p1     :     2      V3\n\t\t\t\t0100FFEF     3 0:00000000\t\t0\n";
        assert_eq!(groups(igmp), ["tb-p1 239.255.0.1"]);
    }

    #[test]
    fn only_counters_of_datagrams_are_kept() {
        let text = "Ip: Forwarding DefaultTTL InReceives\nIp: 2 64 77\nTcp: RtoMin\nTcp: 200\nUdp: InErrors\nUdp: -1\n";
        let counters = group_counters(text);
        assert_eq!(counters, BTreeMap::from([("Ip.InReceives".into(), 77), ("Udp.InErrors".into(), -1)]));
    }
}
